#!/usr/bin/env python3
"""Counts the words of texts."""

import argparse
import json
import re
import sys
import unicodedata
from collections import Counter
from pathlib import Path


def words(text):
    return re.findall(r"\w+", unicodedata.normalize("NFC", text).casefold())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="files to read; none: standard input")
    parser.add_argument("--top", type=int, default=3, metavar="N", help="how many frequent words to show")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    try:
        texts = {name: Path(name).read_text(encoding="utf-8") for name in args.files} or {"-": sys.stdin.read()}
    except OSError as e:
        sys.exit(f"{e.filename}: {e.strerror}")
    report = {}
    for name, text in texts.items():
        counted = Counter(words(text))
        frequent = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
        report[name] = {"words": sum(counted.values()), "different": len(counted), "top": frequent[: args.top]}
    if args.json:
        print(json.dumps(report, ensure_ascii=False, indent=2))
        return
    for name, r in report.items():
        print(f"{name}: {r['words']} words, {r['different']} different")
        for word, n in r["top"]:
            print(f"  {n:4d}  {word}")


if __name__ == "__main__":
    main()
