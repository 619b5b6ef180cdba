package selftest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
)

// The last report stays as it was, a broken one is told, and one that is too large keeps the
// one before.
func TestKept(t *testing.T) {
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) (open func() *store.DB)) {
		open := fresh(t)
		db, other := open(), open()
		if k, err := Last(t.Context(), db); k != nil || err != nil {
			t.Fatalf("nothing was kept: %v, %v", k, err)
		}
		k := &Kept{At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Version: "1.2.3"}
		k.add(Row{Promise: 1, Case: "E01", Verdict: Pass, Measured: Measured{MS: 1.5}})
		k.add(Row{Promise: 2, Case: "U01", Verdict: Fail, Problems: []string{"it went on"}})
		for range 2 { // the second time over the first
			musttest.Do(t, Keep(t.Context(), db, k))
			got := musttest.Get(Last(t.Context(), other))(t)
			if diff := cmp.Diff(k, got); diff != "" {
				t.Fatal(diff)
			}
		}
		k.Rows[1].Problems[0] = strings.Repeat("x", maxKept)
		if err := Keep(t.Context(), db, k); err == nil {
			t.Error("a report of more than the bound is kept")
		}
		if got, err := Last(t.Context(), db); err != nil || got.Rows[1].Problems[0] != "it went on" {
			t.Errorf("the one before is gone: %v", err)
		}
		musttest.Get(db.Exec(t.Context(), `UPDATE selftest SET report = '{"at":"2026-01-02T03:04:05Z","rows":[{"ca'`))(t)
		if k, err := Last(t.Context(), db); k != nil || err == nil {
			t.Errorf("cut off: %v, %v", k, err)
		}
	})
}
