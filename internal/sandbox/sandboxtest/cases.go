package sandboxtest

import (
	"strings"
	"time"

	"treeline/internal/sandbox"
)

// The cases are made when they are asked for: a driver's child processes execute the test binary too, and must not wait
// for them.

func outcomes() []Case {
	return []Case{
		{Name: "prints", Code: "print(6*7)", Stdout: "42\n", Tree: map[string]string{}, Outside: []string{}},
		{Name: "nothing at all", Code: ""},
		{Name: "exits with a code", Code: "import sys; sys.exit(3)", Reason: sandbox.Raised, ExitCode: 3},
		{Name: "exits with 0", Code: "import sys; sys.exit(0)"},
		{Name: "raises", Code: "x = 1\ndef f():\n    return x / 0\nf()", Reason: sandbox.Raised, ExitCode: 1,
			Stderr: []string{"Traceback (most recent call last):\n", `main.py", line 4, in <module>`, "    f()\n", `main.py", line 3, in f`,
				"    return x / 0\n", "ZeroDivisionError: division by zero\n"}},
		{Name: "is not Python", Code: "a = (\n", Reason: sandbox.Raised, ExitCode: 1, Stderr: []string{`main.py", line 1`, "SyntaxError"}},
		{Name: "dies of its own signal", Code: "import os; os.abort()", Reason: sandbox.Raised, ExitCode: 134, Signal: 6},
		{Name: "kills itself", Code: "import os; os.kill(os.getpid(), 9)", Reason: sandbox.Raised, ExitCode: 137, Signal: 9},
		{Name: "runs into its time", Code: "import time\nopen('workspace/a', 'w').write('1')\nprint('up')\ntime.sleep(60)",
			Limits: sandbox.Limits{Wall: time.Second}, Reason: sandbox.Timeout, Stdout: "up\n", Tree: map[string]string{"a": "1"},
			Within: 1500 * time.Millisecond},
		{Name: "runs into its time with signals ignored and children everywhere", Code: `
import os, signal
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
for i in range(20):
    if os.fork() == 0:
        os.setsid()
        while True: pass
while True: pass`, Limits: sandbox.Limits{Wall: time.Second}, Reason: sandbox.Timeout, Within: 2 * time.Second},
		{Name: "takes too much memory", Code: "open('workspace/a', 'w').write('1')\na = []\nwhile True: a.append(bytearray(1 << 20))",
			Limits: sandbox.Limits{Memory: 128 << 20}, Reason: sandbox.OutOfMemory, Tree: map[string]string{"a": "1"}},
		{Name: "takes too much memory all at once", Code: "bytearray(3 << 30)", Reason: sandbox.OutOfMemory},
		{Name: "ends while children live on", Code: `
import os, time
if os.fork() == 0:
    os.setsid()
    time.sleep(30)
    open('workspace/late', 'w')
print('done')`, Stdout: "done\n", Tree: map[string]string{}, Within: 5 * time.Second},
		{Name: "a source that is long", Code: strings.Repeat("# filler\n", 200000) + "print('end')", Stdout: "end\n"},
	}
}

func output() []Case {
	return []Case{
		{Name: "an arrow", Code: `print('\u2192')`, Stdout: "→\n"},
		{Name: "bytes that are not text", Code: `import sys; sys.stdout.buffer.write(b'a\xff\xfeb\xe2\x82'); sys.stdout.flush(); print('after')`,
			Stdout: "a\uFFFD\uFFFDb\uFFFD\uFFFDafter\n"},
		{Name: "a byte that came in as a surrogate", Code: `print('\udcff')`, Stdout: "\uFFFD\n"},
		{Name: "of a child", Code: "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(5)'])", Stdout: "5\n"},
		{Name: "no input", Code: "import sys\nprint(repr(sys.stdin.read()))\ninput()", Reason: sandbox.Raised, ExitCode: 1,
			Says: []string{"''\n"}, Stderr: []string{"EOFError"}},
		{Name: "more than is kept", Code: "print('first')\nfor i in range(50000): print('x' * 60)\nprint('last')", Says: []string{"first\n", "x\nlast\n"}},
		{Name: "closed by the program", Code: "import os\nos.close(1); os.close(2)"},
	}
}

