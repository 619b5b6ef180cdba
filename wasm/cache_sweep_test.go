package wasm

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"openskill/internal/musttest"
)

// What killed writers left in the cache goes at the next start, when nobody can
// still be writing it; what is whole stays.
func TestLeftOversAreSwept(t *testing.T) {
	dir := t.TempDir()
	open := func() *Engine {
		t.Helper()
		e := musttest.Get(Open(&Options{CacheDir: dir}))(t)
		t.Cleanup(func() { e.Close() })
		return e
	}
	musttest.Get(open().Compile(t.Context(), probeModule, nil))(t)
	files := func() (all []string) {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				all = append(all, path)
			}
			return err
		})
		return all
	}
	whole := files()
	if len(whole) < 2 {
		t.Fatalf("files %v; want code and a metered module", whole)
	}
	code, err := filepath.Glob(filepath.Join(dir, "code", "*"))
	if err != nil || len(code) == 0 {
		t.Fatal(code, err)
	}
	now := time.Now()
	for path, age := range map[string]time.Duration{
		filepath.Join(code[0], "00ff.123.tmp"):     time.Hour,
		filepath.Join(code[0], "00ff.456.tmp"):     0, // being written
		filepath.Join(dir, "metered", ".00ff8675"): time.Hour,
		filepath.Join(dir, "metered", ".00ff8676"): 0,
	} {
		musttest.Do(t, os.WriteFile(path, []byte("half"), 0o600))
		musttest.Do(t, os.Chtimes(path, now.Add(-age), now.Add(-age)))
	}
	for _, path := range whole { // however old
		musttest.Do(t, os.Chtimes(path, now.Add(-1000*time.Hour), now.Add(-1000*time.Hour)))
	}
	open()
	want := append(whole, filepath.Join(code[0], "00ff.456.tmp"), filepath.Join(dir, "metered", ".00ff8676"))
	slices.Sort(want)
	if got := files(); !slices.Equal(got, want) {
		t.Errorf("files %q\nwant  %q", got, want)
	}
}

// Code of other compilers goes when no engine opened it for two weeks, and an engine whose
// folder was removed under it still compiles.
func TestCodeOfOtherCompilersIsSwept(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "code", "wazero-"+CompilerVersion()+"-"+runtime.GOARCH+"-"+runtime.GOOS)
	now := time.Now()
	for name, age := range map[string]time.Duration{
		filepath.Base(own):          unused + time.Hour,
		"wazero-v0.0.1-amd64-linux": unused + time.Hour,
		"wazero-v0.0.2-amd64-linux": unused - time.Hour,
		"another":                   unused + time.Hour, // not the cache's
	} {
		path := filepath.Join(dir, "code", name)
		musttest.Do(t, errors.Join(os.MkdirAll(path, 0o700), os.WriteFile(filepath.Join(path, "00ff"), nil, 0o600), os.Chtimes(path, now.Add(-age), now.Add(-age))))
	}
	e := musttest.Get(Open(&Options{CacheDir: dir}))(t)
	t.Cleanup(func() { e.Close() })
	left, err := filepath.Glob(filepath.Join(dir, "code", "*", "00ff"))
	want := []string{filepath.Join(dir, "code", "another", "00ff"), filepath.Join(own, "00ff"), filepath.Join(dir, "code", "wazero-v0.0.2-amd64-linux", "00ff")}
	slices.Sort(want)
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("left %q (%v)\nwant %q", left, err, want)
	}
	if info, err := os.Stat(own); err != nil || now.Sub(info.ModTime()) > time.Minute {
		t.Errorf("the folder in use: %v, %v; want it marked as used now", info, err)
	}
	if err := os.RemoveAll(own); err != nil { // as a newer program does after two weeks
		t.Fatal(err)
	}
	if _, err := e.Compile(t.Context(), probeModule, nil); err != nil {
		t.Errorf("compile without the folder: %v", err)
	}
}
