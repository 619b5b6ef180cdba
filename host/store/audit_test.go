package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
)

var when = time.Date(2026, 11, 22, 12, 0, 0, 123456000, time.UTC)

func TestAudit(t *testing.T) {
	storetest.Each(t, func(t *testing.T, fresh func(*testing.T) func() *store.DB) {
		storetest.Audit(t, func(t *testing.T) func() records.Store {
			open := fresh(t)
			return func() records.Store { return records.NewStore(open()) }
		})
	})
}

// A page of large inputs ends before its limit does, and the pages together have all.
func TestPagesOfLargeInputs(t *testing.T) {
	d, _ := sqliteOf(t)
	var want []string
	for i := range 30 {
		e := startOf("acme")
		e.Started.Time = when.Add(-time.Duration(i) * time.Second)
		e.Started.Input.JSON = []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
		entries := []*records.Entry{e}
		if i%5 != 0 {
			f := &records.Finished{ExecutionID: e.ExecutionID, Status: records.Success, Time: when}
			entries = append(entries, &records.Entry{
				Record:   records.Record{Tenant: "acme", Kind: records.KindFinished, ExecutionID: e.ExecutionID, Time: when, Body: []byte("{}")},
				Finished: f, Of: e.Started,
			})
		}
		e.Body = []byte(`{"execution_id": "` + e.ExecutionID + `", "time": "` + e.Started.Time.Format(time.RFC3339Nano) + `"}`)
		musttest.Do(t, records.NewStore(d).Append(t.Context(), entries))
		want = append(want, e.ExecutionID)
	}
	q := records.Query{Tenant: "acme", Limit: 25}
	var got []string
	pages := 0
	for {
		page, next, err := records.NewStore(d).Executions(t.Context(), q)
		if err != nil || len(page) > 15 {
			t.Fatalf("a page of %d, %v", len(page), err)
		}
		pages++
		for _, e := range page {
			got = append(got, e.ExecutionID)
		}
		if next == "" {
			break
		}
		q.Cursor = next
	}
	if !slices.Equal(got, want) || pages < 3 {
		t.Errorf("%d pages\ngot  %v\nwant %v", pages, got, want)
	}
}
