# Descriptors that are on their way count for their user, whatever run he sends them in.
import array, socket
null = os.open('/dev/null', os.O_RDONLY)
kept = []
try:
    for i in range(40):
        a, b = socket.socketpair()
        kept.append((a, b))
        a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [null] * 250))])
except OSError:
    pass
# Pipes as large as may be, and nothing taken from them.
import fcntl
for i in range(200):
    r, w = os.pipe()
    kept.append((r, w))
    os.set_blocking(w, False)
    try:
        fcntl.fcntl(w, 1031, 1 << 20)
    except OSError:
        pass
    try:
        while True:
            os.write(w, bytes(65536))
    except OSError:
        pass
end()
time.sleep(60)
