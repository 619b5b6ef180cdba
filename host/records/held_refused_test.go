package records_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/records"
)

// refusing refuses what has a word in it, and works.
type refusing struct {
	*faulty
	word string
}

func (r *refusing) Append(ctx context.Context, entries []*records.Entry) error {
	for _, e := range entries {
		if strings.Contains(string(e.Body), r.word) {
			return errors.New("the database does not take this")
		}
	}
	return r.Store.Append(ctx, entries)
}

// A record that the store refuses, of a tenant whose chain was held, costs no other call of
// the tenant its record once the chain is free.
func TestRefusedRecordsOfHeldChainsStopNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &refusing{newFaulty(t), "poison"}
		l := open(t, s.Store, func(o *records.Options) { o.Store = s })
		bad, good := call("acme"), call("acme")
		wantCode(t, l.Started(t.Context(), bad, nil), "")
		wantCode(t, l.Started(t.Context(), good, nil), "")
		s.Hold("acme")
		ended := make(chan error, 2)
		f := success()
		f.Message = "poison"
		go func() { ended <- l.Finished(t.Context(), good, success(), nil) }()
		time.Sleep(100 * time.Millisecond)
		go func() { ended <- l.Finished(t.Context(), bad, f, nil) }()
		time.Sleep(100 * time.Millisecond)
		s.Hold("")
		time.Sleep(10 * time.Second)
		<-ended
		<-ended
		wantStatus(t, s.Store, good.ExecutionID, records.Success, "")
		wantStatus(t, s.Store, bad.ExecutionID, records.Success, "")
		again := call("acme")
		wantCode(t, l.Started(t.Context(), again, nil), "")
		wantCode(t, l.Finished(t.Context(), again, success(), nil), "")
	})
}
