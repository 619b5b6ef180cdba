package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"openskill/internal/measure"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/sdk/skill"
)

// benchAudit is the suite audit: what it costs to have calls on record, before they begin
// and before they are answered, with one caller and with many at once, and how long a
// call waits for both if others come now and then. The baseline writes each record by itself.
func (a *cli) benchAudit(ctx context.Context, o *benchOptions) (rows []measure.Row, err error) {
	calls, rounds := map[int]int{now: 1, 1: 200, 8: 800, mostClients: 3200}, 15
	if o.quick {
		calls, rounds = map[int]int{now: 1, 1: 10, 8: 40, mostClients: 200}, 2
	}
	var cases []measure.Case
	for _, callers := range []int{now, 1, 8, mostClients} {
		if name := callersName(callers); o.wanted("audit", name) {
			n := rounds
			if callers == now && !o.quick {
				n = 500
			}
			cases = append(cases, measure.Case{Suite: "audit", Name: name, N: n, Most: 20 * time.Second})
		}
	}
	if len(cases) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "openskill-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var variants []measure.Variant
	var measured []*recordedCalls
	for _, v := range []struct {
		name, url string
		alone     bool
	}{
		{"SQLite, each record by itself", "sqlite:" + dir + "/alone.db", true},
		{"SQLite, records=database", "sqlite:" + dir + "/together.db?records=database", false},
		{"SQLite", "sqlite:" + dir + "/journal.db", false},
		{"PostgreSQL", o.postgres, false},
		{"PostgreSQL, records=host", withRecords(o.postgres), false},
	} {
		if v.url == "" && v.name != "PostgreSQL" {
			continue
		}
		if v.url == "" {
			a.say("audit: PostgreSQL is measured with --postgres URL, an empty database that is filled")
			continue
		}
		c, err := openRecordedCalls(ctx, v.url, filepath.Join(dir, fmt.Sprint("journal-", len(measured))), v.alone)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		measured = append(measured, c)
		variants = append(variants, measure.Variant{Name: v.name, Run: c.run, Note: c.note})
	}
	for i := range cases {
		c := &cases[i]
		for n, total := range calls {
			if callersName(n) != c.Name {
				continue
			}
			for _, m := range measured {
				m.callers, m.total = n, total
			}
			c.Variants = audited(variants, n)
		}
		a.say("audit: %s", c.Name)
		r, err := c.Measure(ctx)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r...)
	}
	return rows, nil
}

// now is the case of a call that comes alone, now and then.
const now = 0

// withRecords is a URL of PostgreSQL with a journal.
func withRecords(url string) string {
	switch {
	case url == "":
		return ""
	case strings.Contains(url, "?"):
		return url + "&records=host"
	}
	return url + "?records=host"
}

func callersName(n int) string {
	if n == now {
		return "a call waits for its records"
	}
	if n == 1 {
		return "records of a call, 1 caller"
	}
	return fmt.Sprintf("records of a call, %d callers", n)
}

// audited gives variants their goals: so many calls a second when many come at once.
func audited(variants []measure.Variant, callers int) []measure.Variant {
	out := append([]measure.Variant(nil), variants...)
	for i := range out {
		journal := out[i].Name == "SQLite" || out[i].Name == "PostgreSQL, records=host"
		switch {
		case callers == 1 && journal:
			out[i].Goals = []measure.Goal{measure.Median(25 * time.Microsecond)}
		case callers == mostClients && out[i].Name == "SQLite":
			out[i].Goals = []measure.Goal{measure.Median(time.Second / 25_000)}
		case callers == mostClients && journal:
			out[i].Goals = []measure.Goal{measure.Median(time.Second / 10_000)}
		}
	}
	return out
}

// recordedCalls puts calls on record that do nothing else.
type recordedCalls struct {
	db             *store.DB
	log            *records.Log
	alone          bool // writes each record by itself, without the Log
	callers, total int
}

func openRecordedCalls(ctx context.Context, url, journal string, alone bool) (*recordedCalls, error) {
	quiet := slog.New(slog.DiscardHandler)
	db, err := store.Open(ctx, store.Options{URL: url, Log: quiet})
	if err != nil {
		return nil, err
	}
	options := records.Options{Store: records.NewStore(db), Log: quiet}
	if db.RecordsIn != store.InDatabase {
		options.Journal = journal
	}
	l, err := records.Open(ctx, options)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &recordedCalls{db: db, log: l, alone: alone}, nil
}

// Close closes the Log and the database.
func (c *recordedCalls) Close() error {
	return errors.Join(c.log.Close(context.Background()), c.db.Close())
}

// run gives the time of one call among many: that of all, by their number.
func (c *recordedCalls) run(ctx context.Context) (time.Duration, error) {
	if c.callers == now {
		time.Sleep(5 * time.Millisecond)
		began := time.Now()
		err := c.call(ctx, "tenant-0")
		return time.Since(began), err
	}
	all, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	began := time.Now()
	for range c.callers {
		all.Go(func() error {
			for {
				i := next.Add(1)
				if i > int64(c.total) {
					return nil
				}
				if err := c.call(ctx, fmt.Sprint("tenant-", i%4)); err != nil {
					return err
				}
			}
		})
	}
	err := all.Wait()
	return time.Since(began) / time.Duration(c.total), err
}

func (c *recordedCalls) note() string {
	if c.callers == now {
		return "both records; 5 ms between calls"
	}
	return fmt.Sprintf("the time of %d calls, by their number", c.total)
}

func (c *recordedCalls) call(ctx context.Context, tenant string) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	s := &records.Started{
		ExecutionID: id.String(), Tenant: tenant, Principal: "key:bench", PrincipalType: skill.Agent, TraceID: id.String(), Session: id.String(),
		Skill: "echo", Version: "0.1.0", Digest: "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
		Limits: skill.LimitsJSON{TimeoutMS: 15000, MemoryMB: 64, Fuel: 2_000_000_000, OutputKB: 1024, ScratchMB: 16},
	}
	f := &records.Finished{Status: records.Success, Runner: skill.WasmWASI, Fuel: 51234, MemoryPeak: 1114112, DurationMS: 1}
	input, output := []byte(`{"text":"hello"}`), []byte(`{"echoed":"hello"}`)
	if !c.alone {
		if err := c.log.Started(ctx, s, input); err != nil {
			return err
		}
		return c.log.Finished(ctx, s, f, output)
	}
	s.Instance, s.Time, f.ExecutionID = c.log.Instance(), time.Now().UTC(), s.ExecutionID
	s.Input, f.Output = records.KeepHash.Payload(input, 1<<10), records.KeepHash.Payload(output, 1<<10)
	if err := c.append(ctx, s, nil, records.KindStarted, s.Time, s); err != nil {
		return err
	}
	f.Time = time.Now().UTC()
	return c.append(ctx, s, f, records.KindFinished, f.Time, f)
}

// append writes one record in a transaction of its own.
func (c *recordedCalls) append(ctx context.Context, s *records.Started, f *records.Finished, kind string, when time.Time, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	e := &records.Entry{Record: records.Record{Tenant: s.Tenant, Kind: kind, ExecutionID: s.ExecutionID, Time: when, Body: b}, Wait: true}
	if f == nil {
		e.Started = s
	} else {
		e.Finished, e.Of = f, s
	}
	return cmp.Or(records.NewStore(c.db).Append(ctx, []*records.Entry{e}), e.Left)
}
