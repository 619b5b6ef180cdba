# Tells what a Python program is made of, by the interpreter's own parser. Source text
# comes on standard input, one JSON object goes to standard output; its form is that of
# Module in module.go. The program that is looked at is never run.
import ast
import gc
import inspect
import io
import json
import math
import os
import sys
import tokenize

MOST = 5000  # entries of one list
DEEP = 24  # of expressions that are told in full
WIDE = 2000  # elements of one expression
NAME = 500  # characters of a name
LONG = 16384  # bytes of an assignment beyond which it is a table, and not told
TEXT = 400  # characters of source text that is quoted
DOCS = 20000  # characters of a docstring
SPENT = 200000  # expressions that are told, of the whole program

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BUILTINS = {"open", "input", "exec", "eval", "compile", "__import__", "breakpoint", "exit", "quit", "hasattr"}
PARSER = "argparse.ArgumentParser"


class Refused(Exception):
    pass


def decode(source):
    """Text of source as the interpreter would read it, ends of lines as \\n."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding)
    except (SyntaxError, LookupError, ValueError) as e:
        raise Refused(str(e)) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


class Scan:
    def __init__(self, text):
        self.tree = ast.parse(text)
        self.lines = text.encode("utf-8").split(b"\n")
        self.starts = [0]  # of lines, in bytes
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.names = {}  # of the module: name -> what it was imported as
        self.handled = {}  # calls of parsers that are told already, by id
        self.out = {
            "docstring": self.docstring(self.tree),
            "functions": [],
            "classes": [],
            "aliases": [],
            "imports": [],
            "uses": [],
            "parsers": [],
            "main": False,
            "cut": False,
        }
        self.parsers = []
        self.spent = 0
        self.parser_classes = {PARSER}

    def add(self, what, entry):
        if len(self.out[what]) < MOST:
            self.out[what].append(entry)
        else:
            self.out["cut"] = True

    # Text.

    def source(self, node):
        first, last = node.lineno - 1, node.end_lineno - 1
        if first == last:
            text = self.lines[first][node.col_offset : node.end_col_offset]
        else:
            text = b"\n".join(
                [self.lines[first][node.col_offset :], *self.lines[first + 1 : min(last, first + 20)]]
                + ([self.lines[last][: node.end_col_offset]] if last <= first + 20 else [])
            )
        return text[: TEXT * 4].decode("utf-8", "ignore")[:TEXT]

    def size(self, node):
        """Bytes of source text."""
        return self.starts[node.end_lineno - 1] + node.end_col_offset - self.starts[node.lineno - 1] - node.col_offset

    @staticmethod
    def docstring(node):
        body = node.body
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
            return inspect.cleandoc(body[0].value.value[:DOCS])
        return ""

    # Names.

    def dotted(self, node):
        """a.b.c as it is written, None for what is not of that form."""
        parts = []
        while isinstance(node, ast.Attribute) and len(parts) < DEEP:
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        parts.append(node.id)
        return ".".join(reversed(parts))[:NAME]

    def resolved(self, node):
        """a.b.c with what a was imported as, and whether it was imported."""
        name = self.dotted(node)
        if name is None:
            return None, False
        head, dot, rest = name.partition(".")
        if head in self.names:
            return (self.names[head] + dot + rest)[:NAME], True
        return name, False

    # Expressions.

    def constant(self, value):
        if isinstance(value, bytes):
            return {"kind": "bytes", "source": repr(value)[:TEXT]}
        if value is Ellipsis:
            return {"kind": "ellipsis"}
        if isinstance(value, complex):
            return {"kind": "complex", "source": repr(value)}
        if isinstance(value, str) and any(0xD800 <= ord(c) < 0xE000 for c in value):
            return {"kind": "str", "source": repr(value)[:TEXT]}
        if isinstance(value, float) and not math.isfinite(value) or isinstance(value, int) and value.bit_length() > 1000:
            return {"kind": type(value).__name__, "source": "a very large number"}
        return {"kind": "value", "value": value}

    def expr(self, node, deep=0, hint=False):
        """An expression. hint says that it is a type: texts in it are types to come."""
        if node is None:
            return None
        self.spent += 1
        if deep > DEEP or self.spent > SPENT:
            return {"kind": "source", "source": self.source(node) if hasattr(node, "lineno") else ""}
        deep += 1
        if isinstance(node, ast.Constant):
            if hint and isinstance(node.value, str):
                return self.forward(node.value, deep)
            return self.constant(node.value)
        if isinstance(node, (ast.Name, ast.Attribute)):
            name, _ = self.resolved(node)
            if name is not None:
                return {"kind": "name", "name": name}
        if isinstance(node, ast.Subscript):
            name, _ = self.resolved(node.value)
            if name is not None:
                inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                last = name.rpartition(".")[2]
                if last == "Literal":
                    of = [self.expr(e, deep) for e in inner[:WIDE]]
                elif last == "Annotated" and inner:
                    of = [self.expr(inner[0], deep, hint)] + [self.expr(e, deep) for e in inner[1:WIDE]]
                else:
                    of = [self.expr(e, deep, hint) for e in inner[:WIDE]]
                return {"kind": "generic", "name": name, "of": of}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            of, stack = [], [node]
            while stack and len(of) < WIDE:  # a chain leans to the left
                e = stack.pop()
                if isinstance(e, ast.BinOp) and isinstance(e.op, ast.BitOr):
                    stack += [e.right, e.left]
                else:
                    of.append(self.expr(e, deep, hint))
            return {"kind": "union", "of": of}
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            kind = {ast.List: "list", ast.Tuple: "tuple", ast.Set: "set"}[type(node)]
            of = [self.expr(e, deep, hint) for e in node.elts[:WIDE]]
            if all("value" in e for e in of) and len(of) == len(node.elts):
                return {"kind": kind, "value": [e["value"] for e in of]}
            return {"kind": kind, "of": of}
        if isinstance(node, ast.Dict):
            keys = [self.expr(k, deep) if k is not None else {"kind": "source", "source": "**"} for k in node.keys[:WIDE]]
            values = [self.expr(v, deep, hint) for v in node.values[:WIDE]]
            if len(node.keys) <= WIDE and all(k["kind"] == "value" and isinstance(k["value"], str) for k in keys) and all("value" in v for v in values):
                return {"kind": "dict", "value": {k["value"]: v["value"] for k, v in zip(keys, values)}}
            return {"kind": "dict", "keys": keys, "of": values}
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd, ast.Invert, ast.Not)):
            inner = self.expr(node.operand, deep)
            value = inner.get("value")
            if isinstance(value, (int, float)) and not isinstance(value, bool) and not isinstance(node.op, (ast.Invert, ast.Not)):
                return {"kind": "value", "value": -value if isinstance(node.op, ast.USub) else value}
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Pow, ast.FloorDiv, ast.Div)):
            left, right = self.expr(node.left, deep), self.expr(node.right, deep)
            a, b = left.get("value"), right.get("value")
            if all(isinstance(v, (int, float)) and not isinstance(v, bool) and abs(v) < 1e12 for v in (a, b)):
                try:  # 60 * 60, 1 << 20 and the like, of plain size
                    if isinstance(node.op, ast.Pow):
                        if not 0 <= b <= 64 or abs(a) > 1024:
                            raise ValueError
                        v = a**b
                    else:
                        v = {ast.Add: lambda: a + b, ast.Sub: lambda: a - b, ast.Mult: lambda: a * b, ast.FloorDiv: lambda: a // b, ast.Div: lambda: a / b}[type(node.op)]()
                    if abs(v) < 1e15:
                        return {"kind": "value", "value": v}
                except (ArithmeticError, ValueError):
                    pass
            if isinstance(node.op, ast.Add) and isinstance(a, str) and isinstance(b, str) and len(a) + len(b) < DOCS:
                return {"kind": "value", "value": a + b}
        if isinstance(node, ast.Call):
            name, _ = self.resolved(node.func)
            if name is not None:
                return {
                    "kind": "call",
                    "name": name,
                    "of": [self.expr(a, deep) for a in node.args[:WIDE]],
                    "keywords": [{"name": k.arg or "**", "value": self.expr(k.value, deep)} for k in node.keywords[:WIDE]],
                }
        return {"kind": "source", "source": self.source(node)}

    def forward(self, text, deep):
        """A type in a text."""
        if len(text) > 2000:
            return {"kind": "source", "source": text[:TEXT]}
        try:
            tree = ast.parse("(\n" + text + "\n)", mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return {"kind": "source", "source": text[:TEXT]}
        lines, self.lines = self.lines, ("(\n" + text + "\n)").encode("utf-8", "replace").split(b"\n")
        try:
            return self.expr(tree, deep, True)
        finally:
            self.lines = lines

    # Imports: all of them, before anything is resolved.

    def gather_imports(self):
        stack = [(self.tree, False, False, False)]
        while stack:
            node, optional, inside, checking = stack.pop()
            if isinstance(node, ast.Import):
                for a in node.names:
                    if a.asname:
                        self.names[a.asname] = a.name
                    else:
                        head = a.name.partition(".")[0]
                        self.names[head] = head
                    self.add("imports", {
                        "module": a.name, "as": a.asname or "", "names": [], "level": 0, "line": node.lineno,
                        "optional": optional, "function": inside, "type_checking": checking,
                    })
                continue
            if isinstance(node, ast.ImportFrom):
                module = node.module or ""
                for a in node.names:
                    if a.name != "*":
                        self.names[a.asname or a.name] = "." * node.level + module + ("." if module else "") + a.name
                self.add("imports", {
                    "module": module, "as": "", "names": [{"name": a.name, "as": a.asname or ""} for a in node.names[:WIDE]],
                    "level": node.level, "line": node.lineno, "optional": optional, "function": inside, "type_checking": checking,
                })
                continue
            if isinstance(node, (ast.Try, getattr(ast, "TryStar", ast.Try))):
                caught = any(self.catches_import(h) for h in node.handlers)
                rest = [(n, optional, inside, checking) for n in [*node.orelse, *node.finalbody]]
                # What stands in for a module that is missing is as optional as that.
                for h in node.handlers:
                    rest += [(n, optional or self.catches_import(h), inside, checking) for n in h.body]
                stack += reversed([(n, optional or caught, inside, checking) for n in node.body] + rest)
                continue
            if isinstance(node, ast.If):
                name = self.dotted(node.test) or ""
                stack += reversed(
                    [(n, optional, inside, checking or name.rpartition(".")[2] == "TYPE_CHECKING") for n in node.body]
                    + [(n, optional, inside, checking) for n in node.orelse]
                )
                continue
            inside = inside or isinstance(node, (*FUNCTIONS, ast.Lambda))
            if isinstance(node, ast.With) and any(
                isinstance(i.context_expr, ast.Call) and (self.dotted(i.context_expr.func) or "").rpartition(".")[2] == "suppress" for i in node.items
            ):
                optional = True
            stack += reversed([(n, optional, inside, checking) for n in ast.iter_child_nodes(node) if isinstance(n, (ast.stmt, ast.ExceptHandler, ast.match_case))])

    def catches_import(self, handler):
        if handler.type is None:
            return True
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        return any((self.dotted(k) or "").rpartition(".")[2] in ("ImportError", "ModuleNotFoundError", "Exception", "BaseException") for k in kinds)

    # Functions and classes.

    def parameters(self, args):
        out = []

        def one(arg, kind, default=None):
            out.append({
                "name": arg.arg, "kind": kind, "line": arg.lineno,
                "annotation": self.expr(arg.annotation, 0, True), "default": self.expr(default),
            })

        positional = args.posonlyargs + args.args
        defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
        for i, (arg, default) in enumerate(zip(positional, defaults)):
            one(arg, "positional_only" if i < len(args.posonlyargs) else "positional_or_keyword", default)
        if args.vararg:
            one(args.vararg, "var_positional")
        for arg, default in zip(args.kwonlyargs, args.kw_defaults):
            one(arg, "keyword_only", default)
        if args.kwarg:
            one(args.kwarg, "var_keyword")
        return out

    def type_params(self, node):
        out = []
        for p in getattr(node, "type_params", None) or []:
            out.append({"name": p.name, "bound": self.expr(getattr(p, "bound", None), 0, True)})
        return out

    def function(self, node, path):
        yields, stack = False, list(node.body)
        while stack and not yields:
            n = stack.pop()
            if isinstance(n, (ast.Yield, ast.YieldFrom)):
                yields = True
            if not isinstance(n, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
                stack += ast.iter_child_nodes(n)
        self.add("functions", {
            "name": node.name, "path": ".".join([*path, node.name]), "line": node.lineno, "end_line": node.end_lineno,
            "async": isinstance(node, ast.AsyncFunctionDef), "generator": yields,
            "decorators": [self.expr(d) for d in node.decorator_list], "docstring": self.docstring(node),
            "parameters": self.parameters(node.args), "returns": self.expr(node.returns, 0, True), "type_params": self.type_params(node),
        })

    def class_(self, node, path):
        fields, methods = [], []
        for i, s in enumerate(node.body):
            after = node.body[i + 1] if i + 1 < len(node.body) else None
            doc = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
                doc = inspect.cleandoc(after.value.value[:DOCS])
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name):
                fields.append({
                    "name": s.target.id, "line": s.lineno, "annotation": self.expr(s.annotation, 0, True),
                    "default": self.expr(s.value), "docstring": doc,
                })
            elif isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
                fields.append({"name": s.targets[0].id, "line": s.lineno, "annotation": None, "default": self.expr(s.value), "docstring": doc})
            elif isinstance(s, FUNCTIONS):
                methods.append(s.name)
        bases = [self.expr(b, 0, True) for b in node.bases]
        self.add("classes", {
            "name": node.name, "path": ".".join([*path, node.name]), "line": node.lineno, "docstring": self.docstring(node),
            "bases": bases, "keywords": [{"name": k.arg or "**", "value": self.expr(k.value)} for k in node.keywords],
            "decorators": [self.expr(d) for d in node.decorator_list], "fields": fields[:WIDE], "methods": methods[:WIDE],
            "type_params": self.type_params(node),
        })
        if any(b.get("name") in self.parser_classes for b in bases):
            self.parser_classes.add(node.name)

    # Parsers of the command line. What a variable holds is found by its name in the
    # function and those around it, in the order of the text.

    def holder(self, node, scopes):
        """The parser that an expression stands for, as (index, group), or None."""
        if isinstance(node, ast.Call):
            return self.parser_call(node, scopes)
        name = self.dotted(node)
        if name is not None:
            for scope in reversed(scopes):
                if name in scope:
                    return scope[name]
        return None

    def parser_call(self, node, scopes):
        key = id(node)
        if key not in self.handled:
            self.handled[key] = None
            self.handled[key] = self.parser_made(node, scopes)
        return self.handled[key]

    def arguments(self, node):
        return {
            "args": [self.expr(a) for a in node.args[:WIDE]],
            "keywords": [{"name": k.arg or "**", "value": self.expr(k.value)} for k in node.keywords[:WIDE]],
        }

    def new_parser(self, entry, node, scopes):
        entry |= {"line": node.lineno, "arguments": [], "subparsers": [], "parents": [], "defaults": []}
        for k in node.keywords:
            if k.arg == "parents" and isinstance(k.value, (ast.List, ast.Tuple)):
                for e in k.value.elts:
                    held = self.holder(e, scopes)
                    if held is not None and held[0] == "parser":
                        entry["parents"].append(held[1])
                    else:
                        entry["dynamic"] = True
        self.parsers.append(entry)
        return ("parser", len(self.parsers) - 1, None)

    def parser_made(self, node, scopes):
        name, _ = self.resolved(node.func)
        if name in self.parser_classes and len(self.parsers) < 500:
            return self.new_parser({"parent": -1, "command": "", "dynamic": False, "call": self.arguments(node)}, node, scopes)
        if not isinstance(node.func, ast.Attribute):
            return None
        method = node.func.attr
        if method not in ("add_argument", "add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser", "set_defaults"):
            return None
        held = self.holder(node.func.value, scopes)
        if held is None:
            if method in ("add_argument", "add_parser"):  # of a parser that is not found
                self.out["unknown_parser"] = True
            return None
        kind, index, group = held
        parser = self.parsers[index]
        if method == "add_parser":
            if kind != "subparsers" or len(self.parsers) >= 500:
                return None
            entry = {"parent": index, "command": "", "dynamic": False, "call": self.arguments(node)}
            return self.new_parser(entry, node, scopes)
        if kind != "parser":
            return None
        if method == "add_argument":
            if len(parser["arguments"]) < 500:
                parser["arguments"].append({"line": node.lineno, "group": group, "call": self.arguments(node)})
            return None
        if method == "set_defaults":
            parser["defaults"] += self.arguments(node)["keywords"]
            return None
        if method == "add_subparsers":
            parser["subparsers"].append({"line": node.lineno, "call": self.arguments(node)})
            return ("subparsers", index, None)
        if method == "add_mutually_exclusive_group":
            required = any(k.arg == "required" and isinstance(k.value, ast.Constant) and k.value.value is True for k in node.keywords)
            group = {"exclusive": len(self.handled), "required": required}
        return ("parser", index, group)

    # Everything, in the order of the text.

    def walk(self):
        self.gather_imports()
        # (node, path of names around it, name of the function around it, scopes of parsers, top)
        stack = [(self.tree, (), "", ({},), True)]
        while stack:
            node, path, within, scopes, top = stack.pop()
            if isinstance(node, FUNCTIONS):
                self.function(node, path)
                inner = ((*path, node.name, "<locals>"), ".".join([*path, node.name]), (*scopes, {}), False)
                outer = (path, within, scopes, False)
                around = [*node.decorator_list, *(d for d in [*node.args.defaults, *node.args.kw_defaults] if d is not None)]
                stack += reversed([(n, *outer) for n in around] + [(n, *inner) for n in node.body])
                continue
            if isinstance(node, ast.ClassDef):
                self.class_(node, path)
                inner = ((*path, node.name), within, scopes, False)
                stack += reversed([(n, path, within, scopes, False) for n in [*node.bases, *node.decorator_list]] + [(n, *inner) for n in node.body])
                continue
            if isinstance(node, ast.If) and top and self.is_main(node.test):
                self.out["main"] = True
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
                self.assigned(node, path, scopes)
            elif getattr(ast, "TypeAlias", None) and isinstance(node, ast.TypeAlias):
                if not path:
                    self.add("aliases", {"name": node.name.id, "line": node.lineno, "type": True, "value": self.expr(node.value, 0, True), "type_params": self.type_params(node)})
            if isinstance(node, ast.withitem) and node.optional_vars is not None:
                held = self.holder(node.context_expr, scopes)
                name = self.dotted(node.optional_vars)
                if held is not None and name is not None:
                    scopes[-1][name] = held
            if isinstance(node, ast.Call):
                self.parser_call(node, scopes)
                self.use(node.func, node, within)
                # The name itself is told; what it is an attribute of may be a call.
                inner = node.func
                while isinstance(inner, ast.Attribute):
                    inner = inner.value
                children = [inner] if not isinstance(inner, ast.Name) else []
                children += [*node.args, *node.keywords]
            elif isinstance(node, ast.Attribute):
                if self.use(node, None, within):
                    continue
                children = [node.value]
            elif isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load) and "." in self.names.get(node.id, ""):
                    self.use(node, None, within)
                continue
            elif isinstance(node, (ast.AnnAssign, ast.arg)):
                children = [node.value] if isinstance(node, ast.AnnAssign) and node.value is not None else []
            else:
                # Operators, contexts and literals, which have nothing in them, are half of a tree.
                children = [n for n in ast.iter_child_nodes(node) if n._fields and type(n) is not ast.Constant]
            keep = top and isinstance(node, (ast.Module, ast.If, ast.Try, ast.With, ast.ExceptHandler))
            stack += reversed([(n, path, within, scopes, keep) for n in children])
        for p in self.parsers:
            call = p.pop("call")
            if p["parent"] >= 0:
                first = call["args"][0] if call["args"] else next((k["value"] for k in call["keywords"] if k["name"] == "name"), {})
                p["command"] = first["value"] if isinstance(first.get("value"), str) else ""
            p["keywords"] = call["keywords"]
        self.out["parsers"] = self.parsers

    def is_main(self, test):
        if not isinstance(test, ast.Compare) or len(test.comparators) != 1:
            return False
        sides = [test.left, test.comparators[0]]
        return any(isinstance(s, ast.Name) and s.id == "__name__" for s in sides) and any(
            isinstance(s, ast.Constant) and s.value == "__main__" for s in sides
        )

    def assigned(self, node, path, scopes):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        held = None
        if isinstance(node.value, ast.Call) or isinstance(node.value, (ast.Name, ast.Attribute)):
            held = self.holder(node.value, scopes)
        for t in targets:
            name = self.dotted(t)
            if name is None:
                continue
            if held is not None:
                # An attribute of self is seen by the other methods.
                scopes[0 if "." in name else -1][name] = held
            elif isinstance(node.value, ast.Call):
                scopes[-1].pop(name, None)
            if not path and "." not in name and self.size(node.value) <= LONG:
                annotation = self.expr(node.annotation, 0, True) if isinstance(node, ast.AnnAssign) else None
                is_type = annotation is not None and annotation.get("name", "").rpartition(".")[2] == "TypeAlias"
                self.add("aliases", {"name": name, "line": node.lineno, "type": is_type, "value": self.expr(node.value, 0, is_type or self.looks_like_type(node.value)), "type_params": []})

    def looks_like_type(self, node):
        """Whether texts in what is assigned are types: in Optional["Tree"], and not in a list."""
        return isinstance(node, (ast.Subscript, ast.BinOp)) and not isinstance(node, ast.BinOp) or (
            isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)
        )

    def use(self, node, call, within):
        """Notes a use of what is imported, and of some functions that are always there."""
        name, imported = self.resolved(node)
        if name is None or not imported and not (call is not None and name in BUILTINS):
            return False
        if name.startswith(("typing.", "typing_extensions.")):
            return True
        entry = {"name": name, "line": node.lineno, "call": call is not None, "function": within}
        if call is not None:
            entry["args"] = [self.short(a) for a in call.args[:4]]
            entry["keywords"] = [{"name": k.arg or "**", "value": self.short(k.value)} for k in call.keywords[:8]]
        self.add("uses", entry)
        return True

    def short(self, node):
        """An argument, of which little is told."""
        e = self.expr(node, DEEP - 3)
        if len(json.dumps(e)) > 1000:
            return {"kind": "source", "source": self.source(node)}
        return e


def answer(source):
    try:
        scan = Scan(decode(source))
        scan.walk()
        return scan.out
    except Refused as e:
        return {"error": {"kind": "encoding", "line": 1, "column": 0, "message": str(e)}}
    except SyntaxError as e:
        return {"error": {"kind": "syntax", "line": e.lineno or 0, "column": e.offset or 0, "message": e.msg or "not Python"}}
    except RecursionError:
        return {"error": {"kind": "complex", "line": 0, "column": 0, "message": "it is nested too deeply to be read"}}
    except MemoryError:
        return {"error": {"kind": "complex", "line": 0, "column": 0, "message": "it takes too much memory to be read"}}
    except ValueError as e:
        return {"error": {"kind": "syntax", "line": 0, "column": 0, "message": str(e)}}


def write(out):
    sys.stdout.write(json.dumps(out, ensure_ascii=True, allow_nan=False, separators=(",", ":")))
    sys.stdout.flush()


gc.disable()  # a tree has no circles, and a million objects are looked at again and again

# What a first program needs is made before the read, so that calls need not.
answer(b"import argparse as a\nfrom typing import Optional\ndef f(x: Optional[int] = None, *y: 'str', z=[1]) -> int | None:\n    'd'\nclass A(B):\n    c: int = 1\np = a.ArgumentParser()\np.add_argument('-x', type=int)\nif __name__ == '__main__': f()\n")
json.dumps({"a": [1, 1.5, None, "\u00e4"]})

write(answer(sys.stdin.buffer.read()))
os._exit(0)  # the tree need not be taken apart
