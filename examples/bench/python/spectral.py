"""Calls and generators: the spectral norm of an n by n matrix."""

import json
import sys
import time


def element(i, j):
    return 1.0 / ((i + j) * (i + j + 1) // 2 + i + 1)


def times(v):
    return [sum(element(i, j) * x for j, x in enumerate(v)) for i in range(len(v))]


def transposed(v):
    return [sum(element(j, i) * x for j, x in enumerate(v)) for i in range(len(v))]


def work(n):
    u = [1.0] * n
    for _ in range(3):
        v = transposed(times(u))
        u = transposed(times(v))
    return round((sum(a * b for a, b in zip(u, v)) / sum(b * b for b in v)) ** 0.5, 9)


def main():
    n = json.load(sys.stdin)["input"]["n"]
    began = time.perf_counter_ns()
    result = work(n)
    print(json.dumps({"result": result, "ns": time.perf_counter_ns() - began}))


main()
