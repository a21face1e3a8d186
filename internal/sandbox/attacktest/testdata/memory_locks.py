# A file may have any number of locks.
import fcntl
end()
for i in range(12):
    if os.fork() == 0:
        for k in range(500):
            file = open('/tmp/%d_%d' % (i, k), 'w')
            globals()['kept%d' % k] = file
            for j in range(1000):
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 2 * j)
        time.sleep(60)
time.sleep(30)
print('took it all')
