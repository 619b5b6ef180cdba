import os, re, sqlite3, sys

sys.stdin.reconfigure(errors="replace")

NAMES = {"list": "|", "csv": ",", "tabs": "\t", "column": "  ", "line": "\n"}
MODES = "ascii box column csv html insert json line list markdown qbox quote table tabs tcl"
mode, header, sep, null, bail = "list", None, None, "", False
failed, out, once = 0, sys.stdout, False
end = "\n"


def text(v):
    if v is None:
        return null
    if isinstance(v, bytes):
        return v.decode("utf-8", "replace")
    if isinstance(v, float):
        if v != v or v in (float("inf"), float("-inf")):
            return {"inf": "Inf", "-inf": "-Inf"}.get(str(v), "")
        s = "%.15g" % v
        m, e, x = s.partition("e")
        return (m if "." in m else m + ".0") + e + x
    return str(v)


def literal(v):
    if v is None:
        return "NULL"
    if isinstance(v, bytes):
        return "X'%s'" % v.hex()
    if isinstance(v, str):
        return "'%s'" % v.replace("'", "''")
    return text(v)


def quoted(v):
    s = text(v)
    if v is not None and (s == "" or (sep or ",") in s or re.search(r"[\x00-\x20\"'\x7f-\U0010ffff]", s)):
        return '"%s"' % s.replace('"', '""')
    return s


def json(v):
    if v is None:
        return "null"
    if isinstance(v, (int, float)):
        return text(v)
    special = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"%s"' % "".join(special.get(c) or ("\\u%04x" % ord(c) if c < " " else c) for c in text(v))


