package records_test

import (
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// While another host holds the chain of one tenant, the calls of others begin and end on
// record, and the database counts as one that works. Those of the tenant are refused in time,
// and what of it ended is on record as soon as its chain is free.
func TestHeldChainsStopNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		l := open(t, s, nil)
		runs := call("acme")
		wantCode(t, l.Started(t.Context(), runs, nil), "")
		s.Hold("acme")
		refused := make(chan *records.Started, 20)
		for range 20 { // at once, so that batches have both tenants
			go func() {
				c := call("acme")
				wantCode(t, l.Started(t.Context(), c, nil), skill.AuditUnavailable)
				refused <- c
			}()
		}
		ended := make(chan error, 1)
		go func() { ended <- l.Finished(t.Context(), runs, success(), nil) }()
		for range 50 {
			c := call("gamma")
			began := time.Now()
			wantCode(t, l.Started(t.Context(), c, nil), "")
			wantCode(t, l.Finished(t.Context(), c, success(), nil), "")
			if took := time.Since(began); took > 0 {
				t.Errorf("another tenant's call waited for %s", took)
			}
			if err := l.Ready(); err != nil {
				t.Errorf("the host is not ready: %v", err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		wantCode(t, <-ended, skill.AuditUnavailable) // it is kept
		wantCode(t, l.Started(t.Context(), call("acme"), nil), skill.AuditUnavailable)
		s.Hold("")
		time.Sleep(time.Second)
		wantStatus(t, s, runs.ExecutionID, records.Success, "")
		for range 20 {
			wantStatus(t, s, (<-refused).ExecutionID, "", "")
		}
		again := call("acme")
		wantCode(t, l.Started(t.Context(), again, nil), "")
		wantCode(t, l.Finished(t.Context(), again, success(), nil), "")
		wantWhole(t, s)
	})
}

// Only so many records of a tenant wait for its chain.
func TestHeldChainsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		l := open(t, s, nil)
		s.Hold("acme")
		answers := make(chan time.Duration, 600)
		began := time.Now()
		for range 600 {
			go func() {
				wantCode(t, l.Started(t.Context(), call("acme"), nil), skill.AuditUnavailable)
				answers <- time.Since(began)
			}()
			time.Sleep(time.Millisecond)
		}
		late := 0
		for range 600 {
			if d := <-answers; d >= 2*time.Second {
				late++
			}
		}
		if late == 0 || late > 300 {
			t.Errorf("%d calls waited for the chain, want about 256", late)
		}
		wantCode(t, l.Started(t.Context(), call("gamma"), nil), "")
		s.Hold("")
	})
}

// A host that closes writes what waits for a chain once it is free.
func TestCloseWaitsForHeldChains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		l := open(t, s, nil)
		runs := call("acme")
		wantCode(t, l.Started(t.Context(), runs, nil), "")
		s.Hold("acme")
		time.AfterFunc(3*time.Second, func() { s.Hold("") })
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantStatus(t, s, runs.ExecutionID, records.Terminated, skill.Cancelled)
	})
}
