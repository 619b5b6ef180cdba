package python

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
)

// T690: a call has the packages that it is granted, and no image of another call's.
func TestPackagesOfASkill(t *testing.T) {
	e, state := warm(t)
	r := New(e, &Options{StateDir: state})
	defer r.Close()
	set := func(value string) string {
		dir := t.TempDir()
		for name, text := range map[string]string{"pick.py": "value = " + value, "tabulate.py": "mine = True"} {
			path := filepath.Join(dir, "python", name)
			musttest.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
			musttest.Do(t, os.WriteFile(path, []byte(text), 0o600))
		}
		return dir
	}
	one, two := set("1"), set("2")
	c := script(t, `
try:
    import pick, tabulate
    found = pick.value, hasattr(tabulate, "mine")
except ImportError:
    found = None
try:
    open("/openskill/packages/pick.py", "w")
except OSError:
    pass
else:
    found = "written"
input()
print(found)
`)
	c.Stdin = []byte("x\n")
	for _, want := range []struct{ set, printed string }{{one, "(1, True)\n"}, {two, "(2, True)\n"}, {"", "None\n"}, {one, "(1, True)\n"}} {
		c.Grants.Packages = want.set
		reply := musttest.Get(runnertest.Do(t.Context(), r, c))(t)
		if string(reply.Stdout) != want.printed {
			t.Errorf("with %q: %q, want %q\n%s", want.set, reply.Stdout, want.printed, reply.Stderr)
		}
	}
}

// T705: compiled files are read where packages have them, and nowhere in a skill's folder.
func TestCompiledFiles(t *testing.T) {
	e, state := warm(t)
	r := New(e, &Options{StateDir: state})
	defer r.Close()
	c := script(t, `
import importlib._bootstrap_external as loading, sys
text = b"value = 'compiled'"
sys.stdout.buffer.write(sys.implementation.cache_tag.encode() + b"\n")
sys.stdout.buffer.write(loading._code_to_hash_pyc(compile(text, "x", "exec"), bytes(8), False))
`)
	reply := musttest.Get(runnertest.Do(t.Context(), r, c))(t)
	tag, data, _ := bytes.Cut(reply.Stdout, []byte("\n"))
	c = script(t, `
import near, sub.inner, pick
print(near.value, pick.value, sub.inner.value)
`)
	c.Grants.Packages = t.TempDir()
	for _, module := range []string{filepath.Join(c.Folder, "near"), filepath.Join(c.Folder, "sub", "inner"), filepath.Join(c.Grants.Packages, "python", "pick")} {
		dir, name := filepath.Split(module)
		musttest.Do(t, os.MkdirAll(filepath.Join(dir, "__pycache__"), 0o700))
		for file, text := range map[string][]byte{module + ".py": []byte("value = 'source'"), filepath.Join(dir, "__pycache__", name+"."+string(tag)+".pyc"): data} {
			musttest.Do(t, os.WriteFile(file, text, 0o600))
		}
	}
	for _, asScript := range []bool{false, true} {
		c.Script = asScript
		reply = musttest.Get(runnertest.Do(t.Context(), r, c))(t)
		if string(reply.Stdout) != "source compiled source\n" {
			t.Errorf("script %v: %q\n%s", asScript, reply.Stdout, reply.Stderr)
		}
	}
}
