"""The skill log_transform: turns a log file below ./data into records. The CLI
form; it answers exactly as the Go form does, and the files of both are the same
byte for byte. Standard library only, POSIX."""

import codecs
import errno
import json
import os
import re
import stat
import sys
import zlib

MAX_INPUT = 5 << 20  # bytes of the file that are read
MAX_LINE = 64 << 10  # bytes of a line; longer ones are dropped
MAX_LINES = 100_000  # lines that are read
MAX_STDOUT = 1 << 20  # bytes of records in an answer
MAX_OUTPUT = 8 << 20  # bytes of records in a file
MAX_PATH = 1024  # characters of a path that is looked at
MAX_REPEAT = 1000  # of one thing in a pattern, nested repetitions multiplied
MAX_GROUPS = 10  # in a pattern
MAX_DEPTH = 64  # of a JSON line
WINDOW = 1000  # characters of a line that are searched for time and level
SNIFFING = 20  # lines that are looked at to tell the format
CHUNK = 16 << 10  # bytes of compressed data that are unpacked at once


class Fault(Exception):
    """Why a call was not answered, in the words that its caller reads."""

    def __init__(self, field, reason, message, code="INVALID_ARGUMENT"):
        super().__init__(message)
        self.code = code
        self.details = {"reason": reason} if field is None else {"field": field, "reason": reason}


def refuse_constant(name):
    raise ValueError("not JSON: " + name)


def parse(text):
    """JSON as the standard has it: no NaN, no Infinity, and no half of a surrogate
    pair, which is no text and could not be answered in UTF-8."""
    whole = re.sub(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u]", " ", text)
    if re.search(r"\\u[dD][89a-fA-F]", whole):
        raise ValueError("half a surrogate pair")
    return json.loads(text, parse_constant=refuse_constant)


def read_call(raw):
    try:
        call = parse(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        call = None
    if not isinstance(call, dict):
        raise Fault(None, "malformed", 'standard input must be one JSON object in UTF-8: {"input": {…}}')
    if "input" not in call:
        raise Fault("input", "missing", "input: required, an object")
    if not isinstance(call["input"], dict):
        raise Fault("input", "type", "input: must be an object")
    return call["input"]


def check_fields(given, names, prefix="", where=""):
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise Fault(prefix + unknown[0][:64], "unknown", "unknown field; accepted%s: %s" % (where, ", ".join(names)))


def check_string(value, field, low, high):
    if not isinstance(value, str):
        raise Fault(field, "type", field + ": must be a string")
    if not low <= len(value) <= high:
        raise Fault(field, "length", "%s: must be %d to %d characters long" % (field, low, high))
    return value


def get_string(given, name, fallback, low, high):
    if name in given:
        return check_string(given[name], name, low, high)
    if fallback is None:
        raise Fault(name, "missing", name + ": required, a string")
    return fallback


def get_integer(given, name, fallback, low, high):
    value = given.get(name, fallback)
    reason = None
    # 5.0 is the integer 5, as in JSON Schema; bool is a subclass of int only in Python.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        reason = "type"
    elif isinstance(value, float) and not value.is_integer():
        reason = "type"
    elif not low <= value <= high:
        reason = "range"
    if reason:
        raise Fault(name, reason, "%s: must be an integer from %d to %d" % (name, low, high))
    return int(value)


def data_path(field, path):
    """The names below ./data that a caller's path leads to; nothing is opened yet."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    odd = any(char < " " or char in "\\\x7f" for char in path)
    if path.startswith("/") or odd or ".." in path or parts[:1] != ["data"]:
        message = field + ": must be a relative path in ./data, without .. and backslashes, as ./data/docs"
        raise Fault(field, "outside_data", message, "FORBIDDEN_PATH")
    return parts[1:]


def open_fault(field, error):
    """What an error of opening or reading means for the caller."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
        return Fault(field, "not_found", field + ": there is no such file or folder in ./data")
    if error.errno in (errno.ELOOP, errno.EPERM):
        return Fault(field, "link", field + ": links are not followed", "FORBIDDEN_PATH")
    print(error, file=sys.stderr)
    return Fault(field, "unreadable", field + ": could not be read", "INTERNAL")


def open_name(folder, name):
    """Opens one name in an open folder. It never follows a link and never waits
    for the other end of a pipe; what it opened is to be checked by its caller."""
    # A link that is opened with O_DIRECTORY gives ENOTDIR, so links are told apart first.
    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise OSError(errno.ELOOP, "a link")
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)


