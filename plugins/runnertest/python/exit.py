import sys

sys.stdout.write("bye")
sys.stdout.flush()
code = int(sys.argv[2])
# The code as a C int, which is what exit takes: larger ones wrap round.
sys.exit(code - (1 << 32) if code >= 1 << 31 else code)
