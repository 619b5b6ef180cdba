package store_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"openskill/host/catalogue/definitions"
	"openskill/host/catalogue/definitionstest"
	"openskill/host/catalogue/manifest"
	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/host/store/storetest"
	"openskill/sdk/skill"
)

func TestDefinitions(t *testing.T) {
	storetest.Each(t, func(t *testing.T, fresh func(*testing.T) func() *store.DB) {
		open := fresh(t)
		storetest.Definitions(t, func() definitions.Store { return open().Definitions() })
	})
	t.Run("memory", func(t *testing.T) {
		m := &definitionstest.Memory{}
		storetest.Definitions(t, func() definitions.Store { return m })
	})
}

// heard counts what a watcher is told.
type heard struct {
	mu     sync.Mutex
	times  map[string]int
	fail   error
	signal chan struct{}
}

func watch(t *testing.T, d *store.DB) *heard {
	t.Helper()
	h := &heard{times: map[string]int{}, signal: make(chan struct{}, 1000)}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Watch(ctx, func(_ context.Context, topic string) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.times[topic]++
			h.signal <- struct{}{}
			return h.fail
		})
	}()
	t.Cleanup(func() { stop(); <-done })
	h.until(t, "it begins", func() bool { return h.times[definitions.Topic] == 1 && h.times[uploads] == 1 })
	return h
}

// until waits for something that a watcher hears of.
func (h *heard) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	for {
		h.mu.Lock()
		ok := is()
		h.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-h.signal:
		case <-late.C:
			t.Fatalf("%s: it was not heard within half a minute", what)
		}
	}
}

var begun = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

func write(t *testing.T, d *store.DB, description string) {
	t.Helper()
	if err := describe(t.Context(), d, description); err != nil {
		t.Fatal(err)
	}
}

// describe changes the definition that is watched, or makes it.
func describe(ctx context.Context, d *store.DB, description string) error {
	return d.Definitions().Change(ctx, "", "watched", func(now *definitions.Definition) (*definitions.Definition, error) {
		next := &definitions.Definition{ID: "019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f", Source: definitions.Seeded, InputSchema: []byte("{}"), OutputSchema: []byte("{}"), CreatedAt: begun, UpdatedAt: begun}
		if now != nil {
			next = now
		}
		next.Description = description
		return next, nil
	})
}

func TestWatch(t *testing.T) {
	storetest.Each(t, func(t *testing.T, fresh func(*testing.T) func() *store.DB) {
		open := fresh(t)
		a, b := open(), open()
		h := watch(t, a)
		write(t, b, "one")
		h.until(t, "a change by another process", func() bool { return h.times[definitions.Topic] == 2 })
		write(t, a, "two")
		h.until(t, "one of its own", func() bool { return h.times[definitions.Topic] == 3 })
		h.mu.Lock()
		h.fail = errors.New("not now")
		h.mu.Unlock()
		write(t, b, "three")
		h.until(t, "a call that fails comes again", func() bool { return h.times[definitions.Topic] >= 5 })
		h.mu.Lock()
		h.fail = nil
		uploads := h.times[uploads]
		h.mu.Unlock()
		if uploads != 1 {
			t.Errorf("of the topic that nobody changed it was told %d times", uploads)
		}
	})
}

