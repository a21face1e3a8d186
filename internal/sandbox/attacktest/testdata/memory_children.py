end()
for i in range(30):
    if os.fork() == 0:
        kept = []
        while True:
            kept.append(bytearray(os.urandom(4096)) * 256)
time.sleep(60)
