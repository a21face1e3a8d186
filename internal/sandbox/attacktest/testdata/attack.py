# What every attack begins with. An attack prints a line for each thing that it got and should not have, and "end".
import ctypes, errno, os, signal, sys, time

CALLS = @CALLS@  # the system calls' numbers, by name
HOST = @HOST@  # what is on the host, for the attack to look for
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def got(*what):
    print('got', *what, flush=True)


def call(name, *arguments):
    """Give what a system call gives, or the name of its error."""
    wide = [a if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
    result = libc.syscall(ctypes.c_long(CALLS[name]), *wide)
    return errno.errorcode.get(ctypes.get_errno(), 'error') if result == -1 else result


def tries(what, f, *arguments, **named):
    """Report what succeeds; give its result, None if it was refused."""
    try:
        result = f(*arguments, **named)
    except (OSError, ValueError):
        return None
    got(what)
    return result


def child(f):
    """Run f in a child and give its exit status, negative if a signal ended it."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = f() or 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def end():
    print('end', flush=True)

