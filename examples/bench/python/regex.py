"""Strings and regular expressions: a log is made, split, matched and rewritten, n times."""

import json
import re
import sys
import time

LINE = re.compile(r"^(?P<day>\d{4}-\d\d-\d\d) (?P<level>[A-Z]+) \[(?P<who>[\w.-]+)\] (?P<text>.*)$")
NUMBER = re.compile(r"\b\d+\b")


def work(n):
    log = "\n".join(
        f"2026-03-{1 + i % 28:02d} {('INFO', 'WARN', 'ERROR')[i % 3]} [svc-{i % 7}.local] request {i} took {i * 13 % 977} ms".strip()
        for i in range(500)
    )
    counts = {}
    size = 0
    for _ in range(n):
        for line in log.split("\n"):
            m = LINE.match(line)
            key = m["level"].lower() + ":" + m["who"].partition(".")[0]
            counts[key] = counts.get(key, 0) + 1
            size += len(NUMBER.sub("#", m["text"]).replace(" ", "_").upper())
    return [size, sorted(counts.items())[:3]]


def main():
    n = json.load(sys.stdin)["input"]["n"]
    began = time.perf_counter_ns()
    result = work(n)
    print(json.dumps({"result": result, "ns": time.perf_counter_ns() - began}))


main()
