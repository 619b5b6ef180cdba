import sys

try:
    with open(sys.argv[3], "rb") as f:
        sys.stdout.buffer.write(f.read())
except OSError:
    print("refused")
    sys.stdout.flush()
    sys.exit(3)
