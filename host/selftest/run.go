package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"openskill/examples/hostile"
	"openskill/sdk/skill"
)

// Options of a run; zero fields mean the defaults.
type Options struct {
	Cases     []hostile.Case // nil: all of the corpus
	Filter    string         // text that the name of a row must hold, without regard to case; "": all rows
	Load      time.Duration  // how long eight hostile calls go on at once; 0: 15 s
	Memory    uint64         // bytes of a run whose manifest says nothing; 0: 256 MiB
	OneTenant bool           // all callers of the host are one tenant
	Slack     float64        // factor of every bound on time, for machines that do other work; 0: 1

	// Protections are rows of their own, asked for when the canary has answered; one
	// that is off fails. nil: none.
	Protections func() []Protection

	// Durable ends a host in the middle of uploads, as a failing machine does, and says
	// how many were acknowledged and how many of those are lost; nil: not tried.
	Durable func(ctx context.Context) (Durability, error)

	// Script runs a script of the Agent Skill that hostile.PlantScripts writes; nil: those rows
	// are skipped. The reply is nil where the run did not begin.
	Script func(ctx context.Context, tenant, name string, limits skill.Limits) (*skill.Result, *skill.Reply)

	Each func(Row)        // called with each row as soon as it is known, one at a time; nil: nothing
	Now  func() time.Time // nil: the system's clock
}

// Durability is what ends of a host did.
type Durability struct {
	Ends         int // of the host
	Acknowledged int // uploads
	Lost         int // of those
	Half         int // versions that are visible and not whole
}

// Report is all of a run.
type Report struct {
	Rows     []Row `json:"rows"`
	Promises []Row `json:"promises"` // a summary of each promise, with the number that was measured
	Passed   int   `json:"passed"`   // of the rows
	Failed   int   `json:"failed"`
	Skipped  int   `json:"skipped"`
}

// OK reports whether every row passed that could be held.
func (r *Report) OK() bool { return r.Failed == 0 && r.Passed > 0 }

// run is one run.
type run struct {
	t      Target
	o      Options
	watch  *watch
	state  string         // of the host before the first case
	before Usage          // what the host had before the step that is played
	played map[string]int // how often each step was tried
	added  int            // skills, in the step that is played
	atOnce int            // calls and uploads of the step that is played
	idle   float64        // processors that asking for health and calling the canary take

	mu sync.Mutex // of rows that several calls write to
}

