package records

import (
	"context"
	"sync"

	"openskill/host/internal/gate"
	"openskill/sdk/skill"
)

// The bounds of those who watch.
const (
	mostWatchers = 64  // of all principals together; tenants share them
	mostOfOne    = 4   // of one principal
	mostWaiting  = 200 // calls that a watcher has not taken yet; then it loses the oldest
)

// Tail tells those who watch of the calls that end. It is safe for concurrent use; nobody
// who watches can hold up a call.
type Tail struct {
	places *gate.Gate

	mu       sync.Mutex
	watchers map[*Watcher]bool
}

// NewTail makes a tail that nobody watches. alone says that all principals are one tenant.
func NewTail(alone bool) *Tail {
	return &Tail{places: gate.New(gate.Options{Places: mostWatchers, Alone: alone}), watchers: map[*Watcher]bool{}}
}

// Watcher is one who watches.
type Watcher struct {
	tail  *Tail
	sees  func(*EndedCall) bool
	leave func()

	mu      sync.Mutex
	waiting []EndedCall
	lost    uint64
	wake    chan struct{} // has room for one
}

// Watch begins to watch the calls that sees says yes to; it must be quick. p takes a place
// of its tenant's share. The caller closes the watcher.
func (t *Tail) Watch(p skill.Principal, sees func(*EndedCall) bool) (*Watcher, error) {
	leave, err := t.places.TryEnter(p.Tenant, gate.Part{Key: [2]string{p.Tenant, p.ID}, Places: mostOfOne, Owner: p.Tenant})
	if err != nil {
		return nil, gate.Refusal(err, "recent.Watch", "too many live views are open; close one of them, or reload this page to see what there is")
	}
	w := &Watcher{tail: t, sees: sees, leave: leave, wake: make(chan struct{}, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers[w] = true
	return w, nil
}

// Add tells of a call.
func (t *Tail) Add(c *EndedCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for w := range t.watchers {
		if w.sees(c) {
			w.add(c)
		}
	}
}

func (w *Watcher) add(c *EndedCall) {
	w.mu.Lock()
	if len(w.waiting) == mostWaiting {
		copy(w.waiting, w.waiting[1:])
		w.waiting = w.waiting[:mostWaiting-1]
		w.lost++
	}
	w.waiting = append(w.waiting, *c)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Next waits for calls, and gives those that have ended since the last time, the oldest
// first, and how many were lost before them because the watcher was slow. The error is that
// of ctx.
func (w *Watcher) Next(ctx context.Context) (calls []EndedCall, lost uint64, err error) {
	for {
		w.mu.Lock()
		calls, lost = w.waiting, w.lost
		w.waiting, w.lost = nil, 0
		w.mu.Unlock()
		if len(calls) > 0 {
			return calls, lost, nil
		}
		select {
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-w.wake:
		}
	}
}

// Close ends the watching. It may be called twice.
func (w *Watcher) Close() {
	w.tail.mu.Lock()
	defer w.tail.mu.Unlock()
	delete(w.tail.watchers, w)
	w.leave()
}
