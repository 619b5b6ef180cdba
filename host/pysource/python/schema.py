# JSON Schemas of types and of the functions of a program. What is not said by type hints
# is taken from the docstring, and then from the defaults; what nothing says is any value.
import json
import re

import docstring
from scan import NO, Expr

DESCRIPTION = 1000  # bytes of text for models, of a function
PARAMETER = 600  # the same, of a parameter
DEFAULT = 2000  # bytes of a default that is told
STEPS = 20000  # of one schema: classes that have each other twice would double it thirty times over


class NoForm(Exception):
    """Values of a type cannot be written as JSON."""

    def __init__(self, what):
        super().__init__(clean(what, 80) + " has no form in JSON")


class TooMany(Exception):
    """A type has too many parts. What has such a type accepts anything."""

    def __init__(self):
        super().__init__("its type has too many parts for a schema")


class Again(Exception):
    """A class or an alias was found to contain itself: the schema is made anew."""


# Characters that are not seen. Those that may belong to others, as in emoji, the host judges.
HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def clean(text, most):
    """Text on one line, cut to so many bytes."""
    text = HIDDEN.sub("", re.sub("[\n\t\r]", " ", text)).strip()
    encoded = text.encode()
    if len(encoded) <= most:
        return text
    return encoded[: most - 3].decode(errors="ignore").rstrip() + "\u2026"


def describe(s, text):
    """Says what a value is for, if nothing has said so."""
    text = clean(text or "", PARAMETER)
    if text and "description" not in s:
        s["description"] = text


def dumps(value):
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


LIBRARIES = ("builtins.", "typing.", "typing_extensions.", "collections.abc.", "collections.", "types.")


def canonical(name):
    """A type's name without the library that it comes from, where that is one of types."""
    for l in LIBRARIES:
        if name.startswith(l):
            return name[len(l) :]
    return name


PLAIN = {name: word for word, names in {
    "string": "str Text AnyStr LiteralString pathlib.Path pathlib.PurePath pathlib.PosixPath pathlib.PurePosixPath os.PathLike ipaddress.IPv4Address "
    "ipaddress.IPv6Address fractions.Fraction re.Pattern Pattern zoneinfo.ZoneInfo",
    "integer": "int SupportsIndex numbers.Integral",
    "number": "SupportsInt float SupportsFloat numbers.Number numbers.Real",
    "boolean": "bool",
    "null": "None NoneType",
}.items() for name in names.split()}
FORMATS = {
    "datetime.datetime": "date-time", "datetime.date": "date", "datetime.time": "time", "datetime.timedelta": "duration", "uuid.UUID": "uuid",
}
ARRAYS = set(
    "list List Sequence MutableSequence Iterable Collection Container Iterator Generator AsyncIterator AsyncIterable AsyncGenerator Reversible "
    "deque Deque ValuesView array.array".split()
)
SETS = set("set Set frozenset FrozenSet AbstractSet MutableSet KeysView".split())
MAPS = set("dict Dict Mapping MutableMapping OrderedDict defaultdict DefaultDict ChainMap Counter MappingProxyType".split())
# Words around a type that say nothing of its values.
WRAPPERS = set("Final ClassVar Required NotRequired ReadOnly InitVar dataclasses.InitVar Awaitable Coroutine".split())
ANYTHING = set("Any object Hashable JSON Unpack pydantic.JsonValue".split())
ENUMS = set("enum.Enum enum.IntEnum enum.StrEnum enum.Flag enum.IntFlag enum.ReprEnum".split())
DATACLASSES = set(
    "dataclasses.dataclass dataclass pydantic.dataclasses.dataclass attr.s attr.attrs attr.define attr.frozen attrs.define attrs.frozen attrs.mutable".split()
)
FIELDS = set("dataclasses.field field pydantic.Field Field attr.ib attr.field attrs.field msgspec.field".split())
FACTORIES = {"list": [], "dict": {}, "set": [], "tuple": [], "str": "", "int": 0, "bool": False}

BOUNDS = {
    "gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum", "multiple_of": "multipleOf", "min_items": "minItems",
    "max_items": "maxItems", "pattern": "pattern", "regex": "pattern",
}
TYPED_BOUNDS = {"Gt": "gt", "Ge": "ge", "Lt": "lt", "Le": "le", "MultipleOf": "multiple_of", "MinLen": "min_length", "MaxLen": "max_length"}
SIMPLE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")  # a name as Python has it, with those of its modules


