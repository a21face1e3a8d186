listed = sorted(int(f) for f in os.listdir('/proc/self/fd'))
for fd in listed[3:-1]:
    got('descriptor', fd, os.readlink(f'/proc/self/fd/{fd}'))
for fd in range(3, 5000):
    tries(f'descriptor {fd}', os.fstat, fd)
for fd in (0, 1, 2):
    where = os.readlink(f'/proc/self/fd/{fd}')
    if not where.startswith('pipe:') and where != '/dev/null':
        got(fd, where)
if os.read(0, 10) != b'':
    got('input')
end()
