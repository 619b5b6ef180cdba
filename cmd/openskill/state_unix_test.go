//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/store"
	"openskill/internal/musttest"
)

// Root makes no database in the state folder of another user; where that user has made
// one, root may look after it, and the user still reads all of it.
func TestRootInAnothersState(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be in the way of another user")
	}
	t.Parallel()
	const nobody = 65534
	state := t.TempDir()
	musttest.Do(t, os.Chown(state, nobody, nobody))
	create := []string{"create", "--name", "first", "--tenant", "acme", "--scopes", "skills:read"}
	if _, stderr := runKeys(t, state, exitUsage, create...); !strings.Contains(stderr, "run this as that user") {
		t.Errorf("it says %s", stderr)
	}
	if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
	db, err := store.Open(t.Context(), store.Options{StateDir: state})
	musttest.Do(t, err)
	all, err := filepath.Glob(filepath.Join(state, "*"))
	musttest.Do(t, err)
	for _, name := range all {
		musttest.Do(t, os.Chown(name, nobody, nobody))
	}
	runKeys(t, state, 0, create...)
	if all, err = filepath.Glob(filepath.Join(state, "*")); err != nil || len(all) < 3 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, name := range all {
		if info, err := os.Stat(name); err != nil || ownerOf(info) != nobody {
			t.Errorf("%s is of another user: %v", filepath.Base(name), err)
		}
	}
	musttest.Do(t, db.Close())
}
