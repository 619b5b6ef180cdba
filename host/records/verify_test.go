package records_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/internal/musttest"
)

// filled is a store with the calls of two tenants on record, some at once.
func filled(t *testing.T, calls int) *faulty {
	t.Helper()
	s := newFaulty(t)
	l := open(t, s, nil)
	for range calls {
		for _, tenant := range []string{"acme", "other"} {
			a, b := call(tenant), call(tenant)
			wantCode(t, l.Started(t.Context(), a, []byte(`{}`)), "")
			wantCode(t, l.Started(t.Context(), b, []byte(`{}`)), "")
			wantCode(t, l.Finished(t.Context(), b, success(), []byte(`{}`)), "")
			wantCode(t, l.Finished(t.Context(), a, success(), []byte(`{}`)), "")
		}
	}
	return s
}

// Whatever is done to a chain is found, and the first record with which it was done.
func TestVerifyFinds(t *testing.T) {
	relink := func(h *records.Head, all []records.Record, from int) {
		prev := h.Prev
		if from > 0 {
			prev = all[from-1].Hash
		}
		for i := from; i < len(all); i++ {
			all[i].Seq = h.First + uint64(i)
			records.Link(prev, &all[i])
			prev = all[i].Hash
		}
		h.Last, h.LastHash = h.First+uint64(len(all))-1, prev
	}
	type change func(h *records.Head, all []records.Record) []records.Record
	for name, c := range map[string]struct {
		change change
		wrong  records.Wrong
		seq    uint64
	}{
		"a byte of a body": {func(_ *records.Head, all []records.Record) []records.Record { all[6].Body[20] ^= 1; return all }, records.Changed, 7},
		"the first record": {func(_ *records.Head, all []records.Record) []records.Record { all[0].Body[20] ^= 1; return all }, records.Changed, 1},
		"the last record":  {func(_ *records.Head, all []records.Record) []records.Record { all[39].Body[20] ^= 1; return all }, records.Changed, 40},
		"a time": {func(_ *records.Head, all []records.Record) []records.Record {
			all[6].Time = all[6].Time.Add(1000)
			return all
		}, records.Changed, 7},
		"a kind": {func(_ *records.Head, all []records.Record) []records.Record {
			all[6].Kind = records.KindStarted
			return all
		}, records.Changed, 7},
		"an execution's id": {func(_ *records.Head, all []records.Record) []records.Record {
			all[6].ExecutionID = all[0].ExecutionID
			return all
		}, records.Changed, 7},
		"a tenant":          {func(_ *records.Head, all []records.Record) []records.Record { all[6].Tenant = "other"; return all }, records.Changed, 7},
		"a hash":            {func(_ *records.Head, all []records.Record) []records.Record { all[6].Hash = all[5].Hash; return all }, records.Changed, 7},
		"the hash before":   {func(_ *records.Head, all []records.Record) []records.Record { all[6].Prev = all[4].Hash; return all }, records.Changed, 7},
		"one is gone":       {func(_ *records.Head, all []records.Record) []records.Record { return slices.Delete(all, 6, 7) }, records.Missing, 7},
		"the first is gone": {func(_ *records.Head, all []records.Record) []records.Record { return all[1:] }, records.Missing, 1},
		"the last are gone": {func(_ *records.Head, all []records.Record) []records.Record { return all[:38] }, records.Missing, 39},
		"all are gone":      {func(*records.Head, []records.Record) []records.Record { return nil }, records.Missing, 1},
		"one twice, moved up": {func(_ *records.Head, all []records.Record) []records.Record {
			all[20] = all[6]
			all[20].Seq = 21
			return all
		}, records.Doubled, 21},
		"one twice": {func(_ *records.Head, all []records.Record) []records.Record {
			return slices.Insert(all, 7, all[6])
		}, records.Doubled, 7},
		"two have changed places": {func(_ *records.Head, all []records.Record) []records.Record {
			all[6], all[9] = all[9], all[6]
			all[6].Seq, all[9].Seq = 7, 10
			return all
		}, records.Reordered, 7},
		"the numbers closed up after one": {func(h *records.Head, all []records.Record) []records.Record {
			all = slices.Delete(all, 6, 7)
			for i := range all {
				all[i].Seq = uint64(i + 1)
			}
			h.Last--
			return all
		}, records.Reordered, 7},
		"one that is whole by itself": {func(_ *records.Head, all []records.Record) []records.Record {
			all[6].Body = []byte(strings.Replace(string(all[6].Body), `"fuel":7`, `"fuel":8`, 1))
			records.Link(all[6].Prev, &all[6])
			return all
		}, records.Forged, 8},
		"the last, written anew": {func(_ *records.Head, all []records.Record) []records.Record {
			all[39].Body = []byte(strings.Replace(string(all[39].Body), `"fuel":7`, `"fuel":8`, 1))
			records.Link(all[39].Prev, &all[39])
			return all
		}, records.WrongHead, 40},
		"of another execution, with all hashes anew": {func(h *records.Head, all []records.Record) []records.Record {
			all[6].Body = all[10].Body
			relink(h, all, 6)
			return all
		}, records.Forged, 7},
		"of another kind, with all hashes anew": {func(h *records.Head, all []records.Record) []records.Record {
			all[6].Kind = "odd"
			relink(h, all, 6)
			return all
		}, records.Forged, 7},
		"no JSON, with all hashes anew": {func(h *records.Head, all []records.Record) []records.Record {
			all[6].Body = []byte("x")
			relink(h, all, 6)
			return all
		}, records.Forged, 7},
		"the first are gone, and the head knows": {func(h *records.Head, all []records.Record) []records.Record {
			h.First, h.Prev = 7, all[5].Hash
			return all[6:]
		}, records.Missing, 6},
		"the head names an earlier end": {func(h *records.Head, all []records.Record) []records.Record {
			h.Last, h.LastHash = 38, all[37].Hash
			return all
		}, records.WrongHead, 39},
		"the head names a later end":      {func(h *records.Head, all []records.Record) []records.Record { h.Last++; return all }, records.Missing, 41},
		"the head names another hash":     {func(h *records.Head, all []records.Record) []records.Record { h.LastHash = all[0].Hash; return all }, records.WrongHead, 40},
		"the head names something before": {func(h *records.Head, all []records.Record) []records.Record { h.Prev = all[0].Hash; return all }, records.Forged, 1},
		"something before, with all hashes anew": {func(h *records.Head, all []records.Record) []records.Record {
			h.Prev = all[0].Hash
			relink(h, all, 0)
			return all
		}, records.WrongHead, 1},
		"a removal that was none, hashes anew": {func(h *records.Head, all []records.Record) []records.Record {
			all = append(all, removal(t, 7, all[5].Hash))
			relink(h, all, 40)
			return all
		}, records.Forged, 7},
		"a removal of what is to come, and anew": {func(h *records.Head, all []records.Record) []records.Record {
			all = append(all, removal(t, 99, all[5].Hash))
			relink(h, all, 40)
			return all
		}, records.Forged, 41},
		"a removal that says something else": {func(h *records.Head, all []records.Record) []records.Record {
			all = append(all, removal(t, 5, all[3].Hash))
			relink(h, all, 40)
			h.First, h.Prev = 7, all[5].Hash
			return all[6:]
		}, records.Missing, 6},
		"a removal of other records than it says": {func(h *records.Head, all []records.Record) []records.Record {
			all = append(all, removal(t, 7, all[3].Hash))
			relink(h, all, 40)
			h.First, h.Prev = 7, all[5].Hash
			return all[6:]
		}, records.Missing, 6},
	} {
		t.Run(name, func(t *testing.T) {
			s := filled(t, 10)
			wantWhole(t, s)
			s.Change("acme", c.change)
			r, err := records.Verify(t.Context(), s, records.VerifyOptions{})
			if err != nil || len(r.Chains) != 2 || r.Whole() {
				t.Fatalf("%+v, %v", r, err)
			}
			if f := r.Chains[0].Fault; f == nil || f.Wrong != c.wrong || f.Seq != c.seq || f.Message == "" || r.Chains[0].Tenant != "acme" {
				t.Errorf("found %+v, want %s %d", f, c.wrong, c.seq)
			}
			if f := r.Chains[1].Fault; f != nil {
				t.Errorf("the chain of another tenant: %+v", f)
			}
		})
	}
}

