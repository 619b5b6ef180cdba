package catalogue

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"openskill/host/store/storetest"
	"openskill/sdk/skill"
)

// A host that joins fetches by turns of tenants: the only module of one does not come after
// all those of another.
func TestJoiningFetchesByTurnsOfTenants(t *testing.T) {
	m := storetest.SQLite(t)
	a := newHost(t, m, nil, nil)
	for i := range 40 {
		a.must(a.upload("acme", skill.ID(fmt.Sprint("up-", i)), "1.0.0", fmt.Sprint("module ", i)))
		if i == 25 {
			a.must(a.upload("beta", "only", "1.0.0", "beta's"))
		}
	}
	var (
		mu    sync.Mutex
		order []string
	)
	all := make(chan struct{})
	time.AfterFunc(300*time.Millisecond, func() { close(all) }) // until then every fetch waits for its turn
	newHost(t, m, func(tenant string, _ []byte) error {
		mu.Lock()
		order = append(order, tenant)
		mu.Unlock()
		<-all
		return nil
	}, nil).learns("beta", "only", "1.0.0 false: 1.0.0=disabled beta's")
	mu.Lock()
	defer mu.Unlock()
	if at := slices.Index(order, "beta"); at < 0 || at > 8 {
		t.Errorf("another tenant's came after %d of one tenant's", at)
	}
}