def word_of(value):
    """The type of a JSON value."""
    if value is None or value is NO:
        return "null"
    return {str: "string", bool: "boolean", list: "array", dict: "object", float: "number"}.get(type(value), "integer")


def is_a(s, word):
    """Whether values of the schema may be of a type."""
    of = s.get("type")
    if of is not None:
        return word in of if isinstance(of, list) else of == word
    return any(is_a(e, word) for e in s.get("anyOf", ()))


def enum_of(values):
    """The schema of one of several values."""
    words = list(dict.fromkeys(map(word_of, values)))
    s = {"type": words[0] if len(words) == 1 else words} if words else {}
    return s | {"enum": values}


def any_of(schemas):
    """What any of the schemas takes, in as few words as that can be said."""
    flat = []
    for s in schemas:
        flat += s["anyOf"] if len(s) == 1 and "anyOf" in s else [s]
    if {} in flat:
        return {}
    kept = {}
    for s in flat:
        kept.setdefault(dumps(s), s)
    kept = list(kept.values())
    if len(kept) == 1:
        return kept[0]
    if any(len(s) > 1 or "type" not in s for s in kept):
        return {"anyOf": kept}
    words = list(dict.fromkeys(w for s in kept for w in (s["type"] if isinstance(s["type"], list) else [s["type"]])))
    if "number" in words and "integer" in words:  # a whole number is one
        words.remove("integer")
    return {"type": words[0] if len(words) == 1 else words}


def bound(s, name, value):
    """Adds a bound to a schema, if it is one that the schema can have."""
    word = BOUNDS.get(name, "")
    if name in ("min_length", "max_length"):
        word = name[:3] + ("Items" if is_a(s, "array") else "Length")
    kind = "null" if value is NO else word_of(value)
    if word == "pattern":
        if kind == "string" and len(value.encode()) <= 500:
            s[word] = value  # the host takes away what is no pattern to it
    elif word and (kind == "integer" and value >= 0 or kind in ("integer", "number") and not word.endswith(("Length", "Items"))):
        s[word] = value


def nullable(s):
    """Lets a schema take null too: None is a default that the hint left out."""
    if not s or is_a(s, "null"):
        return
    if "type" in s:
        s["type"] = [*s["type"], "null"] if isinstance(s["type"], list) else [s["type"], "null"]
        if "enum" in s:
            s["enum"] = [*s["enum"], None]
    elif "anyOf" in s:
        s["anyOf"] = [*s["anyOf"], {"type": "null"}]
    else:
        inner = dict(s)
        s.clear()
        s["anyOf"] = [inner, {"type": "null"}]


def is_required(e, total):
    """Whether a key of a TypedDict must be there."""
    while e is not None and e.kind == "generic" and e.of:
        word = canonical(e.name)
        if word in ("NotRequired", "Required"):
            return word == "Required"
        if word not in ("ReadOnly", "Annotated"):
            break
        e = e.of[0]
    return total


class Field:
    def __init__(self, name, annotation, default=None, doc="", required=True, said=("", "")):
        self.name, self.annotation, self.default, self.doc = name, annotation, default, doc
        self.required, self.said = required, said  # said: what the docstring of the class says


