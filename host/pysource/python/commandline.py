# JSON Schema of the parser of a script's command line. Options are named by their longest
# flag without dashes, and arguments without a flag by their own name. Those of subcommands
# are all there, each saying in its description whose it is.
import docstring
from scan import NO, Expr
from schema import DEFAULT, DESCRIPTION, Typer, any_of, canonical, clean, describe, dumps, enum_of, is_a, word_of

OPTIONS = 300  # that are told
CHOICES = 200  # of one option


def text_of(e):
    """The text that an expression is, None for none and for all else."""
    return e.text() if e is not None else None


def bool_of(e):
    """The truth value that an expression is, None for none and for all else."""
    return e.value if e is not None and isinstance(e.value, bool) else None


class Option:
    """One argument of a parser."""

    def __init__(self, command):
        self.subcommand = command  # whose option it is; "" of all
        self.flag = ""  # as it is written, --name; "" for one that goes by its place
        self.off = ""  # --no-name, of BooleanOptionalAction
        self.set = False  # a flag without a value, given when true
        self.count = False
        self.list = False  # several values
        self.repeat = False  # the flag is repeated for each of them
        self.required = False
        self.name, self.schema = "", {}

    def told(self):
        return {k: getattr(self, k) for k in ("name", "flag", "off", "set", "count", "list", "repeat", "subcommand")}


