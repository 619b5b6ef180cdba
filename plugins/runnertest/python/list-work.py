import json
import os
import sys

try:
    json.dump(sorted(os.listdir("work")), sys.stdout)
except OSError:
    json.dump(None, sys.stdout)