func tree() []Case {
	return []Case{
		{Name: "is there, one level down", Put: map[string]string{"workspace/a.txt": "hello", "workspace/d/é": "ü"},
			Code:   "print(open('workspace/a.txt').read(), open('workspace/d/é').read())",
			Stdout: "hello ü\n", Tree: map[string]string{"a.txt": "hello", "d/é": "ü"}},
		{Name: "created, modified, deleted",
			Put: map[string]string{"workspace/m": "m", "workspace/d": "d", "workspace/s": "s"},
			Code: "import os\nos.makedirs('workspace/n/o')\nopen('workspace/n/o/p', 'w').write('1')\nopen('workspace/m', 'a').write('!')\n" +
				"os.remove('workspace/d')",
			Tree: map[string]string{"m": "m!", "s": "s", "n/o/p": "1"}},
		{Name: "everything removed", Put: map[string]string{"workspace/a": "1", "workspace/b/c": "2"},
			Code: "import os, shutil\nos.remove('workspace/a'); shutil.rmtree('workspace/b')", Tree: map[string]string{}},
		{Name: "the folder itself removed and made anew", Put: map[string]string{"workspace/a": "1"},
			Code: "import os, shutil\nshutil.rmtree('workspace'); os.mkdir('workspace'); open('workspace/b', 'w').write('2')",
			Tree: map[string]string{"b": "2"}},
		{Name: "empty files and empty folders", Code: "import os\nos.makedirs('workspace/e/f'); open('workspace/z', 'w')",
			Tree: map[string]string{"z": ""}},
		{Name: "binary", Code: "open('workspace/b', 'wb').write(bytes(range(256)) * 1000)",
			Tree: map[string]string{"b": strings.Repeat(allBytes(), 1000)}},
		{Name: "a write through a mapping that leaves time and size alone", Put: map[string]string{"workspace/a": "1234"}, Code: `
import mmap
with open('workspace/a', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m: m[0:1] = b'9'`, Tree: map[string]string{"a": "9234"}},
		{Name: "links, pipes and sockets", Put: map[string]string{"workspace/k": "1"}, Code: `
import os, socket
os.symlink('/etc/passwd', 'workspace/l'); os.symlink('k', 'workspace/m'); os.symlink('/', 'workspace/root')
os.mkfifo('workspace/p')
socket.socket(socket.AF_UNIX).bind('workspace/s')
os.link('workspace/k', 'workspace/hard')`,
			Tree: map[string]string{"k": "1", "hard": "1"}, Ignored: []string{"l", "m", "p", "root", "s"}},
		{Name: "names that are not text", Code: "open(b'workspace/\\xff\\n', 'w').write('1')", Tree: map[string]string{"\xff\n": "1"}},
		{Name: "modes that forbid", Put: map[string]string{"workspace/d/e/f": "1", "workspace/g": "2"},
			Code: "import os\nos.chmod('workspace/d/e/f', 0)\nos.chmod('workspace/d/e', 0)\nos.chmod('workspace/d', 0)\nos.chmod('workspace/g', 0o200)\n" +
				"os.chmod('workspace', 0)\nos.chmod('.', 0)",
			Tree: map[string]string{"d/e/f": "1", "g": "2"}},
		{Name: "folders deeper than a path may be", Code: `
import os
os.chdir('workspace')
open('top', 'w').write('1')
for i in range(1500):
    os.mkdir('d'); os.chdir('d')
open('deep', 'w').write('1')`, Tree: map[string]string{"top": "1"},
			Ignored: []string{strings.Repeat("d/", 768) + "d"}, Within: 5 * time.Second},
		{Name: "many files", Code: "import os\nfor i in range(1500): open(f'workspace/{i}', 'w')", Says: []string{}, Within: 10 * time.Second},
		{Name: "what is left outside", Put: map[string]string{"inputs/files/i": "i", "skills/s/SKILL.md": "# S"}, Code: `
import os
open('out.csv', 'w'); os.makedirs('d/e'); open('d/f', 'w'); os.symlink('x', 'l'); open('/tmp/t', 'w'); open(os.path.expanduser('~/h'), 'w')`,
			Tree: map[string]string{}, Outside: []string{"d/e/", "d/f", "l", "out.csv"}},
		{Name: "inputs and skills are read-only", Put: map[string]string{"inputs/files/i": "i", "skills/s/x.py": "print('skilled')"}, Code: `
import os, subprocess, sys
print(open('inputs/files/i').read())
sys.stdout.flush()
subprocess.run([sys.executable, 'skills/s/x.py'], check=True)
def refused(f, *a):
    try: f(*a)
    except OSError: return
    print('allowed', f, a)
for folder in ('inputs', 'skills'):
    refused(open, folder + '/new', 'w'); refused(os.mkdir, folder + '/new'); refused(os.rename, folder, 'elsewhere'); refused(os.rmdir, folder)
    refused(os.chmod, folder, 0o777)
refused(open, 'inputs/files/i', 'a'); refused(os.remove, 'inputs/files/i'); refused(os.remove, 'skills/s/x.py')`,
			Stdout: "i\nskilled\n", Outside: []string{}},
		{Name: "modules of one's own", Put: map[string]string{"workspace/helper.py": "def f():\n    raise KeyError('k')\n"},
			Code: "from workspace import helper\nhelper.f()", Reason: sandbox.Raised, ExitCode: 1,
			Stderr: []string{"/work/workspace/helper.py\", line 2, in f\n    raise KeyError('k')\n", "KeyError: 'k'"},
			Tree:   map[string]string{"helper.py": "def f():\n    raise KeyError('k')\n"}},
	}
}

