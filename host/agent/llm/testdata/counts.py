"""Writes into counts.jsonl what OpenAI's own library counts in its texts.

    pip install tiktoken==0.14.0
    python3 counts.py

The library fetches its vocabularies from OpenAI.
"""

import json
import pathlib

import tiktoken

file = pathlib.Path(__file__).with_name("counts.jsonl")
lines = []
for line in file.read_text(encoding="utf-8").strip().split("\n"):
    row = json.loads(line)
    text = row["text"] * row.get("times", 1)
    for name in "o200k_base", "cl100k_base":
        row[name] = len(tiktoken.get_encoding(name).encode_ordinary(text))
    lines.append(json.dumps(row) + "\n")
file.write_text("".join(lines), encoding="utf-8")
