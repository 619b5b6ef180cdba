package records_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
)

// BenchmarkCalls puts calls on record, their beginning and their end, by so many callers
// at once. PostgreSQL waits for its disk, as it does by default.
func BenchmarkCalls(b *testing.B) {
	for _, c := range []struct {
		name string
		open func(b *testing.B) records.Store
	}{
		{"sqlite", func(b *testing.B) records.Store {
			b.Helper()
			return benchStore(b, "sqlite:"+filepath.Join(b.TempDir(), "test.db"))
		}},
		{"postgres", func(b *testing.B) records.Store {
			b.Helper()
			return benchStore(b, pgtest.New(b, "fsync = on", "synchronous_commit = on", "full_page_writes = on", "max_wal_size = 4GB").Database(b))
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := c.open(b)
			for _, callers := range []int{1, 8, 64} {
				b.Run(fmt.Sprint(callers), func(b *testing.B) { benchCalls(b, s, "", callers) })
				b.Run(fmt.Sprint(callers, "-journal"), func(b *testing.B) { benchCalls(b, s, b.TempDir(), callers) })
			}
		})
	}
}

func benchStore(b *testing.B, url string) records.Store {
	b.Helper()
	db, err := store.Open(b.Context(), store.Options{URL: url})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	return records.NewStore(db)
}

func benchCalls(b *testing.B, s records.Store, journal string, callers int) {
	b.Helper()
	l, err := records.Open(b.Context(), records.Options{Store: s, Log: slog.New(slog.DiscardHandler), Journal: journal})
	if err != nil {
		b.Fatal(err)
	}
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var all sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	cpu := processorTime()
	for range callers {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= b.N {
					return
				}
				c := call([]string{"acme", "other"}[i%2])
				began := time.Now()
				if err := l.Started(b.Context(), c, []byte(`{"text":"hello"}`)); err != nil {
					b.Error(err)
					return
				}
				if err := l.Finished(b.Context(), c, success(), []byte(`{"echoed":"hello"}`)); err != nil {
					b.Error(err)
					return
				}
				took[i] = time.Since(began)
			}
		})
	}
	all.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64((processorTime()-cpu).Microseconds())/float64(b.N), "cpu-µs/call")
	if err := l.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkVerify verifies a chain of a million records, of half a million calls.
func BenchmarkVerify(b *testing.B) {
	s := benchStore(b, "sqlite:"+filepath.Join(b.TempDir(), "test.db"))
	const calls, batch = 500_000, 1000
	for range calls / batch {
		var entries []*records.Entry
		for range batch {
			entries = append(entries, entriesOf(b, call("acme"))...)
		}
		if err := s.Append(b.Context(), entries); err != nil {
			b.Fatal(err)
		}
	}
	for name, rows := range map[string]bool{"chain": false, "rows": true} {
		b.Run(name, func(b *testing.B) {
			cpu := processorTime()
			for b.Loop() {
				r, err := records.Verify(b.Context(), s, records.VerifyOptions{Rows: rows})
				if err != nil || !r.Whole() || r.Chains[0].Records != 2*calls {
					b.Fatalf("%+v, %v", r, err)
				}
			}
			b.ReportMetric((processorTime()-cpu).Seconds()/float64(b.N), "cpu-s")
		})
	}
}

func entriesOf(b *testing.B, c *records.Started) []*records.Entry {
	b.Helper()
	c.Instance, c.Time = "bench", time.Now().UTC().Truncate(time.Microsecond)
	c.Input = records.KeepHash.Payload([]byte(`{"text":"hello"}`), 1000)
	f := success()
	f.ExecutionID, f.Time, f.Output = c.ExecutionID, c.Time, c.Input
	entry := func(kind string, v any) *records.Entry {
		return &records.Entry{Record: records.Record{Tenant: c.Tenant, Kind: kind, ExecutionID: c.ExecutionID, Time: c.Time, Body: body(b, v)}}
	}
	started, finished := entry(records.KindStarted, c), entry(records.KindFinished, f)
	started.Started, finished.Finished, finished.Of = c, f, c
	return []*records.Entry{started, finished}
}

// benchDatabases are where calls are queued; PostgreSQL as it is by default.
var benchDatabases = map[string]func(b *testing.B) string{
	"sqlite": func(b *testing.B) string { b.Helper(); return "sqlite:" + filepath.Join(b.TempDir(), "test.db") },
	"postgres": func(b *testing.B) string {
		b.Helper()
		return pgtest.New(b, "fsync = on", "synchronous_commit = on", "full_page_writes = on", "max_wal_size = 4GB").Database(b)
	},
}

