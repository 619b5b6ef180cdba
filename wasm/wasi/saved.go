package wasi

import (
	"time"

	"openskill/wasm/guestfs"
)

// Saved is the state of a World at one moment: its descriptors with their
// offsets and flags, and how far its clock had come. The files of the guest are
// not part of it: scratch memory is its owner's to reset, and a state is worth
// saving only while that is empty ([guestfs.Memory.Empty]).
type Saved struct {
	fds     []descriptor
	elapsed int64
}

// Save keeps the state. Files that are open now stay open until Release, whatever
// the guest closes.
func (w *World) Save() *Saved {
	s := &Saved{fds: append([]descriptor(nil), w.fds...), elapsed: w.elapsed()}
	retain(s.fds)
	return s
}

// Release closes what only the saved state kept open. It may be called twice.
func (s *Saved) Release() error {
	err := release(s.fds)
	s.fds = nil
	return err
}

// Restore puts the World back to the saved state, as the world of a new run:
// streams, limits, clocks, chance and Charge are those of cfg, the recorded stop
// is gone, and nothing that was written, opened or asked for since is left. MaxOpenFiles
// stays, Root does where cfg has none, and arguments and environment are cfg's. The real monotonic
// clock goes on from the saved moment.
func (w *World) Restore(s *Saved, cfg Config) error {
	retain(s.fds)
	err := release(w.fds)
	clear(w.fds)
	w.fds = append(w.fds[:0], s.fds...)
	for i := range w.fds {
		if h := w.fds[i].h; h != nil {
			h.list = listing{} // a listing is of its run's files
		}
	}
	clear(w.listings)
	w.listings = w.listings[:0]
	w.unplug()
	cfg.MaxOpenFiles = w.cfg.MaxOpenFiles
	if cfg.Root == nil {
		cfg.Root = w.cfg.Root
	}
	if cfg.Root != w.cfg.Root { // what is open of the other one is the start-up's own
		for i := range w.fds {
			if d := &w.fds[i]; d.preopen {
				_ = d.h.drop() // it was only read
				d.h = nil
			}
		}
	}
	w.configure(cfg)
	w.join()
	w.began = realNow().Add(-time.Duration(s.elapsed))
	w.stopped, w.closed = Stop{}, false
	w.talk = nil
	w.ctx, w.mod, w.mem = nil, nil, nil
	return err
}

// Changes are the numbers of descriptors that are not as in a saved state.
type Changes struct{ Opened, Closed []uint32 }

// Changes compares the descriptors with those of the saved state.
func (w *World) Changes(s *Saved) (c Changes) {
	for i := range max(len(w.fds), len(s.fds)) {
		var now, then descriptor
		if i < len(w.fds) {
			now = w.fds[i]
		}
		if i < len(s.fds) {
			then = s.fds[i]
		}
		switch {
		case now.kind == isFree && then.kind != isFree:
			c.Closed = append(c.Closed, uint32(i)) // at most Config.MaxOpenFiles
		case now.kind != then.kind || then.h != nil && now.h != then.h || then.h == nil && now.kind == isFile:
			c.Opened = append(c.Opened, uint32(i)) // as above
		}
	}
	return c
}

// Apply makes the changes of an earlier run: what it had open is there, so that its numbers are not
// given to other files, but every use is ESTALE. It reports false where there cannot be as many.
func (w *World) Apply(c *Changes) bool {
	for _, n := range c.Closed {
		if d := w.fd(uint64(n)); d != nil {
			_ = w.closeFD(d) // it was only read
		}
	}
	for _, n := range c.Opened {
		if int64(n) >= int64(w.cfg.MaxOpenFiles) {
			return false
		}
		for int(n) >= len(w.fds) {
			w.fds = append(w.fds, descriptor{})
		}
		if w.fds[n].kind != isFree {
			_ = w.closeFD(&w.fds[n]) // as above
		}
		w.fds[n] = descriptor{kind: isFile, rights: canRead | canWrite, h: open(guestfs.Stale{})}
	}
	return true
}
