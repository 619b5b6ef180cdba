package workers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"openskill/internal/musttest"
)

// TestWatchFolder holds that a compiler is killed once it has written more than it may,
// and one that has not is left alone.
func TestWatchFolder(t *testing.T) {
	dir := t.TempDir()
	musttest.Do(t, os.MkdirAll(filepath.Join(dir, "code", "v"), 0o700))
	write := func(n int) {
		musttest.Do(t, os.WriteFile(filepath.Join(dir, "code", "v", "x"), make([]byte, n), 0o600))
	}
	write(64 << 10)
	files := maxKept
	if n := taken(dir, &files); n != 64<<10 || files != maxKept-3 {
		t.Errorf("%d bytes, and %d files are left", n, files)
	}
	ctx, cancel := context.WithCancel(t.Context())
	killed := 0
	kill := func() error { killed++; return nil }
	write(1 << 20)
	if err := watchFolder(ctx, dir, 512<<10, kill); !errors.Is(err, errLeft) || killed != 1 {
		t.Errorf("%v, killed %d times", err, killed)
	}
	cancel()
	if err := watchFolder(ctx, dir, 2<<20, kill); err != nil || killed != 1 {
		t.Errorf("%v, killed %d times", err, killed)
	}
}
