# Looks at every state that it can reach, tells what it sees, and then changes all of
# it. The first line of input is the mark to leave and how to end.
import abc, array, asyncio, atexit, builtins, calendar, codecs, collections, contextvars, copyreg, csv
import datetime, decimal, enum, faulthandler, fnmatch, functools, gc, gettext, importlib, io, itertools, json
import linecache, locale, logging, mimetypes, os, pickle, random, re, signal, statistics, string, struct, sys
import tempfile, threading, time, tracemalloc, types, typing, unittest, urllib.parse, warnings, weakref


class Own:
    shared = "as it was"
    members = []


class Key:
    pass


class Color(enum.Enum):
    RED = 1


def default(a=[]):
    return a


@functools.lru_cache
def cached(x):
    return MARK


def audited():
    told = []
    sys.audit("marks.probe", told)
    return told


def monitored():
    return sys.monitoring.get_tool(3)


def lowest():
    fd = os.open("/skill/main.py", os.O_RDONLY)
    os.close(fd)
    return fd


counter = itertools.count()
stepped = (n for n in range(10))
next(stepped)
left_open = open("/skill/main.py", "rb", buffering=0)
left_open.seek(3)
buffered = open("/skill/main.py", "rb")
buffered.read(2)
kept = []
text = io.StringIO("start")
local = threading.local()
variable = contextvars.ContextVar("variable", default="none")
weak = weakref.WeakValueDictionary()
keys = weakref.WeakKeyDictionary()
pool = [Key() for _ in range(10)]
pattern = re.compile("a+")
lock = threading.Lock()
os.mkdir("/work/start") if os.path.isdir("/work") else None
plain_write, plain_dumps, plain_exit = os.write, json.dumps, os._exit

