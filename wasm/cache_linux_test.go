package wasm_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"openskill/internal/musttest"
)

const nobody = 65534

// TestReadOnlyCache has a process use a cache that it cannot write: what is there
// is found, and what is not is compiled. Modes do not stop root, so the process
// is another user's where this one is root's.
func TestReadOnlyCache(t *testing.T) {
	dir := fill(t, 2)
	cmd := child(t, "read", dir)
	if os.Getuid() == 0 {
		home := musttest.Get(os.MkdirTemp("", "openskill-read"))(t) //nolint:usetesting // t.TempDir is closed to other users
		t.Cleanup(func() { os.RemoveAll(home) })
		moved := filepath.Join(home, "cache")
		// The folders above a test's own are closed to other users.
		musttest.Do(t, errors.Join(os.Chmod(home, 0o755), os.CopyFS(moved, os.DirFS(dir)), copyFile(cmd.Path, filepath.Join(home, "self"))))
		dir = moved
		cmd.Path, cmd.Dir = filepath.Join(home, "self"), home
		cmd.Env = append(cmd.Env, "WASM_TEST_DIR="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		mode := os.FileMode(0o400)
		if info.IsDir() {
			mode = 0o500
			t.Cleanup(func() { os.Chmod(path, 0o700) })
		}
		if os.Getuid() == 0 {
			err = os.Chown(path, nobody, nobody)
		}
		return errors.Join(err, os.Chmod(path, mode))
	})
	musttest.Do(t, err)
	before := files(t, dir)
	out, err := cmd.Output()
	if err != nil || string(out) != "0 1 5 6 " {
		t.Errorf("%q, %v", out, err)
	}
	if after := files(t, dir); len(after) != len(before) {
		t.Errorf("%d files before, %d after", len(before), len(after))
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
