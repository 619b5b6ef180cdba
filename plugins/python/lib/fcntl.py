"""Module fcntl, without what the sandbox lacks: a lock of a file is given to anybody who asks."""

import errno
import os

LOCK_SH, LOCK_EX, LOCK_NB, LOCK_UN = 1, 2, 4, 8
F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, FD_CLOEXEC = 0, 1, 2, 3, 4, 1


def number(file):
    fd = file if isinstance(file, int) else file.fileno()
    os.fstat(fd)  # it is open
    return fd


def flock(fd, operation, /):
    number(fd)
    if operation & ~LOCK_NB not in (LOCK_SH, LOCK_EX, LOCK_UN):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def lockf(fd, cmd, len=0, start=0, whence=0, /):
    flock(fd, cmd)


def fcntl(fd, cmd, arg=0, /):
    fd = number(fd)
    if cmd == F_GETFL:
        return 0 if os.get_blocking(fd) else os.O_NONBLOCK
    if cmd == F_SETFL:
        os.set_blocking(fd, not arg & os.O_NONBLOCK)
    elif cmd not in (F_GETFD, F_SETFD):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return 0


def ioctl(fd, request, arg=0, mutate_flag=True, /):
    number(fd)
    raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
