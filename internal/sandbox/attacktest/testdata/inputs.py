import mmap
for top in ('inputs', 'skills'):
    for path in (top, top + '/d', top + '/d/f'):
        tries('chmod ' + path, os.chmod, path, 0o777)
        tries('times of ' + path, os.utime, path)
        tries('rename ' + path, os.rename, path, 'workspace/x')
        tries('link ' + path, os.link, path, 'workspace/hard-' + top)
    tries('create', open, top + '/new', 'w')
    tries('folder', os.mkdir, top + '/new')
    tries('symlink', os.symlink, '/etc', top + '/new')
    tries('pipe', os.mkfifo, top + '/new')
    tries('write', open, top + '/d/f', 'r+')
    tries('cut', os.truncate, top + '/d/f', 0)
    tries('remove', os.remove, top + '/d/f')
    tries('swap', os.rename, 'workspace', top)
    f = open(top + '/d/f', 'rb')
    tries('map', mmap.mmap, f.fileno(), 0)
    tries('by its descriptor', os.open, f'/proc/self/fd/{f.fileno()}', os.O_WRONLY)
    tries('allocate', os.posix_fallocate, f.fileno(), 0, 1 << 20)
    if f.read() != b'given':
        got('other bytes')
    # Another folder in its place.
    tries('put in place', os.rename, top, top + '-old')
end()
