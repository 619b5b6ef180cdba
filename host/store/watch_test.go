package store_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
)

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
	h.until(t, "it begins", func() bool { return h.times[definitions] == 1 && h.times[uploads] == 1 })
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

func write(t *testing.T, d *store.DB) {
	t.Helper()
	musttest.Do(t, describe(t.Context(), d))
}

// definitions is a topic.
const definitions = "definitions"

// describe changes something of the topic that is watched.
func describe(ctx context.Context, d *store.DB) error {
	return d.Change(ctx, definitions, "", func(*sql.Tx, uint64) error { return nil })
}

func TestWatch(t *testing.T) {
	storetest.Each(t, func(t *testing.T, fresh func(*testing.T) func() *store.DB) {
		open := fresh(t)
		a, b := open(), open()
		h := watch(t, a)
		write(t, b)
		h.until(t, "a change by another process", func() bool { return h.times[definitions] == 2 })
		write(t, a)
		h.until(t, "one of its own", func() bool { return h.times[definitions] == 3 })
		h.mu.Lock()
		h.fail = errors.New("not now")
		h.mu.Unlock()
		write(t, b)
		h.until(t, "a call that fails comes again", func() bool { return h.times[definitions] >= 5 })
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
		d := musttest.Get(store.Open(t.Context(), store.Options{URL: url}))(t)
		t.Cleanup(func() { d.Close() })
		return d
	}
	a, b := open(), open()
	server := musttest.Get(sql.Open("pgx", url))(t)
	t.Cleanup(func() { server.Close() })
	const listeners = "FROM pg_stat_activity WHERE application_name = 'openskill listener' AND datname = current_database()"
	listening := func() (n int) {
		musttest.Do(t, server.QueryRowContext(t.Context(), "SELECT count(*) "+listeners).Scan(&n))
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
		before := h.times[definitions]
		h.mu.Unlock()
		write(t, b)
		h.until(t, "a change after the kill", func() bool { return h.times[definitions] > before })
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
	write(t, b)
	h.until(t, "a change before", func() bool { return h.times[definitions] == 2 })
	musttest.Do(t, server.Stop())
	if err := describe(t.Context(), b); err == nil || !store.Unavailable(err) {
		t.Errorf("without a server: %v", err)
	}
	musttest.Do(t, server.Start())
	for end := time.Now().Add(30 * time.Second); ; { // connections of the pool that broke
		err := describe(t.Context(), b)
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the server is back: %v", err)
		}
	}
	h.until(t, "a change after", func() bool { return h.times[definitions] > 2 })
}
