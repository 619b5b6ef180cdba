//go:build unix && !race

package main

import (
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// wire passes connections to a server on, in the directions that are open.
type wire struct {
	net.Listener
	to               string
	toServer, toHost atomic.Bool // cut: what is sent is lost
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	w := &wire{Listener: musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t), to: to}
	t.Cleanup(func() { _ = w.Close() })
	go func() {
		for {
			c, err := w.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", w.to)
			if err != nil {
				_ = c.Close()
				continue
			}
			go pass(c, s, &w.toServer)
			go pass(s, c, &w.toHost)
		}
	}()
	return w
}

// pass copies what comes, until the end of either side; while it is cut, what comes is lost, and the connection with it.
func pass(from, to net.Conn, cut *atomic.Bool) {
	defer from.Close()
	defer to.Close()
	b, lost := make([]byte, 64<<10), false
	for {
		n, err := from.Read(b)
		if lost = lost || cut.Load(); lost && n > 0 {
			continue // as a network that drops packets: neither side learns of it
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// TestDatabaseGone takes PostgreSQL away from hosts that are called, by a crash or by a network that loses what is sent one way or both: nothing that was
// answered or accepted is without its record, calls are refused meanwhile, and hosts are well soon after it is back. OPENSKILL_GONE says for how many seconds.
func TestDatabaseGone(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits until a database is back")
	}
	pgtest.Need(t)
	gone := times("OPENSKILL_GONE", 8)
	for name, cut := range map[string]func(t *testing.T, s *pgtest.Server, w *wire) (back func()){
		"crashed": func(t *testing.T, s *pgtest.Server, _ *wire) func() {
			musttest.Do(t, s.Stop())
			return func() { musttest.Do(t, s.Start()) }
		},
		"cut toward the server": func(_ *testing.T, _ *pgtest.Server, w *wire) func() {
			w.toServer.Store(true)
			return func() { w.toServer.Store(false) }
		},
		"cut toward the hosts": func(_ *testing.T, _ *pgtest.Server, w *wire) func() {
			w.toHost.Store(true)
			return func() { w.toHost.Store(false) }
		},
		"cut both ways": func(_ *testing.T, _ *pgtest.Server, w *wire) func() {
			w.toServer.Store(true)
			w.toHost.Store(true)
			return func() { w.toServer.Store(false); w.toHost.Store(false) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			takenAway(t, gone, cut)
		})
	}
}

func takenAway(t *testing.T, gone int, cut func(*testing.T, *pgtest.Server, *wire) (back func())) {
	t.Helper()
	server := pgtest.New(t)
	direct := server.Database(t)
	at := musttest.Get(url.Parse(direct))(t)
	w := newWire(t, at.Host)
	at.Host = w.Addr().String()
	c := newCluster(t, at.String(), 2)
	accepted, answered, refused := map[string]bool{}, 0, map[skill.Code]int{}
	var well atomic.Pointer[time.Time] // when the last call succeeded
	stop := c.load(t, 4, 50*time.Millisecond, func(i int) (int, string, bool) { return i % 2, "one", i < 2 }, func(a reply) {
		switch {
		case a.err != nil:
			t.Error(a.err)
		case a.code == http.StatusAccepted:
			accepted[a.ID] = true
		case a.Success:
			accepted[a.Meta.ExecutionID] = true
			answered++
			now := time.Now()
			well.Store(&now)
		case a.Error != nil:
			refused[a.Error.Code]++
		}
	})
	time.Sleep(2 * time.Second)
	restore := cut(t, server, w)
	time.Sleep(time.Duration(gone) * time.Second)
	back := time.Now()
	restore()
	var after time.Duration
	for time.Since(back) < time.Minute && after == 0 {
		time.Sleep(10 * time.Millisecond)
		if at := well.Load(); at != nil && at.After(back) {
			after = at.Sub(back)
		}
	}
	time.Sleep(2 * time.Second)
	stop()
	t.Logf("gone for %d s: %d answered, %d answered or accepted, %v refused, well again %s after the server was started", gone, answered, len(accepted), refused, after.Round(10*time.Millisecond))
	if after == 0 || refused[skill.AuditUnavailable] == 0 || refused[skill.Internal] > 0 {
		t.Errorf("well again after %s, refused: %v", after, refused)
	}
	c.database = direct
	c.counts(t, accepted)
}
