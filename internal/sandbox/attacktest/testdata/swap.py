# A file that is one thing and another at every moment, by the hand of a process that outlives the program.
os.chdir('/work/workspace')
open('file', 'w').write('mine')
os.symlink('/etc/passwd', 'link')
os.makedirs('folder/deep')
open('folder/deep/f', 'w').write('mine')
os.symlink('/usr', 'other')
libc.renameat2 = None
if os.fork() == 0:
    os.setsid()
    while True:
        for a, b in (('file', 'link'), ('folder', 'other')):
            try:
                os.rename(a, 'between'); os.rename(b, a); os.rename('between', b)
            except OSError:
                pass
time.sleep(0.1)
end()
