package records_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/records"
)

// The difference of clocks is measured, as it changes, and taken off.
func TestSkewIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		var shift atomic.Int64
		l := open(t, s, func(o *records.Options) {
			o.Now = func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }
		})
		for _, off := range []time.Duration{0, 7 * time.Second, -12 * time.Second, 50 * time.Millisecond, 0} {
			shift.Store(int64(off))
			time.Sleep(10 * time.Second)
			want := off
			if off == 50*time.Millisecond {
				want = 0 // too small to tell
			}
			if got := l.Skew(); got != want || !l.DatabaseTime().Equal(time.Now().Add(off-want)) {
				t.Errorf("%s ahead: measured %s", off, got)
			}
		}
	})
}

// A host whose clock goes wrong does not end the calls of others on record: what hosts
// compare is the database's time.
func TestClocksOfHostsDoNotMatter(t *testing.T) {
	for _, off := range []time.Duration{20 * time.Second, -20 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := newFaulty(t)
			var shift atomic.Int64
			right := open(t, s, func(o *records.Options) { o.Instance = "right" })
			open(t, s, func(o *records.Options) {
				o.Instance = "wrong"
				o.Now = func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }
			})
			time.Sleep(20 * time.Second)
			shift.Store(int64(off))
			c := call("acme")
			wantCode(t, right.Started(t.Context(), c, nil), "")
			time.Sleep(time.Minute)
			wantStatus(t, s, c.ExecutionID, records.Running, "")
			wantCode(t, right.Finished(t.Context(), c, success(), nil), "")
		})
	}
}
