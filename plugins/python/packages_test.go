package python

import (
	"os"
	"path/filepath"
	"testing"

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
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
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
		reply, err := runnertest.Do(t.Context(), r, c)
		if err != nil {
			t.Fatal(err)
		}
		if string(reply.Stdout) != want.printed {
			t.Errorf("with %q: %q, want %q\n%s", want.set, reply.Stdout, want.printed, reply.Stderr)
		}
	}
}
