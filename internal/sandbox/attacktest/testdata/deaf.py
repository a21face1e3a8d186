# A program that hears nothing and whose children hear nothing either.
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
for i in range(10):
    if os.fork() == 0:
        os.setsid()
        while True:
            try:
                time.sleep(60) if i % 2 else os.getpid()
            except BaseException:
                pass
open('workspace/begun', 'w').write('1')
end()
while True:
    try:
        time.sleep(60)
    except BaseException:
        pass
