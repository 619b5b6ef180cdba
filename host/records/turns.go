package records

import (
	"context"
	"sync"
	"time"
)

// turns has calls of this host that use the same thing do so one after the other. The zero value is
// ready.
type turns struct {
	mu   sync.Mutex
	used map[ownKey]*using
}

// using counts the calls of this host that use a thing or wait for it.
type using struct {
	turn chan struct{} // capacity 1: held by the call that uses it
	n    int
}

// maxTurn is how long a change waits for the call that uses what it changes.
const maxTurn = 10 * time.Minute

// enter waits for the turn, unless that takes longer than wait. The caller must call leave.
func (t *turns) enter(ctx context.Context, k ownKey, wait time.Duration) (leave func(), ok bool) {
	t.mu.Lock()
	u := t.used[k]
	if u == nil {
		if t.used == nil {
			t.used = map[ownKey]*using{}
		}
		u = &using{turn: make(chan struct{}, 1)}
		t.used[k] = u
	}
	u.n++
	t.mu.Unlock()
	forget := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if u.n--; u.n == 0 {
			delete(t.used, k)
		}
	}
	if !u.enter(ctx, wait) {
		forget()
		return nil, false
	}
	return func() { <-u.turn; forget() }, true
}

func (u *using) enter(ctx context.Context, wait time.Duration) bool {
	select {
	case u.turn <- struct{}{}:
		return true
	default:
	}
	if wait <= 0 {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case u.turn <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
