made = 0
for folder in ('/tmp', '/dev/shm', '/home', '/work', '/work/workspace'):
    try:
        for i in range(3000):
            os.symlink('x' * 100, f'{folder}/{i}')
            made += 1
    except OSError as e:
        if e.errno != errno.ENOSPC:
            got(e)
if made > 500:
    got(made, 'links')
end()
