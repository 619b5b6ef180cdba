# Makes, moves, follows and removes links below /work at random, and prints what became
# of each call. Standard input: the seed. What is printed is the same wherever links
# behave the same.
import os
import random
import sys

chance = random.Random(int(sys.stdin.readline()))
os.mkdir("/work/here")
os.chdir("/work/here")
NAMES = ["a", "b", "c", "a/a", "a/b", "b/a", "b/c", "c/a", "a/a/a", "b/a/c", "a/b/c/a"]
TARGETS = NAMES + [
    ".", "..", "../b", "../a/c", "a/..", "b/../a", "c//b", "b/", "./a/./b/", "x", "a/x", "../../x", "../../../data",
    "../../here/a", "../../../work/here/b", "/work/here/a", "/", "../" * 10,
]


def path():
    p = chance.choice(NAMES)
    # ".." behind what is no folder goes by the text here, and above /work there is "/".
    if chance.random() < 0.2 and os.path.isdir(p) and os.path.realpath(p) != "/work":
        p += "/../" + chance.choice(NAMES)
    elif chance.random() < 0.1:
        p += "/"
    return p


def read(p, flags):
    fd = os.open(p, flags, 0o600)
    try:
        if flags & os.O_RDWR == os.O_RDWR:
            os.write(fd, p.encode())
        st = os.fstat(fd)
        return kind(st), b"" if st.st_mode >> 12 == 4 else os.read(fd, 9)
    finally:
        os.close(fd)


def kind(st):
    return [oct(st.st_mode >> 12), st.st_nlink if st.st_mode >> 12 != 4 else 0, st.st_size if st.st_mode >> 12 == 10 else 0]


OPS = {
    "symlink": lambda: os.symlink(chance.choice(TARGETS), path()),
    "symlink again": lambda: os.symlink(chance.choice(TARGETS), chance.choice(NAMES)),
    "readlink": lambda: os.readlink(path()),
    "mkdir": lambda: os.mkdir(path()),
    "rmdir": lambda: os.rmdir(path()),
    "unlink": lambda: os.unlink(path()),
    "rename": lambda: os.rename(path(), path()),
    "rename again": lambda: os.rename(chance.choice(NAMES), chance.choice(NAMES)),
    "link": lambda: os.link(path(), path()),
    "link again": lambda: os.link(chance.choice(NAMES), chance.choice(NAMES)),
    "stat": lambda: kind(os.stat(path())),
    "lstat": lambda: kind(os.lstat(path())),
    "read": lambda: read(path(), os.O_RDONLY),
    "write": lambda: read(path(), os.O_RDWR | os.O_CREAT),
    "truncate": lambda: read(path(), os.O_RDWR | os.O_TRUNC),
    "exclusive": lambda: read(path(), os.O_RDWR | os.O_CREAT | os.O_EXCL),
    "no follow": lambda: read(path(), os.O_RDONLY | os.O_NOFOLLOW),
    "folder": lambda: read(path(), os.O_RDONLY | os.O_DIRECTORY),
    "list": lambda: sorted(os.listdir(path())),
    "times": lambda: os.utime(path(), (1, 2)),
    "times of the link": lambda: os.utime(path(), (1, 2), follow_symlinks=False),
    "real": lambda: os.path.realpath(path()),
}

for i in range(4000):
    name = chance.choice(list(OPS))
    state = chance.getstate()
    try:
        got = OPS[name]()
    except OSError as e:
        got = f"{e.errno} {e.strerror} {e.filename}"
        # Where there are two reasons, they come in any order: two names, or a slash
        # behind the name of what is no folder or is not there.
        if e.filename2 is not None or "/ " in f"{e.filename} " and name in ("unlink", "rmdir", "exclusive") or name == "write":
            got = "an error"
    # The same numbers are drawn, whatever the call did.
    chance.setstate(state)
    chance.random()
    print(i, name, got)
    if i % 200 == 199:  # from the beginning
        left = []
        for top, folders, files in os.walk(".", topdown=False):
            left.append((top, sorted(folders), sorted(files)))
            for f in files:
                os.unlink(os.path.join(top, f))
            for f in folders:
                f = os.path.join(top, f)
                os.unlink(f) if os.path.islink(f) else os.rmdir(f)
        print(sorted(left))
