"""The skills of this host, as functions: from skills import calculator; calculator(numbers=[1, 2])."""

import io as _io
import json as _json
import os as _os


class SkillError(Exception):
    """A call that failed, with what the host says of it: code, message, details."""

    def __init__(self, error):
        self.code, self.message, self.details = error["code"], error["message"], error.get("details") or {}
        super().__init__(f"{self.code}: {self.message}")


def _ask(name, body=b""):
    with _io.FileIO(_os.open("/dev/http", _os.O_RDWR), "r+") as host:
        rest = memoryview(_json.dumps({"skill": name}).encode() + b"\n" + body)
        while rest:
            rest = rest[host.write(rest) :]
        return _json.loads(host.readall())


_known = None


def _tools():
    global _known
    if _known is None:
        _known = {tool["name"]: tool for tool in _ask("")}
    return _known


class _Skill:
    def __init__(self, name):
        self.__name__ = self.__qualname__ = name
        self.__module__ = "skills"

    def __call__(self, input=None, /, **fields):
        """Calls the skill with the fields of its input, or one object, and gives its data."""
        given = {**(input or {}), **fields}
        result = _ask(self.__name__, _json.dumps(given, ensure_ascii=False).encode())
        if not result["success"]:
            raise SkillError(result["error"])
        return result["data"]

    @property
    def __doc__(self):
        tool = self._tool()
        if tool is None:
            return None
        lines = [tool["description"], ""]
        schema = tool["input_schema"]
        for field, form in schema.get("properties", {}).items():
            need = "" if field in schema.get("required", ()) else ", optional"
            lines.append(f"{field} ({form.get('type', 'any')}{need}): {form.get('description', '')}".rstrip(": "))
        return "\n".join(lines)

    @property
    def input_schema(self):
        return self._tool()["input_schema"]

    def _tool(self):
        known = _tools()
        return known.get(self.__name__) or known.get(self.__name__.replace("_", "-"))

    def __repr__(self):
        return f"<skill {self.__name__}>"


def __dir__():
    return sorted([*(name.replace("-", "_") for name in _tools()), "SkillError"])


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Skill(name)


def _main(args):
    """The command skill: NAME and the input as JSON; without a name, which there are."""
    import sys

    if not args:
        print(*_tools(), sep="\n")
        return
    try:
        given = _json.loads(args[1]) if len(args) > 1 else {}
        if len(args) > 2 or not isinstance(given, dict):
            raise ValueError("want NAME and one JSON object")
        print(_json.dumps(_Skill(args[0])(given), ensure_ascii=False))
    except (SkillError, ValueError) as error:
        sys.exit(f"skill: {error}")
