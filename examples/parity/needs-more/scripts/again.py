"""Starts Python once more."""

import subprocess
import sys

print("the answer of another process:")
print(subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True, check=True).stdout.strip())