// The connection that listens is killed: changes are heard all the same, by looking, and
// the connection comes back.
func TestWatchOutlivesItsConnection(t *testing.T) {
	url := pgtest.Start(t)
	open := func() *store.DB {
		d, err := store.Open(t.Context(), store.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	a, b := open(), open()
	server, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	const listeners = "FROM pg_stat_activity WHERE application_name = 'openskill listener' AND datname = current_database()"
	listening := func() (n int) {
		if err := server.QueryRowContext(t.Context(), "SELECT count(*) "+listeners).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	comes := func() {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); listening() == 0; {
			if time.Now().After(end) {
				t.Fatal("no connection listens")
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-t.Context().Done():
			}
		}
	}
	h := watch(t, a)
	for range 3 {
		comes()
		var killed int
		if err := server.QueryRowContext(t.Context(), "SELECT count(pg_terminate_backend(pid)) "+listeners).Scan(&killed); err != nil || killed != 1 {
			t.Fatalf("%d were killed, %v", killed, err)
		}
		h.mu.Lock()
		before := h.times[definitions.Topic]
		h.mu.Unlock()
		write(t, b, "while nobody listens")
		h.until(t, "a change after the kill", func() bool { return h.times[definitions.Topic] > before })
	}
	comes()
}

// The server stops and comes back: changes are refused meanwhile as what cannot be done
// now, and heard of afterwards, without a restart.
func TestWatchOutlivesTheServer(t *testing.T) {
	server := pgtest.New(t)
	url := server.Database(t)
	a, b := storetest.Open(t, url), storetest.Open(t, url)
	h := watch(t, a)
	write(t, b, "before")
	h.until(t, "a change before", func() bool { return h.times[definitions.Topic] == 2 })
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := describe(t.Context(), b, "meanwhile"); err == nil || !store.Unavailable(err) {
		t.Errorf("without a server: %v", err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; { // connections of the pool that broke
		err := describe(t.Context(), b, "after")
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the server is back: %v", err)
		}
	}
	h.until(t, "a change after", func() bool { return h.times[definitions.Topic] > 2 })
}

// TestSeeds: a host's folders seed a real database once, whatever way it has of writing
// JSON, and another host sees what is changed.
func TestSeeds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, fresh func(*testing.T) func() *store.DB) {
		open := fresh(t)
		a, b := open(), open()
		limits := skill.Limits{Timeout: time.Second, Memory: 1 << 20, Fuel: 1000, Output: 1 << 10, Scratch: 1 << 20}
		o := manifest.Options{Roots: []manifest.Root{{Path: t.TempDir(), Trust: skill.Trusted}}, CLIDir: t.TempDir(), Defaults: limits, Caps: limits}
		list := func(rate string) {
			t.Helper()
			text := `skills:
  - name: seeded
    description: Is seeded.
    input_schema: {type: object, required: [z, a], properties: {z: {type: number, maximum: 1e5, multipleOf: 0.50}, a: {enum: ["", null, 12345678901234567890]}}}
    output_schema: {}
    cost_metadata: {rate_limit_per_minute: ` + rate + `}
`
			if err := os.WriteFile(filepath.Join(o.Roots[0].Path, manifest.ListFile), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(o.CLIDir, "seeded.py"), []byte("print({})"), 0o600); err != nil {
			t.Fatal(err)
		}
		start := func(d *store.DB) *definitions.Catalogue {
			t.Helper()
			own, err := manifest.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			c, err := definitions.Open(t.Context(), definitions.Options{Store: d.Definitions(), Own: own, Registry: o, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		row := func() *definitions.Definition {
			t.Helper()
			rows, err := a.Definitions().Definitions(t.Context(), "")
			if err != nil || len(rows) != 1 {
				t.Fatalf("%v, %v", rows, err)
			}
			return rows[0]
		}
		list("5")
		one := start(a)
		first := row()
		two := start(b)
		if again := row(); again.Revision != first.Revision || !again.UpdatedAt.Equal(first.UpdatedAt) {
			t.Errorf("seeding the same again made revision %d of %d", again.Revision, first.Revision)
		}
		h := watch(t, b)
		if _, err := one.Disable(t.Context(), skill.Local(), "seeded"); err != nil {
			t.Fatal(err)
		}
		h.until(t, "the change", func() bool {
			if err := two.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			s, err := two.Now().Get("seeded", "")
			return err == nil && !s.Descriptor.Enabled
		})
		list("6")
		start(b)
		if last := row(); last.Enabled || last.Cost.RateLimitPerMinute != 6 || last.Revision <= first.Revision || !last.CreatedAt.Equal(first.CreatedAt) || last.ID != first.ID {
			t.Errorf("after the files have changed: %+v", last)
		}
	})
}
