package api

import (
	"sync"
	"time"
)

// peekEvery is how often the clients of running calls are looked after. A call
// that ends sooner is never looked at.
const peekEvery = 50 * time.Millisecond

// watches are the connections that a call runs on. One timer serves them all,
// and only while there are any: a timer for each call would cost more than the
// rest of the edge.
type watches struct {
	mu    sync.Mutex
	conns []*conn
	timer *time.Timer // nil before the first watch
	armed bool
}

// add calls left, once, if c's client closes its side before remove. It takes
// from one to two times peekEvery to be noticed.
func (w *watches) add(c *conn, left func()) {
	if c.raw == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, c)
	c.watchedAt, c.looked, c.left = len(w.conns), false, left
	if w.armed {
		return
	}
	w.armed = true
	if w.timer == nil {
		w.timer = time.AfterFunc(peekEvery, w.look)
	} else {
		w.timer.Reset(peekEvery)
	}
}

// remove ends the watch of c, if there is one. When it returns, left is not
// running and will not be called.
func (w *watches) remove(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(c)
}

func (w *watches) drop(c *conn) {
	if c.watchedAt == 0 {
		return
	}
	last := w.conns[len(w.conns)-1]
	w.conns[c.watchedAt-1] = last
	last.watchedAt = c.watchedAt
	w.conns[len(w.conns)-1] = nil
	w.conns = w.conns[:len(w.conns)-1]
	c.watchedAt, c.left = 0, nil
}

func (w *watches) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.conns) - 1; i >= 0; i-- { // downwards, because drop moves the last one
		c := w.conns[i]
		if !c.looked {
			c.looked = true
			continue
		}
		if peerGone(c.raw) {
			left := c.left
			w.drop(c)
			left()
		}
	}
	if w.armed = len(w.conns) > 0; w.armed {
		w.timer.Reset(peekEvery)
	}
}