def open_data(field, parts):
    """Opens ./data/parts… step by step from one open folder to the next, so that
    no name can be swapped for a link on the way."""
    if os.open not in os.supports_dir_fd:
        raise Fault(field, "unsupported", "this form of the skill needs a POSIX system", "INTERNAL")
    try:
        # The data folder itself may be a link: it is the host that put it there.
        here = os.open("data", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        raise Fault(field, "no_data", "this skill was given no ./data folder to read", "INTERNAL") from None
    try:
        for part in parts:
            inner = open_name(here, part)
            os.close(here)
            here = inner
    except OSError as error:
        os.close(here)
        raise open_fault(field, error) from None
    return here


def get_choice(given, name, absent, accepted):
    if name not in given:
        return absent
    if not isinstance(given[name], str):
        raise Fault(name, "type", name + ": must be a string")
    if given[name] not in accepted:
        raise Fault(name, "unsupported", name + ": must be one of " + ", ".join(accepted))
    return given[name]


class PatternError(Exception):
    """What in a pattern is not accepted."""


class Pattern:
    """Checks that a pattern keeps to the regular expressions that mean the same
    in Go and in Python. Accepted and left out: see pattern.go, which this follows
    step by step."""

    DIGITS = frozenset("0123456789")
    LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
    PUNCTUATION = frozenset(" !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")

    def __init__(self, pattern):
        self.text = pattern
        self.at = 0
        self.groups = 0
        self.names = []
        self.stack = []  # for each open group [weight, endless] of what it holds
        self.last = None  # (weight, endless) of what a quantifier would repeat

    def peek(self, offset=0):
        return self.text[self.at + offset : self.at + offset + 1]

    def check(self):
        while self.at < len(self.text):
            char = self.peek()
            self.at += 1
            if char == "(":
                self.open()
            elif char == ")":
                self.close()
            elif char == "[":
                self.read_class()
            elif char == "\\":
                self.escape()
            elif char in "*+?{":
                self.quantifier(char)
            elif char in "|^$":
                self.last = None
            elif char < " ":
                raise PatternError("must not hold control characters")
            else:
                self.last = (1, False)
        if self.stack:
            raise PatternError("has a ( without its )")

    def open(self):
        self.groups += 1
        if self.groups > MAX_GROUPS:
            raise PatternError("must not hold more than 10 groups")
        self.stack.append([1, False])
        self.last = None
        if self.peek() != "?":
            return
        if self.peek(1) == ":":
            self.at += 2
        elif self.peek(1) == "P" and self.peek(2) == "<":
            end = start = self.at + 3
            while self.text[end : end + 1] in self.LETTERS or end > start and self.text[end : end + 1] in self.DIGITS:
                end += 1
            if end == start or self.text[end : end + 1] != ">":
                raise PatternError("has a group name that is not of letters, digits and _")
            if self.text[start:end] in self.names:
                raise PatternError("must not use a group's name twice")
            self.names.append(self.text[start:end])
            self.at = end + 1
        else:
            raise PatternError("must not hold (? but as (?: or (?P<name>: no lookaround, no flags")

    def close(self):
        if not self.stack:
            raise PatternError("has a ) without its (")
        self.last = tuple(self.stack.pop())
        self.hold(*self.last)

    def hold(self, weight, endless):
        if self.stack:
            around = self.stack[-1]
            around[0] = max(around[0], weight)
            around[1] = around[1] or endless

    def quantifier(self, char):
        if self.last is None:
            raise PatternError("has a quantifier with nothing before it to repeat; escape a literal one")
        most, endless = 1, char in "*+"
        if char == "{":
            # [0-9], for \d and str.isdigit take digits of every script.
            counts = re.compile(r"([0-9]{1,4})(?:(,)([0-9]{1,4})?)?\}").match(self.text, self.at)
            low = int(counts[1]) if counts else 0
            high = int(counts[3]) if counts and counts[3] else low
            if not counts or not low <= high <= MAX_REPEAT:
                raise PatternError("has a { that is not {n}, {n,} or {n,m} with n <= m <= 1000; escape a literal one")
            self.at = counts.end()
            most, endless = max(high, 1), bool(counts[2]) and not counts[3]
        weight, inner = self.last
        if inner and (endless or most > 1):
            raise PatternError("must not repeat a group that holds *, + or {n,}")
        if weight * most > MAX_REPEAT:
            raise PatternError("must not repeat anything more than 1000 times")
        if self.peek() == "?":
            self.at += 1
        self.hold(weight * most, inner or endless)
        self.last = None  # a quantifier may not be repeated itself

    def escape(self):
        char = self.peek()
        self.at += 1
        self.last = (1, False)
        if char and char in "bB":
            self.last = None
        elif not (char and char in "dDwWsSt") and char not in self.PUNCTUATION:
            raise PatternError(
                r"has an escape that is not accepted; known are \d \D \w \W \s \S \b \B \t and escaped punctuation"
            )

    def read_class(self):
        if self.peek() == "^":
            self.at += 1
        items = 0
        while True:
            if self.at >= len(self.text):
                raise PatternError("has a [ without its ]")
            if self.peek() == "]":
                self.at += 1
                if items == 0:
                    raise PatternError(r"has an empty class; write \] for a literal ]")
                break
            low, is_set = self.member(items == 0)
            items += 1
            if self.peek() != "-" or self.peek(1) in ("]", "") or is_set:
                continue
            self.at += 1
            high, is_set = self.member(False)
            if is_set or high < low:
                raise PatternError("has a class with a range that does not go up")
        self.last = (1, False)

    def member(self, first):
        char, after = self.peek(), self.text[self.at + 1 : self.at + 2]
        self.at += 1
        if char == "[" or char in "&~|" and after == char or char < " ":
            raise PatternError(r"must not hold [, &&, ~~, || or control characters in a class; write \[ for a literal [")
        if char == "-" and after != "]" and not first:
            raise PatternError(r"must not hold a - in the midst of a class; write \-")
        if char != "\\":
            return char, False
        char = self.peek()
        self.at += 1
        if char and char in "dDwWs":
            return char, True
        if char == "t":
            return "\t", False
        if char in self.PUNCTUATION:
            return char, False
        raise PatternError(
            r"has an escape in a class that is not accepted; known are \d \D \w \W \s \t and escaped punctuation"
        )


def compile_pattern(pattern, field):
    try:
        Pattern(pattern).check()
        return re.compile(pattern, re.ASCII)
    except PatternError as error:
        problem = str(error)
    except (re.error, OverflowError, RecursionError):
        problem = "is not a regular expression"
    raise Fault(field, "pattern", field + ": " + problem)


class Rules:
    """What a caller says about the lines."""

    def __init__(self, given):
        self.timestamp = None
        self.levels = {}
        if "rules" not in given:
            return
        rules = given["rules"]
        if not isinstance(rules, dict):
            message = "rules: must be an object of timestamp_regex and level_map, both optional"
            raise Fault("rules", "type", message)
        check_fields(rules, ("timestamp_regex", "level_map"), "rules.", " in rules")
        if "timestamp_regex" in rules:
            field = "rules.timestamp_regex"
            self.timestamp = compile_pattern(check_string(rules["timestamp_regex"], field, 1, 200), field)
        if "level_map" in rules:
            field = "rules.level_map"
            levels = rules["level_map"]
            if not isinstance(levels, dict):
                raise Fault(field, "type", field + ": must be an object of level names to level names")
            if len(levels) > 50:
                raise Fault(field, "length", field + ": must hold at most 50 levels")
            for name in sorted(levels):
                self.levels[name] = check_string(levels[name], field, 1, 40)
                if not 1 <= len(name) <= 40:
                    message = field + ": the names of levels must be 1 to 40 characters long"
                    raise Fault(field, "length", message)

    def level(self, name):
        # Loggers that write JSON put colours into it too.
        name = ESCAPES.sub("", name)
        return self.levels.get(name, name)


def encode(value):
    """The one spelling of JSON that both forms write."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


# Levels are taken for such where they stand in capitals as whole words.
KNOWN_LEVELS = [
    "TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "ERR", "SEVERE",
    "CRITICAL", "CRIT", "ALERT", "EMERG", "FATAL", "PANIC",
]  # fmt: skip

# ISO 8601 dates with a time, and those of web servers.
DEFAULT_TIMESTAMP = (
    r"\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?"
    r"|\d{2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4}"
)


class NoRecord(Exception):
    """Why a line is not a record, as it is counted in dropped_reasons."""


class TextLines:
    """Lines of free text. A line is a record if it has a time or a level."""

    def __init__(self, rules):
        self.rules = rules
        self.timestamp = rules.timestamp or re.compile(DEFAULT_TIMESTAMP, re.ASCII)
        # The longer name first, where two begin at one place.
        names = sorted(set(KNOWN_LEVELS) | set(rules.levels), key=lambda name: (-len(name), name))
        words = "|".join(re.escape(name) for name in names)
        self.level = re.compile("(?<![A-Za-z0-9_])(?:%s)(?![A-Za-z0-9_])" % words)

    def record(self, line, number):
        near, far = line[:WINDOW], line[WINDOW:]
        timestamp = level = None
        parts = [near]
        match = self.timestamp.search(near)
        if match:
            timestamp = match[1 if self.timestamp.groups else 0] or None
        if timestamp is not None:
            # The level is looked for behind the time first.
            parts = cut(near, match.start(), match.end())
        for index in range(len(parts) - 1, -1, -1):
            match = self.level.search(parts[index])
            if match:
                level = self.rules.level(match[0])
                parts[index : index + 1] = cut(parts[index], match.start(), match.end())
                break
        if timestamp is None and level is None:
            raise NoRecord("no_time_or_level")
        parts[-1] += far
        words = [word for word in map(trim, parts) if word]
        return encode({"line_no": number, "timestamp": timestamp, "level": level, "message": " ".join(words)})


def cut(text, start, end):
    """Takes text[start:end] out, with a pair of brackets directly around it."""
    if start > 0 and text[start - 1] + text[end : end + 1] in ("[]", "()", "<>"):
        start -= 1
        end += 1
    return [text[:start], text[end:]]


def trim(part):
    """Takes off the blanks and the sign that separated a part from what was cut."""
    part = part.strip(" \t")
    if part and part[0] in ":-|" and part[1:2] in ("", " ", "\t"):
        part = part[1:].strip(" \t")
    return part


def fits(value, depth=0):
    """Whether a decoded value can be written again: no number beyond the
    doubles, no nesting deeper than MAX_DEPTH."""
    if depth > MAX_DEPTH:
        return False
    if isinstance(value, dict):
        return all(fits(item, depth + 1) for item in value.values())
    if isinstance(value, list):
        return all(fits(item, depth + 1) for item in value)
    if isinstance(value, (int, float)):
        try:
            return abs(float(value)) != float("inf")
        except OverflowError:
            return False
    return True


class JSONLines:
    """One JSON object a line."""

    def __init__(self, rules):
        self.rules = rules

    def record(self, line, number):
        try:
            value = parse(line)
            if not isinstance(value, dict) or not fits(value):
                raise NoRecord("not_a_json_object")
            if isinstance(value.get("level"), str):
                value["level"] = self.rules.level(value["level"])
            return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)
        except (ValueError, RecursionError):
            raise NoRecord("not_a_json_object") from None


class MixedLines:
    """JSON lines, and as text the lines that are not."""

    def __init__(self, rules):
        self.json = JSONLines(rules)
        self.text = TextLines(rules)

    def record(self, line, number):
        try:
            return self.json.record(line, number)
        except NoRecord as why:
            try:
                return self.text.record(line, number)
            except NoRecord:
                raise why from None

    def sniff(self, lines):
        """Tells JSON lines from text where the name does not: of the first lines
        more are JSON objects than are records as text."""
        seen = objects = 0
        for piece in lines.pieces[:MAX_LINES]:
            try:
                line = lines.read(piece)
            except NoRecord:
                line = None
            if line == "":
                continue
            seen += 1
            if line and makes_record(self.json, line):
                objects += 1
            elif line and makes_record(self.text, line):
                objects -= 1
            if seen == SNIFFING:
                break
        lines.mended = False
        return objects > 0


def makes_record(parser, line):
    try:
        return bool(parser.record(line, 0))
    except NoRecord:
        return False


class CommaLines:
    """CSV as RFC 4180 has it, but for line breaks in quotes: a line of a log is a
    record. The first line that is not blank names the columns."""

    def __init__(self, rules):
        self.rules = rules
        self.columns = None

    def record(self, line, number):
        fields = split_commas(line)
        if self.columns is None:
            if fields is None or len(fields) > 256 or "" in fields or len(set(fields)) != len(fields):
                message = (
                    "format: the file is no CSV that can be read: "
                    "its first line must name 1 to 256 columns, none empty and none twice"
                )
                raise Fault("format", "header", message)
            self.columns = fields
            return ""
        if fields is None or len(fields) != len(self.columns):
            raise NoRecord("not_a_csv_row")
        values = dict(zip(self.columns, fields))
        if "level" in values:
            values["level"] = self.rules.level(values["level"])
        return encode(values)


def split_commas(line):
    fields = []
    while True:
        if not line.startswith('"'):
            field, comma, line = line.partition(",")
            if '"' in field:
                return None
            fields.append(field)
            if not comma:
                return fields
            continue
        line = line[1:]
        field = ""
        while True:
            text, quote, line = line.partition('"')
            if not quote:
                return None
            field += text
            if not line.startswith('"'):
                break
            field += '"'
            line = line[1:]
        fields.append(field)
        if not line:
            return fields
        if line[0] != ",":
            return None
        line = line[1:]


def format_of(name):
    """The format by the file's name, or None where that says nothing."""
    extension = name[name.rfind(".") :].lower() if "." in name else ""
    return {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}.get(extension)


def base_name(parts):
    """The file's name without the .gz of a compressed one."""
    name = parts[-1] if parts else ""
    return name[:-3] if name.lower().endswith(".gz") and len(name) > 3 else name


def unpack(packed, most):
    """The contents of all members of gzip data, or the first most + 1 bytes of
    them. ValueError and zlib.error say that it is damaged or cut off: how much of
    it could be read depends on the decoder, so nothing of it is read. The members'
    headers are read here, because gzip readers differ in what they accept there."""
    out = bytearray()
    at = 0
    while True:
        at = member(packed, at)
        inflater, start, checksum = zlib.decompressobj(-15), len(out), 0
        while not inflater.eof:
            chunk = packed[at : at + CHUNK]
            if not chunk:
                raise ValueError("cut off")
            piece = inflater.decompress(chunk, most + 1 - len(out))
            at += len(chunk) - len(inflater.unused_data) - len(inflater.unconsumed_tail)
            out += piece
            checksum = zlib.crc32(piece, checksum)
            if len(out) > most:
                return bytes(out)
        end = checksum.to_bytes(4, "little") + (len(out) - start).to_bytes(4, "little")
        if packed[at : at + 8] != end:
            raise ValueError("damaged")
        at += 8
        # Tapes and block devices pad with zeros.
        while packed[at : at + 1] == b"\0":
            at += 1
        if at == len(packed):
            return bytes(out)


def member(packed, at):
    """Where the data of the gzip member at this place begins (RFC 1952)."""
    if packed[at : at + 3] != GZIP or len(packed) < at + 10 or packed[at + 3] & 0xE0:
        raise ValueError("not a member")
    flags = packed[at + 3]
    at += 10
    if flags & 4:  # extra fields
        if len(packed) < at + 2:
            raise ValueError("cut off")
        at += 2 + int.from_bytes(packed[at : at + 2], "little")
    for flag in (8, 16):  # name, comment
        if flags & flag:
            at = packed.index(b"\0", at) + 1
    return at + 2 if flags & 2 else at  # checksum of the header


def decode(data):
    """Data as UTF-8 where it is UTF-16, by its byte order mark or by the zeros in
    its first kibibyte, and the name of its encoding. Other data is returned as it
    is, without the byte order mark of UTF-8; see mend."""
    order = None
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        order, data = "le" if data[0] == 0xFF else "be", data[2:]
    else:
        # Most text of logs is ASCII: half of its units have a zero, on the same side.
        units = min(len(data), 1024) // 2
        first, second = data[: units * 2 : 2].count(0), data[1 : units * 2 : 2].count(0)
        if units >= 2 and first * 8 <= units <= second * 2:
            order = "le"
        elif units >= 2 and second * 8 <= units <= first * 2:
            order = "be"
    if order is None:
        return data.removeprefix(b"\xef\xbb\xbf"), "utf-8"
    whole = len(data) // 2 * 2
    text = re.sub("[\ud800-\udfff]", "\ufffd", data[:whole].decode("utf-16-" + order, "surrogatepass"))
    if whole < len(data):
        text += "\ufffd"
    return text.encode("utf-8"), "utf-16" + order


def mend(data):
    """Text in which the bytes that are not UTF-8 are read as Windows-1252, of which
    Latin-1 is a part; None for what is not text: not UTF-8, and with control
    characters that text does not have."""
    if re.search(rb"[\x00-\x07\x0e-\x1a\x1c-\x1f]", data):
        return None
    return data.decode("utf-8", "windows-1252")


def stray_byte(error):
    byte = error.object[error.start]
    try:
        return bytes([byte]).decode("cp1252"), error.start + 1
    except UnicodeDecodeError:  # five of them stand for themselves, as in browsers
        return chr(byte), error.start + 1


codecs.register_error("windows-1252", stray_byte)

# The escape sequences of terminals: control sequences such as colours, operating
# system commands such as links, and character sets.
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~])")

