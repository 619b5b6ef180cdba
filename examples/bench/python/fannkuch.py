"""Small lists: the pancake flips of all permutations of n numbers."""

import json
import sys
import time


def work(n):
    perm1, count = list(range(n)), list(range(1, n + 1))
    flips = checksum = number = 0
    while True:
        if perm1[0]:
            perm, steps = perm1[:], 0
            while k := perm[0]:
                perm[: k + 1] = perm[k::-1]
                steps += 1
            flips = max(flips, steps)
            checksum += -steps if number & 1 else steps
        number += 1
        r = 1
        while True:
            if r == n:
                return [checksum, flips]
            perm1.insert(r, perm1.pop(0))
            count[r] -= 1
            if count[r] > 0:
                break
            count[r] = r + 1
            r += 1


def main():
    n = json.load(sys.stdin)["input"]["n"]
    began = time.perf_counter_ns()
    result = work(n)
    print(json.dumps({"result": result, "ns": time.perf_counter_ns() - began}))


main()