func removal(t *testing.T, next uint64, hash string) records.Record {
	t.Helper()
	when := time.Now().UTC().Truncate(time.Microsecond)
	b := musttest.Get(json.Marshal(records.Pruned{Next: next, Hash: hash, Time: when}))(t)
	return records.Record{Tenant: "acme", Kind: records.KindPruned, Time: when, Body: b}
}

// Who writes a whole chain anew is found by a head that was kept elsewhere, and by
// nothing else.
func TestVerifyAgainstHeads(t *testing.T) {
	s := filled(t, 10)
	heads := musttest.Get(s.Tenants(t.Context()))(t)
	var file strings.Builder
	musttest.Do(t, records.WriteHeads(&file, heads))
	kept, err := records.ReadHeads(strings.NewReader(file.String() + "\n" + file.String()))
	if err != nil || len(kept) != 4 || kept[0] != heads[0] || kept[3] != heads[1] {
		t.Fatalf("%+v, %v", kept, err)
	}
	check := func(want records.Wrong, seq uint64) {
		t.Helper()
		if r, err := records.Verify(t.Context(), s, records.VerifyOptions{}); err != nil || !r.Whole() {
			t.Errorf("without a head %+v, %v: the chain is whole by itself", r, err)
		}
		r := musttest.Get(records.Verify(t.Context(), s, records.VerifyOptions{Against: kept}))(t)
		var fault records.Fault
		for _, c := range r.Chains {
			if c.Tenant == "acme" && c.Fault != nil {
				fault = *c.Fault
			}
		}
		if fault.Wrong != want || fault.Seq != seq {
			t.Errorf("found %+v, want %s %d", fault, want, seq)
		}
	}
	l := open(t, s, nil)
	c := call("acme")
	wantCode(t, l.Started(t.Context(), c, nil), "")
	wantCode(t, l.Finished(t.Context(), c, success(), nil), "")
	check("", 0) // it went on
	s.Change("acme", func(h *records.Head, all []records.Record) []records.Record {
		all[3].Body = []byte(strings.Replace(string(all[3].Body), `"fuel":7`, `"fuel":8`, 1))
		prev := h.Prev
		for i := range all {
			records.Link(prev, &all[i])
			prev = all[i].Hash
		}
		h.LastHash = prev
		return all
	})
	check(records.Forged, 40)
	s.Change("acme", func(h *records.Head, all []records.Record) []records.Record {
		h.Last, h.LastHash = 30, all[29].Hash
		return all[:30]
	})
	check(records.Missing, 31)
	s = newFaulty(t)
	check(records.Missing, 40)

	for _, bad := range []string{"x", `{"tenant":"a","last":1}`, `{"tenant":"","last":0}`, `{"tenant":"a","lost":0}`, `[]`, strings.Repeat("x", 2<<20)} {
		if heads, err := records.ReadHeads(strings.NewReader(bad)); err == nil {
			t.Errorf("%.40q was read as %v", bad, heads)
		}
	}
}

