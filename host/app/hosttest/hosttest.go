// Package hosttest gives hosts in tests what this machine has installed and compiled
// already: a language runtime is compiled once a machine, and not once a test, and the
// program is linked once.
package hosttest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
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
	own := stateFolder(root)
	link(t, filepath.Join(own, "runtimes"), filepath.Join(state, "runtimes"))
	t.Cleanup(Modules(t, root, state))
}

// Modules puts what earlier tests had compiled of the language runtimes and of the
// repository's own skills into a test's state folder. The function that it gives keeps
// what was compiled of them there since, and is to be called when the test ends.
func Modules(t testing.TB, root, state string) (done func()) {
	t.Helper()
	// Apart from the modules of the operator's hosts, each of which removes what
	// programs of another version made, as tests are.
	kept, modules := filepath.Join(stateFolder(root), "testing", "modules"), filepath.Join(state, "modules")
	link(t, kept, modules)
	return func() { keep(t, root, modules, kept) }
}

// stateFolder is that of the repository.
func stateFolder(root string) string {
	switch dir := os.Getenv("OPENSKILL_STATE_DIR"); {
	case filepath.IsAbs(dir):
		return dir
	case dir != "":
		return filepath.Join(root, dir)
	}
	return filepath.Join(root, ".openskill")
}

// skills are the names that hosts have for the compiled modules of the repository's own
// skills, which are their SHA-256.
func skills(t testing.TB, root string) map[string]bool {
	t.Helper()
	files := musttest.Get(fs.Glob(os.DirFS(root), "skills/*/*.wasm"))(t)
	names := map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(filepath.Join(root, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is being built anew
		}
		musttest.Do(t, err)
		names[fmt.Sprintf("%x", sha256.Sum256(b))] = true
	}
	return names
}

// keep links the runtimes that were compiled, and our skills, to where the next test
// finds them: each whole, or not at all.
func keep(t testing.TB, root, modules, kept string) {
	t.Helper()
	reports := musttest.Get(fs.Glob(os.DirFS(modules), "*/*/report.json"))(t)
	own := skills(t, root)
	for _, report := range reports {
		from := filepath.Join(modules, filepath.Dir(report))
		if name := filepath.Base(from); !strings.HasSuffix(name, "-trusted") && !own[name] {
			continue // a stranger's, or a test's
		}
		rel := musttest.Get(filepath.Rel(modules, from))(t)
		to := filepath.Join(kept, rel)
		if _, err := os.Stat(to); err == nil {
			continue
		}
		musttest.Do(t, os.MkdirAll(filepath.Dir(to), 0o700))
		half := musttest.Get(os.MkdirTemp(filepath.Dir(to), "new-"))(t) //nolint:usetesting // it is renamed to its place
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
	if folder, err := filepath.EvalSymlinks(from); err == nil { // it may be a link
		from = folder
	}
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
	musttest.Do(t, err)
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}
