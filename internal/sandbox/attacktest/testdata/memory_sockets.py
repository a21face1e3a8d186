# What lies in sockets is nobody's memory.
import socket
end()
for i in range(12):
    if os.fork() == 0:
        kept = []
        try:
            while True:
                pair = socket.socketpair()
                kept.append(pair)
                for s in pair:
                    s.setblocking(False)
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
                    try:
                        while True:
                            s.send(b'x' * 65536)
                    except BlockingIOError:
                        pass
        except OSError:
            pass
        time.sleep(60)
time.sleep(8)
print('took it all')