func allBytes() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

func standardLibrary() []Case {
	return []Case{
		{Name: "subprocess", Code: `
import subprocess, sys
print(subprocess.run([sys.executable, '-c', 'import sys; print(sys.argv)', 'a'], capture_output=True, text=True).stdout.strip())
print(subprocess.run('echo shell', shell=True, capture_output=True, text=True).stdout.strip())
print(subprocess.run(['/bin/sh', '-c', 'exit 4']).returncode)`, Stdout: "['-c', 'a']\nshell\n4\n"},
		{Name: "threads", Code: `
import concurrent.futures as c, threading
with c.ThreadPoolExecutor(20) as p: print(sum(p.map(lambda x: x * x, range(100))))`, Stdout: "328350\n"},
		{Name: "processes", Code: `
import multiprocessing as m
def f(x): return x * x
if __name__ == '__main__':
    for method in ('fork', 'spawn', 'forkserver'):
        with m.get_context(method).Pool(2) as p: print(method, sum(p.map(f, range(10))))
    q = m.Queue(); q.put(1); print(q.get())
    with m.Manager() as g: print(list(g.list([1, 2])))`, Stdout: "fork 285\nspawn 285\nforkserver 285\n1\n[1, 2]\n"},
		{Name: "shared memory", Code: `
from multiprocessing import shared_memory
m = shared_memory.SharedMemory(create=True, size=1 << 20); m.buf[0] = 7; print(m.buf[0]); m.close(); m.unlink()`, Stdout: "7\n"},
		{Name: "asyncio", Code: `
import asyncio, sys
async def main():
    p = await asyncio.create_subprocess_exec(sys.executable, '-c', 'print(3)', stdout=asyncio.subprocess.PIPE)
    print((await p.communicate())[0], await asyncio.gather(*[asyncio.sleep(0.01, i) for i in range(3)]))
asyncio.run(main())`, Stdout: "b'3\\n' [0, 1, 2]\n"},
		{Name: "sqlite", Code: `
import sqlite3
c = sqlite3.connect('workspace/x.db'); c.execute('pragma journal_mode=wal'); c.execute('create table t(a)'); c.execute('insert into t values (1)')
c.commit(); print(c.execute('select a from t').fetchall()); c.close()`, Stdout: "[(1,)]\n"},
		{Name: "temporary files", Code: `
import os, pathlib, shutil, tempfile
with tempfile.TemporaryDirectory() as d: pathlib.Path(d, 'a').write_text('1'); shutil.copytree(d, 'workspace/c')
with tempfile.NamedTemporaryFile() as f: f.write(b'1')
os.rename('workspace/c/a', 'workspace/b'); os.rmdir('workspace/c')`, Tree: map[string]string{"b": "1"}},
		{Name: "time zones, random, hashes, user", Code: `
import datetime, getpass, hashlib, os, random, secrets, ssl, uuid, zoneinfo
print(datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Helsinki')).utcoffset(), len(secrets.token_bytes(8)), len(os.urandom(4)))
print(getpass.getuser(), os.path.expanduser('~'), hashlib.sha256(b'').hexdigest()[:8]); random.random(); uuid.uuid1(); uuid.uuid4()`,
			Stdout: "3:00:00 8 4\nuser /home e3b0c442\n"},
		{Name: "standard streams by path", Code: "open('/dev/stdout', 'w').write('out'); open('/dev/null', 'w').write('x'); print(len(open('/dev/zero', 'rb').read(9)))",
			Says: []string{"out", "9"}},
		{Name: "limits and priorities of one's own", Code: `
import os, resource
resource.setrlimit(resource.RLIMIT_CPU, (100, 100)); print(resource.getrlimit(resource.RLIMIT_CPU))
os.nice(3); os.sched_setaffinity(0, os.sched_getaffinity(0)); print(os.nice(0) >= 3, os.cpu_count() >= 1)`, Stdout: "(100, 100)\nTrue True\n"},
		{Name: "devices", Code: "import os\ntry: os.open('/dev/full', os.O_WRONLY) and os.write(3, b'x')\nexcept OSError as e: print(e.errno)"},
	}
}

