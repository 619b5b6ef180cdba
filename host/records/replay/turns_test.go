package replay_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"openskill/host/records"
	"openskill/host/records/replay"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// heldStore gives no recording before it is let go, and counts who waits for one.
type heldStore struct {
	replay.Store
	goOn chan struct{}

	mu              sync.Mutex
	now, most, came int
}

func (s *heldStore) Get(context.Context, string, string) (*replay.Row, error) {
	s.mu.Lock()
	s.came++
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	<-s.goOn
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
	return nil, nil
}

// Recordings of many MiB are unpacked and compared by as many replays at once as there are
// processors, and by less of one tenant.
func TestReplaysTakeTurns(t *testing.T) {
	places := max(runtime.NumCPU(), 2)
	for _, tenants := range []int{1, 2 * places} {
		synctest.Test(t, func(t *testing.T) {
			store, recs := &heldStore{goOn: make(chan struct{})}, &recs{all: map[string]*records.Execution{}}
			all := musttest.Get(replay.New(replay.Options{Store: store, Executions: recs}))(t)
			r := all.Replayer(nil)
			for i := range 8 * places {
				s := records.Started{ExecutionID: fmt.Sprint(i), Tenant: fmt.Sprint(i % tenants)}
				recs.all[s.ExecutionID] = &records.Execution{Started: s, Finished: &records.Finished{Status: records.Success}}
			}
			for id, e := range recs.all {
				go func() {
					_, err := r.Replay(t.Context(), skill.Principal{ID: "x", Tenant: e.Tenant, Scopes: []string{skill.ScopeAllExecutions}}, id)
					if skill.CodeOf(err) != skill.NotFound {
						t.Error(err)
					}
				}()
			}
			synctest.Wait() // each one reads, or waits for its turn
			if store.now == 0 || store.now > places || tenants == 1 && store.now == places || tenants > 1 && store.now < places {
				t.Errorf("%d tenants: %d recordings are read at once; there are %d places", tenants, store.now, places)
			}
			close(store.goOn)
			synctest.Wait()
			if store.came != 8*places || store.most > places {
				t.Errorf("%d tenants: %d recordings were read, %d at once; there are %d places", tenants, store.came, store.most, places)
			}
		})
	}
}
