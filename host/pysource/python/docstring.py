# What a docstring says of parameters, in whichever of the styles it is written: Google's,
# NumPy's, reST's, or lists as people and models write them.
import functools
import json
import math
import re

from scan import Expr

# Titles of sections; what is true has parameters.
SECTIONS = dict.fromkeys((
    "args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters", "attributes", "fields",
    "\u53c2\u6570", "\u8f93\u5165", "\u5c5e\u6027",
), True) | dict.fromkeys((
    "returns", "return", "yields", "raises", "except", "exceptions", "warns", "example", "examples", "note", "notes", "see also",
    "references", "todo", "warning", "warnings", "usage", "\u8fd4\u56de", "\u8fd4\u56de\u503c", "\u793a\u4f8b", "\u5f02\u5e38", "\u8f93\u51fa",
), False)
RETURNING = {"returns", "return", "yields", "\u8fd4\u56de", "\u8fd4\u56de\u503c", "\u8f93\u51fa"}
FIELDS = set(
    "param parameter arg argument key keyword type return returns rtype raise raises except exception yield yields ivar var cvar attribute vartype kwarg meta".split()
)

# Words for types in docstrings, by the types that they mean.
WORDS = {word: kind for kind, words in {
    "int": "int integer ints integers long \u6574\u6570",
    "float": "float floats number numbers numeric double real scalar \u6570\u5b57",
    "str": "str string strings strs text unicode path filename url path-like path_like \u5b57\u7b26\u4e32",
    "bool": "bool boolean bools booleans \u5e03\u5c14",
    "list": "list lists array array-like array_like sequence iterable tuple tuples collection \u5217\u8868",
    "set": "set",
    "dict": "dict dicts dictionary mapping dictionaries \u5b57\u5178",
    "Any": "json object any",
    "None": "none null",
    "bytes": "bytes",
    "datetime.datetime": "datetime",
    "datetime.date": "date",
}.items() for word in words.split()}


def joined(lines):
    """One line of several."""
    return " ".join(" ".join(lines).split())


def indentation(line):
    return len(line) - len(line.lstrip(" "))


def is_name(s):
    return s != "" and all(c == "_" or c.isalpha() or i and c.isdecimal() for i, c in enumerate(s))


def bare(s):
    """A name without marks of emphasis and code."""
    return s.strip().strip("`\"'*").lstrip("*")


def cut_colon(s):
    """What stands before and behind the first colon outside of brackets, None for none."""
    depth = 0
    for i, c in enumerate(s):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c in ":\uff1a" and depth <= 0:
            return s[:i].strip(), s[i + 1 :].strip()
    return None


