import json
import os
import sys

name = "data/a.txt"


def truncate():
    open(name, "w").close()


def append():
    with open(name, "a") as f:
        f.write("more")


def update():
    with open(name, "r+") as f:
        f.write("X")


def cut():
    os.truncate(name, 1)


def create():
    open("data/new.txt", "x").close()


def folder():
    os.mkdir("data/new")


def remove():
    os.remove(name)


def rename():
    os.rename(name, "data/b.txt")


def link():
    os.link(name, "data/c.txt")


def symlink():
    os.symlink("a.txt", "data/d.txt")


def mode():
    # WASI has no modes, and CPython for it takes chmod and does nothing.
    before = os.stat(name).st_mode
    os.chmod(name, 0o600 if before & 0o777 != 0o600 else 0o400)
    if os.stat(name).st_mode == before:
        raise NotImplementedError


def times():
    os.utime(name, (0, 0))


worked = []
for way in (update, append, cut, truncate, create, folder, link, symlink, mode, times, rename, remove):
    try:
        way()
        worked.append(way.__name__)
    except (OSError, AttributeError, NotImplementedError):
        pass
json.dump(worked, sys.stdout)
