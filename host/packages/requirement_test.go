package packages

import (
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
)

func TestParseRequirement(t *testing.T) {
	for _, c := range []struct {
		text string
		e    Ecosystem
		want string // "": refused
	}{
		{"requests", Python, "python:requests"},
		{"Requests [socks] >= 2, < 3", Python, "python:requests[socks]>=2,<3"},
		{"typing_extensions (>=4)", Python, "python:typing-extensions>=4"},
		{"npm:@scope/name@^1.0", Python, "npm:@scope/name@^1.0"},
		{"chalk", NPM, "npm:chalk"},
		{"chalk@>=1 <2 || 3.x", NPM, "npm:chalk@>=1 <2 || 3.x"},
		{"requests", "", ""},
		{"", Python, ""},
		{"--index-url=http://x", Python, ""},
		{"-e .", Python, ""},
		{"./folder", Python, ""},
		{"a @ http://example.com/a.whl", Python, ""},
		{"a; import os", Python, ""},
		{"a\n-r b", Python, ""},
		{"a==1\n--pre", Python, ""},
		{"a@file:/etc", NPM, ""},
		{"a@git+ssh://x", NPM, ""},
		{"a@github:b/c", NPM, ""},
		{"--git=x", NPM, ""},
		{"../a", NPM, ""},
		{"a@npm:b@1", NPM, ""},
		{strings.Repeat("a", maxRequirement), Python, "python:" + strings.Repeat("a", maxRequirement)},
		{strings.Repeat("a", maxRequirement+1), Python, ""},
	} {
		r, err := ParseRequirement(c.text, c.e)
		if (err == nil) != (c.want != "") || err == nil && r.String() != c.want {
			t.Errorf("%q: got %q, %v, want %q", c.text, r.String(), err, c.want)
		}
	}
}

// T707: a lock that was edited names nothing outside the folders of packages.
func TestDamagedLocks(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	for name, text := range map[string]string{
		"empty":             ``,
		"cut":               `{"lock":1,`,
		"more behind":       `{"lock":1,"folder":"/a"}{}`,
		"another format":    `{"lock":2,"folder":"/a"}`,
		"an unknown key":    `{"lock":1,"folder":"/a","x":1}`,
		"a relative folder": `{"lock":1,"folder":"a"}`,
		"a path for a set":  `{"lock":1,"folder":"/a","set":"../../etc"}`,
		"a path for digest": `{"lock":1,"folder":"/a","set":"` + digest + `","packages":[{"ecosystem":"python","name":"a","version":"1","digest":"../x"}]}`,
		"no set":            `{"lock":1,"folder":"/a","packages":[{"ecosystem":"python","name":"a","version":"1","digest":"` + digest + `"}]}`,
		"another ecosystem": `{"lock":1,"folder":"/a","packages":[{"ecosystem":"ruby","name":"a","version":"1"}]}`,
		"a place outside":   `{"lock":1,"folder":"/a","set":"` + digest + `","packages":[{"ecosystem":"npm","name":"a","version":"1","digest":"` + digest + `","at":"node_modules/../../../x"}]}`,
		"another place":     `{"lock":1,"folder":"/a","set":"` + digest + `","packages":[{"ecosystem":"npm","name":"a","version":"1","digest":"` + digest + `","at":"python/json"}]}`,
		"a wheel's place":   `{"lock":1,"folder":"/a","set":"` + digest + `","packages":[{"ecosystem":"python","name":"a","version":"1","digest":"` + digest + `","at":"node_modules/a"}]}`,
		"too many packages": `{"lock":1,"folder":"/a","packages":[` + strings.Repeat(`{"ecosystem":"npm","name":"a","version":"1"},`, maxPackages) + `{"ecosystem":"npm","name":"a","version":"1"}]}`,
		"more than is read": strings.Repeat(" ", maxLock+1),
	} {
		if _, err := parseLock([]byte(text)); err == nil {
			t.Errorf("%s was read", name)
		}
	}
	s, folder := New(t.TempDir()), t.TempDir()
	_, file, err := s.locked(folder)
	musttest.Do(t, err)
	write(t, []byte(`{"lock":1,"folder":"/another"}`), file)
	if _, err := s.Of(folder); err == nil {
		t.Error("the lock of another folder was taken")
	}
	write(t, nil, filepath.Join(filepath.Dir(file), "x.json"))
	if _, _, err := s.Use(folder); err == nil {
		t.Error("a damaged lock was used")
	}
}
