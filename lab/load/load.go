package load

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Skill is one of those that are called.
type Skill struct {
	ID     string
	Weight int    // from 1 to MostWeight
	Body   []byte // as POST /skills/{id}:invoke takes it
}

// MostWeight is the largest weight of a skill.
const MostWeight = 1000

// Plan says what is sent. All but Progress must be set.
type Plan struct {
	Rate        float64       // requests a second, evenly spaced
	Duration    time.Duration // that is measured
	Warmup      time.Duration // before it, that is not
	Connections int           // most requests that wait for answers at once
	Timeout     time.Duration // of the target's requests
	Skills      []Skill
	Progress    func(Progress) // every few seconds; may be nil
}

// Progress is how far a run is.
type Progress struct {
	Since                  time.Duration
	Sent, Answered, Failed int64
	P99                    time.Duration
}

// Failure is how many requests ended in one way.
type Failure struct {
	Status int    `json:"status"` // 0: there was no answer
	Code   string `json:"code"`
	Count  int64  `json:"count"`
}

// Measured is what one skill's requests took, or those of all.
type Measured struct {
	ID        string
	Succeeded int64
	Latency   *hdrhistogram.Histogram // in µs, from when a request was due
}

// Report is what was measured, warm-up left out.
type Report struct {
	Took      time.Duration // the part that was measured
	Due       int64         // requests that were due in it
	Sent      int64
	Succeeded int64
	Failed    int64
	Unsent    int64 // were due, and no connection was free until the end
	Open      int64 // had no answer when the run was ended
	Failures  []Failure
	All       Measured
	Skills    []Measured
	Late      *hdrhistogram.Histogram // in µs, how much later this client sent than it could have
	Busy      int64                   // requests that were due while all connections waited for answers
	Cut       bool                    // whether the caller ended it before its time
}

// Reached is how many requests a second were sent.
func (r *Report) Reached() float64 { return float64(r.Sent) / max(r.Took.Seconds(), 1e-9) }

// grace is how long answers are waited for when a run was cut short.
const grace = 500 * time.Millisecond

// figures is the precision of histograms: three figures, an error of a thousandth.
const figures = 3

// run is a plan under way.
type run struct {
	*Plan

	t     *Target
	start time.Time
	end   time.Time // nothing is sent from then on
	total int64     // requests that are due before the end
	order []int
	next  atomic.Int64
	sent  atomic.Int64 // warm-up included

	mu       sync.Mutex
	open     []time.Duration // when the request of a connection that has no answer was due; 0: none, else one more
	closed   bool            // the report is made
	most     int64           // µs
	skills   []Measured
	late     *hdrhistogram.Histogram
	busy     int64
	measured int64 // sent, warm-up left out
	failed   int64
	failures map[Failure]int64
}

// Do sends the plan's requests until its time is over or ctx ends, and closes the target.
func (p *Plan) Do(ctx context.Context, t *Target) *Report {
	all := p.Warmup + p.Duration
	r := &run{
		Plan: p, t: t, total: int64(math.Ceil(p.Rate * all.Seconds())), failures: map[Failure]int64{},
		most: (all + p.Timeout + time.Minute).Microseconds(), open: make([]time.Duration, p.Connections),
	}
	r.late = r.histogram()
	for i, s := range p.Skills {
		r.skills = append(r.skills, Measured{ID: s.ID, Latency: r.histogram()})
		for range s.Weight {
			r.order = append(r.order, i)
		}
	}
	shuffle := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same order each time is what is wanted
	shuffle.Shuffle(len(r.order), func(i, j int) { r.order[i], r.order[j] = r.order[j], r.order[i] })
	r.start = time.Now()
	r.end = r.start.Add(all)

	sending, stop := context.WithDeadline(ctx, r.end)
	defer stop()
	var wg sync.WaitGroup
	for i := range p.Connections {
		wg.Go(func() { r.send(sending, i) })
	}
	answered := make(chan struct{})
	go func() { wg.Wait(); close(answered) }()
	r.follow(sending)
	over := time.Now()
	if over.After(r.end) {
		over = r.end
	}
	wait := p.Timeout + time.Second
	if ctx.Err() != nil {
		wait = grace
	}
	patience := time.NewTimer(wait)
	defer patience.Stop()
	select {
	case <-answered:
	case <-ctx.Done():
		patience.Reset(min(wait, grace))
		select {
		case <-answered:
		case <-patience.C:
		}
	case <-patience.C:
	}
	rep := r.report(over) // before the target is closed: what is cut off then has not failed
	rep.Cut = ctx.Err() != nil
	t.Close()
	<-answered
	return rep
}

