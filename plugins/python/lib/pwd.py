"""The users of the sandbox: the one that runs scripts, and root."""

import os
from collections import namedtuple

struct_passwd = namedtuple("struct_passwd", "pw_name pw_passwd pw_uid pw_gid pw_gecos pw_dir pw_shell")


def getpwall():
    return [
        struct_passwd("root", "x", 0, 0, "root", "/root", "/bin/bash"),
        struct_passwd("skill", "x", 1000, 1000, "", os.environ.get("HOME", "/tmp"), "/bin/bash"),
    ]


def getpwuid(uid):
    for user in getpwall():
        if user.pw_uid == uid:
            return user
    raise KeyError(f"getpwuid(): uid not found: {uid}")


def getpwnam(name):
    for user in getpwall():
        if user.pw_name == name:
            return user
    raise KeyError(f"getpwnam(): name not found: {name!r}")
