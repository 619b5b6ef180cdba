package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"openskill/examples/hostile"
	"openskill/sdk/skill"
)

// play uploads and calls one case, and notes in the row what happened.
func (r *run) play(ctx context.Context, c *hostile.Case, row *Row) {
	if c.Meanwhile != nil && r.t.Planted() == "" {
		row.Verdict, row.Happened = Skip, "this host's data folder cannot be reached from here"
		return
	}
	tenants := []string{hostileTenant}
	if c.Two {
		tenants = append(tenants, tenants[0]+"-b")
	}
	ids := make([]skill.ID, len(tenants))
	for i, tenant := range tenants {
		id, ok := r.add(ctx, tenant, c, row)
		if !ok {
			return
		}
		defer r.t.Remove(ctx, tenant, id)
		ids[i] = id
	}
	want := c.Ends
	if c.Refused != nil && c.Ends == nil {
		want = c.Refused // by a host that looks inside when it is called
	}
	if c.Name == hostile.CrashName {
		r.crash(ctx, c, row, tenants[0], ids[0])
		return
	}
	if c.Needs != "" && !r.needs(ctx, c, row, tenants[0], ids[0]) {
		return
	}
	if c.Meanwhile != nil {
		aside, stop := context.WithCancel(ctx)
		var done sync.WaitGroup
		done.Go(func() { c.Meanwhile(aside, r.t.Planted()) })
		defer done.Wait()
		defer stop()
	}
	was := r.watch.resetMemory()
	if c.AtOnce > 1 {
		r.atOnce = len(tenants) * c.AtOnce
	}
	calls := &tally{codes: map[skill.Code]int{}}
	var all sync.WaitGroup
	for i := range tenants {
		places := make(chan struct{}, max(c.AtOnce, 1))
		all.Go(func() {
			var some sync.WaitGroup
			for n := range max(c.Calls, 1) {
				places <- struct{}{}
				some.Go(func() {
					calls.add(r.one(ctx, c, row, tenants[i], ids[i], n, want))
					<-places
				})
			}
			some.Wait()
		})
	}
	all.Wait()
	calls.tell(row)
	if c.Refused != nil && c.Ends == nil {
		row.Happened = happened(row.Happened, "when it was called")
	}
	r.wore(c, row, was, int64(len(tenants)*max(c.AtOnce, 1)))
}

// add uploads a case. It reports whether there is something to call.
func (r *run) add(ctx context.Context, tenant string, c *hostile.Case, row *Row) (skill.ID, bool) {
	u := c.Upload()
	was, cpu := r.watch.resetMemory(), r.t.CPU()
	began := r.o.Now()
	id, err := r.t.Add(ctx, tenant, u)
	took := r.o.Now().Sub(began)
	cpu = max(r.t.CPU()-cpu-time.Duration(r.idle*float64(took)), 0)
	m := &row.Measured
	m.UploadMB, m.CPUMS = mb(max(r.watch.peak()-was, 0)), ms(cpu)
	if cpu > r.o.scale(judgeCPU) { // what others ask meanwhile is only estimated
		row.fault("judging the upload took %v of processor time", cpu)
	}
	if m.UploadMB > mb(judgeMemory) {
		row.fault("judging the upload took %.0f MiB", m.UploadMB)
	}
	if err == nil {
		r.added++
		return id, true
	}
	m.MS = ms(took)
	e := resultError(err)
	if e == nil {
		row.fault("the upload could not be tried: %v", err)
		return "", false
	}
	r.lock(func() {
		r.said(row, e)
		row.Happened = happened(row.Happened, "refused with "+string(e.Code))
		if c.Refused == nil {
			row.fault("it is refused (%s) and should be admitted", e.Message)
		} else if !ended(e.Code, c.Refused) {
			row.fault("refused with %s (%s), want %s", e.Code, e.Message, names(c.Refused))
		}
	})
	return "", false
}

// outcome is how one call ended.
type outcome struct {
	code skill.Code
	took time.Duration
	over time.Duration // beyond the deadline; below zero: before it
}

// one makes one call. A host that is busy says so, and is asked again.
func (r *run) one(ctx context.Context, c *hostile.Case, row *Row, tenant string, id skill.ID, n int, want []skill.Code) outcome {
	input := json.RawMessage("{}")
	if c.Input != nil {
		input = c.Input(n)
	}
	var res *skill.Result
	var took time.Duration
	for range 100 {
		bounded, stop := context.WithCancel(ctx)
		if c.Leave > 0 {
			stop()
			bounded, stop = context.WithTimeoutCause(ctx, c.Leave, errLeft)
		}
		began := r.o.Now()
		res = r.t.Invoke(bounded, tenant, id, input)
		took = r.o.Now().Sub(began)
		stop()
		if res.Error == nil || res.Error.Code != skill.RateLimited {
			break
		}
		r.pause(ctx, 20*time.Millisecond)
	}
	var code skill.Code
	if res.Error != nil {
		code = res.Error.Code
	}
	if c.Leave > 0 && code == skill.Timeout {
		code = skill.Cancelled // the caller's own time was over
	}
	deadline := c.Limits.Timeout
	if c.Leave > 0 {
		deadline = c.Leave
	}
	r.lock(func() {
		r.said(row, res.Error)
		switch {
		case !ended(code, want):
			message := ""
			if res.Error != nil {
				message = " (" + res.Error.Message + ")"
			}
			row.fault("a call ended with %s%s, want %s", named(code), message, names(want))
		case code == "" && c.Data != "" && !sameJSON(res.Data, c.Data):
			row.fault("a call answered %.120s, want %s", res.Data, c.Data)
		}
		if deadline > 0 && took > deadline+r.o.scale(lateBound) {
			row.slow("a call ended %.0f ms after its deadline", ms(took-deadline))
		}
	})
	return outcome{code, took, took - deadline}
}

