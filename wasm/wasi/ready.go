package wasi

import "math"

// readyStream is a descriptor that can be read or written without waiting.
type readyStream struct {
	FD    int `json:"fd"`
	Bytes int `json:"bytes"` // there are, or there is room for; 0: the other end is closed
}

// readyAnswer says what of a request can be done without waiting.
type readyAnswer struct {
	Read  []readyStream `json:"read,omitempty"`
	Write []readyStream `json:"write,omitempty"`
	Ended bool          `json:"ended,omitempty"` // a child, which can be waited for
}

func (a *readyAnswer) any() bool { return a.Ended || len(a.Read)+len(a.Write) > 0 }

// readyProcess waits until one of the descriptors can be read or written, a child has ended, if
// that is asked for, or the time has passed. Languages need it that have no poll.
func (w *World) readyProcess(r *processRequest) any {
	self, g := w.cfg.Process, w.group()
	if g == nil {
		return errNoProcesses
	}
	if len(r.Read)+len(r.Write) > maxSubscriptions {
		return &processFailure{"EINVAL", "too many descriptors to wait for"}
	}
	w.copied((len(r.Read) + len(r.Write)) * eventSize)
	for _, list := range []struct {
		fds   []uint32
		right uint8
	}{{r.Read, canRead}, {r.Write, canWrite}} {
		for _, fd := range list.fds {
			if d := w.fd(uint64(fd)); d == nil || d.rights&list.right == 0 {
				return &processFailure{"EBADF", "a descriptor to wait for is not open for it"}
			}
		}
	}
	look := func() *readyAnswer {
		a := &readyAnswer{Read: w.readyStreams(r.Read, false), Write: w.readyStreams(r.Write, true)}
		a.Ended = r.Child != nil && g.find(self, *r.Child) >= 0
		return a
	}
	now := func() *readyAnswer {
		g.mu.Lock()
		defer g.mu.Unlock()
		return look()
	}
	a := now()
	if a.any() || r.MS != nil && *r.MS <= 0 {
		return a
	}
	until := int64(0)
	if r.MS != nil {
		at, ok := g.now()
		if !ok {
			w.end(ReasonReplay, 0)
		}
		until = max(1, at+int64(min(*r.MS*1e6, math.MaxInt64/2)))
	}
	w.awaitUntil(w.ctx, func() bool { return look().any() }, until)
	return now()
}

// readyStreams are those of a list that do not wait. What is no pipe never does.
func (w *World) readyStreams(fds []uint32, write bool) (list []readyStream) {
	for _, fd := range fds {
		n, ready := chunk, true
		if d := w.fd(uint64(fd)); d.kind == isPipe {
			if write {
				ready, n = d.h.pipe.writable()
			} else {
				ready, n = d.h.pipe.readable()
			}
		}
		if ready {
			list = append(list, readyStream{FD: int(fd), Bytes: max(0, n)})
		}
	}
	return list
}
