# Runs pip for one download: no process is started, so that no package can be built; the
# environment of markers is that of the sandbox; and files that were released after a moment,
# or taken back, do not exist. What the index said of files goes into a file.
import json
import os
import sys

settings = json.loads(sys.argv.pop(1))
files = {}


def refuse(event, _):
    if event in ("subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn"):
        raise PermissionError("packages are not built: no programs are started")


sys.addaudithook(refuse)

from pip._internal.models import link
from pip._vendor.packaging import markers

here = markers.default_environment
markers.default_environment = lambda: {**here(), **settings["environment"]}
before = settings["before"]


def seen(found, file, uploaded=None, yanked=None):
    """Whether pip may have a file of the index."""
    if found is None:
        return None
    note = files[found.filename] = {}
    if yanked is not None and yanked is not False:
        note["yanked"] = True
        return None
    if uploaded:
        note["uploaded"] = uploaded
        if before and uploaded > before:
            note["young"] = True
            return None
    return found


class Link(link.Link):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.url.startswith("file:"):
            files.setdefault(self.filename, {})["local"] = True

    @classmethod
    def from_json(cls, file, *args, **kwargs):
        found = super().from_json(file, *args, **kwargs)
        return seen(found, file, file.get("upload-time"), file.get("yanked"))

    @classmethod
    def from_element(cls, anchor, *args, **kwargs):
        found = super().from_element(anchor, *args, **kwargs)
        return seen(found, anchor, None, anchor.get("data-yanked"))


for module in list(sys.modules.values()):
    if getattr(module, "Link", None) is link.Link and module is not link:
        module.Link = Link
link.Link = Link

from pip._internal.cli.main import main

sys.argv[0] = "pip"
try:
    code = main(sys.argv[1:])
finally:
    with open(settings["report"], "w") as out:
        json.dump(files, out)
sys.exit(code)
