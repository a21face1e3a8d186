# Reading memory that was never written costs no page of it, but the tables that lead there.
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
end()
size = 1 << 40
at = libc.mmap(None, size, 1, 0x4022, -1, 0)
if at in (None, 2 ** 64 - 1):
    sys.exit(0)
libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(size), 15)  # no huge pages
for offset in range(0, size, 2 << 20):
    ctypes.c_char.from_address(at + offset).value
print('took', size >> 9)
time.sleep(60)
