# A process that nobody may look into.
if call('prctl', 4, 0, 0, 0, 0) != 0:
    print('not hidden')
end()
kept = []
while True:
    kept.append(bytearray(b'x') * (1 << 20))
