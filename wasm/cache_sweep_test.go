package wasm

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// What killed writers left in the cache goes at the next start, when nobody can
// still be writing it; what is whole stays.
func TestLeftOversAreSwept(t *testing.T) {
	dir := t.TempDir()
	open := func() *Engine {
		t.Helper()
		e, err := Open(&Options{CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		return e
	}
	if _, err := open().Compile(t.Context(), probeModule, nil); err != nil {
		t.Fatal(err)
	}
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
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range whole { // however old
		if err := os.Chtimes(path, now.Add(-1000*time.Hour), now.Add(-1000*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	open()
	want := append(whole, filepath.Join(code[0], "00ff.456.tmp"), filepath.Join(dir, "metered", ".00ff8676"))
	slices.Sort(want)
	if got := files(); !slices.Equal(got, want) {
		t.Errorf("files %q\nwant  %q", got, want)
	}
}
