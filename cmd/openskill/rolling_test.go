//go:build unix && !race

package main

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestRollingRestart stops one of three hosts after the other with SIGTERM, and starts it again, while they are called: no call fails,
// synchronous or asynchronous. A client whose connection is refused takes another host, as a load balancer does.
// OPENSKILL_ROUNDS says how often.
func TestRollingRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts hosts again and again")
	}
	pgtest.Need(t)
	t.Parallel()
	rounds := times("OPENSKILL_ROUNDS", 1)
	c := newCluster(t, pgtest.Start(t), 3)
	accepted, answered := map[string]bool{}, 0
	stop := c.load(t, 3, 200*time.Millisecond, func(i int) (int, string, bool) { return rand.IntN(3), []string{"one", "second"}[i%2], i > 0 }, func(a reply) {
		switch {
		case a.err != nil:
			if !strings.Contains(a.err.Error(), "connection refused") {
				t.Error(a.err)
			}
		case a.code == http.StatusAccepted:
			accepted[a.ID] = true
		case a.Success:
			accepted[a.Meta.ExecutionID] = true
			answered++
		case a.Error != nil && a.Error.Code == skill.RateLimited, a.code == http.StatusServiceUnavailable: // the host is busy, or stops: the client tries again
		default:
			t.Errorf("%d: %+v", a.code, a.Error)
		}
	})
	for range rounds {
		for i := range 3 {
			time.Sleep(500 * time.Millisecond)
			c.mu.Lock()
			k := c.host[i]
			c.mu.Unlock()
			musttest.Do(t, k.Process.Signal(syscall.SIGTERM))
			if err := k.Wait(); err != nil {
				t.Errorf("a host that was told to stop: %v\n%s", err, k.log.String())
			}
			c.mu.Lock()
			c.logs = append(c.logs, k.log.String())
			c.mu.Unlock()
			c.launch(t, i)
		}
	}
	time.Sleep(500 * time.Millisecond)
	stop()
	db := musttest.Get(store.Open(t.Context(), store.Options{URL: c.database}))(t)
	defer db.Close()
	c.counts(t, accepted)
	failed := 0
	for id := range accepted {
		if e := musttest.Get(records.NewStore(db).Execution(t.Context(), "local", id))(t); e.Status() != records.Success {
			failed++
			t.Errorf("%s: %+v", id, e.Finished)
		}
	}
	t.Logf("%d restarts: %d calls answered or accepted, %d of them answered at once, %d failed", 3*rounds, len(accepted), answered, failed)
}
