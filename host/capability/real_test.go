package capability_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/capability"
	"openskill/host/pyast"
	"openskill/host/registry/schema"
	"openskill/sdk/skill"
)

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