// The executions that queries show are compared with their records.
func TestVerifyRows(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *records.Execution)
		seq    uint64
	}{
		"an end":      {func(e *records.Execution) { e.Finished.Status = records.Failed }, 3},
		"no end":      {func(e *records.Execution) { e.Finished = nil }, 3},
		"a beginning": {func(e *records.Execution) { e.Principal = "somebody else" }, 2},
		"a tenant":    {func(e *records.Execution) { e.Tenant = "other" }, 2},
		"a time":      {func(e *records.Execution) { e.Started.Time = e.Started.Time.Add(-time.Hour) }, 2},
		"an end's":    {func(e *records.Execution) { e.Finished.Time = e.Finished.Time.Add(time.Hour) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := filled(t, 3)
			recs := musttest.Get(s.Records(t.Context(), "acme", 2, 1))(t)
			s.ChangeExecution(recs[0].ExecutionID, c.change)
			if r, err := records.Verify(t.Context(), s, records.VerifyOptions{}); err != nil || !r.Whole() {
				t.Errorf("the chain alone: %+v, %v", r, err)
			}
			r := musttest.Get(records.Verify(t.Context(), s, records.VerifyOptions{Rows: true}))(t)
			if f := r.Chains[0].Fault; f == nil || f.Wrong != records.WrongRow || f.Seq != c.seq || f.ExecutionID != recs[0].ExecutionID {
				t.Errorf("found %+v, want a row at %d", f, c.seq)
			}
		})
	}
}