def split_outside(s, separators):
    """The parts between any of the separators that stands in no bracket."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(s):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c in separators and depth <= 0:
            parts.append(s[start:i].strip())
            start = i + 1
    return [*parts, s[start:].strip()]


def underlined(lines, i):
    """The title of a NumPy section at a line, None for none."""
    if i + 1 >= len(lines):
        return None
    title, rule = lines[i].strip().lower(), lines[i + 1].strip()
    return title if title in SECTIONS and len(rule) >= 3 and (not rule.strip("-") or not rule.strip("=")) else None


def titled(line):
    """The title of a Google section, None for none."""
    s = line.strip().strip("*")
    if not s.endswith((":", "\uff1a")):
        return None
    title = s[:-1].strip("*# ").strip().lower()
    return title if title in SECTIONS else None


def rest_field(line):
    """The field and the text of :param int x: text, and of @param x: text; None for none."""
    s = line.strip()
    if len(s) < 4 or s[0] not in ":@":
        return None
    cut = cut_colon(s[1:])
    return cut if cut is not None and cut[0].partition(" ")[0] in FIELDS else None


def item(line, numpy):
    """Names, type and text of the first line of an item, None for what is none."""
    for mark in ("- ", "* ", "+ ", "\u2022 "):
        line = line.removeprefix(mark)
    cut = cut_colon(line)
    if cut is None:
        dash = next((d for d in (" -- ", " - ") if d in line), None)
        if dash:
            cut = line.split(dash, 1)
    head, text = cut or (line, "")
    head, kind = head.strip(), ""
    if numpy:
        kind, text = text, ""
    else:
        start = head.find("(")
        if start > 0 and head.endswith(")"):
            kind, head = head[start + 1 : -1].strip(), head[:start].strip()
        if cut is None and kind == "" and not is_name(bare(head)):
            return None
    names = [bare(n) for n in head.split(",")]
    if not all(map(is_name, names)):
        return None
    if not numpy and kind == "" and text.startswith("("):  # x: (int) the first number
        end = text.find(")")
        if 0 < end < 40 and text[1:end].lower() in WORDS:
            kind, text = text[1:end], text[end + 1 :].strip()
    return names, kind, text


class Doc:
    def __init__(self, text):
        self.params = {}  # (type as it is written, text) by name
        self.returns = ("", "")
        lines = text.replace("\t", "    ").split("\n")
        summary, told, i = [], False, 0  # told: a section began, and the summary is over
        while i < len(lines):
            line = lines[i]
            if (title := underlined(lines, i)) is not None:
                told, end = True, i + 2
                while end < len(lines) and underlined(lines, end) is None:
                    end += 1
                body = lines[i + 2 : end]
                self.section(title, body, next((indentation(l) for l in body if l.strip()), 0), True)
                i = end
            elif (title := titled(line)) is not None and any(l.strip() for l in lines[i + 1 :]):
                told = True
                i = self.google(title, lines, i + 1)
            elif (field := rest_field(line)) is not None:
                told, body = True, [field[1]]
                i += 1
                while i < len(lines) and lines[i].strip() and rest_field(lines[i]) is None and titled(lines[i]) is None:
                    body.append(lines[i])
                    i += 1
                self.rest(field[0].split(), joined(body))
            else:
                if not told:
                    summary.append(line)
                i += 1
        self.summary = joined(summary)

    def google(self, title, lines, i):
        """Reads the section that begins at a line, and gives the line behind it."""
        header, base, body = indentation(lines[i - 1]), -1, []
        while i < len(lines):
            line = lines[i]
            n = indentation(line)
            if not line.strip():
                if base == header and body:  # without indentation an empty line ends it
                    i += 1
                    break
                body.append("")
                i += 1
                continue
            if base < 0:
                base = n
            if n <= header and (titled(line) is not None or rest_field(line) is not None or base > header or n < base):
                break
            body.append(line)
            i += 1
        self.section(title, body, max(base, 0), False)
        return i

    def section(self, title, body, base, numpy):
        """Reads the items of a section: lines at the base are items, those deeper go on."""
        if title in RETURNING:
            return self.result(body, numpy)
        if not SECTIONS[title]:
            return
        names, kind, text = [], "", []
        for line in body:
            if not line.strip():
                continue
            found = item(line.strip(), numpy) if indentation(line) <= base else None
            if found is None:
                text.append(line)
                continue
            for name in names:
                self.add(name, kind, joined(text))
            names, kind = found[0], found[1]
            text = [found[2]] if found[2] else []
        for name in names:
            self.add(name, kind, joined(text))

    def result(self, body, numpy):
        """Reads what is returned: a type, a text, or both."""
        lines = [l for l in body if l.strip()]
        if not lines:
            return
        first = lines[0].strip()
        cut = cut_colon(first)
        if numpy:  # name : type
            self.returns = (cut[1] if cut else first, joined(lines[1:]))
        elif cut and (" " not in cut[0] or re.search(r"[\[|]", cut[0]) and len(cut[0]) < 80):
            self.returns = (cut[0], joined([cut[1], *lines[1:]]))
        else:
            self.returns = ("", joined(lines))

    def rest(self, words, text):
        word, name = words[0], words[-1]
        if word in ("return", "returns", "yield", "yields"):
            self.returns = (self.returns[0], text)
        elif word == "rtype":
            self.returns = (text, self.returns[1])
        elif word in ("raise", "raises", "except", "exception", "meta") or len(words) < 2:
            pass
        elif word in ("type", "vartype"):
            self.add(name, text, "")
        else:
            self.add(name, " ".join(words[1:-1]), text)

    def add(self, name, kind, text):
        """Keeps what is said first."""
        name = name.lstrip("*")
        old = self.params.get(name, ("", ""))
        kind, text = old[0] or kind, old[1] or text
        if not kind:  # "the first number (int)", as models write it
            start = text.rfind("(")
            if start > 0 and text.endswith(")") and text[start + 1 : -1].lower() in WORDS:
                kind, text = text[start + 1 : -1], text[:start].strip()
        self.params[name] = (kind, text)


parse = functools.lru_cache(maxsize=10000)(Doc)


def finite(text):
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def choices(text):
    """The values of 'a', 'b', 1; None for what is no list of such."""
    values = []
    for c in text.split(","):
        c = c.strip()
        if len(c) >= 2 and c[0] in "'\"" and c[-1] == c[0]:
            values.append(c[1:-1])
        elif c in ("True", "False", "None"):
            values.append({"True": True, "False": False, "None": None}[c])
        else:
            try:
                values.append(json.loads(c, parse_constant=int, parse_float=finite))
            except ValueError:
                return None
    return values


def kinds(text):
    """What a type may be, as docstrings write it: literal values, a list of expressions, or
    None for what cannot be read. The first is true for values."""
    text = re.sub(":(?:py:)?(?:obj|class):|:data:|`", "", text).strip(" .")  # roles of Sphinx
    if text.startswith("{") and text.find("}") > 0:  # NumPy's choices
        values = choices(text[1 : text.find("}")])
        if values is not None:
            return True, values
    parts = []
    for part in split_outside(text.replace(" or ", "|"), ",|"):
        word = part.lower()
        if word in ("", "optional") or word.startswith(("default", "required", "keyword")):
            continue
        parts.append(read(part, 0))
    return False, parts if None not in parts else []


def read(s, deep):
    """A type that is written as in Python, or in words: list of int. None for what cannot
    be read."""
    s = s.strip()
    if s == "" or deep > 8 or len(s) > 400:
        return None
    parts = split_outside(s, "|")
    if len(parts) > 1:
        of = [read(p, deep + 1) for p in parts]
        return Expr("union", of=of) if None not in of else None
    before, found, after = s.partition(" of ")
    if found and "[" not in before and "(" not in before:
        outer, inner = read(before, deep + 1), read(after.strip("()"), deep + 1)
        if outer is None or inner is None:
            return outer
        of = [Expr("name", "str"), inner] if outer.name == "dict" else [inner]
        return Expr("generic", outer.name, of=of)
    start = s.find("[")
    if start > 0 and s.endswith("]"):
        outer = read(s[:start], deep + 1)
        if outer is None:
            return None
        of = []
        for p in split_outside(s[start + 1 : -1], ","):
            if p == "...":
                e = Expr("ellipsis")
            elif outer.last() == "Literal":
                values = choices(p)
                e = Expr("value", value=values[0]) if values else None
            else:
                e = read(p, deep + 1)
            if e is None:
                return None
            of.append(e)
        return Expr("generic", outer.name, of=of)
    name = WORDS.get(s.lower())
    if name == "None":
        return Expr("value", value=None)
    if name is None and not all(map(is_name, s.split("."))):
        return None
    return Expr("name", name or s)
