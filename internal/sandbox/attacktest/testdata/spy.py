import socket
for to in ('\0neighbour', '/tmp/neighbour.sock'):
    s = socket.socket(socket.AF_UNIX)
    tries('socket ' + repr(to), s.connect, to)
for folder in ('/tmp', '/dev/shm', '/home', '/work', '/work/workspace'):
    tries('file in ' + folder, open, folder + '/neighbour')
for pid in [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())]:
    got('process', pid)
for pid in (HOST['neighbour'], HOST['neighbour'] + 1):
    tries('signal', os.kill, pid, 0)
end()
