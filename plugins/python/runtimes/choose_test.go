package runtimes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// pretend makes a runtime present, as far as names and sizes go.
func pretend(t *testing.T, s *Store, names ...string) {
	t.Helper()
	for _, r := range s.recipes {
		if !slices.Contains(names, r.name) {
			continue
		}
		dir := s.folder(r)
		musttest.Do(t, os.MkdirAll(dir, 0o700))
		musttest.Do(t, os.WriteFile(filepath.Join(dir, manifestFile), r.manifest(), 0o600))
		for _, o := range r.outputs {
			musttest.Do(t, os.WriteFile(filepath.Join(dir, o.name), nil, 0o600))
			if err := os.Truncate(filepath.Join(dir, o.name), o.size); err != nil { // a hole
				t.Fatal(err)
			}
		}
	}
}

func TestFor(t *testing.T) {
	all := []string{Slim, Scientific, Python312}
	for _, c := range []struct {
		name              string
		there             []string
		requires, imports []string
		want              string
		code              skill.Code
		message           string
	}{
		{"nothing asked", all, nil, nil, Slim, "", ""},
		{"library and own modules", all, nil, []string{"json", "sibling"}, Slim, "", ""},
		{"a pure package", all, []string{"pyyaml"}, []string{"yaml"}, Slim, "", ""},
		{"spelt as people do", all, []string{"PyYAML", "python_dateutil", "Jinja2"}, nil, Slim, "", ""},
		{"a compiled package", all, []string{"pandas"}, nil, Scientific, "", ""},
		{"an import alone", all, nil, []string{"numpy"}, Scientific, "", ""},
		{"an import alone, only slim", []string{Slim, Python312}, nil, []string{"numpy"}, Slim, "", ""},
		{"only the whole", []string{Scientific}, nil, nil, Scientific, "", ""},
		{"only the fallback", []string{Python312}, nil, []string{"json"}, Python312, "", ""},
		{"the fallback and an import", []string{Python312}, nil, []string{"yaml"}, Python312, "", ""},
		{"pure, where only the whole is", []string{Scientific, Python312}, []string{"pyyaml"}, nil, Scientific, "", ""},

		{"nothing there", nil, nil, nil, "", skill.ToolInvocationError, "openskill runtime install slim"},
		{"pure, with the fallback", []string{Python312}, []string{"pyyaml"}, nil, "", skill.ToolInvocationError, "openskill runtime install slim"},
		{"compiled, with slim", []string{Slim}, []string{"six", "pandas"}, nil, "", skill.ToolInvocationError, "pandas needs the scientific runtime, which is not installed; the operator must run: openskill runtime install scientific"},
		{"unknown", all, []string{"requests"}, nil, "", skill.InvalidManifest, `no runtime has the package "requests"`},
		{"a version", all, []string{"pandas>=2"}, nil, "", skill.InvalidManifest, `write "pandas"`},
		{"a module's name", all, []string{"sklearn"}, nil, "", skill.InvalidManifest, `its package is called "scikit-learn"`},
		{"hostile", all, []string{"x\x1b[2J" + strings.Repeat("y", 1000)}, nil, "", skill.InvalidManifest, "no runtime has"},
		{"empty", all, []string{""}, nil, "", skill.InvalidManifest, "no runtime has"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(t.TempDir())
			pretend(t, s, c.there...)
			got, err := s.For(c.requires, c.imports)
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if c.code == "" && err != nil {
				t.Error(err)
			} else if c.code != "" {
				wantCode(t, err, c.code, c.message)
			}
			if err := CheckRequires(c.requires); (err != nil) != (c.code == skill.InvalidManifest) {
				t.Errorf("CheckRequires: %v", err)
			}
		})
	}
}

// Each error says what to do in words that do it.
func TestForAfterInstalling(t *testing.T) {
	s := New(t.TempDir())
	pretend(t, s, Slim)
	_, err := s.For([]string{"numpy"}, nil)
	wantCode(t, err, skill.ToolInvocationError)
	_, name, _ := strings.Cut(err.Error(), "runtime install ")
	pretend(t, s, name)
	if got, err := s.For([]string{"numpy"}, nil); got != name || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// What a script imports is asked only where that can change its runtime.
func TestUndecided(t *testing.T) {
	s := newStore(t.TempDir(), recipes(), nil)
	numpy, yaml := []byte("import numpy"), []byte("import yaml")
	if s.Undecided(nil, numpy) {
		t.Error("nothing is installed, and there is a choice")
	}
	pretend(t, s, Slim)
	if s.Undecided(nil, numpy) {
		t.Error("there is one runtime, and a choice")
	}
	pretend(t, s, Scientific)
	if !s.Undecided(nil, numpy) || s.Undecided(nil, yaml) || s.Undecided(nil, nil) {
		t.Error("numpy alone is not in slim")
	}
	if s.Undecided([]string{"numpy"}, numpy) {
		t.Error("what is required has decided")
	}
}

// The table of packages is in order, in normal form, and without doubles.
func TestPackages(t *testing.T) {
	seen := map[string]bool{}
	last := ""
	for _, p := range Packages() {
		if p.Name <= last || p.Name != normal(p.Name) || p.Version == "" || len(p.Imports) == 0 {
			t.Errorf("%+v after %q", p, last)
		}
		last = p.Name
		for _, m := range p.Imports {
			if seen[m] || packageImported(m).Name != p.Name {
				t.Errorf("%s of %s is another's", m, p.Name)
			}
			seen[m] = true
		}
	}
	if got := packageOf("python_dateutil-2.9.0.post0.dist-info/METADATA"); got == nil || got.Name != "python-dateutil" {
		t.Errorf("%+v", got)
	}
	if got := packageOf("six.pyc"); got == nil || got.Name != "six" {
		t.Errorf("%+v", got)
	}
	if got := packageOf("json/decoder.pyc"); got != nil {
		t.Errorf("%+v", got)
	}
}
