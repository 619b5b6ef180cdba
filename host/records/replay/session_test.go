package replay

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// chained are runs of a session, each of which leaves its number as the memory. It is also the store of their
// recordings, and makes them again.
type chained struct {
	Store

	t     *testing.T
	rows  map[string]*Row
	made  []string // runs that were made again
	other string   // a run that ends otherwise now
	gone  string   // a run whose recording is missing
}

func run(n int) string { return fmt.Sprintf("0190a1b2-0000-7000-8000-%012d", n) }

func (c *chained) Get(_ context.Context, _, id string) (*Row, error) {
	if id == c.gone {
		return nil, nil
	}
	return c.rows[id], nil
}

func (c *chained) Execution(_ context.Context, _ skill.Principal, id string) (*records.Execution, error) {
	s := aRecording().Started
	s.ExecutionID = id
	return &records.Execution{Started: s, Finished: &records.Finished{Status: records.Success}}, nil
}

func (c *chained) Plan(_ context.Context, _ skill.Principal, a *Again) (*Plan, error) {
	return &Plan{Digest: a.Digest, Target: a.Target, Limits: a.Request.Limits}, nil
}

func (c *chained) Replay(_ context.Context, _ skill.Principal, a *Again) (*skill.Result, *skill.Reply) {
	c.made = append(c.made, a.Of)
	before := string(a.Session.State.State)
	if want := strings.Join(c.made[:len(c.made)-1], " "); before != want || (before == "") != (a.Session.Ahead == nil) || a.Session.State.Seed != [32]byte{7} || a.Session.ID != "s-1" {
		c.t.Errorf("%s: %q, want %q: %+v", a.Of, before, want, a.Session)
	}
	r := &skill.Result{Success: true, Data: []byte("{}"), Meta: skill.Meta{ExecutionID: "again"}}
	if a.Of == c.other {
		r.Data = []byte("[]")
	}
	return r, &skill.Reply{State: []byte(strings.Join(c.made, " "))}
}

// TestRunsOfSessions: a replay makes the runs before it again, in their order and at most 100, and ends at the first that
// is missing or ends otherwise.
func TestRunsOfSessions(t *testing.T) {
	open := func(n int) (*chained, *Replayer) {
		c := &chained{t: t, rows: map[string]*Row{}}
		before := ""
		for i := range n {
			rec := aRecording()
			rec.Started.ExecutionID, rec.Granted, rec.Seen, rec.End = run(i), Granted{}, nil, End{Success: true, Data: []byte("{}")}
			rec.Session = &Before{ID: "s-1", Run: before, Seed: append([]byte{7}, make([]byte, 31)...)}
			row := &Row{}
			row.Body, row.Size = encoded(t, rec)
			before = run(i)
			c.rows[before] = row
		}
		return c, musttest.Get(New(Options{Store: c, Executions: c}))(t).Replayer(c)
	}
	p := skill.Principal{ID: "robot", Tenant: "acme"}
	for _, n := range []int{1, 2, 100} {
		c, r := open(n)
		if report, err := r.Replay(t.Context(), p, run(n-1)); err != nil || !report.Identical || report.ExecutionID != run(n-1) || len(c.made) != n {
			t.Errorf("%d runs: %+v, %v", n, report, err)
		}
	}
	c, r := open(101)
	if _, err := r.Replay(t.Context(), p, run(100)); skill.CodeOf(err) != skill.Conflict || !strings.Contains(err.Error(), "more than 99 runs") || len(c.made) > 0 {
		t.Errorf("%d runs were made: %v", len(c.made), err)
	}

	c, r = open(4)
	c.other = run(1)
	report := musttest.Get(r.Replay(t.Context(), p, run(3)))(t)
	if len(c.made) != 2 || report.Identical || report.ReplayID != "" || report.ExecutionID != run(3) || len(report.Differences) != 1 ||
		report.Differences[0].String() != "session run "+run(1)+" data: then {}, now []" {
		t.Errorf("%d runs, %+v", len(c.made), report)
	}
	c, r = open(4)
	c.gone = run(1)
	if _, err := r.Replay(t.Context(), p, run(3)); skill.CodeOf(err) != skill.Conflict || !strings.Contains(err.Error(), run(1)+", cannot: recording not found") || len(c.made) > 0 {
		t.Errorf("%d runs were made: %v", len(c.made), err)
	}

	// A chain that names itself ends.
	c, r = open(2)
	c.rows[run(0)] = c.rows[run(1)]
	if _, err := r.Replay(t.Context(), p, run(1)); skill.CodeOf(err) != skill.Conflict {
		t.Error(err)
	}
	rec := aRecording()
	rec.Session = &Before{Seed: make([]byte, 31)}
	if _, err := decode(encoded(t, rec)); err == nil {
		t.Error("a seed of 31 bytes was read")
	}
}
