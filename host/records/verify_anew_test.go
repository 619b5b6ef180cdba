package records_test

import (
	"encoding/json"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/internal/musttest"
)

// anew links all records again, the first with a number and a hash before it.
func anew(h *records.Head, all []records.Record, first uint64, prev string) {
	h.First, h.Prev = first, prev
	for i := range all {
		all[i].Seq = first + uint64(i)
		records.Link(prev, &all[i])
		prev = all[i].Hash
	}
	h.Last, h.LastHash = first+uint64(len(all))-1, prev
}

// keptOf gives the head of acme as it is kept elsewhere.
func keptOf(t *testing.T, s *faulty) records.Head {
	t.Helper()
	heads, err := s.Tenants(t.Context())
	if err != nil || heads[0].Tenant != "acme" {
		t.Fatalf("%+v, %v", heads, err)
	}
	last := musttest.Get(s.Records(t.Context(), "acme", heads[0].Last, 1))(t)
	heads[0].Time = last[0].Time
	return heads[0]
}

// A record of a removal, which can be forged like any other one, does not excuse that a kept
// head is not there.
func TestVerifyRefusesARemovalInPlaceOfAKeptHead(t *testing.T) {
	const days = 400 * 24 * time.Hour
	for name, change := range map[string]func(h *records.Head, all []records.Record) []records.Record{
		"with numbers beyond it": func(h *records.Head, all []records.Record) []records.Record {
			prev := all[0].Hash
			all = append(all[20:], removal(t, 1000, prev))
			anew(h, all, 1000, prev)
			return all
		},
		"up to it": func(h *records.Head, all []records.Record) []records.Record {
			first, prev := all[40].Seq, all[39].Hash
			all = append(all[40:], removal(t, first, prev))
			anew(h, all, first, prev)
			return all
		},
	} {
		s := filled(t, 10)
		kept := keptOf(t, s)
		l := open(t, s, nil)
		c := call("acme")
		wantCode(t, l.Started(t.Context(), c, nil), "")
		wantCode(t, l.Finished(t.Context(), c, success(), nil), "")
		o := records.VerifyOptions{Tenant: "acme", Against: []records.Head{kept}, Retention: days}
		if r, err := records.Verify(t.Context(), s, o); err != nil || !r.Whole() {
			t.Fatalf("%s, before: %+v, %v", name, r, err)
		}
		s.Change("acme", change)
		if r, err := records.Verify(t.Context(), s, records.VerifyOptions{Tenant: "acme"}); err != nil || !r.Whole() {
			t.Fatalf("%s: the forged chain is not whole by itself: %+v, %v", name, r, err)
		}
		r, err := records.Verify(t.Context(), s, o)
		if err != nil || r.Whole() || r.Chains[0].Fault.Wrong != records.NotThere || r.Chains[0].Fault.Seq != kept.Last {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// The same chain is found where the kept head has no time, or the record of the removal has
// one that is to come.
func TestVerifyRefusesAKeptHeadThatCannotBeCompared(t *testing.T) {
	for name, c := range map[string]struct {
		head func(*records.Head)
		when time.Time
	}{
		"without a time":       {func(h *records.Head) { h.Time = time.Time{} }, time.Now()},
		"a removal to come":    {func(*records.Head) {}, time.Now().AddDate(5, 0, 0)},
		"older than retention": {func(h *records.Head) { h.Time = h.Time.AddDate(-5, 0, 0) }, time.Now()},
	} {
		s := filled(t, 10)
		kept := keptOf(t, s)
		c.head(&kept)
		s.Change("acme", func(h *records.Head, all []records.Record) []records.Record {
			all = append(all, removalAt(t, 1000, all[0].Hash, c.when))
			anew(h, all, 1000, all[0].Hash)
			return all
		})
		r, err := records.Verify(t.Context(), s, records.VerifyOptions{Tenant: "acme", Against: []records.Head{kept}, Retention: 400 * 24 * time.Hour})
		if err != nil || r.Whole() || r.Chains[0].Fault.Wrong != records.NotThere {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// What is behind a kept head proves nothing of it unless it is linked to it: --from begins
// at the kept head at the latest.
func TestVerifyBeginsAtTheKeptHead(t *testing.T) {
	s := filled(t, 10)
	recs := musttest.Get(s.Records(t.Context(), "acme", 5, 1))(t)
	o := records.VerifyOptions{Tenant: "acme", From: 30, Against: []records.Head{{Tenant: "acme", First: 1, Prev: records.Origin, Last: 5, LastHash: recs[0].Hash}}}
	if r, err := records.Verify(t.Context(), s, o); err != nil || !r.Whole() || r.Chains[0].Records != 36 {
		t.Errorf("%+v, %v", r, err)
	}
	s.Change("acme", func(_ *records.Head, all []records.Record) []records.Record { all[9].Body[20] ^= 1; return all })
	if r, err := records.Verify(t.Context(), s, o); err != nil || r.Whole() || r.Chains[0].Fault.Seq != 10 {
		t.Errorf("a record between them: %+v, %v", r, err)
	}
}

// Records of removals must fit: each is of its own time, and removes more than the one before.
func TestVerifyRefusesRemovalsThatDoNotFit(t *testing.T) {
	for name, add := range map[string]func(all []records.Record) []records.Record{
		"twice": func(all []records.Record) []records.Record {
			return append(all, removal(t, 7, all[0].Prev), removal(t, 7, all[0].Prev))
		},
		"behind one that removed more": func(all []records.Record) []records.Record {
			return append(all, removal(t, 9, all[1].Hash), removal(t, 7, all[0].Prev)) // the last one fits the beginning
		},
		"of another time": func(all []records.Record) []records.Record {
			r := removal(t, 7, all[0].Prev)
			r.Time = r.Time.Add(-time.Hour)
			return append(all, r)
		},
	} {
		s := filled(t, 10)
		s.Change("acme", func(h *records.Head, all []records.Record) []records.Record {
			all = add(all[6:])
			anew(h, all, 7, all[0].Prev)
			return all
		})
		r, err := records.Verify(t.Context(), s, records.VerifyOptions{Tenant: "acme"})
		if err != nil || r.Whole() {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func removalAt(t *testing.T, next uint64, hash string, when time.Time) records.Record {
	t.Helper()
	r := removal(t, next, hash)
	r.Time = when.UTC().Truncate(time.Microsecond)
	body := musttest.Get(json.Marshal(records.Pruned{Next: next, Hash: hash, Time: r.Time}))(t)
	r.Body = body
	return r
}
