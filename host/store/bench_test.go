package store_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/sdk/skill"
)

// pair is the two records of one execution, as hosts write them.
func pair(b *testing.B, tenant string, at time.Time) (start, end *records.Entry) {
	b.Helper()
	id := uuid.Must(uuid.NewV7()).String()
	s := &records.Started{
		ExecutionID: id, Tenant: tenant, Principal: "key:ci", PrincipalType: skill.Agent, Key: "0123456789abcdef", TraceID: id[:8], Session: id,
		Skill: "echo", Version: "0.1.0", Digest: "sha256:" + strings.Repeat("a", 64), Instance: "host-1", Time: at,
		Input: records.Payload{Bytes: 100, SHA256: strings.Repeat("b", 64)}, Limits: skill.LimitsJSON{TimeoutMS: 15000, Fuel: 1 << 40},
	}
	f := &records.Finished{
		ExecutionID: id, Status: records.Success, Runner: "wasm:wasi", Fuel: 51234, MemoryPeak: 1 << 20, DurationMS: 1,
		Output: records.Payload{Bytes: 100, SHA256: strings.Repeat("c", 64)}, Time: at.Add(time.Millisecond),
	}
	entry := func(kind string, at time.Time, v any) records.Record {
		body, err := json.Marshal(v)
		if err != nil {
			b.Fatal(err)
		}
		return records.Record{Tenant: tenant, Kind: kind, ExecutionID: id, Time: at, Body: body}
	}
	return &records.Entry{Record: entry(records.KindStarted, s.Time, s), Started: s},
		&records.Entry{Record: entry(records.KindFinished, f.Time, f), Finished: f, Of: s}
}

// benchEach runs a benchmark on a database of each kind. PostgreSQL waits for the disk,
// as it does by default.
func benchEach(b *testing.B, bench func(b *testing.B, d *store.DB)) {
	b.Helper()
	urls := map[string]func(*testing.B) string{
		"sqlite": func(b *testing.B) string { b.Helper(); return "sqlite:" + filepath.Join(b.TempDir(), "test.db") },
		"postgres": func(b *testing.B) string {
			b.Helper()
			return pgtest.New(b, "fsync = on", "synchronous_commit = on", "full_page_writes = on", "shared_buffers = 256MB", "max_wal_size = 4GB").Database(b)
		},
	}
	for _, name := range []string{"sqlite", "postgres"} {
		b.Run(name, func(b *testing.B) {
			d, err := store.Open(b.Context(), store.Options{URL: urls[name](b)})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() {
				if err := d.Close(); err != nil {
					b.Error(err)
				}
			})
			bench(b, d)
		})
	}
}

// BenchmarkAppend writes records, one by one and in batches as a busy host's.
func BenchmarkAppend(b *testing.B) {
	benchEach(b, func(b *testing.B, d *store.DB) {
		b.Helper()
		for _, size := range []int{1, 10, 50, 200} {
			b.Run(fmt.Sprint(size), func(b *testing.B) {
				all := make([]*records.Entry, 0, b.N*size+1)
				for i := 0; len(all) < b.N*size; i++ {
					start, end := pair(b, "acme", when.Add(time.Duration(i)*time.Millisecond))
					all = append(all, start, end)
				}
				took := make([]time.Duration, 0, b.N)
				b.ResetTimer()
				for batch := range slices.Chunk(all[:b.N*size], size) {
					began := time.Now()
					if err := records.NewStore(d).Append(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(began))
				}
				b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "records/s")
				b.ReportMetric(float64(p50(took).Microseconds()), "p50-µs")
			})
		}
	})
}