GZIP = b"\x1f\x8b\x08"

# The first bytes of compressed files that are not unpacked.
FOREIGN = [
    ("zip", b"PK\x03\x04"),
    ("bzip2", b"BZh91AY&SY"),
    ("xz", b"\xfd7zXZ\x00"),
    ("zstd", b"\x28\xb5\x2f\xfd"),
    ("lz4", b"\x04\x22\x4d\x18"),
    ("7z", b"7z\xbc\xaf\x27\x1c"),
]


def load(parts):
    """The file, unpacked and in UTF-8 but for stray bytes, or the whole lines in
    its first MAX_INPUT bytes; what it was taken for; whether there was more."""
    field = "input_path"
    with_file = open_data(field, parts)
    try:
        info = os.fstat(with_file)
        if not stat.S_ISREG(info.st_mode):
            raise Fault(field, "not_a_file", field + ": must be a plain file")
        # The sandbox shows no file that has a second name either.
        if info.st_nlink != 1:
            raise open_fault(field, OSError(errno.EPERM, "a file with a second name"))
        with open(with_file, "rb", closefd=False) as f:
            # Of compressed data more is read, because it may be longer than what is in it.
            data = f.read(2 * MAX_INPUT)
    except OSError as error:
        raise open_fault(field, error) from None
    finally:
        os.close(with_file)
    for name, magic in FOREIGN:
        if data.startswith(magic):
            raise Fault(field, "compressed", "%s: compressed with %s; unpack it first, or use gzip" % (field, name))
    compression = "none"
    if data.startswith(GZIP):
        compression = "gzip"
        try:
            data = unpack(data, MAX_INPUT)
        except (ValueError, zlib.error):
            message = field + ": the gzip data is damaged or cut off; unpack what is left of it with gzip -dc"
            raise Fault(field, "gzip", message) from None
    cut_off = len(data) > MAX_INPUT
    data, encoding = decode(data[:MAX_INPUT])
    if cut_off:
        data = data[: data.rfind(b"\n") + 1]
    return data, {"encoding": encoding, "compression": compression}, cut_off


