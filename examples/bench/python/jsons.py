"""JSON: a tree of records out and in again, n times."""

import json
import sys
import time


def work(n):
    tree = [
        {"id": i, "name": f"record {i}", "tags": ["a", "b\n", "é"], "size": i * 1.5, "ok": i % 2 == 0, "in": {"x": [i, i + 1, None]}}
        for i in range(200)
    ]
    total = 0
    for _ in range(n):
        text = json.dumps(tree)
        total += len(text)
        tree = json.loads(text)
    return [total, tree[-1]["size"]]


def main():
    n = json.load(sys.stdin)["input"]["n"]
    began = time.perf_counter_ns()
    result = work(n)
    print(json.dumps({"result": result, "ns": time.perf_counter_ns() - began}))


main()
