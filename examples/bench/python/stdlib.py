"""A small skill that imports what most of them do: it echoes, or uses all of it."""

import collections
import datetime
import json
import re
import statistics
import sys

WORD = re.compile(r"\w+")


def answer(text):
    words = WORD.findall(text.lower())
    return {
        "words": collections.Counter(words).most_common(3),
        "mean": statistics.mean(map(len, words)),
        "weekday": datetime.date(2026, 2, 28).strftime("%A"),
    }


given = json.load(sys.stdin)["input"]
if given.get("op") == "echo":
    print(json.dumps({"echoed": given["text"]}))
else:
    print(json.dumps(answer(given["text"])))