class Typer:
    """Makes schemas of the types of one program."""

    def __init__(self, scan, output=False):
        self.scan = scan
        self.output = output  # what comes out is not held to formats, nor to the fields that are known
        self.within = []  # classes and aliases whose schema is being made
        self.selves = []  # the classes of those, for Self
        self.recursive = set()  # those that contain themselves
        self.defs = {}  # their schemas
        self.vars = {}
        self.notes = []  # what accepts anything
        self.kinds, self.enums = {}, {}  # of classes that were read
        self.spent = 0

    def spend(self):
        """Whether there is a step left."""
        self.spent += 1
        return self.spent <= STEPS

    def params(self, params):
        for p in params or ():
            self.vars[p.name] = self.scan.expr(getattr(p, "bound", None), True)

    def whole(self, build):
        """Makes a schema by build, as often as there are classes and aliases that contain
        themselves."""
        while True:
            try:
                made = build()
            except Again as e:
                self.recursive.add(e.args[0])
                self.within, self.selves, self.notes, self.defs = [], [], [], {}
                continue
            self.open()
            return made

    def anything(self, why):
        """The schema of what no schema says, with a note."""
        note = why + ", which accepts anything"
        if note not in self.notes:
            self.notes.append(note)
        return {}

    def open(self):
        """Takes out of a type what is only itself again: A = Union["A", int] is int. Where
        more is in the way no schema says it, and it accepts anything."""
        for name, s in self.defs.items():
            if len(s) == 1 and "anyOf" in s:
                others = [e for e in s["anyOf"] if e.get("$ref") != "#/$defs/" + name]
                if others:
                    self.defs[name] = any_of(others)
            if self.reaches(self.defs[name], "#/$defs/" + name, set()):
                self.defs[name] = self.anything("the type " + name + " is only itself again")

    def reaches(self, s, ref, seen):
        """Whether a schema leads to a reference at one and the same value."""
        to = s.get("$ref")
        if to == ref:
            return True
        if to is not None and to not in seen:
            seen.add(to)
            return self.reaches(self.resolved(s), ref, seen)
        return any(self.reaches(e, ref, seen) for e in s.get("anyOf", ()))

    def resolved(self, s):
        """The schema that a reference leads to, and any other as it is."""
        return self.defs.get(s["$ref"].removeprefix("#/$defs/"), {}) if "$ref" in s else s

    def schema(self, e):
        if e is None:
            return {}
        if not self.spend():
            raise TooMany
        if e.kind == "value":
            if e.value is None:
                return {"type": "null"}
            if isinstance(e.value, str):  # within a call, where Python reads it as text
                if SIMPLE.fullmatch(e.value):
                    return self.named(e.value)
                return self.anything(clean(e.value, 80) + " is text in the place of a type")
        elif e.kind == "name":
            return self.named(e.name)
        elif e.kind == "generic":
            return self.named(e.name, e.of)
        elif e.kind == "union":
            return self.union(e.of)
        elif e.kind == "call":
            if canonical(e.name) == "NewType" and len(e.of) == 2:
                return self.schema(e.of[1])
            raise NoForm(e.name + "(…)")
        raise NoForm((e.source or (dumps(e.value) if e.value is not NO else "a " + e.kind)) + " in the place of a type")

    def named(self, name, of=None):
        if name in self.vars and of is None:
            return self.schema(self.vars[name])
        if name in self.scan.classes:
            return self.class_(self.scan.classes[name])
        e = self.scan.alias(name)
        if e is not None and e.value is not None:
            return self.once(name, lambda: self.aliased(e, self.scan.aliases[name][2]))
        short = canonical(name)
        if short in PLAIN:
            return {"type": PLAIN[short]}
        if short in FORMATS:
            return {"type": "string"} if self.output else {"type": "string", "format": FORMATS[short]}
        if short in ARRAYS or short in SETS:
            s = {"type": "array", "items": self.schema(of[0]) if of else {}}
            return s | {"uniqueItems": True} if short in SETS else s
        if short in MAPS:
            return self.mapping(short, of)
        if short in WRAPPERS:
            return self.schema(of[-1]) if of else {}  # of Coroutine[…] the last is what it gives
        if short in ANYTHING:
            return {}
        if short == "Self" and self.selves:
            return self.class_(self.selves[-1])
        if short in ("tuple", "Tuple"):
            return self.tuple(of)
        if short == "Optional":
            return self.union([*of, Expr("value", value=None)]) if of else {}
        if short == "Union":
            return self.union(of or [])
        if short == "Literal":
            return self.literal(of or [])
        if short == "Annotated":
            s = self.schema(of[0]) if of else {}
            for e in (of or ())[1:]:
                self.annotate(s, e)
            return s
        if short == "decimal.Decimal":
            return {"type": ["string", "number"] if self.output else ["number", "string"]}
        if short in ("bytes", "bytearray"):
            return {"type": "string", "contentEncoding": "base64"}
        if short in ("TypedDict", "ByteString"):
            return {"type": "object"}
        raise NoForm(name + "[…]" if of else name)

    def once(self, name, build):
        """The schema of a class or an alias. One that contains itself has it in $defs."""
        if name in self.recursive:
            if name not in self.defs:
                self.defs[name] = {}  # begun
                self.defs[name] = build()
            return {"$ref": "#/$defs/" + name}
        if name in self.within:
            raise Again(name)
        self.within.append(name)
        try:
            return build()
        finally:
            if self.within:
                self.within.pop()

    def aliased(self, e, params):
        """Follows a name that was given a type."""
        self.params(params)
        if e.kind == "call":
            short = canonical(e.name)
            if short == "TypeVar":
                b = e.keyword("bound")
                return self.schema(b) if b is not None else self.union(e.of[1:]) if len(e.of) > 1 else {}
            if short == "TypedDict":
                return self.typed_dict_call(e)
            if short in ("namedtuple", "NamedTuple"):
                return self.named_tuple_call(e)
            if e.name in ENUMS:
                return self.enum_call(e)
        return self.schema(e)

    def union(self, of):
        """One schema of several types. Those that have no form in JSON are left out where
        others have one."""
        found, refused = [], None
        for e in of:
            try:
                found.append(self.schema(e))
            except NoForm as err:
                refused = err
        if refused is not None and (not found or len(found) == 1 and found[0].get("type") == "null"):
            raise refused
        return any_of(found) if found else {}

    def mapping(self, name, of):
        if name == "Counter":
            return {"type": "object", "additionalProperties": {"type": "integer"}}
        s = {"type": "object"}
        if of and len(of) > 1:
            keys, values = self.schema(of[0]), self.schema(of[1])
            if "enum" in keys:
                s["propertyNames"] = {"enum": keys["enum"]}
            elif keys.get("type") == "integer":
                s["propertyNames"] = {"pattern": "^-?[0-9]+$"}
            if values:
                s["additionalProperties"] = values
        return s

    def tuple(self, of):
        if not of:
            return {"type": "array", "items": {}}
        if len(of) == 2 and of[1].kind == "ellipsis":
            return {"type": "array", "items": self.schema(of[0])}
        if len(of) == 1 and of[0].kind == "tuple":  # tuple[()]
            return {"type": "array", "maxItems": 0}
        return {"type": "array", "prefixItems": [self.schema(e) for e in of], "minItems": len(of), "maxItems": len(of)}

    def literal(self, of):
        """An enum of literals, of members of enums, and of names of literals."""
        values = []
        for e in of:
            if e.value is not NO:
                values.append(e.value)
            elif e.kind == "name" and (v := self.member(e.name)) is not NO:
                values.append(v)
            elif e.kind == "name" or e.kind == "generic" and canonical(e.name) == "Literal":
                values += self.schema(e).get("enum", ())
            else:
                raise NoForm("Literal of " + e.kind)
        return enum_of(values)

    def annotate(self, s, e):
        """Adds what is said of a type within Annotated."""
        if e.text() is not None:
            describe(s, e.text())
        if e.kind != "call":
            return
        first = e.of[0].value if e.of else NO
        last = e.last()
        if last in ("Doc", "doc"):
            describe(s, first if isinstance(first, str) else "")
        elif last in TYPED_BOUNDS:
            bound(s, TYPED_BOUNDS[last], first)
        elif last == "Len":
            bound(s, "min_length", first)
            if len(e.of) > 1:
                bound(s, "max_length", e.of[1].value)
        for name, v in e.keywords:
            if name in ("description", "doc", "documentation", "help"):
                describe(s, v.text())
            elif name == "title":
                if v.text() is not None:
                    s["title"] = clean(v.text(), 200)
            elif name == "examples":
                if isinstance(v.value, list) and v.value:
                    s["examples"] = v.value
            else:
                bound(s, name, v.value)

    def said(self, text):
        """The schema of a type as docstrings write it; {} for what cannot be read."""
        literal, of = docstring.kinds(text)
        if literal:
            return enum_of(of)
        try:
            return self.union(of)
        except (NoForm, TooMany):
            return {}

    # Classes.

    def kind(self, c):
        """What a class is, by its decorators and bases: plain, data (also of attrs and models
        of pydantic), dict, tuple, enum, flag, or the name of a built-in type."""
        if c in self.kinds:
            return self.kinds[c]
        self.kinds[c] = "plain"  # to its own bases
        kind = "data" if any(self.scan.expr(d).name in DATACLASSES for d in c.decorator_list) else "plain"
        for b in c.bases:
            name = self.scan.expr(b, True).name
            short = canonical(name)
            if name in ("enum.Flag", "enum.IntFlag"):
                kind = "flag"
            elif name in ENUMS:
                kind = "enum"
            elif short == "TypedDict":
                kind = "dict"
            elif short == "NamedTuple":
                kind = "tuple"
            elif name in ("pydantic.BaseModel", "msgspec.Struct"):
                kind = "data"
            elif kind == "plain" and short in PLAIN and short != "None":
                kind = short
            elif kind == "plain" and name in self.scan.classes:
                kind = self.kind(self.scan.classes[name])
        self.kinds[c] = kind
        return kind

    def class_(self, c):
        def build():
            self.selves.append(c)
            try:
                return self.made(c)
            finally:
                if self.selves:
                    self.selves.pop()

        return self.once(c.name, build)

    def made(self, c):
        self.params(c.type_params)
        kind = self.kind(c)
        if kind == "enum":
            s = enum_of(list(self.members(c).values()))
        elif kind == "flag":
            s = {"type": "integer", "minimum": 0}
        elif kind in PLAIN:
            s = {"type": PLAIN[kind]}
        elif kind == "plain":
            raise NoForm("the class " + c.name)
        else:
            s = self.object(self.gather(c, kind, 0), kind != "dict")
        summary = docstring.parse(self.scan.docstring(c)).summary
        if not summary.startswith(c.name + "("):
            describe(s, summary)
        return s

    def members(self, c):
        """The values of the members of an enum by their names; names as values where those
        are no JSON of one word."""
        if c in self.enums:
            return self.enums[c]
        texts = any(self.scan.expr(b, True).name == "enum.StrEnum" for b in c.bases)
        found, next_ = {}, 1
        for name, annotation, default, _ in self.scan.fields(c):
            if name.startswith("_") or annotation is not None or default is None:
                continue
            value = default.value
            if default.kind == "call" and default.last() == "auto":
                value = name.lower() if texts else next_
            if word_of(value) == "integer":
                next_ = value + 1
            found[name] = value
        if any(v is NO or isinstance(v, (list, dict)) for v in found.values()):
            found = {name: name for name in found}
        self.enums[c] = found
        return found

    def member(self, name):
        """The value of Color.RED, or of Color.RED.value; NO where there is none."""
        name, _, rest = name.partition(".")
        c = self.scan.classes.get(name)
        return self.members(c).get(rest.removesuffix(".value"), NO) if c and rest and self.kind(c) == "enum" else NO

    def enum_call(self, e):
        """Enum("Color", "RED GREEN")."""
        if len(e.of) < 2:
            raise NoForm("an enum without members")
        names = e.of[1].value
        if isinstance(names, dict):
            return enum_of(list(names.values()))
        if isinstance(names, str):
            names = names.replace(",", " ").split()
        if not isinstance(names, list):
            raise NoForm("an enum of this form")
        values = []
        for n in names:
            if isinstance(n, str):
                values.append(n.lower() if e.name == "enum.StrEnum" else len(values) + 1)
            elif isinstance(n, list) and len(n) == 2:
                values.append(n[1])
        return enum_of(values)

    def gather(self, c, kind, deep):
        """The fields of a class and of its bases, those first."""
        fields = {}
        if deep > 16 or not self.spend():
            return fields
        for name in dict.fromkeys(self.scan.expr(b, True).name for b in reversed(c.bases)):
            base = self.scan.classes.get(name)
            if base is not None and base is not c:
                fields |= self.gather(base, kind, deep + 1)
        total = self.total([(k.arg, self.scan.expr(k.value)) for k in c.keywords])
        docs = docstring.parse(self.scan.docstring(c))
        for name, annotation, default, doc in self.scan.fields(c):
            if annotation is None or canonical(annotation.name) in ("ClassVar", "KW_ONLY", "dataclasses.KW_ONLY") or name.startswith("__"):
                continue
            f = Field(name, annotation, default, doc, default is None, docs.params.get(name, ("", "")))
            if kind == "dict":
                f.required = is_required(annotation, total)
            if default is not None and default.kind == "call" and default.name in FIELDS:
                made = default.keyword("init")
                if made is not None and made.value is False:
                    continue
                f.required = not any(default.keyword(k) for k in ("default", "default_factory", "factory")) and (
                    not default.of or default.of[0].kind == "ellipsis"
                )
            fields[name] = f
        return fields

    @staticmethod
    def total(keywords):
        values = [v.value for k, v in keywords if k == "total" and isinstance(v.value, bool)]
        return values[-1] if values else True

    def object(self, fields, defaults):
        props, required = {}, []
        for f in fields.values():
            try:
                s = self.schema(f.annotation)
            except NoForm as e:
                if not f.required:
                    continue
                raise NoForm("the field " + f.name + ", " + str(e).removesuffix(" has no form in JSON")) from None
            if f.annotation is None and f.said[0]:
                s = self.said(f.said[0])
            if defaults:
                self.set_default(s, f.default)
            describe(s, f.doc)
            describe(s, f.said[1])
            props[f.name] = s
            if f.required:
                required.append(f.name)
        s = {"type": "object", "properties": props}
        if required:
            s["required"] = required
        if not self.output:
            s["additionalProperties"] = False
        return s

    def typed_dict_call(self, e):
        """TypedDict("T", {"a": int}, total=False)."""
        if len(e.of) < 2 or e.of[1].kind != "dict":
            return {"type": "object"}
        total, fields = self.total(e.keywords), {}
        for k, v in zip(e.of[1].keys, e.of[1].of):
            if k.text() is None:
                return {"type": "object"}
            fields[k.text()] = Field(k.text(), v, required=is_required(v, total))
        return self.object(fields, False)

    def named_tuple_call(self, e):
        """namedtuple("T", "a b"), or NamedTuple("T", [("a", int)])."""
        if len(e.of) < 2:
            raise NoForm("a named tuple without fields")
        names = e.of[1].value
        if isinstance(names, str):
            pairs = [(n, None) for n in names.replace(",", " ").split()]
        elif isinstance(names, list):
            pairs = [(n, None) for n in names if isinstance(n, str)]
        else:
            pairs = [(p.of[0].text(), p.of[1]) for p in e.of[1].of if len(p.of) == 2 and p.of[0].text() is not None]
        if not pairs:
            raise NoForm("a named tuple of this form")
        return self.object({n: Field(n, hint) for n, hint in pairs}, False)

    # Defaults.

    def literal_of(self, e):
        """What an expression is known to be; NO: it is not known."""
        if e is None or e.value is not NO or e.kind != "name":
            return e.value if e is not None else NO
        v, alias = self.member(e.name), self.scan.alias(e.name)
        return alias.value if v is NO and alias is not None else v

    def set_default(self, s, e):
        """Adds a default that is known, and what field(…) says of a field."""
        if e is None:
            return
        if e.kind != "call" or e.name not in FIELDS:
            self.set_literal(s, e)
            return
        self.annotate(s, e)
        meta = e.keyword("metadata")
        if meta is not None and isinstance(meta.value, dict):
            for key in ("description", "help", "doc"):
                describe(s, meta.value.get(key) if isinstance(meta.value.get(key), str) else "")
        if e.of:
            self.set_literal(s, e.of[0])
        if e.keyword("default") is not None:
            self.set_literal(s, e.keyword("default"))
        factory = e.keyword("default_factory") or e.keyword("factory")
        if factory is not None and factory.kind == "name" and factory.name in FACTORIES:
            s["default"] = FACTORIES[factory.name]

    def set_literal(self, s, e):
        v = self.literal_of(e)
        if v is NO or len(dumps(v)) > DEFAULT:
            return
        if v is None:
            nullable(s)
        s["default"] = v