// libraries gives what data work uses; each is run where it is installed.
func libraries() map[string]Case {
	return map[string]Case{
		"numpy": {Code: "import numpy as n\na = n.random.default_rng(1).random((300, 300)); print(n.allclose(a @ n.linalg.inv(a), n.eye(300)))",
			Stdout: "True\n"},
		"pandas": {Put: map[string]string{"inputs/files/s.csv": "g,n\na,1\nb,2\na,3\n"},
			Code:   "import pandas as p\nprint(p.read_csv('inputs/files/s.csv').groupby('g').n.sum().to_dict())",
			Stdout: "{'a': 4, 'b': 2}\n"},
		"openpyxl": {Code: `
import openpyxl
b = openpyxl.Workbook(); b.active['A1'] = 5; b.save('workspace/x.xlsx'); print(openpyxl.load_workbook('workspace/x.xlsx').active['A1'].value)`,
			Stdout: "5\n"},
		"matplotlib": {Code: `
import matplotlib.pyplot as p
p.plot([1, 2, 3]); p.title('é'); p.savefig('workspace/x.png'); p.savefig('workspace/x.pdf'); print(open('workspace/x.png', 'rb').read(4))`,
			Stdout: "b'\\x89PNG'\n"},
	}
}

func seal() []Case {
	return []Case{
		{Name: "no network", Code: `
import socket
try: print('ifs', [n for _, n in socket.if_nameindex() if n != 'lo'])
except OSError: print('ifs', [])
for family, to in ((socket.AF_INET, ('127.0.0.1', 80)), (socket.AF_INET, ('1.1.1.1', 53)), (socket.AF_INET6, ('::1', 80))):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            s = socket.socket(family, kind); s.settimeout(2); s.connect(to); print('open', to)
        except OSError: pass
try: print(socket.getaddrinfo('example.com', 80))
except OSError: print('no names')`, Stdout: "ifs []\nno names\n"},
		{Name: "no namespaces, no mounts", Code: `
import ctypes, os
l = ctypes.CDLL(None, use_errno=True)
def call(*a):
    r = l.syscall(*a); return 'EPERM' if r == -1 and ctypes.get_errno() == 1 else r
print([call(272, f) for f in (0x10000000, 0x20000, 0x40000000)], call(165, b'none', b'/tmp', b'tmpfs', 0, None), call(166, b'/work', 2))
print(call(56, 0x10000000 | 17, 0, 0, 0, 0), call(155, b'/', b'/tmp'), call(161, b'/tmp'), call(308, 0, 0), call(428, -100, b'/', 1))
print('alive')`, Stdout: "['EPERM', 'EPERM', 'EPERM'] EPERM EPERM\nEPERM EPERM EPERM EPERM EPERM\nalive\n"},
		{Name: "no rights", Code: "import os\ns = open('/proc/self/status').read()\nprint([l.split()[1] for l in s.splitlines() if l[:3] == 'Cap' or l[:5] == 'NoNew' or l[:8] == 'Seccomp:'])\n" +
			"try: os.setuid(0)\nexcept OSError: print('no root')",
			Stdout: "['0000000000000000', '0000000000000000', '0000000000000000', '0000000000000000', '0000000000000000', '1', '2']\nno root\n"},
		{Name: "no environment", Code: `
import glob, os
print(sorted(k for k in os.environ if k not in ('PATH', 'HOME', 'USER', 'LANG', 'TZ', 'TMPDIR', 'LC_CTYPE') and k[:6] != 'PYTHON' and k[:3] != 'MPL'))
print([p for p in glob.glob('/proc/[0-9]*/environ') if int(p.split('/')[2]) != os.getpid() and os.access(p, os.R_OK)])`, Stdout: "[]\n[]\n"},
		{Name: "nothing of the host's", Code: `
import os
for p in ('/root', '/etc/shadow', '/etc/hostname', '/etc/ssh', '/var/run', '/var/lib', '/sys', '/proc/sys', '/proc/meminfo', '/proc/kcore', '/boot', '/mnt',
          '/usr/bin/ls', '/usr/sbin', '/dev/kmsg', '/dev/vda', '/dev/tty', '/usr/local/bin'):
    if os.path.exists(p): print(p)
print(sorted(os.listdir('/home')), sorted(os.listdir('/tmp')), len(open('/etc/passwd').read().splitlines()))`, Stdout: "[] [] 1\n"},
		{Name: "a root that cannot be written", Code: `
import os
def walk(top, depth):
    for e in os.scandir(top):
        if e.is_dir(follow_symlinks=False) and e.path not in ('/work', '/tmp', '/home', '/proc', '/dev/shm'):
            for name in ('x',):
                try: open(e.path + '/' + name, 'w'); print('wrote', e.path)
                except OSError: pass
            if depth:
                try: walk(e.path, depth - 1)
                except PermissionError: pass
try: open('/x', 'w'); print('wrote /')
except OSError: pass
walk('/', 2)
print('done')`, Stdout: "done\n"},
		{Name: "no descriptor but three", Code: "import os\nprint(sorted(int(f) for f in os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))",
			Stdout: "[0, 1, 2] 4\n"},
		{Name: "the first process stands", Code: `
import os, signal
for s in range(1, 65):
    try: os.kill(1, s)
    except OSError: pass
for p in ('mem', 'environ', 'maps', 'fd', 'root', 'cwd', 'exe'):
    try: (os.listdir if p in ('fd', 'root', 'cwd') else (lambda q: open(q, 'rb').read(1)))(f'/proc/1/{p}'); print('read', p)
    except OSError: pass
import time; time.sleep(0.2)
print('stands')`, Stdout: "stands\n"},
	}
}

