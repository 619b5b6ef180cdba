# Attribute access, calls, dictionaries and strings in a loop: the interpreter itself.
import sys


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def norm(self):
        return self.x * self.x + self.y * self.y


def main(n):
    seen = {}
    total = 0
    for i in range(n):
        p = Point(i % 97, i % 89)
        total += p.norm()
        key = "k%d" % (i % 1000)
        seen[key] = seen.get(key, 0) + 1
    print(total, len(seen), sum(sorted(seen.values())[:10]))


main(int(sys.argv[1]) if len(sys.argv) > 1 else 200000)
