# Every signal to the first process of the namespace, to the parent, and to groups that are none of the program's.
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
if os.getppid() not in (0, 1):
    got('a parent', os.getppid())
for number in list(range(1, 65)):
    try:
        os.kill(1, number)
    except OSError:
        pass
    for pid in range(2, 30):  # among them the first process's threads
        if pid != os.getpid():
            try:
                os.kill(pid, number)
            except OSError:
                pass
            call('tgkill', 1, pid, number)
    for pid in (HOST['worker'], HOST['first']):
        tries(f'signal {number} to {pid}', os.kill, pid, number)
fd = call('pidfd_open', 1, 0)
if isinstance(fd, int):
    for number in (9, 19):
        call('pidfd_send_signal', fd, number, 0, 0)
    if call('pidfd_getfd', fd, 3, 0) not in ('EPERM', 'ENOSYS'):
        got("the first process's descriptors")
time.sleep(0.2)
end()
