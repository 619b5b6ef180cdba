package capability_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"openskill/host/capability"
	"openskill/host/pyast"
	"openskill/host/registry/schema"
	"openskill/sdk/skill"
)

// Classes and parsers that refer to each other many times over end, and soon.
func TestHostileTypes(t *testing.T) {
	a := analyzer(t)
	var twice, bases, ring strings.Builder
	twice.WriteString("from dataclasses import dataclass\n")
	ring.WriteString("from __future__ import annotations\nfrom dataclasses import dataclass\n")
	for i := range 60 {
		fmt.Fprintf(&twice, "@dataclass\nclass C%d:\n  a: 'C%d'\n  b: 'list[C%d]'\n", i, i+1, i+1)
		fmt.Fprintf(&bases, "class B%d(%s object): pass\n", i, strings.Repeat(fmt.Sprintf("B%d, ", max(i-1, 0)), 50))
		ring.WriteString("@dataclass\nclass C" + strconv.Itoa(i) + ":\n")
		for j := range 60 {
			fmt.Fprintf(&ring, "  f%d: C%d\n", j, j)
		}
	}
	for name, source := range map[string]string{
		"each twice of the next": twice.String() + "@dataclass\nclass C60:\n  x: int\ndef f(x: C0): ...",
		"fifty times its base":   bases.String() + "def f(x: B59 = None): ...",
		"all of each other":      ring.String() + "def f(x: C0): ...",
		"a union of itself":      "from typing import Union\nT = Union['list[T]', 'dict[str, T]']\ndef f(x: T = None): ...",
		"aliases in a ring":      "A = 'B'\ntype B = C\ntype C = B\ndef f(x: B = None): ...",
		"a thousand parameters":  "def f(" + params(1000) + "): ...",
		"parsers of each other":  "import argparse\n" + parents(60),
	} {
		t.Run(name, func(t *testing.T) {
			m, err := a.Analyze(t.Context(), "test", []byte(source))
			if err != nil || m.Problem != nil {
				t.Fatal(err, m.Problem)
			}
			if f, problems := capability.Extract(m, ""); f == nil && len(problems) == 0 || f != nil && len(f.Input) > 4<<20 {
				t.Error("no tool, and nothing says why; or a schema of megabytes")
			}
			if s := capability.Command(m); s != nil && len(s.Input) > 4<<20 {
				t.Error("a schema of megabytes")
			}
		})
	}
}

func params(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("p%d: dict[str, list[int | None]] = None", i))
	}
	return strings.Join(list, ", ")
}

func parents(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "p%d = argparse.ArgumentParser(parents=[%s])\n", i, strings.Repeat(fmt.Sprintf("p%d, ", max(i-1, 0)), 50))
		for j := range 20 {
			fmt.Fprintf(&b, "p%d.add_argument('--a%d-%d', action='append')\n", i, i, j)
		}
	}
	return b.String()
}

// Code as people write it: OPENSKILL_TEST_CODE names a folder of Python, such as the
// library of an interpreter. Each file is read or refused in words, and each public
// function is a tool or has a problem.
func TestRealCode(t *testing.T) {
	folder := os.Getenv("OPENSKILL_TEST_CODE")
	if folder == "" {
		t.Skip("OPENSKILL_TEST_CODE names a folder of Python; its thousands of functions take minutes")
	}
	a := analyzer(t)
	var files, refused, functions, made, parsers, partial int
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".py" {
			return err
		}
		code, err := os.ReadFile(path)
		if err != nil || len(code) > pyast.MaxSource {
			return err
		}
		files++
		m, err := a.Analyze(t.Context(), "test", code)
		if err != nil {
			var e *skill.Error
			if !errors.As(err, &e) || e.Code != skill.InvalidArgument {
				t.Errorf("%s: %v", path, err)
			}
			refused++
			return nil
		}
		if m.Problem != nil {
			t.Logf("%s: %+v", path, m.Problem)
			refused++
			return nil
		}
		for i := range m.Functions {
			name := m.Functions[i].Name
			if m.Functions[i].Path != name || strings.HasPrefix(name, "_") {
				continue
			}
			functions++
			f, problems := capability.Extract(m, name)
			if f == nil {
				if len(problems) == 0 {
					t.Errorf("%s: %s is no tool, and nothing says why", path, name)
				}
				continue
			}
			made++
			for _, s := range [][]byte{f.Input, f.Output} {
				if _, errs := schema.Compile(s); len(errs) > 0 {
					t.Errorf("%s: %s: %v\n%s", path, name, errs[0], s)
				}
			}
		}
		if s := capability.Command(m); s != nil {
			parsers++
			if s.Partial {
				partial++
			}
			if _, errs := schema.Compile(s.Input); len(errs) > 0 {
				t.Errorf("%s: the parser: %v\n%s", path, errs[0], s.Input)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files, %d refused; %d public functions, %d are tools; %d parsers, %d not followed to the end", files, refused, functions, made, parsers, partial)
}