func TestVerifyChosen(t *testing.T) {
	s := filled(t, 10)
	s.Change("acme", func(_ *records.Head, all []records.Record) []records.Record { all[6].Body[20] ^= 1; return all })
	for _, c := range []struct {
		o     records.VerifyOptions
		whole bool
		n     uint64
	}{
		{records.VerifyOptions{Tenant: "acme"}, false, 40},
		{records.VerifyOptions{Tenant: "other"}, true, 40},
		{records.VerifyOptions{Tenant: "acme", From: 7}, false, 34},
		{records.VerifyOptions{Tenant: "acme", From: 8}, true, 33},
		{records.VerifyOptions{Tenant: "acme", From: 40}, true, 1},
		{records.VerifyOptions{Tenant: "acme", From: 1000}, true, 1},
		{records.VerifyOptions{Tenant: "nobody"}, true, 0},
	} {
		r, err := records.Verify(t.Context(), s, c.o)
		if err != nil || len(r.Chains) != 1 || r.Whole() != c.whole || r.Chains[0].Records != c.n {
			t.Errorf("%+v: %+v, %v", c.o, r, err)
		}
	}
	s.Before(func(context.Context, string) error { return errStore })
	if _, err := records.Verify(t.Context(), s, records.VerifyOptions{}); err == nil {
		t.Error("a store that cannot be read is whole")
	}
	s.Before(nil)
}

// A fault does not end a verification: later ones are listed too, up to a bound, and counted
// beyond it.
func TestVerifyGoesOn(t *testing.T) {
	s := filled(t, 100) // 400 records
	recs, err := s.Records(t.Context(), "acme", 1, 400)
	musttest.Do(t, err)
	s.ChangeExecution(recs[0].ExecutionID, func(e *records.Execution) { e.Skill = "other" })
	s.Change("acme", func(_ *records.Head, all []records.Record) []records.Record {
		all[49].Body[20] ^= 1
		all[99].Body[20] ^= 1
		return slices.Delete(all, 199, 202)
	})
	r, err := records.Verify(t.Context(), s, records.VerifyOptions{Tenant: "acme", Rows: true})
	musttest.Do(t, err)
	got := map[uint64]records.Wrong{}
	for _, f := range r.Chains[0].Faults {
		got[f.Seq] = f.Wrong
	}
	for seq, want := range map[uint64]records.Wrong{1: records.WrongRow, 50: records.Changed, 100: records.Changed, 200: records.Missing} {
		if got[seq] != want {
			t.Errorf("record %d: %q, want %q", seq, got[seq], want)
		}
	}
	if c := r.Chains[0]; c.Records != 397 || c.Fault.Seq != 1 || c.Found < 4 {
		t.Errorf("%d records, %d faults, the first %+v", c.Records, c.Found, c.Fault)
	}
	s.Change("acme", func(_ *records.Head, all []records.Record) []records.Record {
		for i := range all {
			all[i].Body[30] ^= 1
		}
		return all
	})
	r, err = records.Verify(t.Context(), s, records.VerifyOptions{Tenant: "acme", Rows: true})
	if err != nil || len(r.Chains[0].Faults) != records.MaxFaults || r.Chains[0].Found < 390 {
		t.Errorf("%d of %d faults, %v", len(r.Chains[0].Faults), r.Chains[0].Found, err)
	}
}

