import sys

n = int(sys.argv[2])
text = "".join("%07d\n" % (i % 10_000_000) for i in range(n // 8 + 1))
sys.stdout.write("out")
sys.stdout.flush()
sys.stderr.write(text[:n])
