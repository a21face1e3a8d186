known = {'PATH', 'HOME', 'USER', 'LANG', 'TZ', 'TMPDIR', 'LC_CTYPE', 'MPLBACKEND', 'MPLCONFIGDIR', 'PYTHONUTF8', 'PYTHONDONTWRITEBYTECODE',
         'PYTHONNOUSERSITE', 'PYTHONPATH'}
for name in set(os.environ) - known:
    got(name)
for pid in [p for p in os.listdir('/proc') if p.isdigit()]:
    for name in ('environ', 'cmdline'):
        try:
            body = open(f'/proc/{pid}/{name}', 'rb').read()
        except OSError:
            continue
        if HOST['word'].encode() in body or b'TREELINE' in body:
            got(pid, name)
# The kernel puts a program's environment at the top of its stack.
for line in open('/proc/self/maps'):
    if '[stack]' in line:
        low, high = (int(x, 16) for x in line.split()[0].split('-'))
        if b'TREELINE_' + b'ATTACKED=' in ctypes.string_at(low, high - low):
            got('on the stack')
end()
