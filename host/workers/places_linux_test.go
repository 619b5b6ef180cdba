package workers_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/workers"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// bySkill has a process for each skill of each tenant.
func bySkill(o *workers.Options) {
	o.Max, o.Key = 6, func(c *skill.Call) string { return c.Tenant + "/" + string(c.SkillID) }
}

func callOfSkill(tenant string, id int, does string) *skill.Call {
	c := callOf(tenant, does)
	c.SkillID = skill.ID(fmt.Sprintf("s%d", id))
	return c
}

// One tenant that keeps as many processes busy as it gets leaves some to tenants that have
// none.
func TestOneTenantCannotHoldAllWorkers(t *testing.T) {
	p, r := pool(t, bySkill)
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	defer busy.Wait()
	defer cancel()
	refused := make(chan error, 10)
	for i := range 10 {
		busy.Go(func() {
			_, err := r.Run(ctx, callOfSkill("many", i, "wait"))
			refused <- err
		})
	}
	for range 6 {
		if err := <-refused; skill.CodeOf(err) != skill.RateLimited || !strings.Contains(err.Error(), "this tenant's share of the 6 worker processes") {
			t.Errorf("%v", err)
		}
	}
	for p.Stats().Busy < 4 {
		time.Sleep(time.Millisecond)
	}
	for _, tenant := range []string{"a", "b"} {
		if got := run(t, r, tenant, "say x"); string(got.Stdout) != "x" {
			t.Errorf("tenant %s: %+v", tenant, got)
		}
	}
	if n := p.Stats().Live; n != 6 {
		t.Errorf("%d of 6 workers", n)
	}
}

// A process without a call makes room: of the tenant that has most, however long the one of
// another is silent.
func TestWorkersOfTheTenantWithMostMakeRoom(t *testing.T) {
	p, r := pool(t, bySkill)
	pid := func(tenant string, id int) string {
		t.Helper()
		got := musttest.Get(r.Run(t.Context(), callOfSkill(tenant, id, "pid")))(t)
		return string(got.Stdout)
	}
	silent := pid("silent", 0)
	for i := range 12 { // each beyond its share at the cost of its own
		pid("many", i)
	}
	for i := range 3 {
		pid(fmt.Sprint(i), 0)
		if n := p.Stats().Live; n > 6 {
			t.Errorf("%d workers, want at most 6", n)
		}
	}
	if now := pid("silent", 0); now != silent {
		t.Errorf("process %s of another tenant made room, it has %s now", silent, now)
	}
}
