package app

import (
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestSparesHaveTheImageOfCode: the first code of a tenant needs no start-up, if a spare worker is ready.
func TestSparesHaveTheImageOfCode(t *testing.T) {
	h := codeHost(t, map[string]string{})
	runs(t, h, skill.Local(), "python", "1") // skips the test if Python is not installed
	<-h.warm(t.Context(), t.Context())
	for _, tenant := range []string{"acme", "other"} {
		for until := time.Now().Add(time.Minute); h.workers.pool.Stats().Spares == 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatal("no spare worker")
			}
		}
		p := skill.Principal{ID: "p", Type: skill.Agent, Tenant: tenant, Scopes: []string{"skills:invoke:run_code"}}
		r := runs(t, h, p, "python", "1 + 1")
		used := int64(0)
		for until := time.Now().Add(time.Minute); used < int64(r.Meta.FuelUsed) && time.Now().Before(until); time.Sleep(10 * time.Millisecond) { // it is counted a moment later
			used = musttest.Get(h.kept.quotas.Today(t.Context(), tenant))(t).Fuel
		}
		const start = 500_000_000 // units; a start-up of Python takes more
		if r.Error != nil || used < int64(r.Meta.FuelUsed) || used > int64(r.Meta.FuelUsed)+start {
			t.Errorf("%s: %d units of fuel, of which %d for the call; %+v", tenant, used, r.Meta.FuelUsed, r.Error)
		}
	}
}