func p50(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkQueries asks for pages of a million executions: 90% of one tenant, the others
// of a hundred. Each question is asked at its beginning and deep in its list.
func BenchmarkQueries(b *testing.B) {
	benchEach(b, func(b *testing.B, d *store.DB) {
		b.Helper()
		fill(b, d)
		deep := cursorAt(b, d, records.Query{Tenant: "big"}, 0.5)
		for _, c := range []struct {
			name string
			q    records.Query
		}{
			{"tenant", records.Query{Tenant: "big"}},
			{"tenant-deep", records.Query{Tenant: "big", Cursor: deep}},
			{"small-tenant", records.Query{Tenant: "t7"}},
			{"principal", records.Query{Tenant: "big", Principal: "p7"}},
			{"principal-deep", records.Query{Tenant: "big", Principal: "p7", Cursor: deep}},
			{"principal-of-another", records.Query{Tenant: "t7", Principal: "p7"}},
			{"skill", records.Query{Tenant: "big", Skill: "s3"}},
			{"skill-deep", records.Query{Tenant: "big", Skill: "s3", Cursor: deep}},
			{"skill-rare", records.Query{Tenant: "big", Skill: "rare"}},
			{"status-success", records.Query{Tenant: "big", Status: records.Success}},
			{"status-timeout", records.Query{Tenant: "big", Status: records.TimedOut}},
			{"status-running", records.Query{Tenant: "big", Status: records.Running}},
			{"code", records.Query{Tenant: "big", Code: "TIMEOUT"}},
			{"code-none", records.Query{Tenant: "big", Code: "TRAP"}},
			{"trace", records.Query{Tenant: "big", TraceID: "trace-123456"}},
			{"trace-shared", records.Query{Tenant: "t7", TraceID: "shared"}},
			{"session", records.Query{Tenant: "big", Session: sessionOf(123456)}},
			{"hour", records.Query{Tenant: "big", Since: when.Add(100 * time.Hour), Until: when.Add(101 * time.Hour)}},
			{"hour-of-skill", records.Query{Tenant: "big", Skill: "s3", Since: when.Add(100 * time.Hour), Until: when.Add(101 * time.Hour)}},
			{"until-deep", records.Query{Tenant: "big", Until: when.Add(10 * time.Hour)}},
			{"principal-and-skill", records.Query{Tenant: "big", Principal: "p7", Skill: "s3"}},
			{"principal-and-status", records.Query{Tenant: "big", Principal: "p7", Status: records.TimedOut}},
			{"all-tenants", records.Query{}},
			{"all-tenants-skill", records.Query{Skill: "s3"}},
			{"all-tenants-status", records.Query{Status: records.TimedOut}},
		} {
			b.Run(c.name, func(b *testing.B) {
				c.q.Limit = 50
				took := make([]time.Duration, 0, 21)
				for b.Loop() {
					took = took[:0]
					for range 21 {
						began := time.Now()
						if _, _, err := records.NewStore(d).Executions(b.Context(), c.q); err != nil {
							b.Fatal(err)
						}
						took = append(took, time.Since(began))
					}
				}
				b.ReportMetric(float64(p50(took).Microseconds())/1000, "p50-ms")
				b.ReportMetric(0, "ns/op")
			})
		}
	})
}

// sessionOf is the session of execution i, which it shares with three others.
func sessionOf(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", i/4) }

// cursorAt gives a cursor that is a part of the way through an hour of a question's list.
func cursorAt(b *testing.B, d *store.DB, q records.Query, part float64) string {
	b.Helper()
	q.Limit, q.Until = 1, when.Add(time.Duration(part*float64(million)*float64(time.Second)))
	_, cursor, err := records.NewStore(d).Executions(b.Context(), q)
	if err != nil || cursor == "" {
		b.Fatalf("%q, %v", cursor, err)
	}
	return cursor
}

const million = 1_000_000

// fill makes a million executions, a second after each other, by one statement.
func fill(b *testing.B, d *store.DB) {
	b.Helper()
	times, series, id, session := fmt.Sprintf("%d + n * 1000000", when.UnixMicro()),
		fmt.Sprintf("WITH RECURSIVE g (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM g WHERE n < %d)", million-1),
		"printf('00000000-0000-7000-8000-%012x', n)", "printf('00000000-0000-4000-8000-%012x', n / 4)"
	if d.Kind() == store.Postgres {
		times, series = "TIMESTAMPTZ '2026-11-22 12:00:00.123456Z' + n * INTERVAL '1 second'", fmt.Sprintf("WITH g (n) AS (SELECT generate_series(0, %d))", million-1)
		id, session = "('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid", "('00000000-0000-4000-8000-' || lpad(to_hex(n / 4), 12, '0'))::uuid"
	}
	statement := `INSERT INTO execution_logs (id, principal_id, principal_type, session_id, skill_name, token_usage, duration_ms, status, error_message,
			created_at, tenant, trace_id, version, digest, runner, code, input_sha256, output_sha256, finished_at) ` + series + `
		SELECT ` + id + `, 'p' || (n / 7 % 50), 'agent', ` + session + `, CASE WHEN n % 100000 = 5 THEN 'rare' ELSE 's' || (n % 20) END, 0, 3,
			CASE WHEN n % 100 = 3 THEN 'timeout' WHEN n % 10 = 1 THEN 'failed' ELSE 'success' END, CASE WHEN n % 100 = 3 THEN 'too slow' ELSE '' END,
			` + times + `, CASE WHEN n % 10 = 9 THEN 't' || (n / 10 % 100) ELSE 'big' END, CASE WHEN n % 10 = 0 THEN 'shared' ELSE 'trace-' || n END,
			'0.1.0', 'sha256:' || n, 'wasm:wasi', CASE WHEN n % 100 = 3 THEN 'TIMEOUT' ELSE '' END, 'b' || n, 'c' || n, ` + times + ` FROM g`
	began := time.Now()
	if err := d.Run(b.Context(), statement); err != nil {
		b.Fatal(err)
	}
	if d.Kind() == store.Postgres { // as autovacuum does within a minute
		if err := d.Run(b.Context(), "ANALYZE"); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("filled in %v", time.Since(began).Round(time.Second))
}

// BenchmarkOpen opens a database that is up to date, as every command line does.
func BenchmarkOpen(b *testing.B) {
	o := store.Options{URL: "sqlite:" + filepath.Join(b.TempDir(), "test.db")}
	for b.Loop() {
		d, err := store.Open(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
