import os
import sys

n = int(sys.argv[2])
text = "".join("%07d\n" % (i % 10_000_000) for i in range(n // 8 + 1))[:n]
for name in sys.argv[3:]:
    path = os.path.join("work", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", newline="") as f:
        f.write(text)
