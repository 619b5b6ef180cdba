package wasi_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm/wasi"
)

// TestPython runs a CPython on this host, if OPENSKILL_TEST_PYTHON names its
// module: the largest program that there is for preview1.
func TestPython(t *testing.T) {
	path := os.Getenv("OPENSKILL_TEST_PYTHON")
	if path == "" {
		t.Skip("OPENSKILL_TEST_PYTHON is not set")
	}
	binary, err := os.ReadFile(path)
	musttest.Do(t, err)
	script := `
import sys, os, json, time, random, tempfile, pathlib, shutil, errno, datetime
print("argv", sys.argv[1:], "env", os.environ.get("A"))
print("input", json.load(sys.stdin))
print("data", sorted(os.listdir("/data")), pathlib.Path("data/sub/b.txt").read_text())
print("walk", sorted(str(p) for p in pathlib.Path("/data").rglob("*")))
for path, mode in (("/data/a.txt", "w"), ("/data/a.txt", "a"), ("/data/new", "x"), ("/new", "w"), ("/../etc/passwd", "r")):
    try:
        open(path, mode).close()
        print(path, mode, "opened")
    except OSError as e:
        print(path, mode, errno.errorcode[e.errno])
os.makedirs("/work/a/b", exist_ok=True)
p = pathlib.Path("/work/a/b/f.txt")
p.write_text("hello")
with open(p, "r+b") as f:
    f.seek(-2, 2); f.write(b"LO"); f.truncate(10); f.seek(0); print("file", f.read())
os.rename("/work/a/b/f.txt", "/work/g.txt")
print("stat", os.stat("/work/g.txt").st_size, all([os.path.isdir("/work/a"), os.path.samefile("/work/g.txt", "/work/../work/g.txt")]))
for i in range(200): open(f"/work/a/{i}", "w").close()
print("many", len(os.listdir("/work/a")))
shutil.rmtree("/work/a"); print("gone", os.path.exists("/work/a"))
with tempfile.TemporaryFile(dir="/work") as f: f.write(b"x" * 100000); f.seek(0); print("temp", len(f.read()))
t0 = time.monotonic(); time.sleep(0.02); print("slept", all([time.monotonic() - t0 >= 0.02, time.time() > 1.6e9, time.process_time() > 0]))
print("random", len({random.random() for _ in range(10)}), len(os.urandom(16)))
print("error", file=sys.stderr)
sys.exit(3)
`
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	p := compile(t, binary)
	root, work := worldRoot(t, dataFolder(t))
	var out, errs bytes.Buffer
	w := wasi.NewWorld(wasi.Config{
		Args: []string{"python", "-c", script, "x"}, Env: []string{"A=1", "PYTHONDONTWRITEBYTECODE=1"}, Root: root,
		Stdin: strings.NewReader(`{"k": [1, 2]}`), Stdout: &out, Stderr: &errs,
	})
	defer w.Close()
	err = p.run(ctx, w)
	want := `argv ['x'] env 1
input {'k': [1, 2]}
data ['a.txt', 'sub'] beta
walk ['/data/a.txt', '/data/sub', '/data/sub/b.txt', '/data/sub/deep', '/data/sub/deep/c.txt']
/data/a.txt w EROFS
/data/a.txt a EROFS
/data/new x EROFS
/new w EROFS
/../etc/passwd r EPERM
file b'helLO\x00\x00\x00\x00\x00'
stat 10 True
many 201
gone False
temp 100000
slept True
random 10 16
`
	if out.String() != want || errs.String() != "error\n" {
		t.Errorf("stdout:\n%s\nstderr:\n%s", &out, &errs)
	}
	if stop := w.Stopped(); stop == nil || *stop != (wasi.Stop{Reason: wasi.ReasonExit, ExitCode: 3}) {
		t.Errorf("stop %v, %v", stop, err)
	}
	if files := work.Files(); len(files) != 1 || files[0].Name != "g.txt" {
		t.Errorf("left behind: %v", files)
	}
}
