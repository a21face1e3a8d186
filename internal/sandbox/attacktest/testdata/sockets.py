import socket
for index, name in socket.if_nameindex():
    if name != 'lo':
        got('interface', name)
for what, family, kind, to in (
    ('tcp of the host', socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', HOST['tcp'])),
    ('udp of the host', socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', HOST['udp'])),
    ('tcp v6 of the host', socket.AF_INET6, socket.SOCK_STREAM, ('::1', HOST['tcp'])),
    ('tcp outside', socket.AF_INET, socket.SOCK_STREAM, ('1.1.1.1', 80)),
    ('dns outside', socket.AF_INET, socket.SOCK_DGRAM, ('8.8.8.8', 53)),
    ('cloud metadata', socket.AF_INET, socket.SOCK_STREAM, ('169.254.169.254', 80)),
    ('multicast', socket.AF_INET, socket.SOCK_DGRAM, ('224.0.0.251', 5353)),
    ('broadcast', socket.AF_INET, socket.SOCK_DGRAM, ('255.255.255.255', 67)),
    ('path socket of the host', socket.AF_UNIX, socket.SOCK_STREAM, HOST['socket']),
    ('path socket by the root', socket.AF_UNIX, socket.SOCK_STREAM, '/proc/self/root' + HOST['socket']),
    ('abstract socket of the host', socket.AF_UNIX, socket.SOCK_STREAM, '\0' + HOST['abstract']),
    ('abstract datagram of the host', socket.AF_UNIX, socket.SOCK_DGRAM, '\0' + HOST['abstract'] + '-datagram'),
):
    try:
        s = socket.socket(family, kind)
        s.settimeout(1)
        if what == 'broadcast':
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        s.connect(to)
        s.send(b'x')
        got(what)
    except OSError:
        pass
for what, arguments in (
    ('raw', (socket.AF_INET, socket.SOCK_RAW, 1)), ('raw v6', (socket.AF_INET6, socket.SOCK_RAW, 58)), ('packet', (17, socket.SOCK_RAW, 768)),
    ('vsock', (40, socket.SOCK_STREAM, 0)), ('bluetooth', (31, socket.SOCK_RAW, 1)), ('algorithms', (38, socket.SOCK_SEQPACKET, 0)),
    ('keys', (15, socket.SOCK_RAW, 2)), ('can', (29, socket.SOCK_RAW, 1)), ('xdp', (44, socket.SOCK_RAW, 0)), ('tipc', (30, socket.SOCK_STREAM, 0)),
    ('rds', (21, socket.SOCK_SEQPACKET, 0)), ('kernel events', (16, socket.SOCK_RAW, 15)), ('audit', (16, socket.SOCK_RAW, 9)),
    ('netfilter', (16, socket.SOCK_RAW, 12)), ('sock_diag', (16, socket.SOCK_RAW, 4)), ('generic netlink', (16, socket.SOCK_RAW, 16)),
    ('smc', (43, socket.SOCK_STREAM, 0)),
):
    s = tries(what, socket.socket, *arguments)
for name in ('example.com', 'localhost.localdomain', 'metadata.google.internal'):
    tries('the address of ' + name, socket.getaddrinfo, name, 80)
# Bring the loopback interface up: RTM_NEWLINK, index 1, IFF_UP.
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
s.settimeout(1)
s.send((32).to_bytes(4, 'little') + (16).to_bytes(2, 'little') + (5).to_bytes(2, 'little') + bytes(8) +
       bytes(4) + (1).to_bytes(4, 'little') + (1).to_bytes(4, 'little') + (1).to_bytes(4, 'little'))
answer = s.recv(4096)
if int.from_bytes(answer[4:6], 'little') != 2 or int.from_bytes(answer[16:20], 'little', signed=True) == 0:
    got('the loopback interface up')
end()
