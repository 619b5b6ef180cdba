package store_test

import (
	"runtime"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
)

func TestResults(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		storetest.Results(t, func(t *testing.T) (records.Results, records.Results) {
			t.Helper()
			open := fresh(t)
			return records.NewResults(open()), records.NewResults(open())
		})
	})
}

// To read a large result, memory is taken for it once, and for what the driver hands over of it.
func TestReadingAResultTakesItsSizeOnce(t *testing.T) {
	const size = 16 << 20
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		results, until := records.NewResults(fresh(t)()), time.Now().Add(time.Hour)
		k := &records.Kept{Tenant: "acme", ExecutionID: "00000000-0000-7000-8000-000000000001", Items: []records.Item{{Data: make([]byte, size)}}, At: until, Until: until}
		musttest.Do(t, results.Put(t.Context(), k, records.Room{Bytes: 1 << 30, Items: 10}))
		for most, bound := range map[int]uint64{records.WholeResult: 3 * size, 64 << 10: size / 2} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			b, err := results.Get(t.Context(), k.Tenant, k.ExecutionID, "", min(most, size), until.Add(-time.Minute))
			runtime.ReadMemStats(&after)
			if err != nil || len(b) != min(most, size) {
				t.Fatalf("%d bytes, %v", len(b), err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > bound {
				t.Errorf("%d KiB are allocated to read %d", n>>10, len(b)>>10)
			}
		}
	})
}
