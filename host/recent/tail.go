package recent

import (
	"context"
	"sync"

	"openskill/sdk/skill"
)

// The bounds of those who watch.
const (
	mostWatchers = 64  // of all principals together
	mostOfOne    = 4   // of one principal
	mostWaiting  = 200 // calls that a watcher has not taken yet; then it loses the oldest
)

// Tail tells those who watch of the calls that end. It is safe for concurrent use; nobody
// who watches can hold up a call.
type Tail struct {
	mu       sync.Mutex
	watchers map[*Watcher]string
}

// NewTail makes a tail that nobody watches.
func NewTail() *Tail { return &Tail{watchers: map[*Watcher]string{}} }

// Watcher is one who watches.
type Watcher struct {
	tail *Tail
	sees func(*Call) bool

	mu      sync.Mutex
	waiting []Call
	lost    uint64
	wake    chan struct{} // has room for one
}

// Watch begins to watch the calls that sees says yes to; it must be quick. who is whose place
// is taken. The caller closes the watcher.
func (t *Tail) Watch(who string, sees func(*Call) bool) (*Watcher, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	same := 0
	for _, other := range t.watchers {
		if other == who {
			same++
		}
	}
	if same >= mostOfOne || len(t.watchers) >= mostWatchers {
		return nil, &skill.Error{
			Op: "recent.Watch", Code: skill.RateLimited,
			Message: "too many live views are open; close one of them, or reload this page to see what there is",
		}
	}
	w := &Watcher{tail: t, sees: sees, wake: make(chan struct{}, 1)}
	t.watchers[w] = who
	return w, nil
}

// Add tells of a call.
func (t *Tail) Add(c *Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for w := range t.watchers {
		if w.sees(c) {
			w.add(c)
		}
	}
}

func (w *Watcher) add(c *Call) {
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
func (w *Watcher) Next(ctx context.Context) (calls []Call, lost uint64, err error) {
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
}
