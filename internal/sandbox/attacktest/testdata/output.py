piece = b'\x1b[2J\x1b]0;title\x07\x00\xff\xfe\r\x08' * 5000 + b'\n'
os.write(1, b'begin\n')
for i in range(1500):
    os.write(1, piece)
    os.write(2, piece)
os.write(1, b'end\n')
