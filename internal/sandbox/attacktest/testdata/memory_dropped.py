# Shared memory that is let go of after each piece: it is in no process's account, and still there.
import mmap
end()
size, piece = 2 << 30, 16 << 20
m = mmap.mmap(-1, size)
for at in range(0, size, piece):
    m[at:at + piece] = b'x' * piece
    m.madvise(mmap.MADV_DONTNEED, at, piece)
    time.sleep(0.002)
print('took', size)
