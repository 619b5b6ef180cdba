package packages

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

func npmPackage(t *testing.T, dir, name, version, more string) {
	t.Helper()
	text := `{"name":"` + name + `","version":"` + version + `"` + more + `}`
	file := strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-") + "-" + version + ".tgz"
	write(t, tarball(t, files{"package/package.json": text, "package/index.js": "module.exports = '" + name + "';\n"}), dir, file)
}

func TestAddNPM(t *testing.T) {
	needsTool(t, "npm", "--version")
	dir, mark := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	run := `,"scripts":{"preinstall":"touch ` + mark + `","install":"touch ` + mark + `","postinstall":"touch ` + mark + `","prepare":"touch ` + mark + `","prepack":"touch ` + mark + `"}`
	npmPackage(t, dir, "top", "1.0.0", `,"dependencies":{"@in/base":"^1.0.0"}`+run)
	npmPackage(t, dir, "@in/base", "1.2.0", "")
	npmPackage(t, dir, "odd", "2.0.0", "")
	s, o, folder := New(t.TempDir()), options(dir), t.TempDir()
	c := musttest.Get(s.Add(t.Context(), folder, asks(t, "npm:top@^1", "npm:odd"), o))(t)
	if diff := cmp.Diff([]string{"npm:@in/base 1.2.0", "npm:odd 2.0.0", "npm:top 1.0.0"}, names(c.Lock)); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a script of a package was run")
	}
	set, _, err := s.Use(folder)
	if b, _ := os.ReadFile(filepath.Join(set, "node_modules", "@in", "base", "index.js")); err != nil || string(b) != "module.exports = '@in/base';\n" {
		t.Errorf("%q, %v", b, err)
	}
	if c, err = s.Remove(t.Context(), folder, asks(t, "npm:top"), o); err != nil || !slices.Equal(names(c.Lock), []string{"npm:odd 2.0.0"}) {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := s.Add(t.Context(), folder, asks(t, "npm:missing"), o); err == nil {
		t.Error("a package that is not there was added")
	}
}

// T685, T688: what npm's lock says of packages that do not come from the index, or need native
// code.
func TestNPMLock(t *testing.T) {
	entry := func(more npmEntry) *npmEntry {
		more.Version, more.Integrity = "1.0.0", "sha512-x"
		return &more
	}
	for _, c := range []struct {
		name string
		all  map[string]*npmEntry
		got  string
		err  string
	}{
		{"one", map[string]*npmEntry{"": {}, "node_modules/a": entry(npmEntry{})}, "a", ""},
		{"under another name", map[string]*npmEntry{"node_modules/a": entry(npmEntry{Name: "b"})}, "b", ""},
		{"below another", map[string]*npmEntry{"node_modules/a/node_modules/@s/b": entry(npmEntry{})}, "@s/b", ""},
		{"optional, for one system", map[string]*npmEntry{"node_modules/a": entry(npmEntry{Optional: true, OS: []string{"darwin"}})}, "", ""},
		{"bundled", map[string]*npmEntry{"node_modules/a": {Bundled: true}}, "", ""},
		{"for some processors", map[string]*npmEntry{"node_modules/a": entry(npmEntry{CPU: []string{"x64"}})}, "", "needs native code"},
		{"compiled for Linux", map[string]*npmEntry{
			"node_modules/a":      entry(npmEntry{Optionals: map[string]string{"@a/x64": "1"}}),
			"node_modules/@a/x64": entry(npmEntry{Optional: true, OS: []string{"linux"}, CPU: []string{"x64"}}),
		}, "", "needs native code (@a/x64)"},
		{"a link", map[string]*npmEntry{"node_modules/a": {Link: true}}, "", "not of the index"},
		{"a path", map[string]*npmEntry{"../node_modules/a": entry(npmEntry{})}, "", "not of the index"},
		{"of a repository", map[string]*npmEntry{"node_modules/a": entry(npmEntry{Resolved: "git+ssh://x"})}, "", "not from the index"},
		{"without a digest", map[string]*npmEntry{"node_modules/a": {Version: "1.0.0"}}, "", "not from the index"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := (&npmLock{c.all}).packages()
			got := ""
			for i := range all {
				got += all[i].Name
			}
			if got != c.got || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	d := &downloaded{Package: *node("a"), file: write(t, []byte("x"), t.TempDir(), "a.tgz")}
	if err := integrity(d, "sha512-AAAA"); err == nil {
		t.Error("a tarball with another digest was taken")
	}
}
