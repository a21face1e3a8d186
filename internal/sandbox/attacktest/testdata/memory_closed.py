# What was sent and not received is there although its sender is closed.
import socket
end()
kept = []
for i in range(60):
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.bind('\0receiver%d' % i)
    kept.append(receiver)
    for j in range(11):
        sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
        sender.setblocking(False)
        try:
            sender.sendto(b'x' * 200000, '\0receiver%d' % i)
        except BlockingIOError:
            pass
        sender.close()
time.sleep(8)
print('took it all')