// An execution that is shown and was never on record is found: one that ended or runs, of
// the time of any record or of none, of a tenant with a chain or without one, and when a
// part of the chain is verified.
func TestVerifyFindsAddedExecutions(t *testing.T) {
	forge := func(tenant string, when time.Time, ended bool) *records.Execution {
		e := &records.Execution{Started: *call(tenant)}
		e.Started.Time = when
		if ended {
			e.Finished = success()
			e.Finished.ExecutionID, e.Finished.Time = e.Started.ExecutionID, when
		}
		return e
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	for name, e := range map[string]*records.Execution{
		"ended":                  forge("acme", now, true),
		"long ago":               forge("acme", now.AddDate(-1, 0, 0), true),
		"to come":                forge("acme", now.AddDate(1, 0, 0), true),
		"running":                forge("acme", now, false),
		"of nobody":              forge("ghost", now, true),
		"of nobody, and running": forge("ghost", now, false),
	} {
		s := filled(t, 3)
		s.AddExecution(e)
		r := musttest.Get(records.Verify(t.Context(), s, records.VerifyOptions{Rows: true}))(t)
		var found []records.Fault
		for _, c := range r.Chains {
			if c.Tenant == e.Tenant {
				found = append(found, c.Faults...)
			}
		}
		if len(found) != 1 || found[0].ExecutionID != e.Started.ExecutionID || found[0].Wrong != records.WrongRow || r.Whole() {
			t.Errorf("%s: %+v", name, found)
		}
	}
	s := filled(t, 3)
	e := forge("acme", now.Add(time.Hour), true)
	s.AddExecution(e)
	r, err := records.Verify(t.Context(), s, records.VerifyOptions{Tenant: "acme", Rows: true, From: 5})
	if err != nil || r.Chains[0].Fault == nil || r.Chains[0].Fault.ExecutionID != e.Started.ExecutionID {
		t.Errorf("in part: %+v, %v", r.Chains, err)
	}
	// One is shown in the place of another: both are told.
	s = filled(t, 3)
	recs := musttest.Get(s.Records(t.Context(), "acme", 3, 1))(t)
	s.AddExecution(forge("acme", now, true))
	s.ChangeExecution(recs[0].ExecutionID, func(e *records.Execution) { e.Tenant = "other" })
	r, err = records.Verify(t.Context(), s, records.VerifyOptions{Tenant: "acme", Rows: true})
	if err != nil || r.Chains[0].Found != 2 {
		t.Errorf("in the place of another: %+v, %v", r.Chains[0].Faults, err)
	}
}

// A row of an older version, in which PostgreSQL dropped the sign of a zero, is told as that.
func TestVerifyTellsLostSigns(t *testing.T) {
	s := newFaulty(t)
	l := open(t, s, func(o *records.Options) { o.Policy = records.KeepFull })
	a := call("acme")
	wantCode(t, l.Started(t.Context(), a, []byte(`{"x":[-0,-0.50,-0.0]}`)), "")
	wantCode(t, l.Finished(t.Context(), a, success(), []byte(`{}`)), "")
	s.ChangeExecution(a.ExecutionID, func(e *records.Execution) { e.Input.JSON = []byte(`{"x": [0, -0.50, 0.0]}`) })
	r, err := records.Verify(t.Context(), s, records.VerifyOptions{Rows: true})
	if err != nil || !r.Whole() || r.Chains[0].LostSigns != 1 {
		t.Errorf("%+v, %v", r.Chains, err)
	}
	s.ChangeExecution(a.ExecutionID, func(e *records.Execution) { e.Input.JSON = []byte(`{"x": [0, 0.50, 0.0]}`) })
	if r, err = records.Verify(t.Context(), s, records.VerifyOptions{Rows: true}); err != nil || r.Whole() {
		t.Errorf("%+v, %v", r.Chains, err)
	}
}

// Records come and go while chains are verified.
func TestVerifyMeanwhile(t *testing.T) {
	s := filled(t, 50)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	l := open(t, s, nil)
	all.Go(func() {
		for ctx.Err() == nil {
			c := call("acme")
			if l.Started(context.Background(), c, nil) != nil || l.Finished(context.Background(), c, success(), nil) != nil {
				t.Error("a call was not put on record")
				return
			}
			if _, err := s.Prune(context.Background(), "acme", time.Now().Add(-time.Millisecond), 3); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 50 {
		r, err := records.Verify(t.Context(), s, records.VerifyOptions{})
		if err != nil || !r.Whole() {
			t.Errorf("%+v, %v", r, err)
			for _, c := range r.Chains {
				t.Errorf("%+v", c.Fault)
			}
			break
		}
	}
	cancel()
	all.Wait()
}

// An error of the store ends a verification, and what was found before it is told: chains
// that were read, and faults of the one that was being read.
func TestVerifyTellsWhatItFoundBeforeAnError(t *testing.T) {
	s := filled(t, 100)
	s.Change("other", func(_ *records.Head, all []records.Record) []records.Record { all[3].Body[20] ^= 1; return all })
	gone := errors.New("gone")
	left := 4 // pages of records: those of acme, and the first of other
	s.Before(func(_ context.Context, op string) error {
		if op == "Records" {
			if left--; left < 0 {
				return gone
			}
		}
		return nil
	})
	var told []records.Chain
	r, err := records.Verify(t.Context(), s, records.VerifyOptions{Each: func(c *records.Chain) { told = append(told, *c) }})
	if !errors.Is(err, gone) || len(told) != 2 || told[0].Tenant != "acme" || told[0].Fault != nil || told[1].Tenant != "other" || told[1].Fault == nil || told[1].Fault.Seq != 4 {
		t.Errorf("%+v, %v", told, err)
	}
	if r == nil || r.Whole() {
		t.Errorf("the report: %+v", r)
	}
}
