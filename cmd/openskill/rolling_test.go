//go:build unix && !race

package main

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
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
// neither one whose client waits nor one that goes on by itself. A client whose connection is refused takes another host, as a load balancer does.
// OPENSKILL_ROUNDS says how often.
func TestRollingRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts hosts again and again")
	}
	pgtest.Need(t)
	t.Parallel()
	rounds := 1
	if n, err := strconv.Atoi(os.Getenv("OPENSKILL_ROUNDS")); err == nil {
		rounds = n
	}
	c := newCluster(t, pgtest.Start(t), 3)
	var mu sync.Mutex
	accepted, answered := map[string]bool{}, 0
	var calling sync.WaitGroup
	end := make(chan struct{})
	for i := range 3 {
		calling.Go(func() {
			for {
				select {
				case <-end:
					return
				case <-time.After(200 * time.Millisecond):
				}
				c.mu.Lock()
				url := c.url[rand.IntN(3)]
				c.mu.Unlock()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/skills/"+[]string{"one", "second"}[i%2]+":invoke", strings.NewReader(`{"input": {}}`))
				if err != nil {
					t.Error(err)
					return
				}
				req.Close = true
				if i > 0 {
					req.Header.Set("Prefer", "respond-async")
				}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					if strings.Contains(err.Error(), "connection refused") {
						continue
					}
					t.Error(err)
					return
				}
				var a struct {
					skill.Result
					ID string
				}
				err = json.NewDecoder(res.Body).Decode(&a)
				_ = res.Body.Close()
				mu.Lock()
				switch {
				case err != nil:
					t.Error(err)
				case res.StatusCode == http.StatusAccepted:
					accepted[a.ID] = true
				case a.Success:
					accepted[a.Meta.ExecutionID] = true
					answered++
				case a.Error != nil && a.Error.Code == skill.RateLimited, res.StatusCode == http.StatusServiceUnavailable: // no place, or it stops: try again
				default:
					t.Errorf("%s: %+v", res.Status, a.Error)
				}
				mu.Unlock()
			}
		})
	}
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
	close(end)
	calling.Wait()
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
