secret, name, word = HOST['secret'], os.path.basename(HOST['secret']), HOST['word']
for path in (secret, os.path.dirname(secret), HOST['folder'], '/etc/shadow', '/etc/hostname', '/etc/ssh', '/etc/machine-id', '/root', '/boot', '/sys',
             '/var/lib', '/var/log', '/var/run', '/mnt', '/media', '/srv', '/opt/secret', '/run/secrets', '/proc/1/root' + secret,
             '/proc/self/root' + secret, '/proc/self/cwd/../..' + secret, '/proc/1/cwd', '/proc/1/exe'):
    try:
        if os.path.isdir(path) and not os.listdir(path):
            continue
        os.stat(path)
        got(path)
    except OSError:
        pass
for path in ('/home', '/tmp', '/run', '/var/tmp'):
    if os.path.isdir(path) and set(os.listdir(path)) - {'matplotlib'}:
        got(path, os.listdir(path))
if len(open('/etc/passwd').read().splitlines()) != 1:
    got('/etc/passwd')
# Out of the root by way of its parent, a descriptor, and a folder that is moved while one is in it.
root = os.open('/', os.O_PATH)
tries('the parent of the root', os.open, '../' * 40 + secret[1:], os.O_RDONLY, dir_fd=root)
os.makedirs('a/b/c')
inside = os.open('a/b/c', os.O_PATH)
os.rename('a/b/c', 'c')
tries('out of a moved folder', os.open, '../' * 40 + secret[1:], os.O_RDONLY, dir_fd=inside)
os.chdir('/')
os.chdir('../..')
tries('the parent of the parent', open, secret[1:])
# By links from the tree.
os.symlink(secret, '/work/workspace/link')
tries('through a link', open, '/work/workspace/link')
tries('a hard link', os.link, secret, '/work/workspace/hard')
for top, folders, files in os.walk('/', followlinks=False):
    if top.startswith(('/proc', '/usr', '/lib')):
        folders.clear()
    if name in files or word in top:
        got(top, 'holds the secret')
end()
