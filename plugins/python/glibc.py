# What the C library of WASI does silently otherwise than glibc. Its strftime gives an empty
# string for the whole of a format with a directive or a flag that it does not know, and its
# setlocale takes any name and changes nothing.
def _glibc():
    import _locale
    import sys
    import time

    plain = time.strftime
    days = "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"
    months = (
        "January", "February", "March", "April", "May", "June",
        "July", "August", "September", "October", "November", "December",
    )
    alike = frozenset("aAbBcdDeFGHhIjmMnprRStTuUVwWxXyYz")  # both libraries do the same
    whole = {
        "c": "%a %b %e %H:%M:%S %Y", "D": "%m/%d/%y", "F": "%Y-%m-%d", "r": "%I:%M:%S %p",
        "R": "%H:%M", "T": "%H:%M:%S", "x": "%m/%d/%y", "X": "%H:%M:%S",
    }
    # Directives that a modifier makes unknown.
    no_e = frozenset("aAbBdDeFgGhHIjklmMSUVwW")
    no_o = frozenset("aAcDFxXY")
    century = 4 if sys.version_info >= (3, 14) else 1  # since then datetime fills years up

    def epoch(year, month, day):
        """Days since 1970."""
        year -= month <= 2
        era = year // 400
        of_era = year - era * 400
        of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
        return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468

    def glibc(format, t, most):
        fields = plain("%Y %m %d %H %M %S %j %w %G %V", t).split()
        year, month, day, hour, minute, second, yday, wday, of_week, week = map(int, fields)
        isdst, half = t[8], (hour + 11) % 12 + 1
        numbers = {  # with their digits
            "C": (year // 100, 2 if century > 1 else 1), "d": (day, 2), "e": (day, 2), "g": (of_week % 100, 2),
            "G": (of_week, century), "H": (hour, 2), "I": (half, 2), "j": (yday, 3), "k": (hour, 2), "l": (half, 2),
            "m": (month, 2), "M": (minute, 2), "S": (second, 2), "u": ((wday + 6) % 7 + 1, 1),
            "U": ((yday - 1 - wday + 7) // 7, 2), "V": (week, 2), "w": (wday, 1),
            "W": ((yday - 1 - (wday + 6) % 7 + 7) // 7, 2), "y": (year % 100, 2), "Y": (year, century),
        }
        out = []

        def zone():
            name = getattr(t, "tm_zone", None) if type(t) is time.struct_time else None
            if name:
                return name
            return "" if isdst < 0 else time.tzname[isdst > 0]

        def add(text, pad, width):
            lack = min(width - len(text), most)
            if lack > 0:
                out.append(("0" if pad == "0" else " ") * lack)
            out.append(text)

        def digits(value, size, pad, width):
            size = max(size, min(width, most))
            text = str(abs(value))
            sign = "-" if value < 0 else ""
            lack = size - len(sign + text)
            if pad == "-" or lack <= 0:
                add(sign + text, pad, width)
            elif pad == "_":
                out.append(" " * lack + sign + text)
            else:
                out.append(sign + "0" * lack + text)

        i, end = 0, len(format)
        while i < end:
            j = format.find("%", i)
            if j < 0:
                j = end
            out.append(format[i:j])
            if j == end:
                break
            i = j + 1
            pad, upper, change, width, modifier = "", False, False, -1, ""
            while format[i : i + 1] in ("_", "-", "0", "^", "#"):
                flag = format[i]
                if flag == "^":
                    upper = True
                elif flag == "#":
                    change = True
                else:
                    pad = flag
                i += 1
            while "0" <= format[i : i + 1] <= "9":
                width = min(max(width, 0) * 10 + int(format[i]), 1 << 30)
                i += 1
            if format[i : i + 1] in ("E", "O"):
                modifier = format[i]
                i += 1
            letter = format[i : i + 1]
            i += 1
            if not letter or modifier == "E" and letter in no_e or modifier == "O" and letter in no_o:
                add(format[j:i], pad, width)
            elif letter in numbers:
                digits(*numbers[letter], "_" if letter in "ekl" and pad not in ("0", "-") else pad, width)
            elif letter in whole:
                text = glibc(whole[letter], t, most)
                add(text.upper() if upper else text, pad, width)
            elif letter in "aAbBh":
                name = (days[wday] if letter in "aA" else months[month - 1])[: None if letter in "AB" else 3]
                add(name.upper() if upper or change else name, pad, width)
            elif letter in "pP":
                name = "PM" if hour >= 12 else "AM"
                add(name.lower() if change or letter == "P" else name, pad, width)
            elif letter == "Z":
                name = zone()
                add(name.lower() if change else name.upper() if upper else name, pad, width)
            elif letter == "z":
                if isdst >= 0:
                    minutes = int(plain("%z", t)[:5] or 0)
                    add("-" if minutes < 0 else "+", pad, width)
                    digits(abs(minutes), 4, pad, width)
            elif letter == "s":
                seconds = epoch(year, month, day) * 86400 + (hour - (isdst > 0)) * 3600 + minute * 60 + second
                add(str(seconds), pad, width)
            elif letter in "nt%":
                add({"n": "\n", "t": "\t", "%": "%"}[letter], pad, width)
            else:
                text = format[j:i]
                add(text.upper() if upper else text, pad, width)
        return "".join(out)

    def strftime(format, /, *t):
        if not isinstance(format, str):
            return plain(format, *t)
        parts = format.split("%")
        t = t or (time.localtime(),)
        try:
            ordinary = 1000 <= t[0][0] <= 9999 and "" not in parts[1:]
        except (LookupError, TypeError):
            ordinary = True  # what is no time is for the one that knows
        if len(parts) == 1 or ordinary and all(part[0] in alike for part in parts[1:]):
            return plain(format, *t)
        plain("%Y", *t)  # which refuses what is out of range
        if "\0" in format:
            plain("\0")  # which may be refused
        most = 1024
        while most < 256 * len(format.encode("utf-8", "surrogateescape")):
            most *= 2
        text = glibc(format, t[0], most)
        return text if len(text.encode("utf-8", "surrogateescape")) < most else ""

    plain_gmtime, plain_mktime = time.gmtime, time.mktime
    greenwich = {"tm_zone": "GMT", "tm_gmtoff": 0}

    def gmtime(*seconds):
        return time.struct_time(plain_gmtime(*seconds), greenwich)

    def mktime(t, /):
        seconds = plain_mktime(t)
        return seconds - 3600 if t[8] > 0 else seconds  # summer time, which UTC has not

    for old, new in ((plain, strftime), (plain_gmtime, gmtime), (plain_mktime, mktime)):
        new.__module__, new.__qualname__, new.__doc__ = "time", old.__name__, old.__doc__
        setattr(time, old.__name__, staticmethod(new))

    # Locales: those that a machine without any more has.

    plain_setlocale = _locale.setlocale
    kinds = ("LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_COLLATE", "LC_MONETARY", "LC_MESSAGES")
    kinds = {getattr(_locale, kind): kind for kind in kinds}
    chosen = {kind: plain_setlocale(kind) for kind in kinds}
    known = {"": "C.UTF-8", "C": "C", "POSIX": "C", "C.UTF-8": "C.UTF-8", "C.utf8": "C.utf8"}

    def setlocale(category, locale=None, /):
        if category not in chosen and category != _locale.LC_ALL or locale is not None and not isinstance(locale, str):
            return plain_setlocale(category, locale)
        if locale is not None:
            if category != _locale.LC_ALL:
                new = {category: locale}
            elif "=" in locale:
                given = dict(part.partition("=")[::2] for part in locale.split(";"))
                new = {kind: given.get(name, chosen[kind]) for kind, name in kinds.items()}
            else:
                new = dict.fromkeys(kinds, locale)
            if not known.keys() >= set(new.values()):
                raise _locale.Error("unsupported locale setting")
            chosen.update((kind, known[name]) for kind, name in new.items())
        if category != _locale.LC_ALL:
            return chosen[category]
        names = set(chosen.values())
        return names.pop() if len(names) == 1 else ";".join(f"{name}={chosen[kind]}" for kind, name in kinds.items())

    setlocale.__module__, setlocale.__qualname__, setlocale.__doc__ = "_locale", "setlocale", plain_setlocale.__doc__
    _locale.setlocale = setlocale
    if "locale" in sys.modules:
        sys.modules["locale"]._setlocale = setlocale


_glibc()
del _glibc
