"""One call, with its log and its files."""

import errno
import json
import os
import re
import stat
import sys

from ._errors import FORBIDDEN_PATH, INTERNAL, INVALID_ARGUMENT, NOT_FOUND, Failure

# In the sandbox the folders are at the root; what a module compiled ahead of time has
# for its working directory is its host's choice.
ROOT = "/" if sys.platform == "wasi" else "."

_odd = re.compile("[\x00-\x1f\x7f\\\\\ud800-\udfff]")
_breaks = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# What WASI says of a path that leaves its folder; not in module errno everywhere.
_NOTCAPABLE = 76


def one_line(text):
    """Text as a line of a log: what ends lines or commands terminals becomes escapes."""
    text = _breaks.sub(lambda m: "\\u%04x" % ord(m.group()), text)
    return text.encode("utf-8", "replace").decode("utf-8")


class Call:
    """What a skill's function is told of the call, and can do in it."""

    def __init__(self, skill_id="", trace_id="", root=None, logs=None):
        self.skill_id = skill_id
        self.trace_id = trace_id
        self._root = root  # of data and work; None where there are no files
        self._logs = logs

    def debug(self, message, **fields):
        """Writes a line to standard error, which operators may read: the level, the
        message, and the fields as JSON."""
        self._log("DEBUG", message, fields)

    def info(self, message, **fields):
        self._log("INFO", message, fields)

    def warn(self, message, **fields):
        self._log("WARN", message, fields)

    def error(self, message, **fields):
        """Ends nothing: raise a Failure for that."""
        self._log("ERROR", message, fields)

    def _log(self, level, message, fields):
        line = level + " " + one_line(str(message))
        if fields:
            try:
                text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=str)
            except Exception:
                text = "{?}"  # a circle, or what cannot be shown
            line += " " + one_line(text)
        write_log(self._logs, line + "\n")

    def read_data(self, path):
        """The bytes of a file of the data folder. The path is as callers give it,
        ./data/docs/a.txt; one that is absolute or could lead out of the folder is
        FORBIDDEN_PATH before anything is opened. Links are not followed."""

        def fault(code, reason, message):
            shown = str(path)[:200].encode("utf-8", "replace").decode("utf-8")
            return Failure(code, message, {"path": shown, "reason": reason})

        parts = data_path(path)
        if parts is None:
            raise fault(
                FORBIDDEN_PATH,
                "outside_data",
                "a path must be relative and in ./data, without .., backslashes and control characters, as ./data/docs/a.txt",
            )
        if self._root is None or not os.path.isdir(os.path.join(self._root, "data")):
            raise Failure(INTERNAL, "this skill was given no ./data folder to read", {"reason": "no_data"})
        try:
            at = self._root
            for i, part in enumerate(parts):
                at = os.path.join(at, part)
                mode = (os.lstat if i else os.stat)(at).st_mode  # the host may have put a link at data
                if stat.S_ISLNK(mode):
                    raise fault(FORBIDDEN_PATH, "link", "links in ./data are not followed")
            if not stat.S_ISREG(mode):
                raise fault(INVALID_ARGUMENT, "no_file", "the path in ./data is not a file")
            with open(at, "rb") as file:
                return file.read()
        except OSError as why:
            if why.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
                raise fault(NOT_FOUND, "not_found", "there is no such file in ./data") from None
            if why.errno in (errno.ELOOP, errno.EPERM, getattr(errno, "ENOTCAPABLE", _NOTCAPABLE)):
                raise fault(FORBIDDEN_PATH, "link", "links in ./data are not followed") from None
            self.error("reading ./data", why=str(why))
            raise fault(INTERNAL, "unreadable", "the file in ./data could not be read") from None

    def write_artifact(self, name, content):
        """Writes bytes, or text as UTF-8, to a file that becomes an artifact of the
        call, in the place of an earlier one of the name. The skill must have been
        granted scratch space."""
        if isinstance(content, str):
            content = content.encode("utf-8")
        odd = not isinstance(name, str) or name in ("", ".") or ".." in name or "/" in name or _odd.search(name)
        if odd or len(name.encode("utf-8")) > 200:
            raise Failure(
                FORBIDDEN_PATH,
                "an artifact's name must be one file name of at most 200 bytes, without slashes, backslashes and control characters, as report.csv",
                {"reason": "name"},
            )
        if self._root is None or not os.path.isdir(os.path.join(self._root, "work")):
            raise Failure(INTERNAL, "this skill was given no scratch space to write to", {"reason": "no_scratch"})
        try:
            path = os.path.join(self._root, "work", name)
            file = open(path, "wb")
            try:
                with file:
                    file.write(content)
            except OSError:
                os.remove(path)  # half an artifact is none
                raise
        except OSError as why:
            self.error("writing an artifact", why=str(why))
            raise Failure(
                INTERNAL,
                "the artifact could not be written; the scratch space may be full",
                {"reason": "unwritable"},
            ) from None


def write_log(logs, text):
    """A log that is gone ends no call. Whatever the stream can encode, it is UTF-8."""
    try:
        raw = getattr(logs, "buffer", None)
        if raw is None:
            logs.write(text)
        else:
            logs.flush()
            raw.write(text.encode("utf-8", "replace"))
            raw.flush()
    except Exception:
        pass


def data_path(path):
    """A path of the data folder in its parts, the first one data; None if it is none."""
    # Any "..", also within a name: the host has the same rule.
    if not isinstance(path, str) or path.startswith("/") or ".." in path or len(path) > 1024 or _odd.search(path):
        return None
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return parts if parts and parts[0] == "data" else None
