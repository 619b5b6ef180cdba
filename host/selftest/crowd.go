package selftest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"openskill/examples/hostile"
	"openskill/sdk/skill"
)

// crowds are the rows of tenants that make as many slow calls as they can.
func (r *run) crowds() []step {
	crowd := func(tenants ...string) func(context.Context, *Row) {
		return func(ctx context.Context, row *Row) { r.crowd(ctx, row, tenants) }
	}
	const limit = "places that no tenant can fill"
	return []step{
		{"C01 slow calls of one tenant", hostile.Responsive, limit, crowd(hostileTenant)},
		{"C02 sleeping uploads of two tenants", hostile.Responsive, limit, crowd(hostileTenant, hostileTenant+"-b")},
	}
}

// How long the calls of a crowd sleep, how many skills each tenant calls, and how often at
// once: fewer than the runs that have a version quarantined, and in all more than hosts run.
const (
	crowdSleeps = 3 * time.Second
	crowdSkills = 3
	crowdCalls  = 16
)

// crowd has tenants make slow calls, and wants every call of another tenant to succeed
// meanwhile, as the canary's must beside every row.
func (r *run) crowd(ctx context.Context, row *Row, tenants []string) {
	if r.o.OneTenant {
		row.Verdict, row.Happened = Skip, "all callers of this host are one tenant"
		return
	}
	const other = hostileTenant + "-c"
	quick, err := r.t.Add(ctx, other, hostile.Canary())
	if err != nil {
		row.fault("the skill of the other tenant is not admitted: %v", err)
		return
	}
	defer r.t.Remove(ctx, other, quick)
	r.added, r.atOnce = r.added+1, 32                    // of those as many as hosts run by default
	r.t.Invoke(ctx, other, quick, json.RawMessage("{}")) // so that its process is there

	slow := map[string][]skill.ID{}
	for _, tenant := range tenants {
		for i := range crowdSkills {
			id, err := r.t.Add(ctx, tenant, hostile.Harmful(fmt.Sprintf("crowd %d", i), crowdSleeps))
			if err != nil {
				row.fault("a slow skill is not admitted: %v", err)
				return
			}
			defer r.t.Remove(ctx, tenant, id)
			r.added++
			r.t.Invoke(ctx, tenant, id, hostile.HarmOf(hostile.Harmless)) // so that it is compiled
			slow[tenant] = append(slow[tenant], id)
		}
	}

	var all sync.WaitGroup
	var ran, refused int
	began := r.o.Now()
	for tenant, ids := range slow {
		for _, id := range ids {
			for range crowdCalls {
				all.Go(func() {
					res := r.t.Invoke(ctx, tenant, id, hostile.HarmOf(hostile.Sleeps))
					r.lock(func() {
						r.said(row, res.Error)
						if res.Error != nil && res.Error.Code == skill.RateLimited {
							refused++
						} else {
							ran++
						}
					})
				})
			}
		}
	}
	r.pause(ctx, 500*time.Millisecond) // those that wait for a place have one, or are refused
	calls := &tally{codes: map[skill.Code]int{}}
	for ctx.Err() == nil && r.o.Now().Sub(began) < crowdSleeps-time.Second {
		from := r.o.Now()
		res := r.t.Invoke(ctx, other, quick, json.RawMessage("{}"))
		var code skill.Code
		if res.Error != nil {
			code = res.Error.Code
			r.lock(func() { row.fault("a call of another tenant ended with %s (%s)", code, res.Error.Message) })
		}
		calls.add(outcome{code: code, took: r.o.Now().Sub(from)})
		r.pause(ctx, 20*time.Millisecond)
	}
	all.Wait()
	calls.tell(row)
	row.Happened = happened(fmt.Sprintf("%d slow calls ran, %d were refused, of another tenant", ran, refused), row.Happened)
	if ran == 0 || calls.n == 0 {
		row.fault("%d slow calls ran, and %d of another tenant beside them: nothing was tried", ran, calls.n)
	}
}
