package pysource_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/pysource"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// bomb is a small source with constants of hundreds of megabytes.
func bomb() []byte {
	var b strings.Builder
	b.WriteString("x = (")
	for i := range 50_000 {
		fmt.Fprintf(&b, "'%05d'*800,", i)
	}
	return []byte(b.String() + ")")
}

// Modules are compiled and not run, and the same modules give the same bytes.
func TestCompile(t *testing.T) {
	a := analyzer(t)
	paths := []string{"/openskill/packages/a.py", "/openskill/packages/b.py", "/openskill/packages/c.py", "/openskill/packages/é.py"}
	texts := [][]byte{[]byte("print('ran')\nraise SystemExit"), []byte("print 'old'"), []byte("x = '\\d'"), []byte("# coding: latin-1\ny = '\xe9'")}
	c := musttest.Get(a.Compile(t.Context(), "test", paths, texts))(t)
	if len(c.Files) != 4 || c.Tag != "cpython-315" || len(c.Files[1]) != 0 {
		t.Fatalf("tag %q, files %q", c.Tag, c.Files)
	}
	for _, i := range []int{0, 2, 3} {
		// PEP 552: a hash of the source that is not checked.
		if f := c.Files[i]; len(f) < 16 || !bytes.Equal(f[2:8], []byte{'\r', '\n', 1, 0, 0, 0}) || !bytes.Contains(f, []byte(paths[i])) {
			t.Errorf("%s: %q", paths[i], f)
		}
	}
	fresh := pysource.New(pysource.Options{Runner: shared.Python(), Dir: filepath.Join(shared.Dir(), "fresh")})
	again := musttest.Get(fresh.Compile(t.Context(), "test", paths, texts))(t)
	for i := range c.Files {
		if !bytes.Equal(c.Files[i], again.Files[i]) {
			t.Errorf("%s: %q, and then %q", paths[i], c.Files[i], again.Files[i])
		}
	}
}

// T706: a module that breaks the compiler costs itself.
func TestCompileBombs(t *testing.T) {
	a := analyzer(t)
	for name, text := range map[string][]byte{
		"constants": bomb(),
		"nesting":   []byte("x = " + strings.Repeat("-", 500_000) + "1"),
		"calls":     []byte("x" + strings.Repeat("()", 200_000)),
		"lines":     bytes.Repeat([]byte("if x:\n"), 1000),
	} {
		good := []byte("x = 1")
		c, err := a.Compile(t.Context(), "test", []string{"a.py", name + ".py", "c.py"}, [][]byte{good, text, good})
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case len(c.Files) == 0 || len(c.Files[0]) == 0:
			t.Errorf("%s: the module before it is not compiled", name)
		case len(c.Files) == 3 && (len(c.Files[1]) != 0 || len(c.Files[2]) == 0):
			t.Errorf("%s: %d bytes of it, %d of the next", name, len(c.Files[1]), len(c.Files[2]))
		}
		if name == "constants" && err == nil && len(c.Files) != 1 {
			t.Errorf("the limit was not reached: %d modules are compiled", len(c.Files))
		}
	}
}

// printer is a runner of which it is known what it prints.
type printer struct {
	skill.Runner

	reply skill.Reply
}

func (p printer) Prepare(context.Context, *skill.Spec) (skill.Plan, error) { return skill.Plan{}, nil }
func (p printer) Run(context.Context, *skill.Call) (*skill.Reply, error)   { return &p.reply, nil }

// What a compiler says may be cut off or forged.
func TestCompiledIsReadWithCare(t *testing.T) {
	for _, c := range []struct{ out, tag, want string }{
		{"", "", "[]"},
		{"cpython-315", "", "[]"},
		{"tag\n1\na2\nbc0\n", "tag", `["a" "bc"]`}, // two were asked for
		{"tag\n1\na3\nbc", "tag", `["a"]`},
		{"tag\n-1\na", "tag", "[]"},
		{"tag\n99999999999999999999\na", "tag", "[]"},
		{"tag\nx\na", "tag", "[]"},
		{"tag\n0\n1\na", "tag", `["" "a"]`},
	} {
		a := pysource.New(pysource.Options{Runner: printer{reply: skill.Reply{Stdout: []byte(c.out), Code: skill.OutputLimit}}, Dir: t.TempDir()})
		got, err := a.Compile(t.Context(), "test", []string{"a", "b"}, [][]byte{nil, nil})
		if err != nil || got.Tag != c.tag || fmt.Sprintf("%q", got.Files) != c.want {
			t.Errorf("%q: %+v, %v", c.out, got, err)
		}
	}
	a := pysource.New(pysource.Options{Runner: printer{reply: skill.Reply{Code: skill.Cancelled}}, Dir: t.TempDir()})
	if _, err := a.Compile(t.Context(), "test", []string{"a"}, [][]byte{nil}); skill.CodeOf(err) != skill.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
}