class Lines:
    """Goes through the lines of a file."""

    def __init__(self, data):
        self.pieces = data.split(b"\n", MAX_LINES)
        if not self.pieces[-1]:
            self.pieces.pop()  # nothing behind the last line's end
        self.mended = False  # a line held bytes that are not UTF-8

    def read(self, piece):
        """The line in UTF-8 and without colours, "" for a blank one."""
        piece = piece.removesuffix(b"\r")
        if len(piece) > MAX_LINE and piece.strip(b" \t"):
            raise NoRecord("too_long")
        try:
            line = piece.decode("utf-8")
        except UnicodeDecodeError:
            line = mend(piece)
            if line is None:
                raise NoRecord("not_text") from None
            self.mended = True
        line = ESCAPES.sub("", line) if "\x1b" in line else line
        return line if line.strip(" \t") else ""


def transform(lines, parser, limit, size):
    """Makes records of lines until the lines or one of the limits end."""
    records = []
    number = 0
    reasons = {}
    truncated = False
    for piece in lines.pieces:
        if number == MAX_LINES:
            truncated = True
            break
        number += 1
        try:
            line = lines.read(piece)
            record = line and parser.record(line, number)
        except NoRecord as why:
            reasons[str(why)] = reasons.get(str(why), 0) + 1
            continue
        if record:  # "" is a blank line or one of another use, the header of a CSV file
            size -= len(record.encode("utf-8")) + 1
            if size < 0 or len(records) == limit:
                number -= 1  # this line is the first of what is left out
                truncated = True
                break
            records.append(record)
    dropped = sum(reasons.values())
    return records, {
        "lines": number,
        "records": len(records),
        "dropped": dropped,
        "dropped_reasons": reasons,
        "truncated": truncated,
    }


