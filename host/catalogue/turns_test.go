package catalogue_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"openskill/host/catalogue"
	"openskill/host/catalogue/versionstest"
	"openskill/sdk/skill"
)

// A host that joins fetches by turns of tenants: the only module of one does not come after
// all those of another.
func TestJoiningFetchesByTurnsOfTenants(t *testing.T) {
	m := &versionstest.Memory{}
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
	newHost(t, m, nil, func(o *catalogue.Options) {
		readmit := o.Readmit
		o.Readmit = func(ctx context.Context, archive *os.File, tenant, staging string) (*catalogue.Admitted, error) {
			mu.Lock()
			order = append(order, tenant)
			mu.Unlock()
			<-all
			return readmit(ctx, archive, tenant, staging)
		}
	}).learns("beta", "only", "1.0.0 false: 1.0.0=disabled beta's")
	mu.Lock()
	defer mu.Unlock()
	if at := slices.Index(order, "beta"); at < 0 || at > 8 {
		t.Errorf("another tenant's came after %d of one tenant's", at)
	}
}
