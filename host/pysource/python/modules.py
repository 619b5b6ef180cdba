# Compiles modules of packages for the interpreter that reads this. On standard input come a
# line of JSON, the path and the length in bytes of each, and then their texts. To standard
# output go a line with the interpreter's tag in names of compiled files, and for each module
# a line with a length and so many bytes: the file, or none where it cannot be compiled.
# Nothing of a module is run, and none is imported.
import json
import os
import sys
import warnings
from importlib import _bootstrap_external, util


def compiled(path, text):
    try:
        code = compile(text, path, "exec", dont_inherit=True)
    except Exception:
        return b""  # its import says why
    # Without its time of change: what reads it does not look at the source again.
    return bytes(_bootstrap_external._code_to_hash_pyc(code, util.source_hash(text), False))


def write(data):
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]


def main():
    warnings.simplefilter("ignore")
    compiled("warm.py", b"def f(x): return [x for x in 'a']")
    modules = json.loads(sys.stdin.buffer.readline())
    write(sys.implementation.cache_tag.encode() + b"\n")
    for path, length in modules:
        data = compiled(path, sys.stdin.buffer.read(length))
        write(b"%d\n" % len(data) + data)
    os._exit(0)


if __name__ == "__main__":
    main()