func (r *run) histogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, r.most, figures) }

// due is when a request is to be sent.
func (r *run) due(i int64) time.Time {
	return r.start.Add(time.Duration(float64(i) / r.Rate * float64(time.Second)))
}

// send is one connection's: it takes the next request, waits until it is due, and sends it.
func (r *run) send(ctx context.Context, connection int) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		free := time.Now()
		i := r.next.Add(1) - 1
		if i >= r.total || ctx.Err() != nil {
			return
		}
		due := r.due(i)
		if wait := due.Sub(free); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				if time.Now().Before(due) { // otherwise it was due before the end
					return
				}
			}
		}
		s := r.order[i%int64(len(r.order))]
		sent := time.Now()
		r.sent.Add(1)
		counts := due.Sub(r.start) >= r.Warmup
		if counts {
			r.sending(connection, due, free, sent)
		}
		a, err := r.t.Do(Invoke(r.Skills[s].ID, r.Skills[s].Body))
		if took := time.Since(due); counts {
			r.took(connection, s, took, a, err)
		}
	}
}

func (r *run) sending(connection int, due, free, sent time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.open[connection] = due.Sub(r.start) + 1
	r.measured++
	could := due
	if free.After(due) {
		could = free
		r.busy++
	}
	r.record(r.late, sent.Sub(could), 1)
}

func (r *run) took(connection, s int, took time.Duration, a *Answer, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return // it is in the report as one without an answer
	}
	r.open[connection] = 0
	if err == nil && a.Success {
		r.skills[s].Succeeded++
		r.record(r.skills[s].Latency, took, 1)
		return
	}
	r.failed++
	r.failures[Failure{Status: a.Status, Code: a.Code}]++
}

func (r *run) record(h *hdrhistogram.Histogram, d time.Duration, n int64) {
	_ = h.RecordValues(min(max(d.Microseconds(), 0), r.most), n) // within its range
}

// follow tells how it goes until ctx ends.
func (r *run) follow(ctx context.Context) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if r.Progress == nil {
			continue
		}
		r.mu.Lock()
		all := r.merged()
		p := Progress{time.Since(r.start), r.sent.Load(), all.Succeeded, r.failed, time.Duration(all.Latency.ValueAtPercentile(99)) * time.Microsecond}
		r.mu.Unlock()
		r.Progress(p)
	}
}

func (r *run) merged() Measured {
	all := Measured{Latency: r.histogram()}
	for _, s := range r.skills {
		all.Succeeded += s.Succeeded
		all.Latency.Merge(s.Latency)
	}
	return all
}

// report is what was measured until over, when the last request was due.
func (r *run) report(over time.Time) *Report {
	dueBefore := func(d time.Duration) int64 {
		return min(max(int64(math.Ceil(r.Rate*d.Seconds())), 0), r.total)
	}
	first, due := dueBefore(r.Warmup), dueBefore(over.Sub(r.start))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	rep := &Report{
		Took: max(over.Sub(r.start)-r.Warmup, 0), Due: max(due-first, 0), Sent: r.measured, Failed: r.failed, Late: r.late, Busy: r.busy,
		All: r.merged(), Skills: r.skills,
	}
	rep.Succeeded = rep.All.Succeeded
	for i := range r.open {
		if d := r.open[i]; d != 0 {
			rep.Open++
			r.record(rep.All.Latency, time.Since(r.start.Add(d-1)), 1)
		}
	}
	// Requests are sent in the order in which they are due: those that are left are the
	// last. How long they have waited already belongs to the latency; they are
	// counted in at most so many portions.
	from := max(r.sent.Load(), first)
	if rep.Unsent = max(due-from, 0); rep.Unsent > 0 {
		portion := rep.Unsent/10000 + 1
		for i := from; i < due; i += portion {
			r.record(rep.All.Latency, over.Sub(r.due(i)), min(portion, due-i))
		}
	}
	for f, n := range r.failures {
		f.Count = n
		rep.Failures = append(rep.Failures, f)
	}
	slices.SortFunc(rep.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Code, b.Code))
	})
	return rep
}
