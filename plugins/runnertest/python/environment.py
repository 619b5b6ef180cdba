import json
import os
import sys

json.dump({"env": dict(os.environ), "args": sys.argv[2:]}, sys.stdout)
