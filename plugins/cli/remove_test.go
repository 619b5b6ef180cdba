//go:build unix

package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"openskill/internal/musttest"
)

// deep makes folders in each other with a file in each, by a way that no path is too long
// for, and closes them afterwards, the lowest first.
func deep(t *testing.T, dir string, levels int) {
	t.Helper()
	root := musttest.Get(os.OpenRoot(dir))(t)
	for i := range levels {
		err := errors.Join(root.WriteFile("file", []byte("x"), 0o600), root.Symlink("/", "link"), root.Mkdir("d", 0o700))
		if err != nil {
			t.Fatalf("level %d: %v", i, err)
		}
		next := musttest.Get(root.OpenRoot("d"))(t)
		if i > 0 {
			if err := root.Chmod(".", 0o300); err != nil { // for who is not root a folder without a list
				t.Fatal(err)
			}
		}
		_ = root.Close()
		root = next
	}
	_ = root.Close()
}

// TestRemoveHasFewDescriptors starts itself again, with few descriptors, to remove folders
// in each other that are many more: a host that had one open for each could do nothing else.
func TestRemoveHasFewDescriptors(t *testing.T) {
	if dir := os.Getenv("CLI_TEST_REMOVE"); dir != "" {
		var most syscall.Rlimit
		musttest.Do(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &most))
		most.Cur = 64
		musttest.Do(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &most))
		if err := remove(dir); err != nil {
			t.Fatalf("%.600s", err.Error())
		}
		return
	}
	kept := filepath.Join(t.TempDir(), "kept")
	musttest.Do(t, os.WriteFile(kept, []byte("the host's"), 0o600))
	dir := filepath.Join(t.TempDir(), "run")
	work := filepath.Join(dir, "work")
	err := errors.Join(os.MkdirAll(work, 0o700), os.Symlink(filepath.Dir(kept), filepath.Join(dir, "data")), os.Symlink(filepath.Dir(kept), filepath.Join(work, "out")))
	musttest.Do(t, err)
	for i := range 2000 { // more than are read at once, folders that are not empty among them
		name := filepath.Join(work, fmt.Sprint("many", i))
		if i%2 == 0 {
			err = os.WriteFile(name, nil, 0o600)
		} else {
			err = os.MkdirAll(filepath.Join(name, "in", "it"), 0o700)
		}
		musttest.Do(t, err)
	}
	deep(t, work, 500)
	cmd := exec.Command(os.Args[0], "-test.run=^TestRemoveHasFewDescriptors$")
	cmd.Env = append(os.Environ(), "CLI_TEST_REMOVE="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %.1000s", err, out)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
		_ = remove(dir) // or TempDir takes a while
	}
	if b, err := os.ReadFile(kept); err != nil || string(b) != "the host's" {
		t.Errorf("behind a link: %q, %v", b, err)
	}
}

// What takes the place of a run's folder is removed, not what it leads to.
func TestRemoveFollowsNothing(t *testing.T) {
	other, dir := t.TempDir(), filepath.Join(t.TempDir(), "run")
	musttest.Do(t, errors.Join(os.WriteFile(filepath.Join(other, "kept"), nil, 0o600), os.Symlink(other, dir)))
	if err := errors.Join(remove(dir), remove(dir)); err != nil { // the second finds nothing
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(other, "kept")); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the link: %v", err)
	}
}

// The errors of removing say neither where the host's folders are nor what a script called
// its own.
func TestRemoveSaysNoNames(t *testing.T) {
	name := strings.Repeat("n", 200)
	for _, err := range []error{
		&os.PathError{Op: "unlinkat", Path: name, Err: syscall.EPERM},
		&os.LinkError{Op: "renameat", Old: name, New: name, Err: syscall.EPERM},
		fmt.Errorf("wrapped: %w", &os.PathError{Op: "open", Path: name, Err: syscall.EMFILE}),
	} {
		if got := nameless(err); strings.Contains(got.Error(), name) || !errors.Is(got, err.(interface{ Unwrap() error }).Unwrap()) && !errors.Is(got, syscall.EMFILE) {
			t.Errorf("%v", got)
		}
	}
}
