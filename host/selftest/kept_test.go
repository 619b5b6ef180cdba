package selftest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The last report stays as it was, a broken one is told, and a failed write keeps the one
// before.
func TestKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if k, err := Last(dir); k != nil || err != nil {
		t.Fatalf("nothing was kept: %v, %v", k, err)
	}
	k := &Kept{At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Version: "1.2.3"}
	k.add(Row{Promise: 1, Case: "E01", Verdict: Pass, Measured: Measured{MS: 1.5}})
	k.add(Row{Promise: 2, Case: "U01", Verdict: Fail, Problems: []string{"it went on"}})
	if err := Keep(dir, k); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time over the first
		got, err := Last(dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(k, got); diff != "" {
			t.Fatal(diff)
		}
		if err := Keep(dir, got); err != nil {
			t.Fatal(err)
		}
	}
	k.Rows[1].Problems[0] = string(bytes.Repeat([]byte("x"), maxKept))
	if err := Keep(dir, k); err == nil {
		t.Error("a report of more than the bound is kept")
	}
	if got, err := Last(dir); err != nil || got.Rows[1].Problems[0] != "it went on" {
		t.Errorf("the one before is gone: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".selftest-*")); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if info, err := os.Stat(filepath.Join(dir, keptFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for name, content := range map[string][]byte{
		"cut off": []byte(`{"at":"2026-01-02T03:04:05Z","rows":[{"ca`), "empty": nil, "large": bytes.Repeat([]byte(" "), maxKept+1),
	} {
		if err := os.WriteFile(filepath.Join(dir, keptFile), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if k, err := Last(dir); k != nil || err == nil {
			t.Errorf("%s: %v, %v", name, k, err)
		}
	}
}
