package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"openskill/host/app/config"
	"openskill/internal/measure"
	"openskill/lab/skillbench"
	"openskill/sdk/skill"
)

// mostTenants is how many tenants call in turn.
const mostTenants = 200

// benchTenants compares calls of many tenants in turn, each with its own worker, to calls of one tenant.
func (a *cli) benchTenants(ctx context.Context, s *config.Settings, o *benchOptions, _ *skillbench.Native) ([]measure.Row, error) {
	name := fmt.Sprintf("%d tenants in turn, Python", mostTenants)
	if !o.wanted("workers", name) {
		return nil, nil
	}
	tenants, rounds := mostTenants, 4
	if o.quick {
		tenants, rounds = 3, 2
	}
	h, err := openFor(s, false, 1)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if _, ok := h.Workers(); !ok {
		return nil, nil
	}
	h.Prepare(ctx, skill.RunCode)
	if err := called(ctx, h, skill.Local(), skill.RunCode, `{"language": "python", "code": "1"}`); err != nil {
		return nil, err
	}
	call := func(tenant string) func(ctx context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) {
			p := skill.Local()
			p.Tenant = tenant
			began := time.Now()
			err := called(ctx, h, p, skill.RunCode, `{"language": "python", "code": "sum(range(100))"}`)
			return time.Since(began), err
		}
	}
	n := 0
	next := func(ctx context.Context) (time.Duration, error) {
		n++
		return call(fmt.Sprint("bench-", n%tenants))(ctx)
	}
	a.say("workers: %d tenants call for the first time", tenants)
	first := make([]time.Duration, tenants)
	for i := range first {
		if first[i], err = next(ctx); err != nil {
			return nil, err
		}
	}
	slices.Sort(first)
	return a.measure(ctx, []measure.Case{{Suite: "workers", Name: name, N: rounds * tenants, Most: 3 * time.Minute, Variants: []measure.Variant{
		{Name: "one tenant", Run: call("bench-0")},
		{Name: "in turn", Run: next, Goals: []measure.Goal{measure.Median(10 * time.Millisecond)}, Note: func() string {
			stats, _ := h.Workers()
			return fmt.Sprintf("%d workers; the first call of a tenant: %s", stats.Live, measure.Span(int64(first[tenants/2])))
		}},
	}}})
}
