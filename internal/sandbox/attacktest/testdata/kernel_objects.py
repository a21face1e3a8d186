# All that can be had of what the kernel keeps for descriptors, in many processes, for three seconds; then to be stopped.
import select, socket
began = time.monotonic()


def until_refused(take):
    kept = []
    try:
        while time.monotonic() - began < 3 and len(kept) < 1 << 20:
            kept.append(take())
    except (OSError, BlockingIOError):
        pass
    return kept


def watches():
    kept = []
    reader, writer = os.pipe()
    descriptors = [os.dup(reader) for _ in range(400)]
    for epoll in [select.epoll() for _ in range(400)]:
        for d in descriptors:
            epoll.register(d, select.EPOLLIN)
            kept.append(d)
            if len(kept) == 100000:
                got('watches')


def changes():
    made = call('inotify_init1', 0)
    if isinstance(made, int):
        got('inotify')


def semaphores():
    for n in range(10):
        if isinstance(call('semget', 0, 32000, 0o1600), int):
            got('semaphores')
            return


def full_pipe():
    ends = os.pipe()
    os.set_blocking(ends[1], False)
    os.write(ends[1], b'x' * 65536)
    return ends


def timer():
    made = call('timer_create', 0, 0, ctypes.create_string_buffer(8).raw)
    if not isinstance(made, int):
        raise OSError
    return made


def numbered(name, *arguments):
    made = call(name, *arguments)
    if not isinstance(made, int):
        raise OSError(made)
    return made


takes = [
    watches, changes, semaphores,
    lambda: until_refused(full_pipe),
    lambda: until_refused(lambda: numbered('timerfd_create', 1, 0)),
    lambda: until_refused(lambda: numbered('eventfd2', 1, 0)),
    lambda: until_refused(lambda: numbered('signalfd4', -1, bytes(8), 8, 0)),
    lambda: until_refused(lambda: numbered('pidfd_open', os.getpid(), 0)),
    lambda: until_refused(lambda: os.dup(0)),
    lambda: until_refused(timer),
]
for i in range(40):
    if os.fork() == 0:
        try:
            kept = takes[i % len(takes)]()
        except OSError:
            pass
        time.sleep(100)
time.sleep(4)
end()
time.sleep(100)
