"""What the interpreter that runs this lacks of the names in names.txt, in the same form; a
module that cannot be imported stands alone."""

import importlib
import warnings


def main():
    warnings.simplefilter("ignore")
    gone = set()
    for line in open("names.txt"):
        module, _, names = line.strip().partition(":")
        if any(module.startswith(g + ".") for g in gone):
            continue
        try:
            made = importlib.import_module(module)
        except BaseException:
            gone.add(module)
            print(module)
            continue
        lack = [n for n in names.split() if not hasattr(made, n)]
        if lack:
            print(module + ":", *lack)


main()
