package pysource_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/pysource"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// The modules that a program imports when it runs, by CPython's own parser.
func TestImports(t *testing.T) {
	a := analyzer(t)
	for _, c := range []struct {
		script string
		want   []string
	}{
		{"", nil},
		{"import os, sys as s, numpy.linalg as la", []string{"numpy.linalg", "os", "sys"}},
		{"from pandas import DataFrame\nfrom  scipy.stats  import norm", []string{"pandas.DataFrame", "scipy.stats.norm"}},
		{"def f():\n\timport yaml # late\n\tfrom PIL import Image", []string{"PIL.Image", "yaml"}},
		{"try: import numpy as np\nexcept ImportError: np = None", []string{"numpy"}},
		{"import a; import b;from c import *", []string{"a", "b", "c"}},
		{"from . import x\nfrom .y import z\nfrom ..w import v", nil},
		{"# import numpy\nx = '''\nimport pandas\n'''\nprint('from a import b')", nil},
		{"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas", []string{"typing.TYPE_CHECKING"}},
		{"import numpy\r\nimport numpy\r\n", []string{"numpy"}},
		{"from numpy import (\n    array,\n    zeros)", []string{"numpy.array", "numpy.zeros"}},
	} {
		got, err := a.Imports(t.Context(), &skill.Spec{Tenant: "test"}, []byte(c.script))
		if err != nil {
			t.Errorf("%q: %v", c.script, err)
		}
		if len(got) == 0 {
			got = nil
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q: %s", c.script, diff)
		}
	}
	long := "from " + strings.Repeat("m", 190) + " import " + strings.Repeat("a, ", 1000) + "b\nimport numpy"
	if got, err := a.Imports(t.Context(), &skill.Spec{Tenant: "test"}, []byte(long)); err != nil || len(got) != 2 || got[1] != "numpy" {
		t.Errorf("of many names: %d, %v; want their module and numpy", len(got), err)
	}
	for _, script := range []string{"import \xff\xfe\x00", "print 'x'\nimport os"} {
		if got, err := a.Imports(t.Context(), &skill.Spec{Tenant: "test"}, []byte(script)); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("%q: %q, %v; want that it is no Python", script, got, err)
		}
	}
}

// What was found is kept by content and tenant: no tenant gets what another one's process said.
func TestImportsAreKept(t *testing.T) {
	_ = analyzer(t)
	cache := filepath.Join(t.TempDir(), "imports")
	a := pysource.New(pysource.Options{Runner: shared.Python(), Dir: shared.Dir(), Cache: cache})
	script := []byte("import numpy")
	for range 2 {
		if got, err := a.Imports(t.Context(), &skill.Spec{Tenant: "one"}, script); err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
	}
	kept, err := filepath.Glob(filepath.Join(cache, "*.json"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	musttest.Do(t, os.WriteFile(kept[0], []byte(`["forged"]`), 0o600))
	for tenant, want := range map[string]string{"one": "forged", "two": "numpy"} {
		if got, err := a.Imports(t.Context(), &skill.Spec{Tenant: tenant}, script); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, %v; want %s", tenant, got, err, want)
		}
	}
}

// However many scripts tenants bring, so many answers are kept, and the newest are.
func TestImportsThatAreKeptAreBounded(t *testing.T) {
	_ = analyzer(t)
	cache := filepath.Join(t.TempDir(), "imports")
	a := pysource.New(pysource.Options{Runner: shared.Python(), Dir: shared.Dir(), Cache: cache, Most: 8})
	for i := range 20 {
		musttest.Get(a.Imports(t.Context(), &skill.Spec{Tenant: "one"}, fmt.Appendf(nil, "import numpy # %d", i)))(t)
		if kept, err := os.ReadDir(cache); err != nil || len(kept) == 0 || len(kept) > 8 {
			t.Fatalf("%d are kept after %d scripts, %v; want at most 8", len(kept), i+1, err)
		}
	}
}

// compiling is a runner whose runtime is not compiled yet.
type compiling struct{ skill.Runner }

func (compiling) Prepare(_ context.Context, s *skill.Spec) (skill.Plan, error) {
	if s.Wait || !s.NoWait {
		return skill.Plan{}, errors.New("it waits")
	}
	return skill.Plan{Missing: skill.Compiling()}, nil
}

// A skill with a fallback does not wait for the runtime that would read its script.
func TestImportsDoNotWaitWithAFallback(t *testing.T) {
	a := pysource.New(pysource.Options{Runner: compiling{}, Dir: t.TempDir()})
	if _, err := a.Imports(t.Context(), &skill.Spec{NoWait: true}, []byte("import numpy")); skill.CodeOf(err) != skill.ToolInvocationError {
		t.Errorf("%v; want that the runtime is still compiling", err)
	}
}