var errLeft = errors.New("the caller left")

// tally counts how calls ended.
type tally struct {
	mu    sync.Mutex
	codes map[skill.Code]int
	n     int
	long  time.Duration
	over  time.Duration
}

func (t *tally) add(o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == 0 || o.over > t.over {
		t.over = o.over
	}
	t.codes[o.code]++
	t.n++
	t.long = max(t.long, o.took)
}

func (t *tally) tell(row *Row) {
	row.Measured.Calls, row.Measured.MS, row.Measured.OverMS = t.n, ms(t.long), max(ms(t.over), 0)
	for _, code := range sortedCodes(t.codes) {
		what := named(code)
		if t.n > 1 {
			what = fmt.Sprintf("%d times %s", t.codes[code], what)
		}
		row.Happened = happened(row.Happened, what)
	}
	row.Happened = happened(row.Happened, fmt.Sprintf("%.0f ms", ms(t.long)))
}

// wore compares the memory that runs took with their limits.
func (r *run) wore(c *hostile.Case, row *Row, was, runs int64) {
	limit := int64(r.o.Memory) // at most 4 GiB
	if c.Limits.Memory > 0 {
		limit = int64(c.Limits.Memory)
	}
	peak := r.watch.peak()
	if was == 0 || peak == 0 {
		return
	}
	took := max(peak-was, 0)
	if c.Wears {
		row.Measured.MemoryMB, row.Measured.LimitMB = mb(took), mb(limit*runs)
	}
	if took > runs*(limit+mayMemory) {
		row.fault("%d runs took %.0f MiB, their limits are %.0f MiB", runs, mb(took), mb(runs*limit))
	}
}

// needs waits until a runtime that was never used is ready; a host without it cannot
// be held to the case.
func (r *run) needs(ctx context.Context, c *hostile.Case, row *Row, tenant string, id skill.ID) bool {
	for end := r.o.Now().Add(time.Minute); ; r.pause(ctx, 200*time.Millisecond) {
		res := r.t.Invoke(ctx, tenant, id, json.RawMessage("{}"))
		switch {
		case res.Success:
			r.before = r.t.Usage(ctx) // a runtime that was started stays, for the calls to come
			return true
		case res.Error.Code == skill.NotFound || res.Error.Code == skill.ToolInvocationError && r.o.Now().After(end):
			row.Verdict, row.Happened = Skip, fmt.Sprintf("%s is not ready here: %s", c.Needs, res.Error.Message)
			return false
		case ctx.Err() != nil || r.o.Now().After(end):
			return true // the call that counts tells
		}
	}
}

// crash kills the worker of a call. A call that found no room was never in a worker, so
// what was killed was another's, and it is tried again.
func (r *run) crash(ctx context.Context, c *hostile.Case, row *Row, tenant string, id skill.ID) {
	var res *skill.Result
	var took time.Duration
	for range 100 {
		var found bool
		res, took, found = r.killed(ctx, tenant, id)
		limited := res.Error != nil && res.Error.Code == skill.RateLimited
		if !found && !limited {
			row.Verdict, row.Happened = Skip, "no worker process runs it, so none can be killed"
			return
		}
		if !limited {
			break
		}
		r.pause(ctx, 20*time.Millisecond)
	}
	row.Measured.Calls, row.Measured.MS = 1, ms(took)
	r.said(row, res.Error)
	var code skill.Code
	if res.Error != nil {
		code = res.Error.Code
	}
	row.Happened = happened(row.Happened, named(code), fmt.Sprintf("%.0f ms after the kill", ms(took)))
	if !ended(code, c.Ends) {
		row.fault("the call ended with %s, want %s", named(code), names(c.Ends))
	}
	if took > r.o.scale(lateBound) {
		row.slow("the call ended %.0f ms after its worker", ms(took))
	}
}

// killed calls, kills a worker that began to work meanwhile, and says how the call ended
// and how long after that; or that there was none to kill.
func (r *run) killed(ctx context.Context, tenant string, id skill.ID) (*skill.Result, time.Duration, bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	others := r.t.Busy() // the canary's, and what starts
	done := make(chan *skill.Result, 1)
	go func() { done <- r.t.Invoke(ctx, tenant, id, json.RawMessage("{}")) }()
	for range 5 {
		if r.t.Crash(others) {
			at := r.o.Now()
			res := <-done
			return res, r.o.Now().Sub(at), true
		}
	}
	stop()
	return <-done, 0, false
}
