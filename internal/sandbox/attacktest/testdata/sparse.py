os.chdir('/work/workspace')
for i in range(20):
    with open(f's{i}', 'wb') as f:
        f.truncate(400 << 20)
end()
