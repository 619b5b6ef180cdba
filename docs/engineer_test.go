package docs_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"openskill/host/store/pgtest"
)

// TestANewEngineer makes the changes of the code that the pages show (in=copy), in a copy
// of the repository, and runs what they show of it.
func TestANewEngineer(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles much of the program, with the changes in it")
	}
	if runtime.GOOS == "windows" {
		t.Skip("the pages show a Unix shell")
	}
	for _, tool := range []string{"sh", "go", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not here", tool)
		}
	}
	t.Parallel() // with TestWhatThePagesShow, which waits as much as it computes
	var w *place
	all := pages(t)
	for _, page := range sorted(all) {
		for _, b := range blocks(t, page, all[page]) {
			if b.attr["in"] == "" {
				continue
			}
			if b.attr["in"] != "copy" || b.attr["file"] != "" {
				t.Fatalf("%s:%d: commands and diffs are for in=copy, and there is no other in", page, b.line)
			}
			if w == nil {
				w = copyOfCode(t)
			}
			do := map[string]func(*testing.T, *block){"diff": w.apply, "console": w.play}[b.lang]
			if do == nil {
				t.Fatalf("%s:%d: there is no block of the kind %q for a copy", page, b.line, b.lang)
			}
			if !t.Run(strings.Fields(b.text)[1], func(t *testing.T) { do(t, &b) }) {
				if b.lang == "diff" || strings.Contains(b.text, "git apply") {
					t.Log("docs/testdata/README.md says how a diff that no longer applies is made anew")
				}
				t.Fatalf("%s:%d: what comes after it builds on it", page, b.line)
			}
		}
	}
}

// Flags of go in a copy.
const (
	// As make build has it, so that what does not change is compiled already, wherever the
	// copy is.
	asBuilt = " -trimpath -buildvcs=false -vet=off -ldflags=-w"
	// What is above a change is compiled anew: then without making it fast, which takes twice
	// as long. But for the guest of the runners' tests, which is kept compiled as it was.
	plainly = " '-gcflags=openskill/host/...=-N -l' '-gcflags=openskill/plugins/...=-N -l' -gcflags=openskill/plugins/runnertest/guest="
)

// copyOfCode gives the code of the repository in a folder of its own, as it is now.
func copyOfCode(t *testing.T) *place {
	t.Helper()
	root := repo(t)
	w := &place{dir: t.TempDir(), address: shownAddress}
	for _, name := range tracked(t, root) {
		if err := copyAs(filepath.Join(root, name), filepath.Join(w.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	// What runners have compiled is kept where their tests keep it.
	compiled := filepath.Join(root, ".openskill", "cache", "wasm")
	if err := errors.Join(os.MkdirAll(compiled, 0o700), os.MkdirAll(filepath.Join(w.dir, ".openskill", "cache"), 0o700),
		os.Symlink(compiled, filepath.Join(w.dir, ".openskill", "cache", "wasm"))); err != nil {
		t.Fatal(err)
	}
	for _, e := range environment() {
		if !strings.HasPrefix(e, "GIT_") { // those of a hook would lead into the repository
			w.env = append(w.env, e)
		}
	}
	if postgres := os.Getenv(pgtest.Required); postgres != "" {
		w.env = append(w.env, pgtest.Required+"="+postgres)
	}
	w.env = append(w.env, "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+asBuilt+plainly, "GIT_CEILING_DIRECTORIES="+filepath.Dir(w.dir))
	return w
}

// tracked lists the files of the repository that are not built: those that git knows or would
// ask about, or, in a tree that is no clone, all but those of the state folder.
func tracked(t *testing.T, root string) (names []string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
		out, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate").Output()
		if err != nil {
			t.Fatalf("git ls-files: %v", err)
		}
		return strings.Split(strings.Trim(string(out), "\x00"), "\x00")
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"bin", "dist", ".openskill"}, name):
			return filepath.SkipDir
		case d.Type().IsRegular():
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// copyAs copies a file with its mode. One that is not there was deleted, and not yet from
// git's list.
func copyAs(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, b, info.Mode().Perm()|0o200))
}

// apply makes the change of a diff.
func (w *place) apply(t *testing.T, b *block) {
	t.Helper()
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir, cmd.Env, cmd.Stdin = w.dir, w.env, bytes.NewReader([]byte(b.text+"\n"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s:%d: the diff does not apply: %s", b.page, b.line, out)
	}
}
