//go:build !windows

package backup_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"openskill/internal/backup"
	"openskill/internal/musttest"
)

// What root restores into an empty folder of another user is that user's, as a host that
// runs as it needs.
func TestTheFolderKeepsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to others")
	}
	const nobody = 65534
	dir := filepath.Join(t.TempDir(), "state")
	musttest.Do(t, os.Mkdir(dir, 0o700))
	musttest.Do(t, os.Chown(dir, nobody, nobody))
	musttest.Get(backup.Restore(t.Context(), bytes.NewReader(archive(t)), dir, nil))(t)
	n := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		n++
		info, err := d.Info()
		if s, ok := info.Sys().(*syscall.Stat_t); err != nil || !ok || s.Uid != nobody || s.Gid != nobody {
			t.Errorf("%s is of another user: %v", name, err)
		}
		return nil
	})
	if err != nil || n < len(some) {
		t.Errorf("%d files, %v", n, err)
	}
}
