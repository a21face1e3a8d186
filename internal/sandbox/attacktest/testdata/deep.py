os.chdir('/work/workspace')
open('top', 'w').write('1')
for i in range(1500):
    os.mkdir('d')
    os.chdir('d')
    if i % 300 == 0:
        open('f', 'w').write(str(i))
open('deep', 'w').write('1')
os.chdir('/work/workspace')
for i in range(60):
    os.mkdir('locked')
    os.chdir('locked')
open('f', 'w').write('locked')
for i in range(60):
    os.chdir('..')
    os.chmod('locked', 0)
os.chmod('/work/workspace', 0)
end()
