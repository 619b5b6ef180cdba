"""A skill's folder as an archive."""

from __future__ import annotations

import io
import os
import secrets
import stat
import zipfile
from typing import Dict, List, Tuple, Union

from ._errors import OpenSkillError

Source = Union[str, "os.PathLike[str]", bytes]

# What builds and editors leave, which is none of the skill.
LEFT_OUT = frozenset({"__pycache__", "node_modules", "target"})
MOST = 64 << 20  # bytes that a host unpacks


def folder(path: str) -> bytes:
    """A zip of the files in a folder, without hidden ones and what builds leave. The same files
    give the same bytes."""
    if not any(os.path.isfile(os.path.join(path, name)) for name in ("skill.yaml", "SKILL.md")):
        raise OpenSkillError("the folder has neither skill.yaml nor SKILL.md")
    names: List[str] = []
    for at, folders, files in os.walk(path, onerror=_fail):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in LEFT_OUT)
        for name in folders + files:
            full = os.path.join(at, name)
            mode = os.lstat(full).st_mode
            if name.startswith(".") or stat.S_ISDIR(mode):
                continue
            if not stat.S_ISREG(mode):
                raise OpenSkillError(f"{os.path.relpath(full, path)} is not a regular file")
            names.append(full)
    out, size = io.BytesIO(), 0
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for full in sorted(names):
            with open(full, "rb") as f:
                data = f.read(MOST + 1 - size)
            size += len(data)
            if size > MOST:
                raise OpenSkillError(f"the folder is too large; the limit is {MOST} bytes")
            z.writestr(zipfile.ZipInfo(os.path.relpath(full, path).replace(os.sep, "/")), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _fail(e: OSError) -> None:
    raise OpenSkillError(f"cannot read a folder: {e.strerror}")


def read(source: Source) -> bytes:
    """The bytes of a file, or those that were given."""
    if isinstance(source, bytes):
        return source
    try:
        with open(source, "rb") as f:
            return f.read()
    except OSError as e:
        raise OpenSkillError(f"cannot read {os.fspath(source)!r}: {e.strerror}") from None


def form(parts: Dict[str, bytes]) -> Tuple[bytes, str]:
    """multipart/form-data with these files, and its content type."""
    while True:
        boundary = secrets.token_hex(16)
        if not any(boundary.encode() in data for data in parts.values()):
            break
    body = b"".join(
        b"--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\nContent-Type: application/octet-stream\r\n\r\n%s\r\n"
        % (boundary.encode(), name.encode(), name.encode(), data)
        for name, data in parts.items()
    )
    return body + b"--" + boundary.encode() + b"--\r\n", "multipart/form-data; boundary=" + boundary