func limits() []Case {
	return []Case{
		{Name: "processes", Limits: sandbox.Limits{Processes: 20}, Code: `
import os, time
n = 0
try:
    while n < 100:
        if os.fork() == 0: time.sleep(30); os._exit(0)
        n += 1
except OSError as e: print(12 <= n <= 19, e.errno)`, Stdout: "True 11\n"},
		{Name: "threads", Limits: sandbox.Limits{Processes: 20}, Code: `
import threading, time
n = 0
try:
    while n < 100: threading.Thread(target=time.sleep, args=(30,), daemon=True).start(); n += 1
except RuntimeError: print(12 <= n <= 19)`, Stdout: "True\n"},
		{Name: "a fork bomb", Limits: sandbox.Limits{Wall: 2 * time.Second}, Code: "import os\nwhile True:\n try: os.fork()\n except OSError: pass",
			Reason: sandbox.Timeout, Within: 4 * time.Second},
		{Name: "disk", Limits: sandbox.Limits{Disk: 8 << 20}, Code: `
import errno
for path in ('workspace/a', '/tmp/a', '/home/a', '/dev/shm/a', 'a'):
    try:
        with open(path, 'wb', 0) as f:
            while True: f.write(bytes(1 << 20))
    except OSError as e: print(errno.errorcode[e.errno])
    import os; os.remove(path)`, Stdout: strings.Repeat("ENOSPC\n", 5)},
		{Name: "inodes", Limits: sandbox.Limits{Inodes: 200}, Code: `
import errno
try:
    for i in range(1000): open(f'/tmp/{i}', 'w')
except OSError as e: print(errno.errorcode[e.errno], 150 < i < 200)`, Stdout: "ENOSPC True\n"},
		{Name: "file size", Limits: sandbox.Limits{FileSize: 1 << 20}, Code: `
import errno
try: open('workspace/a', 'wb', 0).truncate(1 << 21)
except OSError as e: print(errno.errorcode[e.errno])`, Stdout: "EFBIG\n"},
		{Name: "open files", Limits: sandbox.Limits{OpenFiles: 64}, Code: `
import errno
kept = []
try:
    while True: kept.append(open('/dev/null'))
except OSError as e: print(errno.errorcode[e.errno], len(kept))`, Stdout: "EMFILE 61\n"},
		{Name: "memory of many processes together", Limits: sandbox.Limits{Memory: 200 << 20}, Code: `
import os, time
for i in range(8):
    if os.fork() == 0:
        a = bytearray(os.urandom(1 << 20)) * 40; time.sleep(30); os._exit(0)
time.sleep(30)`, Reason: sandbox.OutOfMemory},
		{Name: "memory that is shared counts once", Limits: sandbox.Limits{Memory: 200 << 20}, Code: `
import os, time
a = bytearray(80 << 20)
kids = []
for i in range(8):
    pid = os.fork()
    if pid == 0: time.sleep(0.5); os._exit(0)
    kids.append(pid)
for k in kids: os.waitpid(k, 0)
print('fits')`, Stdout: "fits\n"},
		{Name: "memory in files", Limits: sandbox.Limits{Memory: 64 << 20}, Code: "import time\nopen('/tmp/a', 'wb').write(bytes(1 << 20) * 1)\nf = open('/tmp/b', 'wb')\nfor i in range(200): f.write(bytes(1 << 20))\ntime.sleep(30)",
			Reason: sandbox.OutOfMemory},
		{Name: "memory that is mapped and shared", Limits: sandbox.Limits{Memory: 64 << 20}, Code: `
import mmap, time
m = mmap.mmap(-1, 300 << 20)
for i in range(0, 300 << 20, 4096): m[i] = 1
time.sleep(30)`, Reason: sandbox.OutOfMemory},
	}
}
