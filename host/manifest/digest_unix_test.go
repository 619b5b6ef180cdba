//go:build unix

package manifest

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"openskill/internal/musttest"
)

// A FIFO would block whoever opens it.
func TestFIFOs(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, ManifestFile), 0o600); err != nil {
		t.Skip("no FIFOs here:", err)
	}
	if p := problemsOf(dir, nil); len(p) == 0 || !strings.Contains(fmt.Sprint(p), "regular file") {
		t.Errorf("problems %v", p)
	}
	dir = t.TempDir()
	musttest.Write(t, filepath.Join(dir, ManifestFile), fmt.Sprintf(small, "a"))
	musttest.Do(t, syscall.Mkfifo(filepath.Join(dir, "m.wasm"), 0o600))
	if _, err := Digest(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
}
