import sys

start = 0
while True:
    sys.stdout.write("".join("%07d\n" % (i % 10_000_000) for i in range(start, start + 1000)))
    start = (start + 1000) % 10_000_000
