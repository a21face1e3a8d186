for pid in [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())]:
    got('process', pid)
for name in os.listdir('/proc'):
    if not name.isdigit() and name not in ('self', 'thread-self', 'mounts', 'net'):
        got('/proc/' + name)
for path in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/proc/kcore', '/proc/kmsg', '/proc/kallsyms', '/proc/keys', '/proc/meminfo',
             '/proc/sys/kernel/modprobe', '/proc/sys/vm/overcommit_memory', '/proc/config.gz', '/proc/timer_list', '/proc/acpi', '/proc/bus'):
    if os.path.exists(path):
        got(path)
for who in ('1', 'self', 'thread-self'):
    for top, folders, files in os.walk('/proc/' + who):
        folders[:] = [f for f in folders if f not in ('fd', 'map_files', 'root', 'cwd', 'task')]
        for f in files:
            path = os.path.join(top, f)
            if os.path.islink(path):
                continue
            if who != '1':
                tries('write ' + path, os.open, path, os.O_WRONLY)
for name in ('mem', 'environ', 'maps', 'auxv', 'stack', 'syscall', 'personality', 'io', 'fd/3', 'root/etc/passwd', 'cwd', 'exe', 'ns/mnt', 'map_files'):
    path = '/proc/1/' + name
    try:
        if name in ('cwd', 'exe', 'ns/mnt'):
            os.readlink(path)
        elif name == 'map_files':
            os.listdir(path)
        else:
            open(path, 'rb').read(1)
        got('read', path)
    except OSError:
        pass
end()