// BenchmarkQueued has calls accepted and begun by a host with 64 places.
func BenchmarkQueued(b *testing.B) {
	for name, url := range benchDatabases {
		b.Run(name, func(b *testing.B) {
			db := storetest.Open(b, url(b))
			r := newRuns()
			q := newQueuing(b, db, r, 64, func(o *records.ManagerOptions, _ *queuing) { o.Alone = true })
			first := q.accept(b, ann, "echo", `{}`)
			q.ended(b, ann, first, records.Success)
			alone := make([]time.Duration, 0, 100)
			for range cap(alone) { // one at a time
				begun := time.Now()
				q.ended(b, ann, q.accept(b, ann, "echo", `{}`), records.Success)
				alone = append(alone, time.Since(begun))
			}
			slices.Sort(alone)
			b.ResetTimer()
			begun := time.Now()
			for range b.N {
				q.accept(b, ann, "echo", `{}`)
			}
			b.ReportMetric(float64(time.Since(begun).Microseconds())/float64(b.N), "µs/accept")
			drained(b, db)
			b.ReportMetric(float64(b.N)/time.Since(begun).Seconds(), "calls/s")
			b.ReportMetric(float64(alone[len(alone)/2].Microseconds())/1000, "ms/alone")
		})
	}
}

// BenchmarkBacklog measures how long a call of one tenant waits behind 100,000 of another: of one principal, and of as
// many principals as calls.
func BenchmarkBacklog(b *testing.B) {
	const rows = `INSERT INTO queued_calls (id, tenant, principal_id, principal_type, skill_name, created_at, bytes, body) `
	body := func(principal, call string) string {
		return fmt.Sprintf(`'{"Principal":{"ID":"' || %s || '","Type":"agent","Tenant":"a"},"Request":{"SkillID":"%s"},"Input":"e30="}'`, principal, call)
	}
	for name, url := range map[string]func(b *testing.B) string{
		"sqlite":   func(b *testing.B) string { b.Helper(); return "sqlite:" + filepath.Join(b.TempDir(), "test.db") },
		"postgres": func(b *testing.B) string { b.Helper(); return pgtest.New(b, "fsync = on").Database(b) },
	} {
		for of, principal := range map[string]string{"one": "'ann'", "many": "'ann-' || i"} {
			b.Run(name+"-"+of, func(b *testing.B) {
				db := storetest.Open(b, url(b))
				fill := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) " + rows +
					"SELECT printf('00000000-0000-7000-8000-%012x', i), 'a', " + principal + ", 'agent', 'echo', 1767225600000000 + i, 300, CAST(" + body(principal, "echo") + " AS BLOB) FROM n"
				if db.Postgres() {
					fill = rows + "SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'a', " + principal + ", 'agent', 'echo', now(), 300, convert_to(" + body(principal, "echo") + ", 'UTF8') FROM generate_series(1, 100000) i"
				}
				for _, s := range []string{fill, "INSERT INTO queued_sums (tenant, bytes, items) VALUES ('a', 30000000, 100000)"} {
					if _, err := db.Exec(b.Context(), s); err != nil {
						b.Fatal(err)
					}
				}
				r := newRuns()
				q := newQueuing(b, db, r, 64, func(o *records.ManagerOptions, _ *queuing) {
					o.Now = func() time.Time { return time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC) }
				})
				for len(r.list()) < 20 {
					time.Sleep(time.Millisecond)
				}
				var waits []time.Duration
				b.ResetTimer()
				for range b.N {
					begun := time.Now()
					id := q.accept(b, bob, "echo", `{}`)
					for r.count(id) == 0 {
						time.Sleep(time.Millisecond)
					}
					waits = append(waits, time.Since(begun))
				}
				slices.Sort(waits)
				b.ReportMetric(float64(waits[len(waits)/2].Milliseconds()), "ms/median")
				b.ReportMetric(float64(waits[len(waits)-1].Milliseconds()), "ms/most")
				b.ReportMetric(float64(len(r.list()))/b.Elapsed().Seconds(), "calls/s")
			})
		}
	}
}

// BenchmarkTold has calls accepted that name a webhook, which takes each message at once.
func BenchmarkTold(b *testing.B) {
	for name, url := range benchDatabases {
		b.Run(name, func(b *testing.B) {
			db, to := storetest.Open(b, url(b)), &receiver{}
			q := newQueuing(b, db, newRuns(), 64, func(o *records.ManagerOptions, _ *queuing) { o.Alone, o.Queue.Post = true, to.post() })
			q.hook(b, to, ann, "done")
			alone := make([]time.Duration, 0, 100)
			for n := range cap(alone) { // one at a time
				begun := time.Now()
				musttest.Get(q.telling(b, ann, "echo", "done"))(b)
				to.has(b, n+1)
				alone = append(alone, time.Since(begun))
			}
			slices.Sort(alone)
			b.ResetTimer()
			begun := time.Now()
			for range b.N {
				musttest.Get(q.telling(b, ann, "echo", "done"))(b)
			}
			to.has(b, cap(alone)+b.N)
			b.ReportMetric(float64(b.N)/time.Since(begun).Seconds(), "messages/s")
			b.ReportMetric(float64(alone[len(alone)/2].Microseconds())/1000, "ms/alone")
		})
	}
}