# A name, what is looked at, and what changes it. MARK is the call's own mark.
KINDS = """
new module | sorted(m for m in sys.modules if m.startswith("marked")) | sys.modules["marked_" + MARK] = types.ModuleType("m")
module attribute | getattr(json, "marked", None) | json.marked = MARK
new builtin | getattr(builtins, "marked", None) | builtins.marked = MARK
class attribute | Own.shared | Own.shared = MARK
class list | Own.members[:] | Own.members.append(MARK)
library class | getattr(json.JSONEncoder, "marked", None) | json.JSONEncoder.marked = MARK
default argument | default()[:] | default().append(MARK)
function defaults | cached.__wrapped__.__defaults__ | cached.__wrapped__.__defaults__ = (MARK,)
code of a function | default.__code__.co_name | default.__code__ = (lambda a=[]: MARK).__code__
own cache | cached.cache_info() | cached(1)
library cache | urllib.parse.urlsplit.cache_info() | urllib.parse.urlsplit("http://" + MARK)
lines | sorted(linecache.cache) | linecache.cache[MARK] = (1, None, [MARK], MARK)
path caches | sorted(map(str, sys.path_importer_cache)) | sys.path_importer_cache["/" + MARK] = None
decimals | decimal.getcontext().prec | decimal.getcontext().prec = 7
decimal defaults | decimal.DefaultContext.prec | decimal.DefaultContext.prec = 8
decimal traps | decimal.getcontext().traps[decimal.Inexact] | decimal.getcontext().traps[decimal.Inexact] = True
warnings | len(warnings.filters) | warnings.simplefilter("error", ResourceWarning); warnings.filters.insert(0, ("ignore", None, Warning, None, 77))
warnings seen | sorted(map(str, globals().get("__warningregistry__", {}))) | globals().setdefault("__warningregistry__", {})[MARK] = 1
search path | sys.path[:] | sys.path.append(MARK)
arguments | sys.argv[:] | sys.argv.append(MARK)
recursion limit | sys.getrecursionlimit() | sys.setrecursionlimit(777)
switch interval | sys.getswitchinterval() | sys.setswitchinterval(0.5)
long numbers | sys.get_int_max_str_digits() | sys.set_int_max_str_digits(5000)
exception hook | sys.excepthook.__name__ | sys.excepthook = lambda *a: None
display hook | sys.displayhook.__name__ | sys.displayhook = lambda *a: None
unraisable hook | sys.unraisablehook.__name__ | sys.unraisablehook = lambda *a: None
thread hook | threading.excepthook.__name__ | threading.excepthook = lambda *a: None
trace | sys.gettrace() is None | sys.settrace(lambda *a: None)
profile | sys.getprofile() is None | sys.setprofile(lambda *a: None)
audit hook | audited() | sys.addaudithook(lambda e, a: a[0].append("heard") if e == "marks.probe" else None)
monitoring | monitored() | sys.monitoring.use_tool_id(3, MARK)
coroutine origins | sys.get_coroutine_origin_tracking_depth() | sys.set_coroutine_origin_tracking_depth(5)
generator hooks | sys.get_asyncgen_hooks()[0] is None | sys.set_asyncgen_hooks(firstiter=lambda g: None)
import hooks | len(sys.meta_path) | sys.meta_path.append(object())
path hooks | len(sys.path_hooks) | sys.path_hooks.append(lambda p: None)
sys attribute | getattr(sys, "marked", None) | sys.marked = MARK
last error | getattr(sys, "last_value", None) | sys.last_value = MARK
interned | sys.getunicodeinternedsize() | kept.append([sys.intern(MARK + str(i)) for i in range(1000)])
codecs | known("marked") | codecs.register(lambda n: codecs.lookup("utf-8") if n == "marked" else None)
error handlers | handled("marked") | codecs.register_error("marked", lambda e: ("", e.end))
copy registry | Own in copyreg.dispatch_table | copyreg.pickle(Own, lambda o: MARK)
extensions | sorted(copyreg._extension_registry) | copyreg.add_extension("marked", "name", 77)
abstract classes | issubclass(Own, collections.abc.Mapping) | collections.abc.Mapping.register(Own)
dispatch | sorted(map(str, functools_single.registry)) | functools_single.register(Own, lambda o: MARK)
enum | [c.name for c in Color] + [Color.RED.__dict__.get("marked")] | Color.RED.marked = MARK
logging handlers | len(logging.getLogger().handlers) | logging.getLogger().addHandler(logging.NullHandler())
logging level | logging.getLogger().level | logging.getLogger().setLevel(5)
loggers | sorted(logging.Logger.manager.loggerDict) | logging.getLogger(MARK)
level names | logging.getLevelName(7) | logging.addLevelName(7, MARK)
environment | dict(os.environ) | os.environ["MARKED"] = MARK
working folder | os.getcwd() | os.chdir("/skill")
relative paths | os.path.exists("main.py") | os.chdir("/work" if os.path.exists("main.py") else "/skill")
lowest descriptor | lowest() | kept.append(os.open("/skill/main.py", os.O_RDONLY))
offset | left_open.tell() | left_open.seek(11)
file closed | left_open.closed | left_open.close()
buffer of a file | buffered.tell() | buffered.read(5)
input closed | sys.stdin.closed | sys.stdin.close()
output replaced | type(sys.stdout).__name__ | sys.stdout = io.StringIO()
error output replaced | type(sys.stderr).__name__ | sys.stderr = io.StringIO()
original output | type(sys.__stdout__).__name__ | sys.__stdout__ = None
text | text.getvalue() | text.write(MARK)
scratch files | sorted(os.listdir("/work")) | write("/work/" + MARK)
scratch folder | os.listdir("/work/start") | write("/work/start/x")
scratch times | os.stat("/work").st_atime == 1234.5, os.stat("/work").st_mtime == 4321.5 | os.utime("/work", (1234.5, 4321.5))
scratch folder times | os.stat("/work/start").st_mtime == 4321.5 | os.utime("/work/start", (1234.5, 4321.5))
temporary folder | tempfile.tempdir | tempfile.tempdir = "/" + MARK
temporary prefix | tempfile.template | tempfile.template = MARK
locale | locale.setlocale(locale.LC_ALL) | locale.setlocale(locale.LC_ALL, "C.UTF-8")
signals | str(signal.getsignal(signal.SIGINT))[:20] | signal.signal(signal.SIGINT, signal.SIG_IGN)
at exit | atexit._ncallbacks() | atexit.register(lambda: plain_write(1, b"AT EXIT " + MARK.encode()))
collector on | gc.isenabled() | gc.disable()
collector thresholds | gc.get_threshold() | gc.set_threshold(77, 7, 7)
collector debugging | gc.get_debug() | gc.set_debug(gc.DEBUG_SAVEALL)
collector callbacks | len(gc.callbacks) | gc.callbacks.append(lambda *a: None)
garbage | len(gc.garbage) | gc.garbage.append(MARK)
frozen objects | gc.get_freeze_count() | gc.unfreeze()
faults | faulthandler.is_enabled() | faulthandler.enable(sys.__stderr__)
allocations traced | tracemalloc.is_tracing() | tracemalloc.start()
thread local | getattr(local, "x", None) | local.x = MARK
thread name | threading.current_thread().name | threading.current_thread().name = MARK
threads traced | threading.gettrace() is None | threading.settrace(lambda *a: None)
stack size | threading.stack_size() | threading.stack_size(65536 * 4)
lock | lock.locked() | lock.acquire()
context | variable.get() | variable.set(MARK)
weak values | sorted(weak) | weak[MARK] = pool[0]
weak keys | len(keys) | keys[pool[1]] = MARK
finalizers | len(weakref.finalize._registry) | weakref.finalize(pool[2], plain_write, 1, b"FINAL " + MARK.encode())
attribute | pool[3].__dict__.copy() | pool[3].x = MARK
class of an object | type(pool[4]).__name__ | pool[4].__class__ = Own
object gone | len(pool) | pool.pop()
counter | repr(counter) | next(counter)
generator | stepped.gi_frame.f_lineno if stepped.gi_frame else None, list(itertools.islice(stepped, 0)) | stepped.close()
week | calendar.firstweekday() | calendar.setfirstweekday(3)
csv limit | csv.field_size_limit() | csv.field_size_limit(77)
csv dialects | sorted(csv.list_dialects()) | csv.register_dialect(MARK)
file types | mimetypes.guess_type("x.marked") | mimetypes.add_type("text/marked", ".marked")
translations | sorted(map(str, gettext._translations)) | gettext._translations[MARK] = 1
text domain | gettext.textdomain() | gettext.textdomain(MARK)
event loop | asyncio.events._get_running_loop() is None | asyncio.events._set_running_loop(pool)
typing caches | len(typing._cleanups) | typing._cleanups.append(MARK)
unit tests | unittest.TestCase.maxDiff | unittest.TestCase.maxDiff = 7
pickling | pickle.DEFAULT_PROTOCOL | pickle.DEFAULT_PROTOCOL = 0
own name | globals().get("marked_global") | globals()["marked_global"] = MARK
frozen modules | sys.modules["_frozen_importlib"].__dict__.get("marked") | sys.modules["_frozen_importlib"].marked = MARK
version | getattr(sys.implementation, "marked", None) | sys.implementation.marked = MARK
struct cache | struct.calcsize("i") | struct.calcsize = lambda f: MARK
date replaced | datetime.date.__name__ | datetime.date = abc.ABC
array replaced | array.array.__name__ | array.array = list
random source | random._inst is random.random.__self__ | random._inst = random.Random(1)
a loaded submodule | "xml.dom.minidom" in sys.modules | import xml.dom.minidom
module gone | "string" in sys.modules | del sys.modules["string"]
function replaced | json.dumps.__name__ | json.dumps = lambda *a, **k: MARK
os replaced | os.getcwd() | os.getcwd = lambda: MARK
re replaced | re.match("a", "a") is None | re.match = lambda *a: None
regular expressions | len(re._cache), len(re._cache2) | re.compile(MARK + "x*")
string | string.ascii_letters[:3] | string.ascii_letters = MARK
imports | importlib.import_module.__name__ | importlib.import_module = MARK
builtin replaced | print.__class__.__name__ | builtins.print = lambda *a, **k: None
builtin replaced twice | len([]) | builtins.len = lambda x: MARK
"""


