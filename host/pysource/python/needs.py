# What a program needs of its surroundings: the programs that it starts, the variables of the
# environment that it reads, and the addresses among its texts. Values are followed where
# they are plain: through assignments of names and through the parameters of functions. What
# is computed is UNKNOWN within a text.
import ast
import shlex

from scan import FUNCTIONS, whole

MOST = 1000  # entries of one list
DEEP = 12  # of values that are followed
STEPS = 100000  # of all values together
WORDS = 16  # of one command
LONG = 4000  # characters of a command
UNKNOWN = "\ufffc"

# How functions take the program that they start: words (a list, or the name alone), shell (a
# text for the shell), either (as their keyword shell says), arguments (each word is an
# argument), look (they look for a program and start none).
STARTERS = {
    **dict.fromkeys(("run", "call", "check_call", "check_output", "Popen"), "either"),
    **dict.fromkeys(("getoutput", "getstatusoutput"), "shell"),
}
STARTERS = {"subprocess." + name: mode for name, mode in STARTERS.items()} | {
    "os.system": "shell",
    "os.popen": "shell",
    "asyncio.create_subprocess_shell": "shell",
    "asyncio.subprocess.create_subprocess_shell": "shell",
    "asyncio.create_subprocess_exec": "arguments",
    "asyncio.subprocess.create_subprocess_exec": "arguments",
    "pexpect.spawn": "shell",
    "pexpect.run": "shell",
    "shutil.which": "look",
    **dict.fromkeys(("os.execl", "os.execlp", "os.execle", "os.execlpe"), "arguments"),
    **dict.fromkeys(("os.execv", "os.execvp", "os.execve", "os.execvpe"), "arguments"),
}
VARIABLES = ("os.getenv", "os.environ.get", "os.environ.pop")
METHODS = {"post": "POST", "put": "PUT", "patch": "PATCH", "delete": "DELETE"}
# Methods of texts, and functions that show them: an address that they are given is not asked.
SHOWN = {"startswith", "endswith", "replace", "removeprefix", "find", "count", "print", "error", "exit", "info", "warning", "debug", "register_namespace"}
TOLD = {"help", "epilog", "description", "usage"}