func (r *run) lock(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

func (o *Options) scale(d time.Duration) time.Duration { return time.Duration(float64(d) * o.Slack) }

// pause waits, or less if ctx ends.
func (r *run) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// hostileTenant is whose the cases are: one tenant, so that what its worker process
// takes is there before the first case; the second is for those that want two.
const hostileTenant = "selftest-hostile"

// Run plays all that the options name and gives the report. The error says that the
// host could not be tested at all; what it did wrong is in the rows.
func Run(ctx context.Context, t Target, o Options) (*Report, error) {
	if o.Cases == nil {
		o.Cases = hostile.All()
	}
	if o.Load <= 0 {
		o.Load = 15 * time.Second
	}
	if o.Memory == 0 {
		o.Memory = 256 << 20
	}
	if o.Slack <= 0 {
		o.Slack = 1
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Each == nil {
		o.Each = func(Row) {}
	}
	r := &run{t: t, o: o, played: map[string]int{}}
	report := &Report{Rows: []Row{}}
	add := func(row Row) {
		if row.Verdict == Late {
			row.Verdict = Fail
		}
		report.add(row)
		o.Each(row)
	}
	if err := r.playAll(ctx, r.steps(), add); err != nil {
		return nil, err
	}
	report.summarize()
	return report, nil
}

// Names gives the names of the rows that a run with these options has.
func Names(o Options) []string {
	if o.Cases == nil {
		o.Cases = hostile.All()
	}
	r := &run{o: o}
	var names []string
	for _, row := range r.protections() {
		names = append(names, row.Case)
	}
	for _, s := range r.steps() {
		names = append(names, s.name)
	}
	return names
}

func (o *Options) wants(name string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(o.Filter))
}

func (r *run) protections() (rows []Row) {
	if r.o.Protections == nil {
		return nil
	}
	for _, p := range r.o.Protections() {
		row := Row{Case: "protection: " + p.Name, Limit: "the settings and the machine", Happened: p.Detail, Verdict: Pass}
		switch {
		case p.On:
		case p.Optional:
			row.Verdict = Skip
		default:
			row.fault("it is off: %s", p.Detail)
		}
		if r.o.wants(row.Case) {
			rows = append(rows, row)
		}
	}
	return rows
}

// steps are all that is played, in order.
func (r *run) steps() []step {
	var all []step
	for _, c := range r.o.Cases {
		all = append(all, step{c.Name, c.Promise, c.Limit, func(ctx context.Context, row *Row) { r.play(ctx, &c, row) }})
	}
	all = append(all, r.scripts()...)
	all = append(all, r.attacks()...)
	all = append(all, r.crowds()...)
	all = append(all, r.floods()...)
	all = append(all,
		step{"load: eight hostile calls at once", hostile.Responsive, "fuel, deadlines and the processes of tenants", r.load},
		step{"kill -9 during uploads", hostile.Durable, "atomic publication", r.durable})
	return slices.DeleteFunc(all, func(s step) bool { return !r.o.wants(s.name) })
}

// window is a row that waits for what others see of it.
type window struct {
	row      *Row
	step     *step
	from, to time.Time
}

func (r *run) playAll(ctx context.Context, steps []step, add func(Row)) error {
	canary, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer r.t.Remove(context.WithoutCancel(ctx), canaryTenant, canary)
	r.watch = newWatch(ctx, r.t, canary, r.o.Now)
	defer r.watch.end()
	for _, row := range r.protections() {
		add(row)
	}
	if len(steps) == 0 {
		return nil
	}
	r.pause(ctx, time.Second) // until connections and threads are there
	cpu, began := r.t.CPU(), r.o.Now()
	r.pause(ctx, time.Second)
	r.idle = float64(r.t.CPU()-cpu) / float64(r.o.Now().Sub(began))
	if r.state, err = r.t.State(ctx); err != nil {
		return fmt.Errorf("the data folder and the catalogue cannot be read: %w", err)
	}
	// Rows that were only late are tried twice more: a machine may do something else for
	// a moment, and not for three.
	again := r.playEach(ctx, r.playEach(ctx, steps, add, true), add, true)
	r.playEach(ctx, again, add, false)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// playEach plays steps one after the other. Others are watched for a second after each
// while the next one is played already; rows come in order all the same. With retry,
// the steps of rows that only missed a bound on time are given back instead.
func (r *run) playEach(ctx context.Context, steps []step, add func(Row), retry bool) (again []step) {
	var waiting []window
	flush := func(all bool) {
		for len(waiting) > 0 {
			w := waiting[0]
			if wait := w.to.Add(after).Sub(r.o.Now()); wait > 0 {
				if !all {
					return
				}
				r.pause(ctx, wait)
			}
			waiting = waiting[1:]
			if w.row.Verdict != Skip {
				r.others(w.row, w.from, w.to)
			}
			if w.row.Verdict == Late && retry {
				again = append(again, *w.step)
				continue
			}
			add(*w.row)
		}
	}
	for i := range steps {
		if ctx.Err() != nil {
			break
		}
		from := r.o.Now()
		row := r.oracle(ctx, &steps[i])
		if ctx.Err() != nil {
			break // what it says is of the end of the run
		}
		waiting = append(waiting, window{row, &steps[i], from, r.o.Now()})
		flush(!retry) // a second try has the second for itself
	}
	flush(true)
	return again
}

// begin uploads the canary and makes the host do once what makes it take threads and
// memory that it keeps.
func (r *run) begin(ctx context.Context) (skill.ID, error) {
	canary, err := r.t.Add(ctx, canaryTenant, hostile.Canary())
	if err != nil {
		return "", fmt.Errorf("the canary is not admitted: %w", err)
	}
	if err := r.t.Health(ctx); err != nil {
		return "", fmt.Errorf("the host is not healthy: %w", err)
	}
	var wg sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		wg.Go(func() { errs[i] = call(ctx, r.t, canary) })
	}
	wg.Wait()
	// Uploads at once take threads, which the runtime keeps.
	for i := range 8 {
		wg.Go(func() {
			if id, err := r.t.Add(ctx, hostileTenant, hostile.Harmful(fmt.Sprintf("warm %d", i), time.Second)); err == nil {
				_ = r.t.Invoke(ctx, hostileTenant, id, hostile.HarmOf(hostile.Harmless)) // as below
				r.t.Remove(ctx, hostileTenant, id)
			}
		})
	}
	wg.Wait()
	// The worker process of the hostile tenant is started by a skill that does right.
	id, err := r.t.Add(ctx, hostileTenant, hostile.Canary())
	if err == nil {
		defer r.t.Remove(ctx, hostileTenant, id)
		_ = r.t.Invoke(ctx, hostileTenant, id, json.RawMessage("{}")) // what it answers is the canary's to tell
	}
	if err := call(ctx, r.t, canary); err != nil {
		return "", errors.Join(fmt.Errorf("the canary does not answer: %w", err), errors.Join(errs...))
	}
	return canary, nil
}

func sortedCodes(m map[skill.Code]int) []skill.Code {
	var all []skill.Code
	for c := range m {
		all = append(all, c)
	}
	slices.Sort(all)
	return all
}
