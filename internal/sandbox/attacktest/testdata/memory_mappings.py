# Each mapping is described in the kernel, however little is in it.
end()
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for i in range(12):
    if os.fork() == 0:
        for n in range(65000):
            libc.mmap(None, 1 << 14, n % 2, 0x22, -1, 0)
        time.sleep(60)
time.sleep(20)
print('took it all')
