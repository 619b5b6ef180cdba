"""A small skill that imports what most of them do. It is measured how soon it answers."""

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


request = json.load(sys.stdin)
print(json.dumps(answer(request["input"]["text"])))
