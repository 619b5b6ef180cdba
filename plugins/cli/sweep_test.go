//go:build unix

package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"openskill/internal/musttest"
)

func TestSweep(t *testing.T) {
	temp := t.TempDir()
	now := time.Now()
	dirs := map[string]string{}
	for _, name := range []string{"left", "tried", "running", "new", "other"} {
		prefix := runPrefix
		switch name {
		case "tried":
			prefix = "openskill-try-"
		case "other":
			prefix = "something-"
		}
		dirs[name] = filepath.Join(temp, prefix+name)
		closed := filepath.Join(dirs[name], "work", "closed")
		musttest.Do(t, os.MkdirAll(closed, 0o700))
		musttest.Do(t, os.WriteFile(filepath.Join(closed, "f"), nil, 0o600))
		musttest.Do(t, os.Chmod(closed, 0))
		old := now.Add(-2 * sweepAfter)
		if name == "new" {
			old = now
		}
		musttest.Do(t, os.Chtimes(dirs[name], old, old))
	}
	t.Cleanup(func() { remove(temp) })
	release := hold(dirs["running"])
	defer release()
	sweep(temp, now)
	for name, dir := range dirs {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) != (name == "left" || name == "tried") {
			t.Errorf("%s: %v", name, err)
		}
	}
	release()
	sweep(temp, now)
	if _, err := os.Stat(dirs["running"]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder whose host is gone: %v", err)
	}
}
