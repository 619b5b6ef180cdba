# What a Python program is made of, by the interpreter's own parser: imports, uses of what
# is imported, functions, classes, assignments at the top and parsers of the command line.
# The program is never run. Expressions are read when they are asked for.
import ast
import inspect
import io
import math
import operator
import tokenize

MOST = 5000  # entries of one list
DEEP = 24  # of expressions that are told in full
WIDE = 2000  # elements of one expression
NAME = 500  # characters of a name
LONG = 16384  # bytes of an assignment beyond which it is a table, and not told
TEXT = 400  # characters of source text that is quoted
SHORT = 1000  # characters of an argument of a use
DOCS = 20000  # characters of a docstring
SPENT = 200000  # expressions that are read, of the whole program

ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow, ast.FloorDiv: operator.floordiv, ast.Div: operator.truediv}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BUILTINS = {"open", "input", "exec", "eval", "compile", "__import__", "breakpoint", "exit", "quit", "hasattr"}
PARSER = "argparse.ArgumentParser"

NO = object()  # no value: what is no literal


class Expr:
    """An expression: a type, a default or an argument. Its kind is value (a text, number,
    truth value or None), name, generic (name[of]), union (of | of), list, tuple, set, dict,
    call (name(of, **keywords)), or source for all else. Names are resolved by the imports:
    after "import typing as t", t.Optional is typing.Optional."""

    __slots__ = ("kind", "name", "value", "of", "keys", "keywords", "source")

    def __init__(self, kind, name="", value=NO, of=(), keys=(), keywords=(), source=""):
        self.kind, self.name, self.value, self.of = kind, name, value, of
        self.keys, self.keywords, self.source = keys, keywords, source

    def text(self):
        return self.value if isinstance(self.value, str) else None

    def keyword(self, name):
        return next((v for k, v in self.keywords if k == name), None)

    def last(self):
        return self.name.rpartition(".")[2]


