import argparse
import json


def main():
    parser = argparse.ArgumentParser(description="Unit Converter")
    parser.add_argument("--value", type=float, required=True, help="The value to convert")
    parser.add_argument("--factor", type=float, required=True, help="The conversion factor")
    args = parser.parse_args()
    result = round(args.value * args.factor, 4)
    print(json.dumps({"result": result, "value": args.value, "factor": args.factor}))


if __name__ == "__main__":
    main()