class Builder:
    def __init__(self, scan):
        self.scan, self.typer = scan, Typer(scan)
        self.partial = scan.unknown_parser
        self.options, self.command = {}, None

    def given(self, node):
        return Expr("call", **self.scan.call(node))

    def main(self):
        """The index of the parser with the most to say that is not another's, None for none."""
        parents = {n for p in self.scan.parsers for n in p["parents"]}
        roots = [i for i, p in enumerate(self.scan.parsers) if p["parent"] < 0 and i not in parents]
        return max(roots, key=lambda i: len(self.scan.parsers[i]["arguments"]) + 2 * len(self.scan.parsers[i]["subparsers"]), default=None)

    def parser(self, index, command):
        """Adds the arguments of a parser, and of its subcommands."""
        p = self.scan.parsers[index]
        self.partial = self.partial or p["dynamic"]
        for node, excludes in [a for parent in p["parents"] for a in self.scan.parsers[parent]["arguments"]] + p["arguments"]:
            self.argument(self.given(node), excludes, command)
        if not p["subparsers"]:
            return
        if command != "":  # commands of commands are not told
            self.partial = True
            return
        call, o, commands, told = self.given(p["subparsers"][0]), Option(""), [], []
        o.name = text_of(call.keyword("dest")) or "command"
        o.required = bool_of(call.keyword("required")) or False
        for i, sub in enumerate(self.scan.parsers):
            if sub["parent"] == index:
                made = self.given(sub["call"])
                name = text_of(made.of[0] if made.of else made.keyword("name")) or ""
                if name:
                    commands.append((i, name))
                if name and name not in [n for n, _ in told]:
                    told.append((name, text_of(made.keyword("help"))))
        o.schema = enum_of([n for n, _ in told]) if told else {"type": "string"}
        self.partial = self.partial or not told
        describe(o.schema, "; ".join(f"{n}: {h}" for n, h in told if h is not None))
        describe(o.schema, text_of(call.keyword("help")))
        self.command = o
        for i, name in commands:
            self.parser(i, name)

    def argument(self, call, excludes, command):
        """Adds what add_argument says."""
        o, flags, dest = Option(command), [e.text() for e in call.of], text_of(call.keyword("dest")) or ""
        if len(self.options) >= OPTIONS or None in flags or not flags and not dest:
            self.partial = True
            return
        if not flags:
            o.name = dest
        elif not flags[0].startswith("-"):
            o.name = flags[0]
        else:
            for f in flags:
                if len(f) > len(o.flag) and f.startswith("--") or o.flag == "":
                    o.flag = f
            o.name = o.flag.lstrip("-")
        if not self.shape(o, call):
            return
        self.say(o, call)
        required = bool_of(call.keyword("required"))
        o.required = not excludes and (o.required if required is None else required)
        self.options[o.name, command] = o

    def shape(self, o, call):
        """Finds the schema of an argument by its action, type, choices and number."""
        e = call.keyword("action")
        action = text_of(e)
        o.required = o.flag == ""
        if action is None and e is not None and e.last() == "BooleanOptionalAction":
            o.set, o.off, o.schema = True, "--no-" + o.name, {"type": "boolean"}
            return True
        if action in ("store_true", "store_false", "store_const", "append_const"):
            # The object says what is given on the command line, as the flag's name does.
            o.set, o.schema = True, {"type": "boolean"}
            if action in ("store_true", "store_false"):
                o.schema["default"] = False
            return True
        if action == "count":
            o.count, o.schema = True, {"type": "integer", "minimum": 0}
            return True
        if action in ("help", "version"):
            return False
        o.repeat = action == "append"
        if e is not None and action not in ("store", "append", "extend"):
            self.partial = True  # a class of the script's own: what it takes is not known
        o.schema = self.one(call)
        nargs = call.keyword("nargs")
        number = nargs.value if nargs is not None and word_of(nargs.value) == "integer" else 0
        many = {"*": {}, "+": {"minItems": 1}, "...": {}, "A...": {}}.get(text_of(nargs))
        if number > 0:
            many = {"minItems": number, "maxItems": number}
        elif nargs is not None and nargs.last() == "REMAINDER":
            many = {}
        if many is not None:
            o.list, o.schema = True, {"type": "array", "items": o.schema} | many
        if text_of(nargs) == "?" or many == {}:
            o.required = False
        if o.repeat or action == "extend" and not o.list:
            o.list, o.schema = True, {"type": "array", "items": o.schema}
        return True

    def one(self, call):
        """The schema of one value."""
        s, e = {"type": "string"}, call.keyword("type")
        if e is not None and e.kind == "name":
            short = canonical(e.name)
            if short in ("int", "float", "decimal.Decimal", "fractions.Fraction", "bool"):
                s = {"type": {"int": "integer", "bool": "boolean"}.get(short, "number")}
            elif short == "uuid.UUID":
                s = {"type": "string", "format": "uuid"}
            elif short == "json.loads":
                s = {}
            elif e.name == "datetime.date.fromisoformat":
                s = {"type": "string", "format": "date"}
            c = self.scan.classes.get(e.name)
            if c is not None and self.typer.kind(c) == "enum":
                s = enum_of(list(self.typer.members(c).values()))
        choices = call.keyword("choices")
        if choices is None:
            return s
        if choices.kind == "call" and choices.name == "range":
            n = [e.value for e in choices.of]
            if len(n) in (1, 2) and all(word_of(v) == "integer" for v in n):
                s |= {"minimum": n[0] if len(n) == 2 else 0, "maximum": n[-1] - 1}
            return s
        values = self.choices(choices, 0)
        if isinstance(values, (list, dict)) and 0 < len(values) <= CHOICES:
            s["enum"] = list(values)
            of = enum_of(s["enum"]).get("type")
            if s.get("type") == "string":
                s["type"] = of
        return s

    def choices(self, e, deep):
        """What choices= names: a literal, a name for one, or the keys of a table, also within
        list(…) or sorted(…); NO for all else."""
        v = self.typer.literal_of(e)
        if v is not NO or deep > 3:
            return v
        if e.kind == "call":
            if e.name.endswith(".keys") and not e.of:
                return self.choices(Expr("name", e.name.removesuffix(".keys")), deep + 1)
            if len(e.of) == 1 and e.name in ("list", "sorted", "tuple", "set", "frozenset"):
                return self.choices(e.of[0], deep + 1)
        table = self.scan.alias(e.name) if e.kind == "name" else None
        if table is None or table.kind != "dict" or any(k.value is NO for k in table.keys):
            return NO
        return [k.value for k in table.keys]

    def say(self, o, call):
        """Adds description and default."""
        v = self.typer.literal_of(call.keyword("default"))
        help = text_of(call.keyword("help"))
        if help is not None:
            help = help.replace("%(default)s", "None" if v is NO else dumps(v).strip('"')).replace("%(prog)s", "the script").replace("%%", "%")
            describe(o.schema, f"({o.subcommand}) {help}" if o.subcommand else help)
        elif o.subcommand:
            describe(o.schema, "of the command " + o.subcommand)
        if v is NO or v is None or len(dumps(v)) > DEFAULT or o.set and not o.off:
            return
        if is_a(o.schema, word_of(v)) or word_of(v) == "integer" and is_a(o.schema, "number"):
            o.schema["default"] = v
        if o.flag == "" and call.keyword("nargs") is not None:
            o.required = False

    def schema(self):
        """All options together: those of one name in several subcommands as one."""
        props, required = {}, []
        for o in [*([self.command] if self.command else []), *self.options.values()]:
            if o.required and o.subcommand == "" and o.name not in required:
                required.append(o.name)
            old = props.get(o.name)
            if old is None:
                props[o.name] = dict(o.schema)
                continue
            x, y = dict(old), dict(o.schema)
            text = x.pop("description", "") + "; " + y.pop("description", "")
            props[o.name] = dict(any_of([x, y]))
            describe(props[o.name], text)
        s = {"type": "object", "properties": props}
        if required:
            s["required"] = required
        return s | {"additionalProperties": self.partial}


def command_line(scan):
    """The answer for a script: what its parser takes, null where there is none that could
    be followed."""
    b = Builder(scan)
    root = b.main()
    if root is None:
        return {"script": None}
    b.parser(root, "")
    call = b.given(scan.parsers[root]["call"])
    texts = (text_of(call.keyword("description")), text_of(call.keyword("usage")), docstring.parse(scan.docstring(scan.tree)).summary)
    return {"script": {
        "description": next(filter(None, (clean(t or "", DESCRIPTION) for t in texts)), ""), "input_schema": b.schema(), "partial": b.partial,
        "command": b.command.name if b.command else "", "options": [o.told() for o in b.options.values()],
    }}
