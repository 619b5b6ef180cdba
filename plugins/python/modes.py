# Permission bits, which WASI has not: archives, copies and listings keep what a script
# gave its files, and what it gave none is as on Linux. They keep nobody out.
def _modes():
    import _io
    import builtins
    import errno
    import io
    import os

    mask = 0o022
    plain = {name: getattr(os, name) for name in ("access", "chmod", "fstat", "lstat", "mkdir", "open", "scandir", "stat")}
    given = {}  # by device and inode: what differs from the usual
    usual = {0o040000: 0o755, 0o100000: 0o644, 0o120000: 0o777, 0o020000: 0o666, 0: 0o010600}  # the last is a pipe
    programs = "/usr/bin/", "/bin/"  # what the sandbox can start

    def bits(st, path=None):
        if path is not None and not isinstance(path, int) and os.fsdecode(path).startswith(programs):
            return 0o755
        return given.get((st.st_dev, st.st_ino), usual.get(st.st_mode & 0o170000, 0))

    def dressed(st, path=None):
        fields, more = st.__reduce__()[1]
        return os.stat_result((fields[0] | bits(st, path),) + fields[1:], more)

    def note(st, mode):
        if mode == usual.get(st.st_mode & 0o170000):
            given.pop((st.st_dev, st.st_ino), None)
        else:
            given[st.st_dev, st.st_ino] = mode

    def stat(path, **how):
        return dressed(plain["stat"](path, **how), path)

    def lstat(path, **how):
        return dressed(plain["lstat"](path, **how), path)

    def fstat(fd):
        return dressed(plain["fstat"](fd))

    def chmod(path, mode, *, dir_fd=None, follow_symlinks=True):
        if not follow_symlinks:
            plain["chmod"](path, mode, dir_fd=dir_fd, follow_symlinks=False)
        change(plain["stat"](path, dir_fd=dir_fd), mode, path)

    def fchmod(fd, mode):
        change(plain["fstat"](fd), mode)

    def change(st, mode, *path):
        if not written(st):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), *path)
        note(st, mode & 0o7777)

    def umask(new, /):
        nonlocal mask
        old, mask = mask, new & 0o777
        if mask != 0o022 and builtins.open is not opened:
            opens.append(builtins.open)
            for owner in (builtins, io, _io):
                owner.open = opened
        return old

    # How files are made.

    opens = []

    def missing(path, **where):
        try:
            plain["lstat"](path, **where)
        except (OSError, ValueError, TypeError):
            return True
        return False

    def opened(file, mode="r", *args, **more):
        new = isinstance(mode, str) and not {"w", "x", "a"}.isdisjoint(mode) and not isinstance(file, int) and missing(file)
        f = opens[-1](file, mode, *args, **more)
        if new:
            note(plain["fstat"](f.fileno()), 0o666 & ~mask)
        return f

    def open(path, flags, mode=0o777, *, dir_fd=None):
        new = flags & os.O_CREAT and missing(path, dir_fd=dir_fd)
        fd = plain["open"](path, flags, mode, dir_fd=dir_fd)
        if new:
            note(plain["fstat"](fd), mode & ~mask)
        return fd

    def mkdir(path, mode=0o777, *, dir_fd=None):
        plain["mkdir"](path, mode, dir_fd=dir_fd)
        note(plain["stat"](path, dir_fd=dir_fd), mode & ~mask & 0o7777)

    # What may be done with them.

    def written(st):
        """Whether it is where anything can be written."""
        for folder in ("/work", "/tmp", "/mnt/skills", "/skills"):
            try:  # the folder of a script is the only one in /skills
                below = [folder + "/" + name for name in os.listdir(folder)] if folder == "/skills" else [folder]
                if any(plain["stat"](name).st_dev == st.st_dev for name in below):
                    return True
            except OSError:
                pass
        return st.st_mode & 0o170000 == 0o020000

    def access(path, mode, **how):
        there = plain["access"](path, mode, **how)
        if not there or not mode:
            return there
        how.pop("effective_ids", None)
        st = plain["stat"](path, **how)
        return bits(st, path) >> 6 & mode == mode and (not mode & os.W_OK or written(st))

    class DirEntry:
        __slots__ = ("_entry", "name", "path")

        def __init__(self, entry):
            self._entry, self.name, self.path = entry, entry.name, entry.path

        def is_dir(self, *, follow_symlinks=True):
            return self._entry.is_dir(follow_symlinks=follow_symlinks)

        def is_file(self, *, follow_symlinks=True):
            return self._entry.is_file(follow_symlinks=follow_symlinks)

        def is_symlink(self):
            return self._entry.is_symlink()

        def is_junction(self):
            return False

        def inode(self):
            return self._entry.inode()

        def stat(self, *, follow_symlinks=True):
            return dressed(self._entry.stat(follow_symlinks=follow_symlinks), self.path)

        def __fspath__(self):
            return self.path

        def __reduce__(self):
            raise TypeError("cannot pickle 'posix.DirEntry' object")

        def __repr__(self):
            return f"<DirEntry {self.name!r}>"

    class ScandirIterator:
        __slots__ = ("_entries",)

        def __init__(self, entries):
            self._entries = entries

        def __iter__(self):
            return self

        def __next__(self):
            return DirEntry(next(self._entries))

        def close(self):
            self._entries.close()

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self._entries.close()

    def scandir(path=None):
        return ScandirIterator(plain["scandir"](path))

    for new in (access, chmod, fstat, lstat, mkdir, open, scandir, stat):
        name = new.__name__
        old = plain[name]
        new.__module__, new.__qualname__, new.__doc__ = old.__module__, name, old.__doc__
        setattr(os, name, new)
        for can in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            if old in can:
                can.add(new)
    os.supports_fd.add(chmod)
    for kind in (DirEntry, ScandirIterator):
        kind.__module__, kind.__qualname__ = "posix", kind.__name__
    os.fchmod, os.umask, os.DirEntry = fchmod, umask, DirEntry


_modes()
del _modes
