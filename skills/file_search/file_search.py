"""The skill file_search: finds lines with a text in the files below ./data. The
CLI form; it answers exactly as main.go does. Standard library only, POSIX."""

import codecs
import errno
import json
import os
import re
import stat
import sys
import zlib

MAX_FILE = 5 << 20  # bytes of a file, also unpacked; larger ones are skipped
MAX_UNPACK = 16 << 20  # bytes that are unpacked in one call
MAX_RATIO = 1032  # bytes that one of gzip data can become
CHUNK = 16 << 10  # bytes of compressed data that are unpacked at once
MAX_ENTRIES = 20_000  # files and folders looked at in one call
MAX_DEPTH = 32  # folders below root_dir
MAX_PATH = 1024  # characters of a path that is looked at
MAX_SNIPPET = 200  # characters, without the … that mark a cut
LEAD = 60  # characters kept before a hit in a cut line


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


def parse_glob(pattern):
    """The segments of a pattern. The language is small on purpose, so that both
    forms of the skill read it alike: ** as a whole segment is any number of
    folders, also none; * any characters of one name, also none; ? one character
    of a name. Everything else stands for itself, case and a leading dot included."""
    if any(char in "[]{}\\" for char in pattern):
        raise Fault("glob", "unsupported", "glob: knows *, ? and ** as in **/*.md; no brackets, braces or backslashes")
    segments = []
    for index, segment in enumerate(pattern.split("/")):
        if segment == ".." or index == 0 and segment == "":
            message = "glob: must be relative to root_dir, without a leading / and without .."
            raise Fault("glob", "outside_data", message, "FORBIDDEN_PATH")
        if segment == "":
            raise Fault("glob", "empty_segment", "glob: must not hold an empty name, as in a//b or a/")
        if segment != ".":
            segments.append(segment)
    return segments


def match_list(pattern, items, star, one):
    """Matches items against a pattern in which star stands for any run of items.
    Going back only to the last star is enough, and keeps the work at
    len(pattern) * len(items) where a backtracking matcher would explode."""
    p = i = start = 0
    back = -1
    while i < len(items):
        if p < len(pattern) and pattern[p] == star:
            back, start = p, i
            p += 1
        elif p < len(pattern) and one(pattern[p], items[i]):
            p += 1
            i += 1
        elif back >= 0:
            start += 1
            p, i = back + 1, start
        else:
            return False
    while p < len(pattern) and pattern[p] == star:
        p += 1
    return p == len(pattern)


def match_name(segment, name):
    return match_list(segment, name, "*", lambda pattern, char: pattern == "?" or pattern == char)


def match_path(glob, names):
    return match_list(glob, names, "**", match_name)


GZIP = b"\x1f\x8b\x08"


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


class LeftOut(Exception):
    """Why a file is left out, as it is counted in skipped."""


