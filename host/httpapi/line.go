package httpapi

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"openskill/sdk/skill"
)

// line lets a few uploads do something at once. When a place is free, it goes to the
// tenant that has the fewest, so that one with many uploads does not keep the others
// waiting; within a tenant it goes to whoever came first.
type line struct {
	most, perTenant int

	mu      sync.Mutex
	running map[string]int // by tenant
	total   int
	waiting []*turn
}

// How many may wait in a line, of one tenant and in all. Each holds a connection, of which
// a host has 4096, and makes no room for others; most have an upload on the disk besides.
// All that one tenant may send at once (Receiving) can wait, and eight tenants that do
// their worst leave seven eighths of the connections.
const (
	mostWaitingEach = 64
	mostWaiting     = 512
)

type turn struct {
	tenant string
	ready  chan struct{} // closed when it is this one's turn
}

func newLine(most, perTenant int) *line {
	return &line{most: most, perTenant: perTenant, running: map[string]int{}}
}

// enter waits for a place, at most as long as wait, and gives the function that
// leaves it, to be called once. wait 0 asks once. Nobody waits behind too many others.
func (l *line) enter(ctx context.Context, tenant string, wait time.Duration) (leave func(), err error) {
	l.mu.Lock()
	if l.free(tenant) && len(l.waiting) == 0 {
		l.take(tenant)
		l.mu.Unlock()
		return func() { l.leave(tenant) }, nil
	}
	if wait <= 0 {
		l.mu.Unlock()
		return nil, tooManyUploads(time.Second)
	}
	if l.full(tenant) {
		l.mu.Unlock()
		return nil, tooManyUploads(10 * time.Second)
	}
	t := &turn{tenant: tenant, ready: make(chan struct{})}
	l.waiting = append(l.waiting, t)
	l.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-t.ready:
		return func() { l.leave(tenant) }, nil
	case <-ctx.Done():
		err = &skill.Error{Op: "httpapi.upload", Code: skill.Cancelled, Message: "the caller left while the upload waited", Err: context.Cause(ctx)}
	case <-timer.C:
		err = tooManyUploads(10 * time.Second)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-t.ready: // in the same moment: keep it
		return func() { l.leave(tenant) }, nil
	default:
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(o *turn) bool { return o == t })
	return nil, err
}

func (l *line) free(tenant string) bool {
	return l.total < l.most && l.running[tenant] < l.perTenant
}

// full reports whether no more of the tenant, or of anybody, may wait.
func (l *line) full(tenant string) bool {
	own := 0
	for _, t := range l.waiting {
		if t.tenant == tenant {
			own++
		}
	}
	return own >= mostWaitingEach || len(l.waiting) >= mostWaiting
}

func (l *line) take(tenant string) {
	l.total++
	l.running[tenant]++
}

func (l *line) leave(tenant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.running[tenant]--; l.running[tenant] == 0 {
		delete(l.running, tenant)
	}
	for {
		var next *turn
		for _, t := range l.waiting {
			if l.free(t.tenant) && (next == nil || l.running[t.tenant] < l.running[next.tenant]) {
				next = t
			}
		}
		if next == nil {
			return
		}
		l.take(next.tenant)
		l.waiting = slices.DeleteFunc(l.waiting, func(o *turn) bool { return o == next })
		close(next.ready)
	}
}

func tooManyUploads(retry time.Duration) error {
	return &skill.Error{
		Op: "httpapi.upload", Code: skill.RateLimited, Message: fmt.Sprintf("too many uploads are under way; try again in %d s", int(retry.Seconds())),
		Details: map[string]any{"retry_after_ms": retry.Milliseconds()},
	}
}
