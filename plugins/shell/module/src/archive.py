import fnmatch, os, stat, sys, time, zipfile, zlib

tool, *args = sys.argv[1:]
names, flags, where, out, level = [], "", "", [], zipfile.ZIP_DEFLATED
VALUES = {"unzip": "d", "zip": "b"}[tool]
KNOWN = {"unzip": "lpoqnjtvdZ1xDX", "zip": "rqj9876543210yXxidmvD@b"}[tool]


def fail(code, text):
    print(text, file=sys.stderr)
    sys.exit(code)


lists = {"x": [], "i": []}
into, options = names, True
while args:
    a = args.pop(0)
    if options and a == "--":
        options = False
    elif options and a in ("-h", "--help", "--version"):
        print("Usage: unzip [-lpoqnjt] FILE[.zip] [NAME…] [-x NAME…] [-d DIR]" if tool == "unzip" else "Usage: zip [-rqjumd0-9@] FILE[.zip] NAME… [-x NAME…] [-i NAME…]")
        sys.exit(0)
    elif options and len(a) > 1 and a[0] == "-" and not (tool == "zip" and a == "-"):
        into = names
        letters = a[1:]
        while letters:
            c, letters = letters[0], letters[1:]
            if c not in KNOWN:
                fail(10 if tool == "unzip" else 16, f"{tool}: unsupported option -{c}")
            if c in VALUES:
                where = letters or (args.pop(0) if args else "")
                letters = ""
            elif c in lists:
                into = lists[c]
                into += [letters] if letters else []
                letters = ""
            else:
                flags += c
    else:
        into.append(a)
if not names:
    fail(10 if tool == "unzip" else 16, f"{tool}: the name of an archive is missing")
archive = names.pop(0)


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, p) for p in patterns)


def nothing(path):
    print(f"\nzip error: Nothing to do! ({path})")
    sys.exit(12)


def say(*text, **how):
    if "q" not in flags:
        print(*text, **how)


def unpack():
    path = next((p for p in (archive, archive + ".zip", archive + ".ZIP") if os.path.isfile(p)), None)
    if path is None:
        fail(9, f"unzip:  cannot find or open {archive}, {archive}.zip or {archive}.ZIP.")
    try:
        z = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as e:
        fail(9, f"unzip:  cannot use {path} as an archive: {e}")
    chosen = [i for i in z.infolist() if (not names or matches(i.filename, names)) and not matches(i.filename, lists["x"])]
    missed = [n for n in names if not any(fnmatch.fnmatchcase(i.filename, n) for i in z.infolist())]
    if "p" in flags:
        for i in chosen:
            sys.stdout.buffer.write(b"" if i.is_dir() else z.read(i))
    elif "l" in flags or "v" in flags:
        print(f"Archive:  {path}\n  Length      Date    Time    Name\n---------  ---------- -----   ----")
        for i in chosen:
            print("%9d  %04d-%02d-%02d %02d:%02d   %s" % ((i.file_size,) + i.date_time[:5] + (i.filename,)))
        print("---------                     -------\n%9d                     %d file%s" % (sum(i.file_size for i in chosen), len(chosen), "" if len(chosen) == 1 else "s"))
    elif "Z" in flags or "1" in flags:
        print("\n".join(i.filename for i in chosen))
    elif "t" in flags:
        say(f"Archive:  {path}")
        for i in chosen:
            try:
                z.read(i)
            except (zipfile.BadZipFile, zlib.error) as e:
                fail(2, f"unzip: {i.filename} is damaged: {e}")
            say("    testing: %-22s   OK" % i.filename)
        print(f"No errors detected in compressed data of {path}.")
    else:
        say(f"Archive:  {path}")
        for i in chosen:
            extract(z, i)
    for n in missed:
        print(f"caution: filename not matched:  {n}", file=sys.stderr)
    return 11 if missed else 0


