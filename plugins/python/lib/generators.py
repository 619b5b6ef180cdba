"""Functions as generators, by their source: what module _openskill_threads runs threads by."""

import ast
import builtins
import types

files = {}  # by name


class File:
    """The functions of a source file, and its classes."""

    def __init__(self, text):
        tree = ast.parse(text)
        self.programs = any(word in text for word in (b"Popen", b"subprocess", b"fdopen", b"stdin", b"stdout"))
        self.codes = None
        self.functions, self.names, self.classes, self.quiet = {}, {}, set(), {}
        more = [(tree, None)]
        while more:
            node, inside = more.pop()
            for child in ast.iter_child_nodes(node):
                of = inside
                if isinstance(child, ast.ClassDef):
                    self.classes.add(child.name)
                    of = child.name
                elif isinstance(child, ast.Lambda):
                    key = child.lineno, "<lambda>"
                    self.functions[key] = (None, None) if key in self.functions else (child, inside)
                elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    line = min([child.lineno] + [d.lineno for d in child.decorator_list])
                    self.functions[line, child.name] = child, inside
                    self.names.setdefault(child.name, []).append(child)
                more.append((child, of))

    def waits(self, function):
        """Whether a call of this may wait, as far as its name tells."""
        name = getattr(function, "id", None) or getattr(function, "attr", None)
        if name in harmless or isinstance(function, ast.Name) and (name in self.classes or hasattr(builtins, name)):
            return False
        if name not in self.names:
            return True
        if name not in self.quiet:
            self.quiet[name] = True  # if it calls itself, that says nothing
            self.quiet[name] = not any(
                isinstance(node, (ast.With, ast.While)) or again(node) or self.lines(node) or self.gathers(node)
                or isinstance(node, ast.Call) and self.waits(node.func)
                for f in self.names[name] for node in ast.walk(f)
            )
        return not self.quiet[name]

    def lines(self, node):
        """Whether it is a loop that may be over what another program writes."""
        of = node.iter if self.programs and isinstance(node, ast.For) else None
        if counted(of):
            of = of.args[0]
        if isinstance(of, ast.Call):
            name = getattr(of.func, "id", None) or getattr(of.func, "attr", None)
            return name not in harmless and not (isinstance(of.func, ast.Name) and hasattr(builtins, name))
        return isinstance(of, places)

    def gathers(self, node):
        """What a node reads to its end that may be what another program writes; None: nothing."""
        if not self.programs:
            return None
        if isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            if name not in (takers if isinstance(node.func, ast.Name) else ("join", "Counter")) or name in self.names:
                return None
            node = node.args[0]
            if isinstance(node, places):
                return node
            if not isinstance(node, ast.GeneratorExp):
                return None
        elif not isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp)):
            return None
        of = node.generators[0]
        of = of.iter.args[0] if counted(of.iter) else None if of.is_async else of.iter
        return of if isinstance(of, places) else None


def counted(of):
    """Whether it is enumerate(…)."""
    return (
        isinstance(of, ast.Call) and isinstance(of.func, ast.Name) and of.func.id == "enumerate"
        and len(of.args) in (1, 2) and not of.keywords and not any(isinstance(a, ast.Starred) for a in of.args)
    )


def again(node):
    """Whether it is a loop over iter(function, end)."""
    of = node.iter if isinstance(node, ast.For) else None
    return (
        isinstance(of, ast.Call) and isinstance(of.func, ast.Name) and of.func.id == "iter"
        and len(of.args) == 2 and not of.keywords and not any(isinstance(a, ast.Starred) for a in of.args)
    )


def codes(code):
    """This code and those in it."""
    return {code}.union(*(codes(c) for c in code.co_consts if type(c) is types.CodeType))


harmless = {n for kind in (str, bytes, list, dict, set, int, float, types.CodeType) for n in dir(kind)} - {"get", "join"}
fences = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)
places = ast.Name, ast.Attribute, ast.Subscript
takers = {"list", "set", "tuple", "frozenset", "dict", "sorted", "sum", "max", "min", "Counter"}  # of all, in order
no_args = dict(posonlyargs=[], kwonlyargs=[], kw_defaults=[], defaults=[])
generators = 0x20 | 0x80 | 0x200  # and coroutines


