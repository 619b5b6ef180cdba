"""What WASI does otherwise than Linux, run in a folder that can be written to."""

import locale
import os
import queue
import stat
import sys
import tarfile
import threading
import time
import zipfile


def said(call, *args):
    try:
        return call(*args)
    except Exception as error:
        return type(error).__name__


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else "/work")
    open("a", "w").close()
    os.makedirs("d")
    print(oct(os.stat("a").st_mode), oct(os.stat("d").st_mode), oct(os.umask(0o22)))
    os.chmod("a", 0o755)
    print(oct(os.stat("a").st_mode), stat.filemode(os.stat("a").st_mode), os.access("a", os.X_OK), said(os.chmod, "none", 0o644))
    with tarfile.open("r.tar", "w") as t:
        t.add("a")
        t.add("d")
    print([(i.name, oct(i.mode)) for i in tarfile.open("r.tar")])
    with zipfile.ZipFile("r.zip", "w") as z:
        z.write("a")
        z.write("d")
    print([(i.filename, oct(i.external_attr >> 16)) for i in zipfile.ZipFile("r.zip").infolist()])
    print(time.strftime("%k %l %P %-k %-d", (2026, 3, 5, 9, 7, 0, 3, 64, 0)))
    print(said(locale.setlocale, locale.LC_ALL, "xx_XX.UTF-8"))
    print(said(queue.Queue().get, True, 0.01), threading.Event().wait(0.01))


main()
