package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/records/replay"
	"openskill/internal/musttest"
)

// Recordings holds a store of recordings to its contract. open gives a new, empty one for
// each call; another gives the same one as another process would open it.
func Recordings(t *testing.T, open func(t *testing.T) (store, another replay.Store)) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s, another replay.Store){
		"what is kept is read": recordingsRoundTrip,
		"the first counts":     recordingsTwice,
		"of one tenant":        recordingsTenants,
		"pruned":               recordingsPrune,
		"many at once":         recordingsAtOnce,
		"hostile text":         recordingsHostile,
		"context":              recordingsContext,
	} {
		t.Run(name, func(t *testing.T) {
			s, another := open(t)
			test(t, s, another)
		})
	}
}

func aRecording(n int) *replay.Row {
	return &replay.Row{
		ExecutionID: fmt.Sprintf("0190a1b2-0000-7000-8000-%012d", n), Tenant: "acme", Created: day.Add(time.Duration(n) * time.Minute),
		Size: 100, Body: []byte{0, 1, 0xff, byte(n)},
	}
}

func keep(t *testing.T, s replay.Store, rows ...*replay.Row) {
	t.Helper()
	for _, r := range rows {
		musttest.Do(t, s.Keep(t.Context(), r))
	}
}

// kept holds that a store gives want, or nothing where that is nil.
func kept(t *testing.T, s replay.Store, tenant, id string, want *replay.Row) {
	t.Helper()
	got := musttest.Get(s.Get(t.Context(), tenant, id))(t)
	if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
		t.Errorf("%s of %s: %s", id, tenant, diff)
	}
}

func recordingsRoundTrip(t *testing.T, s, another replay.Store) {
	t.Helper()
	missing := aRecording(2)
	missing.Missing, missing.Body, missing.Size = "it grew too large", nil, 0
	large := aRecording(3)
	large.Body, large.Size = bytes.Repeat([]byte("0123456789abcdef\x00\xff"), 1<<16), 1<<30
	for _, r := range []*replay.Row{aRecording(1), missing, large} {
		keep(t, s, r)
		kept(t, another, r.Tenant, r.ExecutionID, r)
	}
	kept(t, s, "acme", aRecording(4).ExecutionID, nil)
}

func recordingsTwice(t *testing.T, s, another replay.Store) {
	t.Helper()
	first, second := aRecording(1), aRecording(1)
	second.Missing, second.Body = "another", nil
	keep(t, s, first)
	keep(t, another, second, first)
	kept(t, s, "acme", first.ExecutionID, first)
}

func recordingsTenants(t *testing.T, s, another replay.Store) {
	t.Helper()
	r := aRecording(1)
	keep(t, s, r)
	for _, tenant := range []string{"", "other", "ACME", "acme ", "acme\x00", "%"} {
		kept(t, another, tenant, r.ExecutionID, nil)
	}
}

func recordingsPrune(t *testing.T, s, another replay.Store) {
	t.Helper()
	for n := range 7 {
		r := aRecording(n)
		if n%2 == 1 {
			r.Tenant = "other"
		}
		keep(t, s, r)
	}
	prune := func(before time.Time, limit, want int) {
		t.Helper()
		if n, err := another.Prune(t.Context(), before, limit); n != want || err != nil {
			t.Errorf("%d were removed, want %d; %v", n, want, err)
		}
	}
	prune(aRecording(0).Created, 10, 0)
	prune(aRecording(5).Created, 3, 3)
	prune(aRecording(5).Created, 3, 2)
	prune(aRecording(5).Created, 3, 0)
	for n := range 7 {
		r := aRecording(n)
		if n%2 == 1 {
			r.Tenant = "other"
		}
		want := r
		if n < 5 {
			want = nil
		}
		kept(t, s, r.Tenant, r.ExecutionID, want)
	}
}

func recordingsAtOnce(t *testing.T, s, another replay.Store) {
	t.Helper()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			to := s
			if i%2 == 1 {
				to = another
			}
			for n := range 10 {
				if err := to.Keep(t.Context(), aRecording(n)); err != nil {
					t.Error(err)
				}
				if _, err := to.Get(t.Context(), "acme", aRecording(n).ExecutionID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for n := range 10 {
		kept(t, s, "acme", aRecording(n).ExecutionID, aRecording(n))
	}
}

func recordingsHostile(t *testing.T, s, another replay.Store) {
	t.Helper()
	r := aRecording(1)
	r.Missing = "'; DROP TABLE recordings; -- ? $1 \u202e"
	keep(t, s, r)
	kept(t, another, "acme", r.ExecutionID, r)
	for _, id := range []string{"", "x", "' OR 1=1", "\x00", "{0190a1b2-0000-7000-8000-000000000001}", "urn:uuid:0190a1b2-0000-7000-8000-000000000001"} {
		kept(t, s, "acme", id, nil)
	}
	r = aRecording(2)
	r.Missing = "a\x00b\xff" // no database has this as text; it is kept all the same
	keep(t, s, r)
	if got, err := another.Get(t.Context(), "acme", r.ExecutionID); err != nil || got == nil || !bytes.Equal(got.Body, r.Body) {
		t.Errorf("%+v, %v", got, err)
	}
}

func recordingsContext(t *testing.T, s, _ replay.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Keep(ctx, aRecording(1)); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.Get(ctx, "acme", aRecording(1).ExecutionID); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.Prune(ctx, day, 1); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	keep(t, s, aRecording(2)) // it works again
}
