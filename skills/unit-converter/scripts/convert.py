import argparse
import json
import math


def main():
    parser = argparse.ArgumentParser(description="Unit Converter")
    parser.add_argument("--value", type=float, required=True, help="The value to convert")
    parser.add_argument("--factor", type=float, required=True, help="The conversion factor")
    args = parser.parse_args()
    for name in ("value", "factor"):
        if not math.isfinite(getattr(args, name)):
            parser.error(f"argument --{name}: must be a finite number")
    result = round(args.value * args.factor, 4)
    if not math.isfinite(result):
        parser.error("the result does not fit a double (about 1.8e308): use a smaller value or factor")
    print(json.dumps({"result": result, "value": args.value, "factor": args.factor}))


if __name__ == "__main__":
    main()