def save(name, records):
    """Writes the records as JSON lines to scratch and returns the file's path."""
    dot = name.rfind(".")
    path = "work/" + (name[:dot] if dot > 0 else name)[:60] + ".jsonl"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags, 0o644), "wb") as f:
            f.writelines(record.encode("utf-8") + b"\n" for record in records)
    except OSError as error:
        reason, message = "write", "output: the file could not be written"
        if error.errno in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS):
            reason, message = "no_scratch", "output: this skill was given no ./work folder to write to; use stdout"
        elif error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            message = "output: the records do not fit the scratch space; lower limit"
        raise Fault("output", reason, message, "INTERNAL") from None
    return path


def run(given):
    check_fields(given, ("input_path", "format", "output", "rules", "limit"))
    parts = data_path("input_path", get_string(given, "input_path", None, 0, MAX_PATH))
    name = base_name(parts)
    form = get_choice(given, "format", format_of(name), ("text", "jsonl", "csv"))
    output = get_choice(given, "output", "stdout", ("stdout", "file"))
    rules = Rules(given)
    most, size = (MAX_LINES, MAX_OUTPUT) if output == "file" else (200, MAX_STDOUT)
    limit = get_integer(given, "limit", most, 1, 10_000) if "limit" in given else most

    data, read_as, cut_off = load(parts)
    lines = Lines(data)
    if form:
        parser = {"jsonl": JSONLines, "csv": CommaLines, "text": TextLines}[form](rules)
    else:
        parser = MixedLines(rules)
        form = "jsonl" if parser.sniff(lines) else "text"
        parser = parser if form == "jsonl" else parser.text
    read_as["format"] = form
    records, stats = transform(lines, parser, limit, size)
    stats["truncated"] = stats["truncated"] or cut_off
    if lines.mended:
        read_as["encoding"] = "windows-1252"
    answer = {"read_as": read_as, "stats": stats}
    if output == "stdout":
        answer["records"] = [json.loads(record) for record in records]
    else:
        answer["output_path"] = save(name, records)
    return answer


def main():
    try:
        answer = {"success": True, "data": run(read_call(sys.stdin.buffer.read())), "error": None}
    except Fault as fault:
        error = {"code": fault.code, "message": str(fault), "details": fault.details}
        answer = {"success": False, "data": None, "error": error}
    text = json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    sys.stdout.buffer.write(text.encode("utf-8") + b"\n")
    return 0 if answer["success"] else 1


if __name__ == "__main__":
    sys.exit(main())
