package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestArtifactsHavePermissionBits: what is taken out of a run can be packed and given to
// others: programs can be run, everything can be read, and nothing be changed by others.
func TestArtifactsHavePermissionBits(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such bits")
	}
	dir := filepath.Join(t.TempDir(), "made")
	want := map[string]os.FileMode{"a.txt": 0o644, "empty": 0o644, "bin/run.sh": 0o755}
	list := []skill.Artifact{{Name: "a.txt", Data: []byte("# !")}, {Name: "bin/run.sh", Data: []byte("#!/bin/sh\n")}, {Name: "empty"}}
	musttest.Do(t, writeArtifacts(dir, list))
	probe := filepath.Join(t.TempDir(), "probe") // tells the umask of this process
	musttest.Do(t, os.Mkdir(probe, 0o755))
	all := musttest.Get(os.Stat(probe))(t)
	for name, mode := range want {
		info := musttest.Get(os.Stat(filepath.Join(dir, name)))(t)
		if want := mode & all.Mode().Perm(); info.Mode() != want {
			t.Errorf("%s: %v; want %v", name, info.Mode(), want)
		}
	}
}
