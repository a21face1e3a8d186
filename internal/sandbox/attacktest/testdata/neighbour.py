# What another run leaves lying about while it runs, for a neighbour to find.
word = HOST['word']
for folder in ('/tmp', '/dev/shm', '/home', '/work', '/work/workspace'):
    open(folder + '/neighbour', 'w').write(word)
import socket
a = socket.socket(socket.AF_UNIX)
a.bind('\0neighbour')
a.listen()
b = socket.socket(socket.AF_UNIX)
b.bind('/tmp/neighbour.sock')
b.listen()
end()
time.sleep(60)
