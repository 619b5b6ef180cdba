package scaffold

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"openskill/host/manifest"
	"openskill/internal/cases"
	"openskill/internal/musttest"
)

// TestWrite has each language's folder made: whole, without a problem, and with nothing
// left of the templates' own words. That they build and pass is shown where they are built.
func TestWrite(t *testing.T) {
	for _, name := range Languages() {
		dir := filepath.Join(t.TempDir(), "skills", "1st-one")
		files := musttest.Get(Write(dir, "1st-one", name))(t)
		if !slices.Contains(files, "skill.yaml") || !slices.Contains(files, "README.md") || len(files) < 4 {
			t.Errorf("%s: %v", name, files)
		}
		for _, f := range files {
			b, err := os.ReadFile(filepath.Join(dir, f))
			if err != nil || len(b) == 0 {
				t.Errorf("%s: %s: %d bytes, %v", name, f, len(b), err)
			}
			for _, word := range []string{"SKILLNAME", "BUILDLINES", "SOURCE"} {
				if strings.Contains(string(b), word) {
					t.Errorf("%s: %s says %s", name, f, word)
				}
			}
			if f == cases.FileName {
				if list, problems := cases.Parse(b); len(list) != 5 || problems != nil {
					t.Errorf("%s: %d cases, %v", name, len(list), problems)
				}
			}
		}
		problems, _ := manifest.Validate(dir, manifest.Options{})
		for _, p := range problems {
			if !Builds(name) || !strings.Contains(p.Message, "main.wasm") {
				t.Errorf("%s: %v", name, p)
			}
		}
	}
}

// Of several who make the same folder one has it, and nothing else is left.
func TestAtOnce(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "one")
	var all sync.WaitGroup
	made := make(chan string, 20)
	for i := range 20 {
		all.Go(func() {
			lang := Languages()[i%len(languages)]
			_, err := Write(dir, "one", lang)
			if err == nil {
				made <- lang
			} else if !errors.Is(err, ErrThere) {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	close(made)
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 1 || len(made) != 1 {
		t.Errorf("%d made it; %v, %v", len(made), entries, err)
	}
	if _, err := Write(filepath.Join(t.TempDir(), "x"), "x", "cobol"); err == nil {
		t.Error("cobol is a language")
	}
}
