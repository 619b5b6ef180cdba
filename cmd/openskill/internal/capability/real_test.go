package capability_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"openskill/cmd/openskill/internal/capability"
	"openskill/host/manifest"
	"openskill/host/pysource"
	"openskill/internal/musttest"
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
		"an enum, by member":     "import enum\nfrom typing import Literal\nclass E(enum.Enum):\n" + lines("  M%d = %[1]d\n", 2000) + "def f(x: Literal[" + lines("E.M%d, ", 2000) + "]): ...",
		"a long literal, often":  "from typing import Literal\nT = Literal[" + lines("'%d', ", 2000) + "]\ndef f(x: tuple[" + strings.Repeat("T, ", 2000) + "]): ...",
		"a thousand parameters":  "def f(" + params(1000) + "): ...",
		"parsers of each other":  "import argparse\n" + parents(60),
	} {
		t.Run(name, func(t *testing.T) {
			f, problems, err := capability.Extract(t.Context(), a, "test", []byte(source), "f")
			if err != nil || f == nil && len(problems) == 0 || f != nil && len(f.Input) > 4<<20 {
				t.Errorf("%v: no tool, and nothing says why; or a schema of megabytes", err)
			}
			s, problems, err := capability.Command(t.Context(), a, "test", []byte(source))
			if err != nil || len(problems) > 0 || s != nil && len(s.Input) > 4<<20 {
				t.Errorf("%v %v: no answer, or a schema of megabytes", err, problems)
			}
		})
	}
}

func lines(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
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

// def finds the functions at the top of a file.
var def = regexp.MustCompile(`(?m)^(?:async )?def (\w+)`)

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
		if err != nil || len(code) > pysource.MaxSource {
			return err
		}
		files++
		s, problems, err := capability.Command(t.Context(), a, "test", code)
		switch {
		case err != nil:
			t.Errorf("%s: %v", path, err)
			return nil
		case len(problems) > 0:
			t.Logf("%s: %v", path, problems)
			refused++
			return nil
		case s != nil:
			parsers++
			if s.Partial {
				partial++
			}
			if _, errs := manifest.CompileSchema(s.Input); len(errs) > 0 {
				t.Errorf("%s: the parser: %v\n%s", path, errs[0], s.Input)
			}
		}
		seen := map[string]bool{}
		for _, d := range def.FindAllSubmatch(code, -1) {
			name := string(d[1])
			if strings.HasPrefix(name, "_") || seen[name] {
				continue
			}
			seen[name] = true
			functions++
			f, problems, err := capability.Extract(t.Context(), a, "test", code, name)
			if err != nil || f == nil && len(problems) == 0 {
				t.Errorf("%s: %v: %s is no tool, and nothing says why", path, err, name)
			}
			if f == nil {
				continue
			}
			made++
			for _, s := range [][]byte{f.Input, f.Output} {
				if _, errs := manifest.CompileSchema(s); len(errs) > 0 {
					t.Errorf("%s: %s: %v\n%s", path, name, errs[0], s)
				}
			}
		}
		return nil
	})
	musttest.Do(t, err)
	t.Logf("%d files, %d refused; %d public functions, %d are tools; %d parsers, %d not followed to the end", files, refused, functions, made, parsers, partial)
}