# Functions.


def find(scan, name):
    """The function that is meant. With name "" it is the one public function that there is,
    or else one of the names main, run, execute and entry."""
    public = [n for n in scan.functions if "." not in n and not n.startswith("_")]
    there = "there are " + ", ".join(public[:20]) if public else "there is none"
    if name == "":
        name = public[0] if len(public) == 1 else next((n for n in ("main", "run", "execute", "entry") if n in public), "")
        if name == "":
            return None, (0, "it is not clear which function is meant; " + there)
    f = scan.functions.get(name) if "." not in name else None
    shown = clean(name, 80)
    if name.startswith("_"):
        return None, (f.lineno if f else 0, shown + " is private: its name begins with _, and others may change it without a word; give it a public name")
    if f is None and name in scan.classes:
        return None, (scan.classes[name].lineno, shown + " is a class; a tool is a function; " + there)
    if f is None and name in scan.aliases:
        return None, (scan.aliases[name][3], shown + " is not made by def, so that its parameters cannot be read; " + there)
    if f is None:
        return None, (0, "there is no function " + shown + " at the top of the file; " + there)
    return f, None


class Function:
    """What a function takes and gives."""

    def __init__(self, scan, f):
        self.scan, self.f = scan, f
        self.docs = docstring.parse(scan.docstring(f))
        self.parameters = list(scan.parameters(f.args))
        self.typer = Typer(scan)
        self.typer.params(f.type_params)
        self.input_schema = self.typer.whole(self.input)

    def input(self):
        self.notes, self.problems, self.types, self.hinted = [], [], False, []
        props, required, more = {}, [], False
        for kind, arg, default in self.parameters:
            annotation = self.scan.expr(arg.annotation, True)
            said = self.docs.params.get(arg.arg, ("", ""))
            try:
                s = self.parameter(arg.arg, annotation, default, said[0])
            except TooMany as e:
                s = {}
                self.notes.append(f"{arg.arg} accepts anything: {e}")
            except NoForm as e:
                if default is not None or kind.startswith("var_"):
                    self.notes.append(f"{arg.arg} is left out, and keeps its default: {e}")
                else:
                    self.problems.append((arg.lineno, f"the parameter {arg.arg} of {self.f.name} cannot be given: {e}; give it a default, or another type"))
                continue
            if kind == "var_positional":
                s = {"type": "array", "items": s}
            elif kind == "var_keyword":
                of = self.typer.resolved(s)
                if annotation is not None and canonical(annotation.name) == "Unpack" and "properties" in of:
                    props |= of["properties"]
                    required += of.get("required", ())
                else:
                    more = s or True
                continue
            elif default is not None:
                self.typer.set_default(s, default)
            else:
                required.append(arg.arg)
            describe(s, said[1])
            props[arg.arg] = s
        s = {"type": "object", "properties": props}
        if required:
            s["required"] = required
        return s | {"additionalProperties": more}

    def parameter(self, name, annotation, default, said):
        """The schema of one parameter: of its hint, of its docstring, or of its default."""
        if annotation is not None:
            self.types = True
            self.hinted.append(name)
            if canonical(annotation.name) == "Unpack" and len(annotation.of) == 1:
                annotation = annotation.of[0]
            return self.typer.schema(annotation)
        if said and (s := self.typer.said(said)):
            self.types = True
            return s
        v = self.typer.literal_of(default)
        if v is NO and default is not None and default.kind in ("list", "tuple", "dict"):
            return {"type": "object"} if default.kind == "dict" else {"type": "array", "items": {}}
        word = word_of(v)
        if word == "null":
            return {}
        if word == "array":
            return {"type": "array", "items": {}}
        return {"type": "number" if word == "integer" else word}  # x=0 says nothing against 0.5

    def output(self):
        """The schema of {"result": …}. What only the docstring says of the type is no
        promise, and is not made one."""
        t = Typer(self.scan, output=True)
        t.params(self.f.type_params)
        try:
            s = t.whole(lambda: t.schema(self.scan.expr(self.f.returns, True)))
        except (NoForm, TooMany):
            s = {}
        text = clean(self.docs.returns[1], PARAMETER)
        if text:
            s = ({"$ref": s["$ref"]} if "$ref" in s else s) | {"description": text}
        o = {"type": "object", "properties": {"result": s}, "required": ["result"]}
        return o | {"$defs": t.defs} if t.defs else o


def function(scan, name):
    """The answer for a function."""
    f, problem = find(scan, name)
    made = Function(scan, f) if f else None
    problems = made.problems if made else [problem]
    if problems:
        return {"problems": [{"line": line, "message": message} for line, message in problems]}
    summaries = (made.docs.summary, docstring.parse(scan.docstring(scan.tree)).summary)
    if made.typer.defs:
        made.input_schema["$defs"] = made.typer.defs
    return {"function": {
        "name": f.name, "line": f.lineno, "description": next(filter(None, (clean(s, DESCRIPTION) for s in summaries)), ""),
        "input_schema": made.input_schema, "output_schema": made.output(), "notes": made.notes + made.typer.notes, "types": made.types,
        "hinted": made.hinted, "parameters": [(arg.arg, kind) for kind, arg, _ in made.parameters],
    }}
