# The same calls by the doors for other programs: the 32-bit one and x32, whose numbers mean other calls.
import mmap, platform


def executable(code):
    m = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    m.write(code)
    return ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))


if platform.machine() == 'x86_64':
    def by_interrupt():  # getpid and unshare as 32-bit programs call them
        pid = executable(b'\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3')()
        return 1 if 0 < (pid & 0xffffffff) < 0xfffff000 else 0

    def by_interrupt_mount():
        r = executable(b'\x53\xb8\x36\x01\x00\x00\xbb\x00\x00\x00\x10\xcd\x80\x5b\xc3')()
        return 1 if r & 0xffffffff == 0 else 0

    def x32():
        return 1 if libc.syscall(ctypes.c_long(0x40000000 | 39)) > 0 else 0

    for what, f in (('int 80', by_interrupt), ('unshare by int 80', by_interrupt_mount), ('x32', x32)):
        if child(f) == 1:
            got(what)
end()
