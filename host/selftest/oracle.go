package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// The bounds of the oracle.
const (
	healthBound = 100 * time.Millisecond // p99, while a case runs and for a second after
	canaryBound = 250 * time.Millisecond // p99, under load
	lateBound   = 250 * time.Millisecond // that a run may end after its deadline
	after       = time.Second            // that others are watched after a case
	settling    = 5 * time.Second        // in which a host is what it was before

	mayGoroutines  = 10
	mayThreads     = 4
	mayDescriptors = 4
	mayMemory      = 64 << 20
	// A worker process that stays, for the next calls, costs its host this; how many stay
	// is a setting.
	perWorker = 5
	// The folder of a skill that was called is kept open for a while, and so is the image of
	// one that was started.
	perSkill = 5
	// A worker keeps some of the sockets that calls at once had for themselves.
	spareLanes = 8

	judgeCPU    = 10 * time.Second
	judgeMemory = 512 << 20

	maxMessage = 512 // bytes
)

// step is one thing to hold a host to: a case of the corpus, or an attack that is none.
type step struct {
	name    string
	promise int
	limit   string
	play    func(ctx context.Context, row *Row)
}

// oracle holds a host to one step and gives the row, but for what others saw of it,
// which [others] adds a second later. What it wants, of every one:
//
//   - the case ends as it may end, and a run no later than 250 ms after its deadline;
//   - an error has a published code, a message of at most 512 bytes, and nothing of the
//     guest's control characters, of the host's paths, or of a Go panic in it;
//   - the host is the same process, and within 5 s back to its goroutines, threads,
//     descriptors and memory;
//   - a run takes its memory limit and 64 MiB at most; judging an upload takes 10 s of
//     processor time and 512 MiB at most;
//   - data folder and catalogue are what they were.
func (r *run) oracle(ctx context.Context, s *step) *Row {
	row := &Row{Promise: s.promise, Case: s.name, Limit: s.limit, Verdict: Pass}
	r.before, r.added, r.atOnce = r.t.Usage(ctx), 0, 0
	if r.played[s.name]++; r.played[s.name] > 1 {
		row.Happened = [...]string{"second try", "third try"}[min(r.played[s.name]-2, 1)]
	}
	s.play(ctx, row)
	if row.Verdict == Skip {
		return row
	}
	r.settled(ctx, row, r.before)
	now, err := r.t.State(ctx)
	switch {
	case err != nil:
		row.fault("the data folder and the catalogue cannot be read: %v", err)
	case now != r.state:
		row.fault("the data folder or the catalogue changed")
		r.state = now // so that the next row is its own
	}
	return row
}

// settled waits until the host is what it was.
func (r *run) settled(ctx context.Context, row *Row, before Usage) {
	deadline := r.o.Now().Add(r.o.scale(settling))
	for {
		now := r.t.Usage(ctx)
		if now.PID != before.PID {
			row.fault("the host is another process: %d, was %d", now.PID, before.PID)
			return
		}
		var more []string
		count := func(what string, is, was, may int) {
			if is >= 0 && was >= 0 && is > was+may {
				more = append(more, fmt.Sprintf("%d %s, were %d", is, what, was))
			}
		}
		workers := max(now.Processes-before.Processes, 0)
		count("goroutines", now.Goroutines, before.Goroutines, mayGoroutines+perWorker*workers)
		// The runtime keeps a thread for each blocking call that there ever was at once.
		count("threads", now.Threads, before.Threads, mayThreads+r.atOnce)
		count("descriptors", now.Descriptors, before.Descriptors, mayDescriptors+perWorker*workers+perSkill*r.added+min(r.atOnce, spareLanes))
		count("MiB of memory", int(now.Memory>>20), int(before.Memory>>20), mayMemory>>20)
		if len(more) == 0 {
			return
		}
		if ctx.Err() != nil || r.o.Now().After(deadline) {
			row.fault("not back after %v: %s", r.o.scale(settling), strings.Join(more, "; "))
			return
		}
		r.pause(ctx, 50*time.Millisecond)
	}
}

// others adds what others saw between two times, and a second later.
func (r *run) others(row *Row, from, to time.Time) {
	health, canary := r.watch.seen(from, to.Add(after))
	m := &row.Measured
	m.HealthP99MS, m.CanaryP99MS, m.CanaryCalls = ms(p99(health)), ms(p99(canary)), len(canary)
	if n, _, err := failures(health); n > 0 {
		row.fault("%d of %d questions for health failed: %v", n, len(health), err)
	}
	n, unrecorded, err := failures(canary)
	if n > 0 {
		row.fault("%d of %d calls of the canary failed: %v", n, len(canary), err)
	}
	if unrecorded > 0 { // a matter of time, which the next tries tell
		row.slow("%d of %d calls of the canary were refused, since the database did not respond in time", unrecorded, len(canary))
	}
	if slow := p99(health); slow > r.o.scale(healthBound) {
		row.slow("/healthz answered within %.0f ms at p99, want %v", ms(slow), r.o.scale(healthBound))
	}
}

// said holds an error of the host to the rules.
func (r *run) said(row *Row, e *skill.ResultError) {
	if e == nil {
		return
	}
	if !e.Code.Known() || e.Status != e.Code.Status() {
		row.fault("the code %.40q with the status %d is not published", e.Code, e.Status)
	}
	if len(e.Message) > maxMessage || e.Message == "" {
		row.fault("a message of %d bytes", len(e.Message))
	}
	all := e.Message
	if details, err := json.Marshal(e.Details); err == nil {
		all += "\n" + string(details)
	}
	if strings.ContainsFunc(e.Message, unshown) {
		row.fault("control characters in %.80q", e.Message)
	}
	for _, word := range append([]string{"goroutine ", ".go:", "panic:", "runtime error", "wazero"}, r.t.Secrets()...) {
		if strings.Contains(all, word) {
			row.fault("a message tells %.40q", word)
		}
	}
}

func unshown(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r == 0xfeff
}

// ended reports whether a code is among those that a case may end with.
func ended(code skill.Code, ends []skill.Code) bool {
	if ends == nil {
		return code != skill.Internal && code != skill.WorkerCrashed && code != skill.NotFound
	}
	return slices.Contains(ends, code)
}

// resultError is an error of the target in the form of a result's.
func resultError(err error) *skill.ResultError {
	var e *skill.Error
	if !errors.As(err, &e) {
		return nil
	}
	return &skill.ResultError{Code: e.Code, Status: e.Code.Status(), Message: e.Message, Details: e.Details}
}

func named(code skill.Code) string {
	if code == "" {
		return "answered"
	}
	return string(code)
}

func names(codes []skill.Code) string {
	var all []string
	for _, c := range codes {
		all = append(all, named(c))
	}
	return strings.Join(all, " or ")
}

func sameJSON(a json.RawMessage, b string) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}
