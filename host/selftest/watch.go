package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"openskill/examples/hostile"
	"openskill/sdk/skill"
)

const (
	probing  = 10 * time.Millisecond // between two questions for health, and between two looks at the memory
	calling  = 25 * time.Millisecond // between two calls of the canary
	patience = 10 * time.Second      // with one question; longer is a failure
)

// sample is one question and how it went.
type sample struct {
	at   time.Time // when it was asked
	took time.Duration
	err  error
}

// watch asks for health and calls the canary until it is stopped.
type watch struct {
	t   Target
	now func() time.Time

	mu     sync.Mutex
	health []sample
	canary []sample
	memory int64 // the most since it was reset

	stop context.CancelFunc
	done sync.WaitGroup
}

// The canary's tenant; hostile cases belong to others.
const canaryTenant = "selftest-canary"

func newWatch(ctx context.Context, t Target, canary skill.ID, now func() time.Time) *watch {
	ctx, stop := context.WithCancel(ctx)
	w := &watch{t: t, now: now, stop: stop}
	w.every(ctx, probing, &w.health, t.Health)
	w.every(ctx, calling, &w.canary, func(ctx context.Context) error { return call(ctx, t, canary) })
	w.done.Go(func() {
		tick := time.NewTicker(probing)
		defer tick.Stop()
		for {
			m := t.Memory()
			w.mu.Lock()
			w.memory = max(w.memory, m)
			w.mu.Unlock()
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return w
}

// errUnrecorded: the call was refused since the database did not answer in time, as one
// does not whose disk others keep busy.
var errUnrecorded = errors.New("AUDIT_UNAVAILABLE")

// call calls the canary once, and wants its answer.
func call(ctx context.Context, t Target, canary skill.ID) error {
	r := t.Invoke(ctx, canaryTenant, canary, json.RawMessage("{}"))
	switch {
	case r.Error != nil && r.Error.Code == skill.AuditUnavailable:
		return fmt.Errorf("%w: %s", errUnrecorded, r.Error.Message)
	case r.Error != nil:
		return fmt.Errorf("%s: %s", r.Error.Code, r.Error.Message)
	case !sameJSON(r.Data, hostile.CanaryData):
		return fmt.Errorf("the canary answered %.80q", r.Data)
	}
	return nil
}

// every asks at a steady pace. A question that takes longer delays the next one: its
// own time tells what the host owed.
func (w *watch) every(ctx context.Context, pace time.Duration, to *[]sample, ask func(context.Context) error) {
	w.done.Go(func() {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for ctx.Err() == nil {
			began := w.now()
			bounded, end := context.WithTimeout(ctx, patience)
			err := ask(bounded)
			end()
			if ctx.Err() != nil {
				return // stopped while it asked
			}
			w.mu.Lock()
			*to = append(*to, sample{began, w.now().Sub(began), err})
			w.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
}

// end stops asking.
func (w *watch) end() { w.stop(); w.done.Wait() }

// resetMemory begins a new peak and gives the memory now.
func (w *watch) resetMemory() int64 {
	now := w.t.Memory()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.memory = now
	return now
}

func (w *watch) peak() int64 {
	now := w.t.Memory()
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(w.memory, now)
}

// seen are the questions that were open at some moment between two times.
func (w *watch) seen(from, to time.Time) (health, canary []sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := func(all []sample) (some []sample) {
		for _, s := range all {
			if s.at.Before(to) && s.at.Add(s.took).After(from) {
				some = append(some, s)
			}
		}
		return some
	}
	return in(w.health), in(w.canary)
}

// p99 is the time that 99 of 100 samples kept to; of fewer than a hundred the longest.
func p99(all []sample) time.Duration {
	if len(all) == 0 {
		return 0
	}
	took := make([]time.Duration, len(all))
	for i, s := range all {
		took[i] = s.took
	}
	slices.Sort(took)
	return took[(len(took)*99+99)/100-1]
}

// failures counts the samples that failed, with the first error, and apart from them those
// that could not be put on record.
func failures(all []sample) (n, unrecorded int, first error) {
	for _, s := range all {
		switch {
		case s.err == nil:
		case errors.Is(s.err, errUnrecorded):
			unrecorded++
		default:
			if n == 0 {
				first = s.err
			}
			n++
		}
	}
	return n, unrecorded, first
}