class Needs:
    def __init__(self, scan):
        self.scan = scan
        self.programs, self.variables, self.addresses = [], [], []
        self.methods = set()
        self.held = {}  # what is assigned to a name: (path of functions, name) -> nodes
        self.functions = {}  # name -> functions of that name, with their paths
        self.calls, self.reads = [], []
        self.named = {}  # calls of functions by the last part of their names
        self.steps = 0
        self.followed = set()
        self.gather()
        for node, path in self.calls:
            self.call(node, path)
        for node, path, name in self.reads:
            self.variable(name, node, path)

    def answer(self):
        return {"programs": self.programs, "variables": self.variables, "addresses": self.addresses, "methods": sorted(self.methods)}

    def add(self, entries, entry):
        if len(entries) < MOST and entry not in entries[-20:]:
            entries.append(entry)

    # Everything, once.

    def gather(self):
        stack = [(self.scan.tree, (), False)]
        while stack:
            node, path, shown = stack.pop()
            inner = path
            if isinstance(node, FUNCTIONS):
                inner = (*path, node)
                self.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
                for t in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(t, (ast.Name, ast.Attribute)):
                        name = self.scan.dotted(t)
                        if name is not None and len(nodes := self.held.setdefault((path if "." not in name else (), name), [])) < 8:
                            nodes.append(node.value)
            elif isinstance(node, ast.Call):
                self.calls.append((node, path))
                last = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
                self.named.setdefault(last, []).append((node, path))
                if last in METHODS and node.args and isinstance(node.func, ast.Attribute):
                    self.methods.add(METHODS[last])
                if last in SHOWN:
                    stack += reversed([(n, path, True) for n in ast.iter_child_nodes(node)])
                    continue
            elif isinstance(node, ast.keyword) and node.arg in TOLD:
                shown = True
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and self.name(node.value) == "os.environ":
                self.reads.append((node, path, node.slice))
            elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)) and self.name(node.comparators[0]) == "os.environ":
                self.reads.append((node, path, node.left))
            elif isinstance(node, (ast.Constant, ast.JoinedStr, ast.Expr)):
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    continue  # a docstring
                if isinstance(node, ast.Constant):
                    if node.value in ("POST", "PUT", "PATCH", "DELETE"):
                        self.methods.add(node.value)
                    self.address(node, path, shown)
                    continue
                if isinstance(node, ast.JoinedStr):
                    self.address(node, path, shown)
                    stack += reversed([(n.value, path, shown) for n in node.values if isinstance(n, ast.FormattedValue)])
                    continue
            stack += reversed([(n, inner, shown) for n in ast.iter_child_nodes(node) if n._fields])

    def name(self, node):
        name, imported = self.scan.resolved(node)
        return name if imported else None

    def address(self, node, path, shown):
        if shown or isinstance(node, ast.Constant) and not isinstance(node.value, str):
            return
        first = node.value if isinstance(node, ast.Constant) else next((n.value for n in node.values if isinstance(n, ast.Constant)), "")
        if isinstance(first, str) and first[:8].lower().startswith(("http://", "https://")):
            self.add(self.addresses, {"text": self.cut(self.text(node, path)), "line": node.lineno})

    @staticmethod
    def cut(text):
        return whole(text[:LONG])

    # Calls of what starts programs and reads variables, and of the functions around them.

    def call(self, node, path):
        name = self.name(node.func)
        if name is None:
            return
        if name in STARTERS:
            mode = STARTERS[name]
            if mode == "either":
                shell = next((k.value for k in node.keywords if k.arg == "shell"), None)
                mode = "words" if shell is None or isinstance(shell, ast.Constant) and not shell.value else "shell"
            self.starts(node.lineno, name, mode, self.argument(node, 0, ("args", "cmd", "command", "program", "file")), node.args, path)
        elif name in VARIABLES:
            self.variable(self.argument(node, 0, ("key",)), node, path)
        elif name in ("http.client.HTTPSConnection", "http.client.HTTPConnection"):
            text = self.text(self.argument(node, 0, ("host",)), path)
            self.add(self.addresses, {"text": ("https://" if "HTTPS" in name else "http://") + self.cut(text), "line": node.lineno})
        elif name in ("urllib.request.Request", "urllib.request.urlopen") and (len(node.args) > 1 or any(k.arg == "data" for k in node.keywords)):
            self.methods.add("POST")

    @staticmethod
    def argument(node, at, names=()):
        if at < len(node.args) and not any(isinstance(a, ast.Starred) for a in node.args[: at + 1]):
            return node.args[at]
        return next((k.value for k in node.keywords if k.arg in names), None)

    def starts(self, line, by, mode, first, rest, path, deep=0):
        """Notes the programs that a value may stand for."""
        if deep > DEEP:
            return
        if mode == "arguments" and rest and isinstance(rest[0], ast.Starred):
            first, mode = rest[0].value, "words"
        around = self.parameter(first, path)
        if around is not None:
            if not self.follow(around, lambda f, p, r: self.starts(f.lineno if hasattr(f, "lineno") else line, by, mode, f, r, p, deep + 1), ("starts", mode)):
                self.add(self.programs, self.entry(line, by, mode, []))
            return
        for value in self.values(first, path):
            if mode == "words" and isinstance(value, (ast.List, ast.Tuple)) and value.elts:
                head = value.elts[0]
                head = head.value if isinstance(head, ast.Starred) else head
                around = self.parameter(head, path)
                one = "arguments" if not isinstance(value.elts[0], ast.Starred) else "words"
                if around is not None:
                    if not self.follow(around, lambda f, p, r, m=one: self.starts(f.lineno if hasattr(f, "lineno") else line, by, m, f, r, p, deep + 1), ("starts", one)):
                        self.add(self.programs, self.entry(line, by, mode, []))
                    continue
            for words in self.commands(value, rest, mode, path):
                self.add(self.programs, self.entry(line, by, mode, words))

    def entry(self, line, by, mode, words):
        words = [self.cut(w) for w in words]
        return {"by": by, "line": line, "words": words, "shell": mode == "shell", "look": mode == "look"}

    def variable(self, node, at, path, deep=0):
        around = self.parameter(node, path)
        if around is not None and deep < DEEP:
            self.follow(around, lambda f, p, r: self.variable(f, f, p, deep + 1), ("variable",))
            return
        for value in self.values(node, path):
            text = self.text(value, path)
            if text and UNKNOWN not in text:
                self.add(self.variables, {"name": self.cut(text), "line": getattr(at, "lineno", 0)})

    def parameter(self, node, path):
        """The function, the place and the name of a parameter that a name stands for."""
        if not isinstance(node, ast.Name):
            return None
        for i in range(len(path) - 1, -1, -1):
            if (path[: i + 1], node.id) in self.held:
                return None
            a = path[i].args
            names = [x.arg for x in [*a.posonlyargs, *a.args]]
            if node.id in names:
                return path[i], names.index(node.id), node.id, names[:1] in (["self"], ["cls"])
            if a.vararg and a.vararg.arg == node.id:
                return path[i], len(names), None, names[:1] in (["self"], ["cls"])
            if node.id in (x.arg for x in a.kwonlyargs):
                return path[i], 1 << 20, node.id, False
        return None

    def follow(self, around, use, key):
        """Gives use what the calls of a function pass for its parameter; False: nothing is known."""
        function, at, name, method = around
        key = (function, at, *key)
        if key in self.followed:
            return True
        self.followed.add(key)
        known = False
        for node, path in self.named.get(function.name, ()):
            if self.name(node.func) is not None:
                continue  # something imported that is called the same
            i = at - 1 if method and isinstance(node.func, ast.Attribute) else at
            if name is None and i < len(node.args):  # *args: they are words
                use(ast.copy_location(ast.List([*node.args[i:]], ast.Load()), node), path, ())
                known = True
                continue
            value = self.argument(node, i, (name,))
            if value is not None:
                use(value, path, node.args[i:])
                known = True
        return known

    # Values.

    def values(self, node, path, deep=0):
        """The nodes that a name may stand for; the node itself where it is no name."""
        self.steps += 1
        if node is None or deep > DEEP or self.steps > STEPS:
            return []
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = self.scan.dotted(node)
            for i in range(len(path), -1, -1):
                if (path[:i], name) in self.held:
                    return [v for n in self.held[path[:i], name] if n is not node for v in self.values(n, path[:i], deep + 1)]
        if isinstance(node, ast.IfExp):
            return self.values(node.body, path, deep + 1) + self.values(node.orelse, path, deep + 1)
        return [node]

    def commands(self, node, rest, mode, path):
        """The words of a command; one of them for the shell; none for what is computed."""
        if isinstance(node, (ast.List, ast.Tuple)):
            words = []
            for e in node.elts[:WORDS]:
                if isinstance(e, ast.Starred):
                    words += next(iter(self.commands(v, (), "words", path) for v in self.values(e.value, path, 1)), [[]])[0] if not words else [UNKNOWN]
                else:
                    words.append(self.text(e, path))
            return [words[:1] if mode == "shell" else words]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and mode != "shell":
            lists = [c for v in self.values(node.left, path, 1) for c in self.commands(v, (), "words", path) if c]
            if lists:
                return lists
        if isinstance(node, ast.Call) and mode != "shell":
            split = self.name(node.func) == "shlex.split" and node.args and node.args[0]
            if not split and isinstance(node.func, ast.Attribute) and node.func.attr == "split" and not node.args:
                split = node.func.value
            if split:
                return [self.split(self.text(split, path))]
            if isinstance(node.func, ast.Name) and node.func.id == "list" and node.args:
                return [c for v in self.values(node.args[0], path, 1) for c in self.commands(v, (), "words", path)]
        text = self.text(node, path)
        if not text.strip(UNKNOWN + " "):
            return [[]]
        if mode == "arguments":
            return [[text, *(self.text(a, path) for a in rest[1:WORDS])]]
        return [[text]]

    @staticmethod
    def split(text):
        try:
            return shlex.split(text[:LONG])[:WORDS]
        except ValueError:
            return text[:LONG].split()[:WORDS]

    def text(self, node, path, deep=0):
        """The text that an expression is, with UNKNOWN for what is computed."""
        self.steps += 1
        if node is None or deep > DEEP or self.steps > STEPS:
            return UNKNOWN
        deep += 1
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                return node.value[:LONG]
            return str(node.value) if isinstance(node.value, (int, float)) and abs(node.value) < 1e15 else UNKNOWN
        if isinstance(node, ast.JoinedStr):
            return "".join(self.text(n.value if isinstance(n, ast.FormattedValue) else n, path, deep) for n in node.values[:200])[:LONG]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return (self.text(node.left, path, deep) + self.text(node.right, path, deep))[:LONG]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return (self.text(node.left, path, deep) + "/" + self.text(node.right, path, deep))[:LONG]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return self.text(node.left, path, deep).replace("%s", UNKNOWN).replace("%d", UNKNOWN)
        if isinstance(node, ast.BoolOp):
            return next((t for t in (self.text(v, path, deep) for v in node.values[:8]) if t.strip(UNKNOWN)), UNKNOWN)
        if isinstance(node, (ast.Name, ast.Attribute)):
            if self.name(node) == "sys.executable":
                return "python3"
            found = [v for v in self.values(node, path, deep) if not isinstance(v, (ast.Name, ast.Attribute))]
            return next((t for t in (self.text(v, path, deep) for v in found) if t.strip(UNKNOWN)), UNKNOWN)
        if isinstance(node, ast.IfExp):
            return next((t for t in (self.text(v, path, deep) for v in (node.body, node.orelse)) if t.strip(UNKNOWN)), UNKNOWN)
        if isinstance(node, ast.Call):
            name = self.name(node.func)
            if name == "shutil.which" and node.args:
                return self.text(node.args[0], path, deep)
            if name in ("os.environ.get", "os.getenv") and len(node.args) > 1:
                return self.text(node.args[1], path, deep)
            if name in ("pathlib.Path", "os.path.expanduser", "os.path.abspath") and node.args or isinstance(node.func, ast.Name) and node.func.id == "str" and node.args:
                return self.text(node.args[0], path, deep)
            if name == "os.path.join":
                return "/".join(self.text(a, path, deep) for a in node.args[:20])[:LONG]
            if isinstance(node.func, ast.Attribute) and node.func.attr == "format":
                head, brace, _ = self.text(node.func.value, path, deep).partition("{")
                return head + (UNKNOWN if brace else "")
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("strip", "rstrip", "resolve", "as_posix", "encode", "lower"):
                return self.text(node.func.value, path, deep)
        return UNKNOWN
