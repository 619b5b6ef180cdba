package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"openskill/internal/musttest"
)

// Who changes a program and forgets to build it tests what was there before, and is told.
func TestOlderModule(t *testing.T) {
	const module = "\x00asm\x01\x00\x00\x00"
	files := map[string]string{"main.go": "", "part.go": "", "made.wasm": module, "cases.yaml": "", "README.md": ""}
	folder := sources(t, "go", files)
	built := time.Now().Add(-time.Hour)
	for name := range files { // all of them as old as the module
		musttest.Do(t, os.Chtimes(filepath.Join(folder, name), built, built))
	}
	says := func() string {
		var stderr bytes.Buffer
		a := &cli{stderr: &stderr}
		s := musttest.Get(a.buildable(folder))(t)
		a.older(s, folder)
		return stderr.String()
	}
	for _, c := range []struct{ changed, want string }{
		{"", ""},
		{"skill.yaml", ""},
		{"cases.yaml", ""},
		{"README.md", ""},
		{"part.go", `openskill: "made.wasm" was built before "part.go" was changed: openskill skill build "` + folder + "\"\n"},
		{"made.wasm", ""}, // built again
	} {
		if now := built.Add(time.Minute); c.changed != "" && os.Chtimes(filepath.Join(folder, c.changed), now, now) != nil {
			t.Fatal(c.changed)
		}
		if got := says(); got != c.want {
			t.Errorf("%q changed: %q, want %q", c.changed, got, c.want)
		}
	}
}

// What another run wrote is not said of this one.
func TestSaid(t *testing.T) {
	var s said
	s.hear("a", "one")
	if got := s.of("a"); got != "one" {
		t.Errorf("a wrote %q", got)
	}
	s.hear("b", "two")
	if got := s.of("a"); got != "" {
		t.Errorf("a wrote %q, which b did", got)
	}
}
