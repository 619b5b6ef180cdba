package app

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"openskill/host/manifest"
	"openskill/internal/musttest"
)

// A copy that is in use is not old, for a host that starts beside the one that uses it.
func TestCopiesInUseAreKept(t *testing.T) {
	folder := t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(folder, "SKILL.md"), []byte("text"), 0o600))
	digest, err := manifest.Digest(folder)
	musttest.Do(t, err)
	dir := t.TempDir()
	uses, starts := approved{dir: dir}, approved{dir: dir}
	long := time.Now().Add(-2 * leftTime)
	var path string
	for range 2 {
		if path, err = uses.of(folder, digest); err != nil {
			t.Fatal(err)
		}
		starts.sweepOld()
		if missing(path) {
			t.Fatal("it was removed")
		}
		musttest.Do(t, os.Chtimes(path, long, long))
	}
	if starts.sweepOld(); !missing(path) {
		t.Error("one that was not used for long is still there")
	}
}
