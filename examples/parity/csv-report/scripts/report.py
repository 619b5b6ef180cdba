#!/usr/bin/env python3
"""Sums sales by region."""

import argparse
import csv
import json
from datetime import datetime, timezone
from pathlib import Path

from money import cents


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--out", type=Path, default=Path("report"))
    args = parser.parse_args()
    sums = {}
    with args.csv.open(newline="", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            sums[row["region"]] = sums.get(row["region"], cents("0")) + cents(row["amount"])
    args.out.mkdir(parents=True, exist_ok=True)
    lines = ["| region | amount |", "|---|---:|", *(f"| {r} | {sums[r]} |" for r in sorted(sums))]
    (args.out / "summary.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (args.out / "summary.json").write_text(json.dumps({r: str(a) for r, a in sums.items()}, sort_keys=True) + "\n")
    print(f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ} wrote {args.out.resolve()}: {len(sums)} regions")


if __name__ == "__main__":
    main()