class Search:
    def __init__(self, query, glob, limit):
        self.query, self.glob, self.limit = query, glob, limit
        self.entries = 0
        self.unpack = MAX_UNPACK  # bytes that may still be unpacked
        self.matches = []
        self.skipped = {}  # files that match the glob and folders, by why they were left out
        self.truncated = False
        self.stopped = False  # nothing more is to be looked at

    def stop(self):
        self.stopped = self.truncated = True

    def skip(self, path, why):
        self.skipped[why] = self.skipped.get(why, 0) + 1
        line = "skipped ./%s: %s\n" % (path, why)
        sys.stderr.write(line.encode("ascii", "backslashreplace").decode("ascii"))

    def folder(self, folder, path, below):
        """Searches an open folder and what is below it, in the order of whole
        paths, byte by byte. below holds the folder's name from root_dir on."""
        for kind, name in self.list(folder):
            self.entries += kind in ("file", "folder")
            if self.entries > MAX_ENTRIES:
                self.stop()
            if self.stopped:
                return
            inner = below + [name]
            whole = path + "/" + name
            if kind == "folder" and len(inner) > MAX_DEPTH:
                self.truncated = True
                self.skip(whole, "too_deep")
            elif kind == "folder":
                try:
                    child = open_name(folder, name)
                    try:
                        self.folder(child, whole, inner)
                    finally:
                        os.close(child)
                except OSError:
                    self.skip(whole, "unreadable")
            elif match_path(self.glob, inner):
                if kind == "file":
                    self.file(folder, name, whole)
                else:
                    self.skip(whole, kind)

    def list(self, folder):
        """What is in a folder, but for names that are not UTF-8, as (kind, name),
        sorted so that a walk meets whole paths in order."""
        found = []
        with os.scandir(folder) as entries:
            for index, entry in enumerate(entries):
                if index > MAX_ENTRIES:
                    break
                try:
                    entry.name.encode("utf-8")
                except UnicodeEncodeError:
                    continue
                kind = "not_a_file"
                if entry.is_dir(follow_symlinks=False):
                    kind = "folder"
                elif entry.is_file(follow_symlinks=False):
                    kind = "file"
                elif entry.is_symlink():
                    kind = "link"
                found.append((kind, entry.name))
        # Code points sort as their bytes in UTF-8 do.
        found.sort(key=lambda entry: entry[1] + "/" if entry[0] == "folder" else entry[1])
        return found

    def file(self, folder, name, path):
        """Adds the file's matching lines. A file that is too large, binary or not
        to be read is left out: one bad file must not hide the answers in the others."""
        try:
            text = self.read(folder, name)
        except LeftOut as why:
            self.skip(path, str(why))
            return
        if self.query not in text:
            return
        for number, line in enumerate(text.split("\n"), 1):
            line = line.removesuffix("\r")
            hit = line.find(self.query)
            if hit < 0:
                continue
            if len(self.matches) == self.limit:
                self.stop()
                return
            self.matches.append({"path": "./" + path, "line_no": number, "snippet": snippet(line, hit)})

    def read(self, folder, name):
        """The text of a file; raises LeftOut."""
        try:
            with open(open_name(folder, name), "rb") as f:
                info = os.fstat(f.fileno())
                # The sandbox shows no file that has a second name either.
                if not stat.S_ISREG(info.st_mode) or info.st_nlink != 1:
                    raise OSError(errno.EPERM, "not a plain file")
                data = f.read(MAX_FILE + 1)
        except OSError:
            raise LeftOut("unreadable") from None
        if len(data) > MAX_FILE:
            raise LeftOut("too_large")
        if data.startswith(GZIP):
            data = self.unpacked(data)
        data = decode(data)[0]
        if b"\0" in data:
            raise LeftOut("binary")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            text = mend(data)
        if text is None:
            raise LeftOut("binary")
        return text

    def unpacked(self, data):
        # The length that the end of gzip data tells spares unpacking what is too
        # large. Where it lies, or cannot be true, the limits below hold.
        told = int.from_bytes(data[-4:], "little") if len(data) >= 4 else 0
        if MAX_FILE < told <= len(data) * MAX_RATIO:
            raise LeftOut("too_large")
        most = min(MAX_FILE, self.unpack)
        try:
            content = unpack(data, most)
        except (ValueError, zlib.error):
            # No more than that was unpacked.
            self.unpack = max(0, self.unpack - min(most, len(data) * MAX_RATIO))
            raise LeftOut("damaged_gzip") from None
        self.unpack = max(0, self.unpack - len(content))
        if len(content) > MAX_FILE:
            raise LeftOut("too_large")
        if len(content) > most:
            raise LeftOut("unpack_limit")
        return content


def snippet(line, hit):
    """The line, or the part of a long line around the character hit."""
    if len(line) <= MAX_SNIPPET:
        return line
    start = max(0, min(hit - LEAD, len(line) - MAX_SNIPPET))
    end = start + MAX_SNIPPET
    return ("…" if start > 0 else "") + line[start:end] + ("…" if end < len(line) else "")


def run(given):
    check_fields(given, ("query", "root_dir", "glob", "limit"))
    query = get_string(given, "query", None, 1, 1000)
    if "\n" in query or "\r" in query:
        message = "query: must be text of one line, because lines are searched one by one"
        raise Fault("query", "line_break", message)
    root = data_path("root_dir", get_string(given, "root_dir", "./data", 0, MAX_PATH))
    glob = parse_glob(get_string(given, "glob", "**/*", 1, 200))
    search = Search(query, glob, get_integer(given, "limit", 20, 1, 1000))

    folder = open_data("root_dir", root)
    try:
        if not stat.S_ISDIR(os.fstat(folder).st_mode):
            raise Fault("root_dir", "not_a_folder", "root_dir: must be a folder, this is a file")
        search.folder(folder, "/".join(["data"] + root), [])
    except OSError as error:
        raise open_fault("root_dir", error) from None
    finally:
        os.close(folder)
    return {"matches": search.matches, "skipped": search.skipped, "truncated": search.truncated}


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
