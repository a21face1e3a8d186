# None of these does anything with such arguments; the question is whether the kernel looks at them at all.
for name in HOST['forbidden'].split():
    if name not in CALLS:
        continue
    answer = call(name, 0, 0, 0, 0, 0, 0)
    if answer not in ('EPERM', 'ENOSYS'):
        got(name, answer)
for name, arguments in (
    ('mount', (b'none', b'/tmp', b'tmpfs', 0, 0)), ('mount', (0, b'/', 0, 1 << 5 | 1 << 12, 0)), ('umount2', (b'/work/inputs', 2)),
    ('pivot_root', (b'/', b'/tmp')), ('chroot', (b'/tmp',)), ('setns', (0, 0)), ('keyctl', (0, -3, 1)), ('bpf', (5, 0, 0)),
    ('open_tree', (-100, b'/', 1)), ('fsopen', (b'tmpfs', 0)), ('memfd_create', (b'x', 0)), ('personality', (0x0040000,)),
    ('process_vm_readv', (1, 0, 0, 0, 0, 0)), ('ptrace', (0, 0, 0, 0)), ('ptrace', (16, 1, 0, 0)), ('syslog', (3, 0, 0)),
    ('sethostname', (b'x', 1)), ('name_to_handle_at', (-100, b'/', 0, 0, 0)), ('ioctl', (0, 0x5412, 0)), ('ioctl', (0, 0x40086602, 0)),
):
    answer = call(name, *arguments)
    if answer not in ('EPERM', 'ENOSYS'):
        got(name, answer)
flags = {'user': 0x10000000, 'mount': 0x20000, 'pid': 0x20000000, 'net': 0x40000000, 'ipc': 0x8000000, 'uts': 0x4000000, 'cgroup': 0x2000000}
for what, flag in flags.items():
    for arguments in (('unshare', flag), ('clone', flag | signal.SIGCHLD, 0, 0, 0, 0), ('clone', 1 << 32 | flag | signal.SIGCHLD, 0, 0, 0, 0)):
        answer = call(*arguments)
        if answer == 0 and arguments[0] == 'clone':
            os._exit(0)
        if answer != 'EPERM':
            got(arguments[0], what, answer)
tries('time namespace', lambda: 1 / 0 if call('unshare', 0x80) != 'EPERM' else os.stat('/nowhere'))
if call('clone3', 0, 0) != 'ENOSYS':
    got('clone3')
print('alive')
end()
