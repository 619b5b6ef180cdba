package selftest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"openskill/examples/hostile"
	"openskill/sdk/skill"
)

// at is how many hostile calls the load has at once.
const at = 8

// load keeps eight hostile calls running, of two tenants and every harm in turn, and
// wants health and the canary all the same. What is taken away for its behaviour is
// uploaded anew, so that the load goes on.
func (r *run) load(ctx context.Context, row *Row) {
	tenants := []string{hostileTenant, hostileTenant + "-b"}
	from := r.o.Now()
	c := hostile.Case{
		Name: "load", Ends: append(hostile.HarmEnds(), skill.WorkerCrashed, skill.NotFound), // of one that is taken away
		Input: hostile.Harm, Limits: skill.Limits{Timeout: time.Second},
	}
	r.atOnce = at
	calls := &tally{codes: map[skill.Code]int{}}
	var all sync.WaitGroup
	for worker := range at {
		all.Go(func() {
			tenant := tenants[worker%len(tenants)]
			for again := 0; ctx.Err() == nil && r.o.Now().Sub(from) < r.o.Load; again++ {
				id, err := r.t.Add(ctx, tenant, hostile.Harmful(fmt.Sprintf("load %d %d", worker, again), time.Second))
				if err != nil {
					r.lock(func() { row.fault("the load is not admitted: %v", err) })
					return
				}
				r.lock(func() { r.added++ })
				for n := worker; ctx.Err() == nil && r.o.Now().Sub(from) < r.o.Load; n++ {
					o := r.one(ctx, &c, row, tenant, id, n, c.Ends)
					calls.add(o)
					if o.code == skill.NotFound {
						break
					}
				}
				r.t.Remove(ctx, tenant, id)
			}
		})
	}
	all.Wait()
	to := r.o.Now()
	calls.tell(row)
	health, canary := r.watch.seen(from, to)
	row.Happened = happened(fmt.Sprintf("%.0f s, /healthz p99 %.1f ms of %d, canary p99 %.1f ms of %d", to.Sub(from).Seconds(),
		ms(p99(health)), len(health), ms(p99(canary)), len(canary)), row.Happened)
	if slow := p99(canary); slow > r.o.scale(canaryBound) {
		row.slow("the canary answered within %.0f ms at p99, want %v", ms(slow), r.o.scale(canaryBound))
	}
}

// durable ends a host in the middle of uploads.
func (r *run) durable(ctx context.Context, row *Row) {
	if r.o.Durable == nil {
		row.Verdict, row.Happened = Skip, "no host can be started here to be killed"
		return
	}
	d, err := r.o.Durable(ctx)
	if err != nil {
		row.fault("it could not be tried: %v", err)
		return
	}
	row.Happened = fmt.Sprintf("%d kills, %d uploads acknowledged, %d lost, %d half-written versions visible", d.Ends, d.Acknowledged, d.Lost, d.Half)
	row.Measured.Calls = d.Acknowledged
	if d.Lost > 0 || d.Half > 0 {
		row.fault("%d acknowledged uploads are lost, %d versions are half-written", d.Lost, d.Half)
	}
	if d.Acknowledged == 0 {
		row.fault("no upload was acknowledged, so nothing was tried")
	}
}
