import sys

sys.setrecursionlimit(10**9)


def down(n, *held):
    return down(n + 1, *held) + 1


# Large frames, so that memory ends after thousands of calls: a traceback of millions takes
# Python most of a minute to print.
down(0, *range(1000))