@functools.singledispatch
def functools_single(x):
    return None


def known(name):
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None


def handled(name):
    try:
        return bool(codecs.lookup_error(name))
    except LookupError:
        return None


def write(path):
    with open(path, "w") as f:
        f.write(MARK)


def looked():
    seen = {}
    for name, look, _ in table:
        try:
            seen[name] = str(eval(look, globals()))
        except Exception as error:
            seen[name] = "cannot be looked at: " + type(error).__name__ + ": " + str(error)
    return seen


table = [tuple(part.strip() for part in line.split(" | ")) for line in KINDS.strip().splitlines()]
table = [(name, compile(look, "look", "eval"), compile(change, "change", "exec")) for name, look, change in table]
MARK = "none"
looked()  # what looking itself changes is there before

MARK, ending = sys.stdin.readline().split()
before = looked()
# What is left over of any other call would be counted here.
before["also allocated blocks"] = str(sys.getallocatedblocks())
before["also tracked objects"] = str(len(gc.get_objects()))
before["also address of an object"] = str(id(object()))
before["also address of a list"] = str(id([]))
before["also address of a buffer"] = str(id(bytearray(100000)))
report = plain_dumps
changed, failed = [], []
eval_, exec_, str_ = eval, exec, str
for name, look, change in table:
    try:
        was = str_(eval_(look, globals()))
    except Exception:
        was = "error"
    try:
        exec_(change, globals())
    except Exception as error:
        failed.append(name + ": " + type(error).__name__ + ": " + str_(error))
        continue
    try:
        now = str_(eval_(look, globals()))
    except Exception:
        now = "error"
    if now != was:
        changed.append(name)
sys.settrace(None), sys.setprofile(None)
plain_write(1, b"RESULT " + report({"seen": before, "changed": changed, "failed": failed}).encode() + b"\n")
sys.stdout = io.TextIOWrapper(io.FileIO(1, "wb", closefd=False))
sys.stdout.write("UNFLUSHED " + MARK)
kept.append(MARK * 10000)
if ending == "exit":
    raise SystemExit(3)
if ending == "_exit":
    plain_exit(3)
if ending == "error":
    raise ValueError(MARK)
if ending == "memory":
    x = bytearray(10**9)