def whole(text):
    """Text with U+FFFD in the place of halves of surrogate pairs."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


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
        self.functions = {}  # by their paths: f, Class.f, outer.<locals>.f
        self.classes = {}  # the same
        self.aliases = {}  # what is assigned at the top: (value, whether it is a type, type parameters, line)
        self.imports, self.uses, self.parsers = [], [], []
        self.main = self.cut = self.unknown_parser = False
        self.read = {}  # expressions that were read, by id and whether they are types
        self.bodies = {}  # fields of classes that were read
        self.spent = 0
        self.parser_classes = {PARSER}
        self.walk()

    def add(self, entries, entry):
        if len(entries) < MOST:
            entries.append(entry)
        else:
            self.cut = True

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
            return whole(inspect.cleandoc(body[0].value.value[:DOCS]))
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

    @staticmethod
    def constant(value):
        if isinstance(value, bytes):
            return Expr("bytes", source=repr(value)[:TEXT])
        if value is Ellipsis:
            return Expr("ellipsis")
        if isinstance(value, complex):
            return Expr("complex", source=repr(value))
        if isinstance(value, str) and any(0xD800 <= ord(c) < 0xE000 for c in value):
            return Expr("str", source=repr(value)[:TEXT])
        if isinstance(value, float) and not math.isfinite(value) or isinstance(value, int) and value.bit_length() > 1000:
            return Expr(type(value).__name__, source="a very large number")
        return Expr("value", value=value)

    def expr(self, node, hint=False):
        """An expression, None for none. hint says that it is a type: texts in it are types
        to come."""
        if node is None:
            return None
        key = (id(node), hint)
        if key not in self.read:
            self.read[key] = self.expression(node, 0, hint)
        return self.read[key]

    def call(self, node, deep=0):
        """What a call is given."""
        return {
            "of": [self.expression(a, deep) for a in node.args[:WIDE]],
            "keywords": [(k.arg or "**", self.expression(k.value, deep)) for k in node.keywords[:WIDE]],
        }

    def expression(self, node, deep, hint=False):
        self.spent += 1
        if deep > DEEP or self.spent > SPENT:
            return Expr("source", source=self.source(node) if hasattr(node, "lineno") else "")
        deep += 1
        if isinstance(node, ast.Constant):
            if hint and isinstance(node.value, str):
                return self.forward(node.value, deep)
            return self.constant(node.value)
        if isinstance(node, (ast.Name, ast.Attribute)):
            name, _ = self.resolved(node)
            if name is not None:
                return Expr("name", name)
        if isinstance(node, ast.Subscript):
            name, _ = self.resolved(node.value)
            if name is not None:
                inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                last = name.rpartition(".")[2]
                types = {"Literal": 0, "Annotated": 1}.get(last, WIDE)  # so many of the first are types
                return Expr("generic", name, of=[self.expression(e, deep, hint and i < types) for i, e in enumerate(inner[:WIDE])])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            of, stack = [], [node]
            while stack and len(of) < WIDE:  # a chain leans to the left
                e = stack.pop()
                if isinstance(e, ast.BinOp) and isinstance(e.op, ast.BitOr):
                    stack += [e.right, e.left]
                else:
                    of.append(self.expression(e, deep, hint))
            return Expr("union", of=of)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            of = [self.expression(e, deep, hint) for e in node.elts[:WIDE]]
            literal = all(e.value is not NO for e in of) and len(of) == len(node.elts)
            return Expr(type(node).__name__.lower(), **({"value": [e.value for e in of]} if literal else {"of": of}))
        if isinstance(node, ast.Dict):
            keys = [self.expression(k, deep) if k is not None else Expr("source", source="**") for k in node.keys[:WIDE]]
            values = [self.expression(v, deep, hint) for v in node.values[:WIDE]]
            if len(node.keys) <= WIDE and all(k.text() is not None for k in keys) and all(v.value is not NO for v in values):
                return Expr("dict", value={k.value: v.value for k, v in zip(keys, values)})
            return Expr("dict", keys=keys, of=values)
        if isinstance(node, ast.UnaryOp):
            value = self.expression(node.operand, deep).value
            if isinstance(value, (int, float)) and not isinstance(value, bool) and isinstance(node.op, (ast.USub, ast.UAdd)):
                return Expr("value", value=-value if isinstance(node.op, ast.USub) else value)
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            a, b = self.expression(node.left, deep).value, self.expression(node.right, deep).value
            if all(isinstance(v, (int, float)) and not isinstance(v, bool) and abs(v) < 1e12 for v in (a, b)):
                try:  # 60 * 60 and the like, of plain size
                    if not isinstance(node.op, ast.Pow) or 0 <= b <= 64 and abs(a) <= 1024:
                        v = ARITHMETIC[type(node.op)](a, b)
                        if not isinstance(v, complex) and abs(v) < 1e15:
                            return Expr("value", value=v)
                except (ArithmeticError, ValueError, TypeError):
                    pass
            if isinstance(node.op, ast.Add) and isinstance(a, str) and isinstance(b, str) and len(a) + len(b) < DOCS:
                return Expr("value", value=a + b)
        if isinstance(node, ast.Call):
            name, _ = self.resolved(node.func)
            if name is not None:
                return Expr("call", name, **self.call(node, deep))
        return Expr("source", source=self.source(node))

    def forward(self, text, deep):
        """A type in a text."""
        failed = Expr("source", source=whole(text[:TEXT]))
        if len(text) > 2000:
            return failed
        try:
            tree = ast.parse("(\n" + text + "\n)", mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return failed
        lines, self.lines = self.lines, ("(\n" + text + "\n)").encode("utf-8", "replace").split(b"\n")
        try:
            return self.expression(tree, deep, True)
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
                    self.add(self.imports, {
                        "module": a.name, "as": a.asname or "", "names": [], "level": 0, "line": node.lineno,
                        "optional": optional, "function": inside, "type_checking": checking,
                    })
                continue
            if isinstance(node, ast.ImportFrom):
                module = node.module or ""
                for a in node.names:
                    if a.name != "*":
                        self.names[a.asname or a.name] = "." * node.level + module + ("." if module else "") + a.name
                self.add(self.imports, {
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
        """(kind, ast.arg, default) of each, the kinds as module inspect has them."""
        positional = args.posonlyargs + args.args
        defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
        for i, (arg, default) in enumerate(zip(positional, defaults)):
            yield "positional_only" if i < len(args.posonlyargs) else "positional_or_keyword", arg, self.expr(default)
        if args.vararg:
            yield "var_positional", args.vararg, None
        for arg, default in zip(args.kwonlyargs, args.kw_defaults):
            yield "keyword_only", arg, self.expr(default)
        if args.kwarg:
            yield "var_keyword", args.kwarg, None

    def alias(self, name):
        """What was assigned to a name at the top, None for nothing."""
        if name not in self.aliases:
            return None
        value, hint, _, _ = self.aliases[name]
        return self.expr(value, hint)

    def fields(self, node):
        """(name, annotation, default, docstring) of what is assigned in the body of a class."""
        if node in self.bodies:
            return self.bodies[node]
        out = self.bodies[node] = []
        for s, after in zip(node.body, [*node.body[1:], None]):
            if isinstance(s, ast.AnnAssign):
                target, annotation = s.target, self.expr(s.annotation, True)
            elif isinstance(s, ast.Assign) and len(s.targets) == 1:
                target, annotation = s.targets[0], None
            else:
                continue
            if isinstance(target, ast.Name):
                doc = ""
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
                    doc = whole(inspect.cleandoc(after.value.value[:DOCS]))
                out.append((target.id, annotation, self.expr(s.value), doc))
        del out[WIDE:]
        return out

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

    def new_parser(self, node, scopes, parent=-1):
        entry = {"parent": parent, "call": node, "dynamic": False, "arguments": [], "subparsers": [], "parents": []}
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
            return self.new_parser(node, scopes)
        if not isinstance(node.func, ast.Attribute):
            return None
        method = node.func.attr
        if method not in ("add_argument", "add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser"):
            return None
        held = self.holder(node.func.value, scopes)
        if held is None:
            if method in ("add_argument", "add_parser"):  # of a parser that is not found
                self.unknown_parser = True
            return None
        kind, index, excludes = held
        parser = self.parsers[index]
        if method == "add_parser":
            if kind != "subparsers" or len(self.parsers) >= 500:
                return None
            return self.new_parser(node, scopes, index)
        if kind != "parser":
            return None
        if method == "add_argument":
            if len(parser["arguments"]) < 500:
                parser["arguments"].append((node, excludes))
            return None
        if method == "add_subparsers":
            parser["subparsers"].append(node)
            return ("subparsers", index, None)
        return ("parser", index, excludes or method == "add_mutually_exclusive_group")

    # Everything, in the order of the text.

    def walk(self):
        self.gather_imports()
        # (node, path of names around it, name of the function around it, scopes of parsers, top)
        stack = [(self.tree, (), "", ({},), True)]
        while stack:
            node, path, within, scopes, top = stack.pop()
            if isinstance(node, FUNCTIONS):
                self.functions[".".join([*path, node.name])] = node
                inner = ((*path, node.name, "<locals>"), ".".join([*path, node.name]), (*scopes, {}), False)
                outer = (path, within, scopes, False)
                around = [*node.decorator_list, *(d for d in [*node.args.defaults, *node.args.kw_defaults] if d is not None)]
                stack += reversed([(n, *outer) for n in around] + [(n, *inner) for n in node.body])
                continue
            if isinstance(node, ast.ClassDef):
                self.classes[".".join([*path, node.name])] = node
                if any(self.resolved(b)[0] in self.parser_classes for b in node.bases):
                    self.parser_classes.add(node.name)
                inner = ((*path, node.name), within, scopes, False)
                stack += reversed([(n, path, within, scopes, False) for n in [*node.bases, *node.decorator_list]] + [(n, *inner) for n in node.body])
                continue
            if isinstance(node, ast.If) and top and self.is_main(node.test):
                self.main = True
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
                self.assigned(node, path, scopes)
            elif getattr(ast, "TypeAlias", None) and isinstance(node, ast.TypeAlias):
                if not path:
                    self.aliases[node.name.id] = (node.value, True, node.type_params, node.lineno)
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
                annotation = self.expr(node.annotation, True) if isinstance(node, ast.AnnAssign) else None
                is_type = annotation is not None and annotation.last() == "TypeAlias"
                self.aliases[name] = (node.value, is_type or self.looks_like_type(node.value), [], node.lineno)

    @staticmethod
    def looks_like_type(node):
        """Whether texts in what is assigned are types: in Optional["Tree"], and not in a list."""
        return isinstance(node, ast.Subscript) or isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)

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
            entry["keywords"] = {k.arg or "**": self.short(k.value) for k in call.keywords[:8]}
        self.add(self.uses, entry)
        return True

    def short(self, node):
        """The text that an argument is, "" for all else."""
        text = self.expression(node, DEEP - 3).text() or ""
        return text if len(text) <= SHORT else ""
