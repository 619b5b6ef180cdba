package records_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// leftBehind puts a call on record that a host began which is gone.
func leftBehind(t *testing.T, s records.Store, tenant string) string {
	t.Helper()
	c := call(tenant)
	c.Instance, c.Time = "gone", time.Now().UTC().Truncate(time.Microsecond)
	body, err := json.Marshal(c)
	musttest.Do(t, err)
	err = s.Append(t.Context(), []*records.Entry{{
		Record:  records.Record{Tenant: tenant, Kind: records.KindStarted, ExecutionID: c.ExecutionID, Time: c.Time, Body: body},
		Started: c,
	}})
	musttest.Do(t, err)
	return c.ExecutionID
}

// The calls that a host left which is gone are ended on record, though the chain of one of
// their tenants is held: a host that starts does not wait for it, nor do other tenants.
func TestHeldChainsDoNotHoldUpOrphans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		stuck, free := leftBehind(t, s, "acme"), leftBehind(t, s, "gamma")
		s.Hold("acme")
		opened := time.AfterFunc(time.Minute, func() { t.Error("a host that starts waits for a chain that is held"); s.Hold("") })
		open(t, s, nil)
		opened.Stop()
		time.Sleep(time.Second)
		wantStatus(t, s, stuck, records.Running, "")
		wantStatus(t, s, free, records.Terminated, skill.WorkerCrashed)

		later := leftBehind(t, s, "gamma")
		time.Sleep(time.Minute)
		wantStatus(t, s, later, records.Terminated, skill.WorkerCrashed)
		s.Hold("")
		time.Sleep(time.Minute)
		wantStatus(t, s, stuck, records.Terminated, skill.WorkerCrashed)
		wantWhole(t, s)
	})
}
