package records_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Large records of a tenant that wait for its chain leave room for those of others.
func TestHeldChainsLeaveRoomForRecordsOfOthers(t *testing.T) {
	for name, pause := range map[string]bool{"at once": false, "one after the other": true} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { leaveRoom(t, pause) }) })
	}
}

// leaveRoom has a tenant whose chain is held begin calls with inputs that no queue has room for.
func leaveRoom(t *testing.T, pause bool) {
	t.Helper()
	s := newFaulty(t)
	l := open(t, s, func(o *records.Options) { o.Policy, o.MaxPayload = records.KeepFull, 1<<20 })
	s.Hold("acme")
	input := append(append([]byte(`"`), bytes.Repeat([]byte("x"), 1<<20-2)...), '"')
	refused := make(chan struct{}, 100)
	for range 100 {
		go func() {
			wantCode(t, l.Started(t.Context(), call("acme"), input), skill.AuditUnavailable)
			refused <- struct{}{}
		}()
		if pause {
			time.Sleep(time.Millisecond)
		}
	}
	time.Sleep(100 * time.Millisecond)
	c := call("gamma")
	wantCode(t, l.Started(t.Context(), c, input), "")
	wantCode(t, l.Finished(t.Context(), c, success(), input), "")
	if e, err := s.Execution(t.Context(), "gamma", c.ExecutionID); err != nil || e.Finished.Output.JSON == nil {
		t.Errorf("%v: the end of another tenant's call was stripped", err)
	}
	for range 100 {
		<-refused
	}
	s.Hold("")
	time.Sleep(10 * time.Second) // a look that began before may still find it held
	wantCode(t, l.Started(t.Context(), call("acme"), input), "")
}
