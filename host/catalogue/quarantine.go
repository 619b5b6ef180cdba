package catalogue

import (
	"fmt"
	"sync"
	"time"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// WatchOptions are those of a Watch. Quarantine is required.
type WatchOptions struct {
	// Quarantine puts a version into quarantine, for good.
	Quarantine func(tenant string, id skill.ID, version, reason string) error

	Crashes int           // of the worker, within Window; 0: 2
	Window  time.Duration // 0: 10 minutes
	Limits  int           // runs in a row that a limit ended; 0: 20
	Now     func() time.Time
}

// Watch decides when a stranger's skill has failed often enough to be taken out of service.
// It counts how runs end, in memory: a restart begins anew.
//
// Two things count against a version: runs in which its worker process crashed, and runs in a
// row, without a success between them, that were ended by a limit of the skill itself. What
// the caller of a run chose to make smaller does not count.
//
// It is safe for concurrent use.
type Watch struct {
	o WatchOptions

	mu     sync.Mutex
	counts map[watched]*count
}

type watched struct {
	owner   string
	id      skill.ID
	version string
	digest  string
}

type count struct {
	crashes []time.Time // within the window, the last one last
	limits  int
	last    skill.Code // of the limits
	seen    time.Time
}

// maxCounts bounds the memory of what is counted: beyond it, what was not heard of
// for a window is forgotten.
const maxCounts = 10_000

// NewWatch makes a Watch.
func NewWatch(o WatchOptions) *Watch {
	if o.Crashes <= 0 {
		o.Crashes = 2
	}
	if o.Window <= 0 {
		o.Window = 10 * time.Minute
	}
	if o.Limits <= 0 {
		o.Limits = 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Watch{o: o, counts: map[watched]*count{}}
}

// limitCodes are the limits that end a run.
var limitCodes = map[skill.Code]bool{
	skill.Timeout: true, skill.FuelExhausted: true, skill.MemoryLimit: true, skill.OutputLimit: true, skill.StackLimit: true, skill.TableLimit: true,
}

// Ended takes note of how a run ended; code is "" for a success. lowered says that
// the caller made limits smaller. A version that has now failed too often is put
// into quarantine before Ended returns.
func (w *Watch) Ended(s *manifest.Skill, code skill.Code, lowered bool) {
	if s.Owner == "" {
		return
	}
	d := &s.Descriptor
	if reason := w.note(watched{s.Owner, d.ID, d.Version, d.Digest}, code, lowered); reason != "" {
		// The store logs what it cannot write, and holds it in memory all the same.
		_ = w.o.Quarantine(s.Owner, d.ID, d.Version, reason)
	}
}

// note gives the reason for a quarantine, "" for none.
func (w *Watch) note(v watched, code skill.Code, lowered bool) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.o.Now()
	c := w.counts[v]
	crashed, limited := code == skill.WorkerCrashed, limitCodes[code] && !lowered
	if c == nil {
		if !crashed && !limited {
			return "" // most runs end well, and cost nothing here
		}
		w.forget(now)
		c = &count{}
		w.counts[v] = c
	}
	c.seen = now
	switch {
	case code == "":
		c.limits = 0
	case crashed:
		recent := c.crashes[:0]
		for _, at := range c.crashes {
			if now.Sub(at) < w.o.Window {
				recent = append(recent, at)
			}
		}
		c.crashes = append(recent, now)
	case limited:
		c.limits++
		c.last = code
	}
	reason := ""
	switch {
	case len(c.crashes) >= w.o.Crashes:
		reason = fmt.Sprintf("its worker process crashed %d times within %s", len(c.crashes), w.o.Window)
	case c.limits >= w.o.Limits:
		reason = fmt.Sprintf("%d runs in a row hit a limit, the last one %s", c.limits, c.last)
	}
	if reason != "" || code == "" && len(c.crashes) == 0 {
		delete(w.counts, v)
	}
	return reason
}

// forget makes room; w.mu is held.
func (w *Watch) forget(now time.Time) {
	if len(w.counts) < maxCounts {
		return
	}
	for v, c := range w.counts {
		if now.Sub(c.seen) >= w.o.Window {
			delete(w.counts, v)
		}
	}
	if len(w.counts) >= maxCounts { // all of them are recent: better none than all memory
		clear(w.counts)
	}
}
