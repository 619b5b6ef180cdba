package runtimes

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/guestfs"
)

// installed opens a runtime of the repository's state folder.
func installed(t *testing.T, name string) *Runtime {
	t.Helper()
	if testing.Short() {
		t.Skip("compiling a runtime takes a minute")
	}
	s := New(filepath.Join("..", "..", "..", ".openskill"))
	r, err := s.Open(name)
	if err != nil {
		t.Skipf("%v", err)
	}
	return r
}

// interpreter runs Python programs on a runtime.
type interpreter struct {
	*Runtime
	module *wasm.Module
	files  guestfs.FS
}

func open(t *testing.T, r *Runtime) *interpreter {
	t.Helper()
	e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: filepath.Join("..", "..", "..", ".openskill", "cache", "wasm")}))(t)
	t.Cleanup(func() { e.Close() })
	b := musttest.Get(os.ReadFile(r.Module.Path))(t)
	if got := wasm.Digest(b); got != r.Module.Digest {
		t.Fatalf("digest %s, want %s", got, r.Module.Digest)
	}
	m := musttest.Get(e.Compile(t.Context(), b, &wasm.CompileOptions{Trusted: true}))(t)
	mounts, closing, err := r.Mount()
	musttest.Do(t, err)
	t.Cleanup(func() { closing() })
	tree := musttest.Get(guestfs.NewTree(append(mounts, guestfs.Mount{Path: "/tmp", FS: guestfs.NewMemory(guestfs.Limits{})})...))(t)
	return &interpreter{r, m, tree}
}

// run gives what a program prints.
func (p *interpreter) run(t *testing.T, program string) string {
	t.Helper()
	var out bytes.Buffer
	o, err := p.module.Run(t.Context(), &wasm.Run{
		Args: []string{p.Args0, "-c", program}, Env: p.Env, Stdout: &out, Stderr: &out, Files: p.files,
		Limits: wasm.Limits{Fuel: 1e13, Timeout: 5 * time.Minute, Memory: 1 << 30, Output: 1 << 20},
	})
	musttest.Do(t, err)
	t.Logf("%v, fuel %d, %v", o.Ended, o.Fuel, o.Total)
	return strings.TrimSpace(out.String())
}

func TestSlim(t *testing.T) {
	p := open(t, installed(t, Slim))
	for _, c := range []struct{ name, program, want string }{
		{"is CPython 3.15", "import sys; print(sys.version_info[:2], sys.implementation.name, sys.path)", "(3, 15) cpython ['/usr/local/lib/python315.zip']"},
		{"has what a smaller cut lost", "import inspect, dis, unittest, asyncio, _opcode_metadata; print(inspect.signature(lambda a, *, b=1: a))", "(a, *, b=1)"},
		{"has time zones", "import zoneinfo, datetime; print(datetime.datetime(2026, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).isoformat())", "2026-07-01T12:00:00+02:00"},
		{"has its C modules", "import zlib, sqlite3, lzma, bz2, hashlib, _elementtree; print(sqlite3.connect(':memory:').execute('select 40+2').fetchone(), zlib.crc32(b'x'), len(lzma.compress(b'x')), hashlib.sha256(b'x').hexdigest()[:8])", "(42,) 2363233923 60 2d711642"},
		{"has packages", "import yaml, jinja2, openpyxl, importlib.metadata as m; print(yaml.safe_load('a: [1]'), jinja2.Template('{{ x }}!').render(x=1), m.version('pyyaml'))", "{'a': [1]} 1! 6.0.3"},
		{"claims no module that was cut", "import sys; print([m for m in sys.builtin_module_names if '.' in m])", "[]"},
		{"has no host to call", "import _host; print(_host.available())", "False"},
		{"prints errors like any Python", "import nothing_of_that_name", "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n    import nothing_of_that_name\nModuleNotFoundError: No module named 'nothing_of_that_name'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := p.run(t, c.program); got != c.want {
				t.Errorf("%s\nwant:\n%s", got, c.want)
			}
		})
	}

	t.Run("says how to get what it lacks", func(t *testing.T) {
		got := p.run(t, Bootstrap(Slim)+`
import importlib.util, sys
before = set(sys.modules)
for name in ("numpy", "PIL", "sklearn.svm"):
    try:
        __import__(name)
    except ImportError as e:
        print(type(e).__name__, e.name, e)
print(importlib.util.find_spec("pandas"), set(sys.modules) == before, [n for n in globals() if "hint" in n])
def inner():
    import matplotlib.pyplot
inner()
`)
		want := ""
		for _, m := range [][2]string{{"numpy", "numpy"}, {"PIL", "pillow"}, {"sklearn", "scikit-learn"}} {
			want += "ModuleNotFoundError " + m[0] + " " + m[0] + " is in the scientific runtime: the operator installs it with: " +
				"openskill runtime install scientific; and the skill names it in skill.yaml: requires: [" + m[1] + "]\n"
		}
		want += "None True []\n"
		if !strings.Contains(got, strings.TrimSpace(want)) || !strings.HasSuffix(got, "requires: [matplotlib]") && !strings.HasPrefix(got, "Traceback") {
			t.Errorf("%s\nwant:\n%s", got, want)
		}
	})
}

// The lists of modules are what the runtimes really import.
func TestModulesOfTheLibrary(t *testing.T) {
	for _, name := range []string{Slim, Python312} {
		t.Run(name, func(t *testing.T) {
			p := open(t, installed(t, name))
			library, packages, err := New("").Modules(name)
			musttest.Do(t, err)
			got := p.run(t, `
import sys, io, warnings
warnings.simplefilter("ignore")
out, found = sys.stdout, []
for name in sorted(n for n in sys.stdlib_module_names | set(sys.builtin_module_names) if n[0] != "_" and n not in ("antigravity", "this")):
    sys.stdout = io.StringIO()
    try:
        __import__(name)
        found.append(name)
    except Exception:
        pass
    sys.stdout = out
print(*found)
`)
			if want := strings.Join(library, " "); got != want {
				t.Errorf("imported: %s\nlisted:   %s", got, want)
			}
			var modules []string
			for _, pkg := range packages {
				modules = append(modules, pkg.Imports...)
			}
			if len(modules) == 0 {
				return
			}
			slices.Sort(modules)
			if got := p.run(t, "for m in '"+strings.Join(modules, " ")+"'.split(): __import__(m)\nprint('all')"); got != "all" {
				t.Errorf("packages: %s", got)
			}
		})
	}
}
