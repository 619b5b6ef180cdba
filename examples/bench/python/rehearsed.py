"""frame.py, as an author writes it who knows of images: what pandas makes at its
first use is made before the input is read, once for all calls."""

import json
import sys

import numpy as np
import pandas as pd


def answer():
    values = np.arange(1000) % 97
    frame = pd.DataFrame({"key": [chr(65 + i % 26) for i in range(1000)], "value": values})
    grouped = frame.groupby("key")["value"].agg(["mean", "max", "sum"])
    return {"sum": int(grouped["sum"].sum()), "first": float(grouped["mean"].iloc[0])}


answer()

request = json.load(sys.stdin)
print(json.dumps(answer()))
