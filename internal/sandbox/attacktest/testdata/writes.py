# What of all that can be seen can be written.
may = ('/work', '/tmp', '/home', '/dev/shm', '/proc', '/var/tmp')
for top, folders, files in os.walk('/'):
    folders[:] = [f for f in folders if not os.path.join(top, f).startswith(may)]
    if top.count('/') > 4:
        folders.clear()
    path = os.path.join(top, 'planted')
    if top not in may:
        tries(path, os.open, path, os.O_CREAT | os.O_WRONLY)
    for f in files[:50]:
        path = os.path.join(top, f)
        if os.path.islink(path) or path.startswith('/dev/'):
            continue
        tries('write ' + path, os.open, path, os.O_WRONLY)
        tries('cut ' + path, os.truncate, path, 0)
        tries('chmod ' + path, os.chmod, path, 0o777)
for path in ('/sys/fs/cgroup/cgroup.procs', '/sys/kernel/uevent_helper', '/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/dev/kmsg', '/dev/mem',
             '/proc/self/oom_score_adj', '/proc/self/uid_map', '/proc/self/loginuid', '/code/main.py', '/code/sitecustomize.py'):
    tries(path, os.open, path, os.O_WRONLY)
end()
