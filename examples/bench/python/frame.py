"""A skill with numpy and pandas: it echoes, or groups 1,000 rows of 26 groups."""

import json
import sys

import numpy as np
import pandas as pd


def answer(op):
    if op == "echo":
        return {"echoed": int(np.add(1, 1))}
    values = np.arange(1000) % 97
    frame = pd.DataFrame({"key": [chr(65 + i % 26) for i in range(1000)], "value": values})
    grouped = frame.groupby("key")["value"].agg(["mean", "max", "sum"])
    return {"sum": int(grouped["sum"].sum()), "first": float(grouped["mean"].iloc[0])}


request = json.load(sys.stdin)
print(json.dumps(answer(request["input"]["op"])))
