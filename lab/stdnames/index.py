"""index.py STUBS VERSION: the public names of CPython's standard library on Linux.

STUBS is the folder stdlib of typeshed, as the package mypy 2.4.1 brings it in
mypy/typeshed. A line for each module: its name, a colon, and its names. Any Python 3.11 or
newer runs it.
"""

import ast
import pathlib
import sys

# Modules that do something when they are imported, those of other systems, and what is of
# the language.
SKIP = {
    "__main__", "antigravity", "asyncio.windows_events", "asyncio.windows_utils", "builtins", "encodings.mbcs", "encodings.oem",
    "msilib", "msvcrt", "multiprocessing.popen_spawn_win32", "nt", "posix", "this", "typing_extensions", "winreg", "winsound",
}
# Names that are there in some builds or at some times only, or in the stubs alone.
ODD = {"sys." + n for n in "gettotalrefcount last_exc last_traceback last_type last_value ps1 ps2 tracebacklimit UnraisableHookArgs".split()}
ODD |= {"copy.PyStringMap", "typing.AwaitableGenerator", "typing.type_check_only"}


class Index:
    def __init__(self, stubs, version):
        self.stubs, self.version = pathlib.Path(stubs), version
        self.known = {}
        self.stars = {}  # by module, what its __all__ lists

    def modules(self):
        """Modules of this version, by name."""
        lived = {}
        for line in (self.stubs / "VERSIONS").read_text().splitlines():
            name, _, span = line.partition("#")[0].partition(":")
            if span:
                first, _, last = span.strip().partition("-")
                lived[name] = tuple(map(int, first.split("."))) <= self.version and (
                    not last or self.version <= tuple(map(int, last.split(".")))
                )
        for path in sorted(self.stubs.rglob("*.pyi")):
            parts = path.relative_to(self.stubs).with_suffix("").parts
            if parts[-1] == "__init__":
                parts = parts[:-1]
            if parts[0] in SKIP or ".".join(parts) in SKIP or any(p.startswith("_") and p != "__future__" for p in parts):
                continue
            above = [".".join(parts[: i + 1]) for i in range(len(parts))]
            if all(lived.get(a, True) for a in above):
                yield above[-1]

    def file(self, module):
        path = self.stubs.joinpath(*module.split("."))
        return next((p for p in (path / "__init__.pyi", path.with_suffix(".pyi")) if p.is_file()), None)

    def names(self, module):
        if module not in self.known:
            self.known[module] = set()  # while it is read: modules import each other
            path = self.file(module)
            if path is not None:
                found = set()
                package = module if path.name == "__init__.pyi" else module.rpartition(".")[0]
                self.read(ast.parse(path.read_text()).body, package, found)
                self.stars[module] = {n[len("__all__ "):] for n in found if n.startswith("__all__ ")}
                self.known[module] = {n for n in found if not n.startswith("_")}
        return self.known[module]

    def read(self, body, package, found):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                if self.of_types(node):
                    continue
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        found.add(target.id)
                        if target.id == "__all__":
                            found.update(self.listed(node.value))
            elif isinstance(node, ast.AugAssign):
                found.update(self.listed(node.value))
            elif isinstance(node, ast.ImportFrom):
                source = ".".join(filter(None, [package if node.level else "", node.module]))
                for name in node.names:
                    if name.name == "*":
                        names = self.names(source)
                        found |= names & (self.stars.get(source) or names)
                    elif name.asname == name.name:  # what a stub gives on
                        found.add(name.name)
            elif isinstance(node, ast.If):
                told = self.holds(node.test)
                if told is not False:
                    self.read(node.body, package, found)
                if told is not True:
                    self.read(node.orelse, package, found)
            elif isinstance(node, ast.Try):
                self.read(node.body, package, found)

    def listed(self, node):
        return ["__all__ " + e.value for e in getattr(node, "elts", []) if isinstance(e, ast.Constant)]

    def of_types(self, node):
        """Whether it is for type checkers alone."""
        if isinstance(node, ast.AnnAssign):
            return "TypeAlias" in ast.unparse(node.annotation)
        return isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in ("TypeVar", "ParamSpec", "TypeVarTuple")

    def holds(self, test):
        """Whether a condition on the version or the system holds; None: it is another one."""
        if isinstance(test, ast.BoolOp):
            all_of = isinstance(test.op, ast.And)
            values = [self.holds(v) for v in test.values]
            if (not all_of) in values:
                return not all_of
            return None if None in values else all_of
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            value = self.holds(test.operand)
            return None if value is None else not value
        text = ast.unparse(test)
        if text.startswith(("sys.version_info ", "sys.platform ")):
            system = type("sys", (), {"version_info": self.version, "platform": "linux"})
            return eval(text, {"__builtins__": {}, "sys": system})
        return False if text == "TYPE_CHECKING" else None


def main():
    index = Index(sys.argv[1], tuple(map(int, sys.argv[2].split("."))))
    for module in index.modules():
        print(module + ":", *sorted(n for n in index.names(module) if module + "." + n not in ODD))


main()
