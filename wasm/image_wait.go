package wasm

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// waiter is a run that waits for an instance.
type waiter struct {
	told chan ready
	pays *atomic.Uint64 // its Call.StartFuel
}

// ready is what a run that waits is told: an instance that waits for it, or that
// none will come, because the start-up never asks for input or cannot be had.
type ready struct {
	in  *instance
	err error
}

// acquire waits for an instance, and starts one where that is quicker. It gives
// nil where the run is to have one of its own. Pays is added what is started.
func (im *Image) acquire(ctx context.Context, pays *atomic.Uint64) (*instance, error) {
	im.mu.Lock()
	im.used = time.Now()
	switch n := len(im.idle); {
	case im.closed:
		im.mu.Unlock()
		return nil, ErrClosed
	case im.once || im.silent:
		im.mu.Unlock()
		return nil, nil
	case n > 0:
		in := im.idle[n-1]
		im.idle = im.idle[:n-1]
		im.mu.Unlock()
		im.e.images.left(1)
		return in, nil
	}
	w := &waiter{make(chan ready, 1), pays}
	im.waiters = append(im.waiters, w)
	im.grow(false, pays) // a start-up outlives the call that it is begun for
	patience := max(2*im.took, 20*time.Millisecond)
	im.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case r := <-w.told:
			return r.in, r.err
		case <-timer.C:
			// Those that run take longer than another one takes to start.
			im.mu.Lock()
			im.grow(true, pays) // a start-up outlives the call that it is begun for
			im.mu.Unlock()
			timer.Reset(patience)
		case <-ctx.Done():
			im.mu.Lock()
			i := slices.Index(im.waiters, w)
			if i >= 0 {
				im.waiters = slices.Delete(im.waiters, i, i+1)
			}
			im.mu.Unlock()
			im.abandon()
			if i < 0 { // it was told just now
				if r := <-w.told; r.in != nil {
					im.put(r.in, false)
				}
			}
			return nil, context.Cause(ctx)
		}
	}
}

// grace is how long a start-up goes on that nobody waits for any more: a moment,
// so that it may be of use to the next run, and no longer, since it may have no end.
const grace = 500 * time.Millisecond

// abandon ends start-ups that nobody waits for, in a while.
func (im *Image) abandon() {
	im.mu.Lock()
	defer im.mu.Unlock()
	if len(im.waiters) > 0 || im.starting == 0 || im.warming > 0 {
		return
	}
	in := im.latest
	time.AfterFunc(grace, func() {
		im.mu.Lock()
		defer im.mu.Unlock()
		if len(im.waiters) == 0 && im.warming == 0 && im.latest == in && im.starting > 0 {
			for in := range im.fresh {
				in.cancel()
			}
		}
	})
}

// grow starts an instance if runs wait for one and it would be of use. Im.mu is held.
func (im *Image) grow(impatient bool, pays *atomic.Uint64) {
	enough := max(im.spare, runtime.GOMAXPROCS(0))
	switch {
	case im.closed || im.live >= im.max || im.starting >= len(im.waiters):
		return
	case im.starting >= runtime.GOMAXPROCS(0):
		return // there are no processors for more
	case im.live >= enough && !impatient:
		return // one of them is soon free
	}
	im.launch(pays)
}

// launch starts an instance. Pays is added what its start-up uses; nil: nobody counts.
// Im.mu is held.
func (im *Image) launch(pays *atomic.Uint64) {
	im.live++
	im.starting++
	im.starts++
	im.all.Add(1)
	im.latest = im.start(nil, pays)
	im.fresh[im.latest] = struct{}{}
}

// put offers an instance that waits for a call.
func (im *Image) put(in *instance, first bool) {
	im.mu.Lock()
	in.since = time.Now()
	if first {
		im.starting--
		delete(im.fresh, in)
		im.failures = 0
		im.took = in.since.Sub(in.began)
	}
	in.private = in.own
	switch {
	case im.closed:
		im.mu.Unlock()
		in.retire()
		return
	case len(im.waiters) > 0:
		w := im.waiters[0]
		im.waiters = im.waiters[1:]
		w.told <- ready{in: in}
		im.mu.Unlock()
		return
	}
	im.idle = append(im.idle, in)
	im.mu.Unlock()
	im.e.images.came()
}

// gone is called when an instance is about to end.
func (im *Image) gone(in *instance) {
	im.mu.Lock()
	defer im.all.Done()
	defer im.mu.Unlock()
	im.live--
	if in.saved != nil && in.saved.memory != im.memory {
		im.others--
		in.saved.memory.Close()
		im.e.images.dropped.Add(1)
	}
	select {
	case <-in.parked:
	default: // its start-up ended otherwise
		if in.only != nil {
			break
		}
		im.starting--
		delete(im.fresh, in)
		if in.err == nil {
			// What saw the image's clock and chance is no run's result. The program is
			// run again, for each call on its own.
			im.silent = true
			im.failures++
		}
		for _, w := range im.waiters {
			w.told <- ready{err: in.err}
		}
		im.waiters = nil
	}
	if im.live == 0 && im.memory != nil {
		im.memory.Close()
		im.memory = nil
		im.e.images.dropped.Add(1)
	}
	for _, w := range im.waiters {
		im.grow(true, w.pays)
	}
	// A run that spoilt its instance is one reason to start another ahead. That one was
	// taken back, or did not start, is none: the next would go the same way, for ever.
	if in.spoilt() && !im.closed && !im.silent && !im.once && im.live < im.spare && len(im.waiters) == 0 && !im.e.images.full.Load() {
		im.launch(in.given.StartFuel)
	}
}
