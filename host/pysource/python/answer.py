# Reads a Python program and tells what was asked of it. On standard input come a line of
# JSON with the question and the text of the program; one JSON object goes to standard
# output, of the form that module.go has. The program is never run.
import gc
import json
import os
import sys

from commandline import command_line
from needs import Needs
from scan import Refused, Scan, decode, whole
from schema import function


def answer(question, source):
    try:
        scan = Scan(decode(source))
        out = {"imports": scan.imports, "main": scan.main, "cut": scan.cut}
        if question.get("uses"):
            out["uses"] = scan.uses
            out |= Needs(scan).answer()
        if "function" in question:
            out |= function(scan, whole(question["function"]))
        if question.get("command_line"):
            out |= command_line(scan)
        return out
    except Refused as e:
        return {"error": {"kind": "encoding", "line": 1, "column": 0, "message": str(e)}}
    except SyntaxError as e:
        return {"error": {"kind": "syntax", "line": e.lineno or 0, "column": e.offset or 0, "message": e.msg or "not Python"}}
    except RecursionError:
        return {"error": {"kind": "complex", "line": 0, "column": 0, "message": "it is nested too deeply to be read"}}
    except MemoryError:
        return {"error": {"kind": "complex", "line": 0, "column": 0, "message": "it takes too much memory to be read"}}
    except ValueError as e:
        return {"error": {"kind": "syntax", "line": 0, "column": 0, "message": str(e)}}


def main():
    gc.disable()  # a tree has no circles, and a million objects are looked at again and again
    # What a first program needs is made before the read, so that calls need not.
    warm = b"""import argparse as a, os, subprocess
from typing import Optional
def f(x: Optional[int] = None, *y: 'str', z=[1]) -> int | None:
    'd\\n\\nArgs:\\n  x: y'
class A(B):
    c: int = 1
p = a.ArgumentParser()
p.add_argument('-x', type=int)
subprocess.run(['a', os.environ['b']])
if __name__ == '__main__': f()
"""
    json.dumps(answer({"uses": True, "function": "f", "command_line": True}, warm))
    question, _, source = sys.stdin.buffer.read().partition(b"\n")
    out = json.dumps(answer(json.loads(question), source), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    sys.stdout.write(out)
    sys.stdout.flush()
    os._exit(0)  # the tree need not be taken apart


if __name__ == "__main__":
    main()
