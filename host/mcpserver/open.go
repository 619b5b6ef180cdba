package mcpserver

import (
	"fmt"
	"sync"

	"openskill/sdk/skill"
)

// open bounds the requests over HTTP that are under way at once. Some are streams without an
// end, each of which has one of the host's connections for itself: without a bound a caller
// with no more than skills:read could take them all, and nobody else would be answered.
//
// All requests are counted, and not those that look like streams: which ones are is for the
// SDK to find out, which reads messages in its own way.
type open struct {
	most int // half of them of one tenant

	mu      sync.Mutex
	total   int
	tenants map[string]int // those that have some
}

func newOpen(most int) *open { return &open{most: most, tenants: map[string]int{}} }

// enter takes a place for a request of a tenant, and gives what gives it back.
func (o *open) enter(tenant string) (leave func(), err error) {
	each := max(o.most/2, 1)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.total >= o.most || o.tenants[tenant] >= each {
		return nil, &skill.Error{
			Op: "mcpserver.open", Code: skill.RateLimited, Details: map[string]any{"retry_after_ms": 1000},
			Message: fmt.Sprintf("too many MCP requests and streams are open at once (at most %d, and %d of one tenant); close some, or try again in a moment", o.most, each),
		}
	}
	o.total++
	o.tenants[tenant]++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.total--
		if o.tenants[tenant]--; o.tenants[tenant] == 0 {
			delete(o.tenants, tenant)
		}
	}, nil
}
