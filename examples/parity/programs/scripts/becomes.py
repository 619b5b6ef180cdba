"""Becomes the program that its arguments name."""

import os
import sys

print("before")
sys.stdout.flush()
os.execvpe(sys.argv[1], sys.argv[1:], {**os.environ, "WORD": "given"})
print("never")
