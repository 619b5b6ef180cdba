package wasi

import (
	"math"
	"time"

	"openskill/wasm/guestfs"
)

// Layout and kinds of subscriptions and events.
const (
	maxSubscriptions = 1024
	subscriptionSize = 48
	eventSize        = 32

	eventClock = 0
	eventRead  = 1
	eventWrite = 2

	clockAbsolute = 1 // of subclockflags
)

// subscription is one thing that a guest waits for.
type subscription struct {
	user  uint64 // the guest's own mark
	kind  byte
	input bool          // waits for standard input
	ready bool          // is to be reported
	left  time.Duration // of a clock
	errno guestfs.Errno
	bytes uint64                         // that can be read, or written
	pipe  func() (ready bool, bytes int) // that it waits for; nil: for none
}

// pollOneoff reports what is ready. If nothing is, it waits for the earliest clock
// or for input, and always for the context. Files and outputs are always ready.
func (w *World) pollOneoff(p []uint64) guestfs.Errno {
	n := uint64(uint32(p[2]))
	if n == 0 || n > maxSubscriptions {
		return guestfs.EINVAL
	}
	if w.cfg.Begin != nil && w.pollsInput(p[0], n) {
		w.begin(func(w *World, p []uint64) uint64 { return uint64(w.pollOneoff(p)) }, p)
	}
	in, ok := w.result(p[0], n*subscriptionSize)
	out, ok2 := w.result(p[1], n*eventSize)
	count, ok3 := w.result(p[3], 4)
	if !ok || !ok2 || !ok3 {
		return guestfs.EFAULT
	}
	w.copied(int(n * (subscriptionSize + eventSize)))

	// All is read before anything is written: the arrays may overlap.
	var few [4]subscription
	subs := few[:0]
	for ; len(in) > 0; in = in[subscriptionSize:] {
		s, errno := w.subscription(in)
		if errno != 0 {
			return errno
		}
		subs = append(subs, s)
	}
	w.pollWait(subs)

	events := 0
	for i := range subs {
		if subs[i].ready {
			putEvent(out[events*eventSize:], &subs[i])
			events++
		}
	}
	le.PutUint32(count, uint32(events))
	return 0
}

// pollsInput reports whether one of n subscriptions is for standard input.
func (w *World) pollsInput(at, n uint64) bool {
	in, ok := w.result(at, n*subscriptionSize)
	for ; ok && len(in) > 0; in = in[subscriptionSize:] {
		if in[8] == eventRead {
			if d := w.fd(uint64(le.Uint32(in[16:]))); d != nil && d.kind == isStdin {
				return true
			}
		}
	}
	return false
}

func putEvent(out []byte, s *subscription) {
	out = out[:eventSize]
	clear(out)
	le.PutUint64(out, s.user)
	le.PutUint16(out[8:], uint16(s.errno))
	out[10] = s.kind
	if s.kind != eventClock {
		le.PutUint64(out[16:], s.bytes)
	}
}

// subscription reads one record and looks at what it is about.
func (w *World) subscription(b []byte) (subscription, guestfs.Errno) {
	s := subscription{user: le.Uint64(b), kind: b[8]}
	switch s.kind {
	case eventClock:
		left, errno := w.clockLeft(le.Uint32(b[16:]), le.Uint64(b[24:]), le.Uint16(b[40:]))
		if errno != 0 {
			return s, errno
		}
		s.left, s.ready = left, left <= 0
	case eventRead, eventWrite:
		w.readiness(&s, uint64(le.Uint32(b[16:])))
	default:
		return s, guestfs.EINVAL
	}
	return s, 0
}

// clockLeft is how long it is until a clock's time, zero or less if it has come.
func (w *World) clockLeft(clock uint32, timeout uint64, flags uint16) (time.Duration, guestfs.Errno) {
	now, errno := w.now(clock)
	if errno != 0 {
		return 0, errno
	}
	if flags&^clockAbsolute != 0 {
		return 0, guestfs.EINVAL
	}
	left := int64(min(timeout, math.MaxInt64))
	if flags&clockAbsolute != 0 {
		left -= now // no clock is negative, so this cannot overflow
	}
	return time.Duration(left), 0
}

func (w *World) readiness(s *subscription, fd uint64) {
	d := w.fd(fd)
	switch {
	case d == nil:
		s.errno = guestfs.EBADF
	case s.kind == eventRead && d.kind == isStdin:
		if !w.in.ready(w.ctx, nil, false) {
			s.input = true
			return
		}
		s.bytes = w.in.available()
	case d.kind == isPipe && d.rights == canRead && s.kind == eventRead:
		s.pipe = d.h.pipe.readable
	case d.kind == isPipe && d.rights == canWrite && s.kind == eventWrite:
		s.pipe = d.h.pipe.writable
	case d.kind == isDir,
		s.kind == eventRead && d.rights&canRead == 0,
		s.kind == eventWrite && d.rights&canWrite == 0:
		s.errno = guestfs.EBADF
	case s.kind == eventWrite:
		s.bytes = chunk
	case d.kind == isNull:
	default:
		if st, errno := d.h.file.Stat(); errno == 0 {
			s.bytes = uint64(max(0, st.Size-d.offset))
		}
	}
	if s.pipe != nil {
		s.look()
		return
	}
	s.ready = true
}

// look looks at the pipe that a subscription is for.
func (s *subscription) look() {
	ready, n := s.pipe()
	s.ready, s.bytes = ready, uint64(max(0, n))
}

// pollWait waits until at least one subscription is ready.
func (w *World) pollWait(subs []subscription) {
	wait, clock, input := time.Duration(math.MaxInt64), false, false
	for i := range subs {
		switch {
		case subs[i].ready:
			return
		case subs[i].input:
			input = true
		case subs[i].pipe != nil:
		default:
			clock = true
			wait = min(wait, subs[i].left)
		}
	}
	if p := w.cfg.Process; p != nil && p.group != nil && !input {
		w.pollGroup(p.group, subs, clock, wait)
		return
	}
	var fired <-chan time.Time
	again := w.cfg.Replay != nil // its clocks say that the time has passed
	if clock && !again {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		fired = timer.C
	}
	came := false
	switch {
	case input:
		came = w.in.ready(w.ctx, fired, true)
	case again:
	default:
		select {
		case <-fired:
		case <-w.ctx.Done():
		}
	}
	w.checkContext()
	if clock && !came && w.cfg.Slept != nil {
		w.cfg.Slept(wait)
	}
	for i := range subs {
		s := &subs[i]
		if came {
			s.ready = s.input
			s.bytes = w.in.available()
		} else {
			s.ready = !s.input && s.left <= wait
		}
	}
}

// pollGroup is pollWait of a process of a group, whose others go on meanwhile.
func (w *World) pollGroup(g *Group, subs []subscription, clock bool, wait time.Duration) {
	until := int64(0)
	if clock {
		now, ok := g.now()
		if !ok {
			w.end(ReasonReplay, 0)
		}
		until = max(1, now+min(int64(wait), math.MaxInt64-now))
	}
	timed := w.awaitUntil(w.ctx, func() bool {
		for i := range subs {
			if s := &subs[i]; s.pipe != nil {
				if ready, _ := s.pipe(); ready {
					return true
				}
			}
		}
		return false
	}, until)
	for i := range subs {
		if s := &subs[i]; s.pipe != nil {
			s.look()
		} else {
			s.ready = timed && s.left <= wait
		}
	}
}