def grid(names, rows):
    cells = [[text(v) for v in r] for r in rows]
    wide = [max(len(n), *(len(r[i]) for r in cells)) for i, n in enumerate(names)]
    middle = [" " * ((w - len(n)) // 2) + n + " " * (w - len(n) - (w - len(n)) // 2) for n, w in zip(names, wide)]
    if mode == "column":
        if header is not False:
            yield "  ".join(n.ljust(w) for n, w in zip(names, wide))
            yield "  ".join("-" * w for w in wide)
        for r in cells:
            yield "  ".join(c.ljust(w) for c, w in zip(r, wide))
        return
    bar = {"table": "|", "box": "│", "markdown": "|"}[mode]
    def line(a, b, c, dash):
        return a + b.join(dash * (w + 2) for w in wide) + c
    if mode == "table":
        yield line("+", "+", "+", "-")
    elif mode == "box":
        yield line("┌", "┬", "┐", "─")
    yield bar + bar.join(" %s " % n for n in middle) + bar
    yield line("+", "+", "+", "-") if mode == "table" else line("├", "┼", "┤", "─") if mode == "box" else line("|", "|", "|", "-")
    for r in cells:
        yield bar + bar.join(" %s " % c.ljust(w) for c, w in zip(r, wide)) + bar
    if mode == "table":
        yield line("+", "+", "+", "-")
    elif mode == "box":
        yield line("└", "┴", "┘", "─")


def show(names, rows):
    if mode == "json":
        if rows:
            out.write("[" + ",\n".join("{" + ",".join(json(n) + ":" + json(v) for n, v in zip(names, r)) + "}" for r in rows) + "]\n")
        return
    if mode in ("column", "table", "box", "markdown"):
        out.writelines(l + "\n" for l in (grid(names, rows) if rows else ()))
        return
    if mode == "line":
        wide = max([5] + [len(n) for n in names])
        out.write("\n".join("".join("%s = %s\n" % (n.rjust(wide), text(v)) for n, v in zip(names, r)) for r in rows))
        return
    between = sep if sep is not None else NAMES.get(mode, ",")
    one = {"csv": quoted, "quote": literal, "insert": literal}.get(mode, text)
    if header and rows and mode != "insert":
        out.write(between.join(one(n) if mode != "list" and mode != "tabs" else n for n in names) + end)
    for r in rows:
        line = between.join(one(v) for v in r)
        out.write("INSERT INTO \"table\" VALUES(%s);\n" % ",".join(map(literal, r)) if mode == "insert" else line + end)


def wrong(message):
    global failed
    failed = failed or 1
    out.flush()
    print(message, file=sys.stderr)
    if bail:
        leave(1)


def leave(code):
    out.flush()
    if out is not sys.stdout:
        out.close()
    db.close()
    sys.stdout.flush()
    sys.exit(code)


def run(sql, of="Error: in prepare, %s"):
    try:
        c = db.execute(sql)
        rows = c.fetchall()
        if c.description:
            show([d[0] for d in c.description], rows)
    except (sqlite3.Error, sqlite3.Warning) as e:
        wrong(of % e)
        return getattr(e, "sqlite_errorcode", 1) & 0xFF
    done()
    return 0


def done():
    global out, once
    if once:
        out.close()
        out, once = sys.stdout, False


def pieces(source):
    """Statements and dot commands of lines, as they are complete."""
    held = ""
    for line in source:
        line = line if line.endswith("\n") else line + "\n"
        if not held.strip() and line.startswith("."):
            yield line.strip()
            held = ""
            continue
        held += line
        if ";" in line and sqlite3.complete_statement(held):
            yield from split(held)
            held = ""
    if held.strip():
        yield from split(held)


def split(sql):
    at = 0
    for m in re.finditer(";", sql):
        if sqlite3.complete_statement(sql[at : m.end()]):
            yield sql[at : m.end()].strip()
            at = m.end()
    rest = re.sub(r"--[^\n]*|/\*.*?\*/", "", sql[at:], flags=re.S)
    if rest.strip():
        yield sql[at:].strip()


def words(line):
    return [m[0] if m[0] is not None and m[0] != "" else m[1].encode().decode("unicode_escape") if m[1] else m[2] for m in re.findall(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|(\S+)", line)]


def tables(kind, like):
    sql = "SELECT name FROM sqlite_schema WHERE type IN (%s) AND name NOT LIKE 'sqlite_%%' AND name LIKE ? ORDER BY 1" % kind
    return [r[0] for r in db.execute(sql, [like])]


def listed(names):
    if not names:
        return
    wide = max(len(n) for n in names)
    columns = max(1, 80 // (wide + 2))
    high = -(-len(names) // columns)
    for i in range(high):
        out.write("".join(("" if j == i else "  ") + names[j].ljust(wide) for j in range(i, len(names), high)) + "\n")


USAGE = {"headers": ".headers on|off", "bail": ".bail on|off", "separator": ".separator COL ?ROW?", "nullvalue": ".nullvalue STRING"}


def number(text):
    """The number that a text begins with, else 0."""
    return int(re.match(r"\s*[-+]?\d+|", text)[0] or 0)


def dot(line):
    """Runs a dot command. What it cannot do is one line on standard error."""
    name, *a = words(line[1:]) or [""]
    try:
        command(name, a)
    except BrokenPipeError:
        raise
    except OSError as e:
        wrong('Error: cannot open "%s"' % e.filename)
    except (sqlite3.Error, sqlite3.Warning) as e:
        wrong("Error: %s" % e)
    except (ValueError, IndexError):
        unknown(name)


def unknown(name):
    wrong('Error: unknown command or invalid arguments:  "%s". Enter ".help" for help' % name)


def command(name, a):
    global mode, header, sep, end, null, bail, out, once
    on = bool(a) and a[0].lower() in ("on", "yes", "1", "true")
    if name in ("quit", "exit"):
        leave(number(a[0]) & 255 if a else int(failed))
    elif name in USAGE and not a:
        wrong("Usage: " + USAGE[name])
    elif "headers".startswith(name) and len(name) > 3:
        header = on
    elif name == "mode" and a:
        if a[0] not in MODES.split():
            return wrong("Error: mode should be one of: " + MODES)
        mode = {"tcl": "quote", "ascii": "list"}.get(a[0], a[0])
        end = "\r\n" if mode == "csv" else "\n"
        sep = a[1] if len(a) > 1 and not a[1].startswith("-") else None
        if mode in ("column", "table", "box") and header is None:
            header = True
    elif name == "separator" and a:
        sep = a[0]
    elif name == "nullvalue" and a:
        null = a[0]
    elif name == "bail":
        bail = on
    elif name in ("echo", "timeout", "width", "changes", "timer", "stats", "eqp"):
        pass
    elif name == "print":
        out.write(" ".join(a) + "\n")
    elif "tables".startswith(name) and len(name) > 1:
        listed(tables("'table','view'", a[0] if a else "%"))
    elif "indexes".startswith(name) or name == "indices":
        listed([r[0] for r in db.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name LIKE ? ORDER BY 1", [a[0] if a else "%"])])
    elif "schema".startswith(name) and len(name) > 2:
        like = [x for x in a if not x.startswith("-")]
        for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' AND tbl_name LIKE ? ORDER BY rowid", [like[0] if like else "%"]):
            out.write(sql + ";\n")
    elif name == "databases":
        for _, n, f in db.execute("PRAGMA database_list"):
            out.write("%s: %s r/w\n" % (n, f or '""'))
    elif name == "dump":
        lines = list(db.iterdump())
        out.write("PRAGMA foreign_keys=OFF;\n")
        for l in lines:
            m = re.match(r'INSERT INTO "(\w+)" (VALUES.*)', l, re.S)
            out.write((("INSERT INTO %s %s" % m.groups()) if m else l) + "\n")
    elif name in ("output", "once"):
        done()
        if out is not sys.stdout:
            out.close()
        out, once = sys.stdout, False
        if a and a[0] != "stdout":
            out, once = open(a[0], "w"), name == "once"
    elif name == "read" and a:
        with open(a[0], errors="replace") as f:
            feed(f)
    elif name == "import":
        load(a)
    elif name == "version":
        out.write("SQLite %s\n" % sqlite3.sqlite_version)
    else:
        unknown(name)


def load(a):
    import csv
    global sep
    skip, between = 0, sep or NAMES.get(mode, "|")
    while a and a[0].startswith("-"):
        if a[0] == "--csv":
            between = ","
        elif a[0] == "--skip" and len(a) > 1:
            skip = number(a.pop(1))
        elif a[0] != "-v":
            return wrong('ERROR: unknown option: "%s".' % a[0].replace("--", "-"))
        a.pop(0)
    if len(a) < 2:
        return wrong("ERROR: missing %s argument." % ("TABLE" if a else "FILE"))
    with open(a[0], newline="", errors="replace") as f:
        rows = list(csv.reader(f, delimiter=between))[skip:]
    name = '"%s"' % a[1].replace('"', '""')
    if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", [a[1]]).fetchone() and rows:
        db.execute("CREATE TABLE %s(%s)" % (name, ", ".join('"%s" TEXT' % c.replace('"', '""') for c in rows.pop(0))))
    width = len(db.execute("SELECT * FROM %s LIMIT 0" % name).description)
    for i, r in enumerate(rows, skip + 1):
        try:
            db.execute("INSERT INTO %s VALUES(%s)" % (name, ",".join("?" * width)), (r + [None] * width)[:width])
        except (sqlite3.Error) as e:
            wrong("%s:%d: INSERT failed: %s" % (a[0], i, e))


def feed(source):
    for piece in pieces(source):
        if piece.startswith("."):
            dot(piece)
        else:
            run(piece, "Parse error: %s")


def main():
    global mode, header, sep, null, bail, db
    args, given, first = [os.fsencode(a).decode(errors="replace") for a in sys.argv[2:]], [], []
    readonly = False
    while args:
        o = args.pop(0)
        if not o.startswith("-") or o == "-":
            given.append(o)
            continue
        o = o.lstrip("-")
        if o in ("header", "noheader"):
            header = o == "header"
        elif o in ("csv", "json", "line", "column", "list", "quote", "box", "table", "markdown", "tabs"):
            mode = o
        elif o in ("separator", "nullvalue", "newline", "cmd", "init"):
            value = args.pop(0) if args else ""
            if o == "separator":
                sep = value.encode().decode("unicode_escape") if "\\" in value else value
            elif o == "nullvalue":
                null = value
            elif o == "cmd":
                first.append(value)
        elif o == "bail":
            bail = True
        elif o == "readonly":
            readonly = True
        elif o == "version":
            print(sqlite3.sqlite_version)
            sys.exit(0)
        elif o in ("batch", "interactive", "nofollow", "safe"):
            pass
        elif o in ("help", "?"):
            print("Usage: sqlite3 [OPTIONS] FILENAME [SQL]")
            sys.exit(0)
        else:
            print("sqlite3: Error: unknown option: -%s\nUse -help for a list of options." % o, file=sys.stderr)
            sys.exit(1)
    if mode == "column" and header is None:
        header = False
    path = given.pop(0) if given else ":memory:"
    try:
        db = sqlite3.connect("file:%s?mode=ro" % path if readonly else path, isolation_level=None, uri=readonly)
        db.execute("PRAGMA schema_version")
    except sqlite3.Error as e:
        print('Error: unable to open database "%s": %s' % (path, e), file=sys.stderr)
        sys.exit(1)
    for piece in first:
        feed([piece])
    for piece in given:
        if piece.startswith("."):
            dot(piece)
            if failed:
                leave(1)
        else:
            for sql in split(piece):
                if code := run(sql):
                    leave(code)
    if not given:
        feed(sys.stdin)
    leave(int(failed))


try:
    main()
except BrokenPipeError:
    os._exit(141)
