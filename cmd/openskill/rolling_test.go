//go:build unix && !race

package main

import (
	"bufio"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
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
// synchronous or asynchronous, and calls that take some seconds neither. A client whose connection is refused takes another host, as a load balancer does.
// OPENSKILL_ROUNDS says how often, OPENSKILL_SECONDS how long the longest calls take. OPENSKILL_PROGRAMS lists the programs of the hosts,
// at first and in each round, with colons between them: those of other versions, and this one for "".
func TestRollingRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts hosts again and again")
	}
	pgtest.Need(t)
	t.Parallel()
	programs := strings.Split(os.Getenv("OPENSKILL_PROGRAMS"), ":")
	rounds := max(times("OPENSKILL_ROUNDS", 1), len(programs)-1)
	c := &cluster{skills: t.TempDir(), database: pgtest.Start(t), concurrency: "all:6,skill:4", program: programs[0]}
	c.skill(t, "one", "", working(aWhile))
	c.skill(t, "second", "", working(longer))
	c.skill(t, "slow", "timeout_ms: 110000\n", sleeping(times("OPENSKILL_SECONDS", 11)))
	c.start(t, 3)
	accepted, answered := map[string]bool{}, 0
	stop := c.load(t, 9, 200*time.Millisecond, func(i int) (int, string, bool) {
		id, async := []string{"one", "second", "slow"}[i%3], i%2 == 0
		if async && id == "slow" && rand.IntN(100) > 0 { // the queue does not get longer and longer
			id = "one"
		}
		return rand.IntN(3), id, async
	}, func(a reply) {
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
	for round := range rounds {
		c.program = programs[min(round+1, len(programs)-1)]
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

// A host that other machines reach takes requests for some seconds after it was told to stop, while it is not ready.
func TestLameDuck(t *testing.T) {
	t.Parallel()
	k := &killable{Cmd: exec.CommandContext(t.Context(), "openskill", "serve", "--listen", "0.0.0.0:0", "--skills", t.TempDir(), "--state", t.TempDir())}
	k.Dir, k.Stderr, k.Env = t.TempDir(), &k.log, append(os.Environ(), "OPENSKILL_JWT_SECRET="+strings.Repeat("s", 32))
	k.out = bufio.NewScanner(musttest.Get(k.StdoutPipe())(t))
	musttest.Do(t, k.Start())
	if !k.out.Scan() {
		t.Fatalf("the host does not start: %s", k.log.String())
	}
	_, url, _ := strings.Cut(k.out.Text(), "listening on ")
	port := url[strings.LastIndex(url, ":")+1:]
	ask := func(path string) int {
		req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+path, http.NoBody))(t)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	if code := ask("/readyz"); code != http.StatusOK {
		t.Errorf("before: %d", code)
	}
	musttest.Do(t, k.Process.Signal(syscall.SIGTERM))
	for ask("/readyz") == http.StatusOK {
		time.Sleep(10 * time.Millisecond)
	}
	if ready, asked := ask("/readyz"), ask("/skills"); ready != http.StatusServiceUnavailable || asked != http.StatusUnauthorized {
		t.Errorf("after: /readyz answers %d, /skills %d", ready, asked)
	}
	if err := k.Wait(); err != nil {
		t.Errorf("%v\n%s", err, k.log.String())
	}
}
