# The same while the processors are kept busy, so that whoever watches comes late.
end()
for i in range(20):
    if os.fork() == 0:
        while True:
            pass
for i in range(10):
    if os.fork() == 0:
        kept = []
        while True:
            kept.append(bytearray(b'x') * (1 << 20))
time.sleep(60)
