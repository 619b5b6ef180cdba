# Prints dates in generated formats: dates.txt is what CPython 3.13 printed on glibc, by
# TZ=UTC python3 dates.py > dates.txt
import datetime
import random
import time

chance = random.Random(31)
letters = "aAbBcCdDeEfFgGhHiIjkKlLmMnNopPqQrRsStTuUVvwWxXyYzZ+%"
formats = [f"%{flags}{letter}" for flags in ("", "-", "_", "0", "^", "#", "E", "O", "5", "-5", "_6", "+") for letter in letters]
formats += ["", "%", "100%", "%%k", "é%Yü", "%Y\u4e49%k", "% d", "%é", "%300d", "%-300d", "%99999999k", "%B %d, %Y at %l:%M %P", "%Y%m%d-%k%M"]
for _ in range(150):
    parts = []
    for _ in range(chance.randint(1, 5)):
        parts.append("%" + chance.choice(["", "", "-", "_", "0", "^"]) + chance.choice(["", "", "3"]) + chance.choice(letters))
        parts.append(chance.choice(["-", "/", " ", ":", "T", "é"]))
    formats.append("".join(parts))
moments = [datetime.datetime(2026, 3, 5, 9, 7, 3, 123456), datetime.datetime(1999, 12, 31, 23, 59, 59), datetime.datetime(2021, 1, 3, 0, 5)]
for format in formats:
    made = [m.strftime(format) for m in moments]
    made.append(time.strftime(format, (2024, 2, 29, 12, 30, 61, 3, 60, 1)))
    made.append(time.strftime(format, time.gmtime(0)))
    made.append(moments[0].replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-5, minutes=-30))).strftime(format))
    print(ascii(format), *(ascii(text if len(text) < 30 else (len(text), text.strip()[:60])) for text in made))
