// Package hosttest gives hosts in tests what this machine has installed and compiled
// already: a language runtime is compiled once a machine, and not once a test.
package hosttest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Runtimes puts the language runtimes of the repository's state folder into a test's
// own, and what earlier tests had compiled of them. When the test ends, what it had
// compiled of them itself is kept for the next one. root is the folder of the
// repository; OPENSKILL_STATE_DIR names another state folder than the one in it.
//
// The files are linked and not copied: nobody writes them in place. Where nothing is
// installed there is nothing to give, and that is no failure.
func Runtimes(t testing.TB, root, state string) {
	t.Helper()
	own := filepath.Join(root, ".openskill")
	if dir := os.Getenv("OPENSKILL_STATE_DIR"); filepath.IsAbs(dir) {
		own = dir
	} else if dir != "" {
		own = filepath.Join(root, dir)
	}
	link(t, filepath.Join(own, "runtimes"), filepath.Join(state, "runtimes"))
	// Apart from the modules of the operator's hosts, each of which removes what
	// programs of another version made, as tests are.
	kept, modules := filepath.Join(own, "testing", "modules"), filepath.Join(state, "modules")
	link(t, kept, modules)
	t.Cleanup(func() { keep(t, modules, kept) })
}

// keep links the runtimes that were compiled to where the next test finds them: each
// whole, or not at all.
func keep(t testing.TB, modules, kept string) {
	t.Helper()
	reports, err := filepath.Glob(filepath.Join(modules, "*", "*-trusted", "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, report := range reports {
		from := filepath.Dir(report)
		rel, err := filepath.Rel(modules, from)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(kept, rel)
		if _, err := os.Stat(to); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		half, err := os.MkdirTemp(filepath.Dir(to), "new-") //nolint:usetesting // it is renamed to its place
		if err != nil {
			t.Fatal(err)
		}
		link(t, from, half)
		if err := os.Rename(half, to); err != nil {
			_ = os.RemoveAll(half) // another test was faster
		}
	}
}

// link makes the files of a folder anew elsewhere; what is half made, or goes away
// meanwhile, is left out.
func link(t testing.TB, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir() && strings.HasPrefix(d.Name(), "new-") && path != from:
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		err = os.Link(path, target)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			err = copyFile(path, target) // on another file system
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from) //nolint:gosec // of the state folder
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}
