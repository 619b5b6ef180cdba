"""Groups the rows of a CSV table and summarises a number in each group."""
import io
import json
import sys

import pandas as pd


def fail(code, message, field):
    error = {"code": code, "message": message, "details": {"field": field}}
    json.dump({"success": False, "data": None, "error": error}, sys.stdout)
    sys.exit(1)


def read(args):
    """Gives the table, or ends with what is wrong with it."""
    where = "csv" if "csv" in args else "path"
    try:
        return pd.read_csv(io.StringIO(args["csv"]) if where == "csv" else args["path"])
    except FileNotFoundError:
        fail("NOT_FOUND", "path: there is no such file in the data folder", "path")
    except (ValueError, pd.errors.ParserError) as e:  # EmptyDataError is a ValueError
        fail("INVALID_ARGUMENT", f"{where}: not a table in CSV: {str(e).splitlines()[0]}", where)


def summarise(table, by, value, stats, limit):
    for field, names in (("by", by), ("value", [value])):
        for name in names:
            if name not in table.columns:
                fail("INVALID_ARGUMENT", f"{field}: no column {name!r}; there are: {', '.join(map(str, table.columns))}", field)
    if not pd.api.types.is_numeric_dtype(table[value]):
        fail("INVALID_ARGUMENT", f"value: the column {value!r} holds other things than numbers", "value")
    if value in by:
        fail("INVALID_ARGUMENT", "value: must not be one of by", "value")
    groups = table.groupby(by, sort=True)[value].agg(stats).reset_index()
    shown = groups.head(limit)
    # to_json writes numbers as JSON has them, and null for what is not one.
    return {
        "groups": json.loads(shown.to_json(orient="records", double_precision=15)),
        "rows": len(table),
        "truncated": len(groups) > limit,
    }


# Before the input is read: done once for all calls, which then find pandas as it is
# after its first use.
summarise(pd.read_csv(io.StringIO("a,b\nx,1\n")), ["a"], "b", ["sum", "mean", "std"], 1)

args = json.load(sys.stdin)["input"]
stats = list(dict.fromkeys(args.get("stats", ["sum", "mean", "count"])))
json.dump(summarise(read(args), list(dict.fromkeys(args["by"])), args["value"], stats, args.get("limit", 100)), sys.stdout)