def rewritten(code):
    """The code of a function as that of a generator; None: it never waits, or its source is not known."""
    if code.co_flags & generators or code.co_filename.startswith("/openskill/") and code.co_filename != "/openskill/lib/multi.py":
        return None
    if code.co_filename not in files:
        files[code.co_filename] = None
        if code.co_filename == "<string>":  # python3 -c
            text = getattr(builtins, "__openskill_source__", "")
            files[code.co_filename] = file = File(text.encode())
            file.codes = codes(compile(text, code.co_filename, "exec", dont_inherit=True))
        else:
            with open(code.co_filename, "rb") as f:
                files[code.co_filename] = File(f.read())
    file = files[code.co_filename]
    if file and file.codes is not None and code not in file.codes:
        return None  # of another text with this name, as exec has them
    node, inside = file.functions.get((code.co_firstlineno, code.co_name), (None, None)) if file else (None, None)
    if node is None or getattr(node, "type_params", None):
        return None
    changed = False

    def name(n):
        return ast.Name(f"__openskill_{n}__", ast.Load())

    def at(node, new):
        return ast.fix_missing_locations(ast.copy_location(new, node))

    def called(node):
        """Such a loop as one that calls the function."""
        nonlocal loops
        loops += 1
        names = [f"__openskill_{n}_{loops}__" for n in ("function", "end", "value")]
        function, end, value = [ast.Name(n, ast.Load()) for n in names]
        before = [ast.Assign([ast.Name(n, ast.Store())], a) for n, a in zip(names, node.iter.args)]
        result = ast.NamedExpr(ast.Name(names[2], ast.Store()), ast.Call(function, [], []))
        test = ast.BoolOp(ast.Or(), [ast.Compare(result, [ast.Is()], [end]), ast.Compare(end, [ast.Eq()], [value])])
        loop = ast.While(ast.UnaryOp(ast.Not(), test), [ast.Assign([node.target], value)] + node.body, node.orelse)
        return [change(at(node, n)) for n in before + [loop]]

    loops = 0

    def gathered(node, of):
        """The node, in which one in it waits for all that it is over. A comprehension has that
        computed where it stands, not within."""
        if node is of:
            return at(node, ast.YieldFrom(ast.Call(name("gathered"), [node], [])))
        if isinstance(node, list):
            return [gathered(n, of) for n in node]
        if not isinstance(node, ast.AST):
            return node
        return ast.copy_location(type(node)(**{f: gathered(getattr(node, f), of) for f in node._fields if hasattr(node, f)}), node)

    def change(node):
        nonlocal changed, loops
        if isinstance(node, list):
            return [m for n in node for m in (called(n) if again(n) else [change(n)])]
        if not isinstance(node, ast.AST):
            return node
        if of := file.gathers(node):
            changed = True
            new = gathered(node.args[0] if isinstance(node, ast.Call) else node, of)
            if not isinstance(node, ast.Call):
                return new
            node = ast.copy_location(ast.Call(node.func, [new] + node.args[1:], node.keywords), node)
        if isinstance(node, fences + (ast.YieldFrom,)):
            return node
        new = ast.copy_location(type(node)(**{f: change(getattr(node, f)) for f in node._fields if hasattr(node, f)}), node)
        if isinstance(node, ast.Call) and file.waits(node.func):
            changed = True
            new.func = at(node.func, ast.Call(name("call"), [new.func], []))
            result = ast.NamedExpr(ast.Name("__openskill_result__", ast.Store()), new)
            of = ast.Call(name("type"), [result], [])
            new = at(node, ast.IfExp(
                ast.Compare(of, [ast.Is()], [name("waits")]), ast.YieldFrom(name("result")), name("result")))
        elif isinstance(node, ast.With):
            changed = True
            for item in new.items:
                of = item.context_expr
                item.context_expr = at(of, ast.YieldFrom(ast.Call(name("enter"), [of], [])))
        elif file.lines(node):
            changed = True
            number = counted(new.iter) and (new.iter.args[1:] or [at(new.iter, ast.Constant(0))])
            of = [new.iter.args[0], *number] if number else [new.iter]
            loops += 1
            line = f"__openskill_line_{loops}__"
            wait = ast.If(
                ast.Compare(ast.Call(name("type"), [ast.Name(line, ast.Load())], []), [ast.Is()], [name("waits")]),
                [ast.Expr(ast.YieldFrom(ast.Name(line, ast.Load()))), ast.Continue()], [])
            new = at(node, ast.For(
                ast.Name(line, ast.Store()), ast.Call(name("each"), of, []),
                [wait, ast.Assign([new.target], ast.Name(line, ast.Load()))] + new.body, new.orelse))
        elif isinstance(node, ast.While):
            changed = True
            new.body.insert(0, at(node, ast.Expr(ast.YieldFrom(ast.Call(name("tick"), [], [])))))
        return new

    if isinstance(node, ast.Lambda):
        body = [at(node.body, ast.Return(change(node.body)))]
    else:
        body = change(node.body)
    if not changed:
        return None

    def bare(arguments):
        return [ast.copy_location(ast.arg(a.arg), a) for a in arguments]

    old = node.args
    arguments = ast.arguments(
        posonlyargs=bare(old.posonlyargs), args=bare(old.args), vararg=old.vararg and bare([old.vararg])[0],
        kwonlyargs=bare(old.kwonlyargs), kw_defaults=[None] * len(old.kwonlyargs), kwarg=old.kwarg and bare([old.kwarg])[0],
        defaults=[],
    )

    def define(name, arguments, body):
        return ast.FunctionDef(name=name, args=arguments, body=body, decorator_list=[], returns=None, type_params=[])

    # By names that a script has not, lest they hide its own.
    path = ["__openskill_function__"]
    tree = define(path[0], arguments, body)
    if inside is not None:  # for names that begin with two underscores
        inside = "___" + inside
        tree = ast.ClassDef(name=inside, bases=[], keywords=[], body=[tree], decorator_list=[], type_params=[])
        path.insert(0, inside)
    free = [ast.arg(n) for n in code.co_freevars if n != "__class__"]
    tree = define("outer", ast.arguments(args=free, vararg=None, kwarg=None, **no_args), [tree])
    module = ast.Module([at(node, tree)], [])
    # Nested functions are shared with the tree of the file, where they have their places.
    new = compile(module, code.co_filename, "exec", dont_inherit=True)
    for part in ["outer"] + path:
        new = next(c for c in new.co_consts if type(c) is types.CodeType and c.co_name == part)
    return new.replace(co_name=code.co_name, co_qualname=code.co_qualname)