def extract(z, i):
    parts = [p for p in i.filename.split("/") if p not in ("", ".", "..")]
    if "j" in flags:
        if i.is_dir():
            return
        parts = parts[-1:]
    to = os.path.join(where, *parts)
    if i.is_dir():
        if not os.path.isdir(to):
            say(f"   creating: {to}/")
            os.makedirs(to, exist_ok=True)
        return
    if os.path.lexists(to):
        if "o" not in flags:
            if "n" not in flags:
                print(f"unzip: {to} exists; -o replaces it", file=sys.stderr)
            return
        os.remove(to)
    os.makedirs(os.path.dirname(to) or ".", exist_ok=True)
    mode = i.external_attr >> 16
    if stat.S_ISLNK(mode):
        os.symlink(z.read(i).decode(), to)
        say(f"    linking: {to}  -> {os.readlink(to)} ")
        return
    say("  inflating: %-22s  " % to if i.compress_type else " extracting: %-22s  " % to)
    with z.open(i) as r, open(to, "wb") as w:
        while b := r.read(1 << 20):
            w.write(b)
    if mode & 0o777:
        os.chmod(to, mode & 0o777)
    when = time.mktime(i.date_time + (0, 0, -1))
    os.utime(to, (when, when))


def pack():
    path = archive if archive == "-" or "." in os.path.basename(archive) else archive + ".zip"
    todo = names + ([line.rstrip("\n") for line in sys.stdin] if "@" in flags else [])
    old = {}
    if path != "-" and os.path.exists(path):
        with zipfile.ZipFile(path) as z:
            old = {i.filename: (i, z.read(i)) for i in z.infolist()}
    if "d" in flags:
        gone = [n for n in old if matches(n, todo)]
        for n in gone:
            say(f"deleting: {n}")
            del old[n]
        todo = []
        if not gone:
            nothing(path)
    found = []
    for name in todo:
        if not os.path.lexists(name):
            print(f"\tzip warning: name not matched: {name}")
            continue
        found.append(name)
        if "r" in flags and os.path.isdir(name):
            for at, folders, files in os.walk(name):
                folders.sort()
                found += [os.path.join(at, f) for f in folders] + [os.path.join(at, f) for f in sorted(files)]
    new = {}
    for name in found:
        link = os.path.islink(name) and "y" in flags
        folder = os.path.isdir(name) and not link
        inside = os.path.normpath(name).lstrip("/").removeprefix("../")
        if "j" in flags:
            inside = os.path.basename(inside)
            if folder:
                continue
        inside += "/" if folder else ""
        if inside == "./" or folder and "D" in flags or os.path.exists(path) and os.path.samefile(name, path) or matches(inside, lists["x"]) or lists["i"] and not matches(inside, lists["i"]):
            continue
        new[inside] = name
    if not new and "d" not in flags:
        nothing(path)
    written = path + ".new" if path != "-" else "/tmp/.zip"
    best = next((int(c) for c in reversed(flags) if c.isdigit()), 6)
    with zipfile.ZipFile(written, "w", compresslevel=best or None) as z:
        for n, (i, data) in old.items():
            if n not in new:
                z.writestr(i, data)
        for n, name in new.items():
            st = os.lstat(name) if "y" in flags else os.stat(name)
            i = zipfile.ZipInfo(n, max(time.localtime(st.st_mtime)[:6], (1980, 1, 1, 0, 0, 0)))
            i.external_attr = st.st_mode << 16 | (16 if n.endswith("/") else 0)
            data = b"" if n.endswith("/") else os.readlink(name).encode() if stat.S_ISLNK(st.st_mode) else open(name, "rb").read()
            smaller = "0" not in flags and len(zlib.compress(data, best, wbits=-15)) < len(data)
            z.writestr(i, data, zipfile.ZIP_DEFLATED if smaller else zipfile.ZIP_STORED)
            if not smaller:
                how = "stored 0%"
            else:
                how = "deflated %d%%" % ((1000 * (len(data) - i.compress_size) // len(data) + 5) // 10)
            if path != "-":
                say(f"{'updating' if n in old else '  adding'}: {n} ({how})")
    if path == "-":
        with open(written, "rb") as r:
            sys.stdout.buffer.write(r.read())
        os.remove(written)
    else:
        os.replace(written, path)
    if "m" in flags:
        for name in reversed(list(new.values())):
            (os.rmdir if os.path.isdir(name) else os.remove)(name)
    return 18 if len(found) < len(todo) else 0


sys.exit(unpack() if tool == "unzip" else pack())
