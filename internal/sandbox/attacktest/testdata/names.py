os.chdir('/work/workspace')
for name in (b'\xff\xfe', b'new\nline', b'a' * 255, 'é'.encode(), 'e\u0301'.encode(), b'Case', b'case', b'workspace/workspace', b'-rf', b'..x', b'.hidden',
             b'tab\t', b'back\\slash', b' ', b'con', b'\x01', b'\x7f', b'quote"\'', b'workspace/inputs/x', b'%2e%2e', b'\xe2\x80\xae'):
    if b'/' in name:
        os.makedirs(os.path.dirname(name), exist_ok=True)
    open(name, 'wb').write(name)
import io, tarfile
archive = tarfile.open('/tmp/t.tar', 'w')
for name in ('../../escaped', '/absolute', 'plain', 'link'):
    entry = tarfile.TarInfo(name)
    if name == 'link':
        entry.type, entry.linkname = tarfile.SYMTYPE, '/etc/passwd'
        archive.addfile(entry)
        continue
    entry.size = 1
    archive.addfile(entry, io.BytesIO(b'1'))
archive.close()
os.mkdir('unpacked')
with tarfile.open('/tmp/t.tar') as archive:
    for entry in archive:
        try:
            archive.extract(entry, 'unpacked') if sys.version_info < (3, 12) else archive.extract(entry, 'unpacked', filter='fully_trusted')
        except OSError:
            pass
import zipfile
with zipfile.ZipFile('links.zip', 'w') as z:
    for i in range(20):
        info = zipfile.ZipInfo(f'l{i}')
        info.external_attr = 0o120777 << 16
        z.writestr(info, '/etc/passwd')
end()
