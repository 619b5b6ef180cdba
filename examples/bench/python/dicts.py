"""Dictionaries, sets and sorting: words are counted, grouped and sorted, n times."""

import json
import sys
import time


def work(n):
    seed = 42
    total = 0
    for _ in range(n):
        counts, groups = {}, {}
        for _ in range(4000):
            seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
            word = "w" + str(seed % 700)
            counts[word] = counts.get(word, 0) + 1
            groups.setdefault(seed % 16, set()).add(word)
        ranked = sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))
        merged = sorted(set().union(*groups.values()))
        total += ranked[0][1] + len(merged) + sum(len(g) for g in groups.values())
    return total


def main():
    n = json.load(sys.stdin)["input"]["n"]
    began = time.perf_counter_ns()
    result = work(n)
    print(json.dumps({"result": result, "ns": time.perf_counter_ns() - began}))


main()
