import json, os, sys, sysconfig

objects = set()
try:
    import ctypes, lzma, sqlite3, ssl
except ImportError:
    pass
try:
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if ".so" in path:
                objects.add("/" + path)
except OSError:
    pass

libraries = {}
try:
    from importlib.metadata import distributions

    for d in distributions():
        name = d.metadata["Name"]
        if name and d.version:
            libraries.setdefault(name.lower(), d.version)
except Exception:
    pass

print(json.dumps({
    "executable": os.path.realpath(sys.executable) if sys.prefix == sys.base_prefix else os.path.abspath(sys.executable),
    "version": sys.version.split()[0],
    "major": sys.version_info[0],
    "minor": sys.version_info[1],
    "prefixes": sorted({sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}),
    "path": [p for p in sys.path if os.path.isabs(p)],
    "objects": sorted(objects),
    "libraries": libraries,
}))
