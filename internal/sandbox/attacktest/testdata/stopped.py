# Everything stops itself, so that nothing is left to be woken by a signal.
open('workspace/begun', 'w').write('1')
end()
for i in range(5):
    if os.fork() == 0:
        os.setsid()
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
os.kill(os.getpid(), signal.SIGSTOP)
