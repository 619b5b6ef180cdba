package records_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// runs are what calls of all hosts of a test did.
type runs struct {
	mu    sync.Mutex
	order []string // executions that ran, with their principals
	times map[string]int
	hold  chan struct{} // lets calls of "held" end
}

func newRuns() *runs { return &runs{times: map[string]int{}, hold: make(chan struct{})} }

func (r *runs) ran(id, principal string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order = append(r.order, principal)
	r.times[id]++
}

func (r *runs) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.order...)
}

func (r *runs) count(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times[id]
}

// queuing is a host with queued calls and a door that has all on record.
type queuing struct {
	*records.Manager
	door
	log    *records.Log
	runs   *runs
	admit  func(p skill.Principal) error // nil: all
	before func(id string)               // before a beginning is on record
	hold   chan struct{}                 // lets calls of "again" end
	digest string                        // of "again"
	told   chan error                    // of the ends, if it is not nil
	stop   func()
}

func (q *queuing) Start(ctx context.Context, p skill.Principal, r skill.Request, started func(string)) *skill.Result {
	fail := func(err error) *skill.Result {
		return skill.Failure(r.SkillID, r.TraceID, skill.Meta{ExecutionID: r.ExecutionID}, err)
	}
	switch r.SkillID {
	case "busy":
		return fail(&skill.Error{Code: skill.RateLimited, Message: "busy", Details: map[string]any{"retry_after_ms": int64(250)}})
	case "gone":
		return fail(&skill.Error{Code: skill.NotFound, Message: "skill not found"})
	case "panics":
		panic("a secret")
	case "workspace": // waits for it
		select {
		case <-q.runs.hold:
		case <-ctx.Done():
			return fail(&skill.Error{Code: skill.Conflict, Message: "another call uses the workspace"})
		}
	}
	if q.before != nil {
		q.before(r.ExecutionID)
	}
	s := &records.Started{ExecutionID: r.ExecutionID, Tenant: p.Tenant, Principal: p.ID, PrincipalType: p.Type, Session: r.ExecutionID, Skill: string(r.SkillID), TraceID: string(r.TraceID), Contested: true, Again: r.Again}
	if r.SkillID == "again" {
		s.Digest = q.digest
	}
	if err := q.log.Started(ctx, s, r.Input); err != nil {
		return fail(err)
	}
	ctx, done := q.Track(ctx, s)
	defer done()
	started(s.ExecutionID)
	q.runs.ran(s.ExecutionID, p.ID)
	f := &records.Finished{Status: records.Success}
	result := &skill.Result{Success: true, SkillID: r.SkillID, Data: r.Input, Meta: skill.Meta{ExecutionID: s.ExecutionID}}
	if hold := map[skill.ID]chan struct{}{"held": q.runs.hold, "again": q.hold}[r.SkillID]; hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			f.Status, f.Code, f.Message = records.Terminated, skill.Cancelled, "ended"
			result = fail(&skill.Error{Code: skill.Cancelled, Message: "ended"})
		}
	}
	err := q.log.Finished(ctx, s, f, r.Input)
	if q.told != nil {
		q.told <- err
	}
	if err != nil {
		return fail(err)
	}
	return result
}

func (q *queuing) StartScript(ctx context.Context, p skill.Principal, r skill.ScriptRequest, started func(string)) *skill.Result {
	return q.Start(ctx, p, skill.Request{SkillID: skill.ID(r.Skill), ExecutionID: r.ExecutionID, Input: json.RawMessage(`"a script"`)}, started)
}

// newQueuing opens a host on a database; long calls have as many places.
func newQueuing(t testing.TB, db *store.DB, r *runs, long int, change func(*records.ManagerOptions, *queuing)) *queuing {
	t.Helper()
	q := &queuing{runs: r, hold: r.hold}
	q.log = musttest.Get(records.Open(t.Context(), records.Options{Store: records.NewStore(db), Policy: records.KeepFull, Log: slog.New(slog.DiscardHandler)}))(t)
	o := records.ManagerOptions{
		Records: q.log.Store(), Results: records.NewResults(db), Long: long, AskEvery: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Queue: &records.QueueOptions{DB: db, Record: q.log},
	}
	if change != nil {
		change(&o, q)
	}
	q.Manager = musttest.Get(records.NewManager(o))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() { q.Tend(ctx) })
	working.Go(func() {
		q.Work(ctx, records.Worker{Door: q, Admit: func(ctx context.Context, p skill.Principal, _ time.Time) (context.Context, skill.Principal, func(), error) {
			if q.admit != nil {
				if err := q.admit(p); err != nil {
					return nil, p, nil, err
				}
			}
			return ctx, p, func() {}, nil
		}})
	})
	q.stop = sync.OnceFunc(func() {
		end, done := context.WithTimeout(context.Background(), time.Minute)
		defer done()
		_ = q.Close(end)
		cancel()
		working.Wait()
		_ = q.log.Close(end)
	})
	t.Cleanup(q.stop)
	return q
}

// door refuses all calls with a result, or none.
type door struct{ refused *skill.Result }

func (d door) Check(context.Context, *records.QueuedCall) *skill.Result { return d.refused }

func (door) Idempotent(c *records.QueuedCall) bool {
	return c.Request != nil && c.Request.SkillID == "again"
}

// accept has a call accepted that finds no place, and gives its id.
func (q *queuing) accept(t testing.TB, p skill.Principal, id skill.ID, input string) string {
	t.Helper()
	c := &records.QueuedCall{Principal: p, Request: &skill.Request{SkillID: id, TraceID: "t-1", Input: json.RawMessage(input)}}
	var execution string
	var status records.Status
	var r *skill.Result
	var err error
	for end := time.Now().Add(time.Minute); r == nil && err == nil && execution == "" || r != nil && time.Now().Before(end); time.Sleep(time.Millisecond) { // until the host works
		execution, status, r, err = q.Accept(t.Context(), c, func(context.Context, func(string)) *skill.Result {
			return skill.Failure(id, "", skill.Meta{}, &skill.Error{Code: skill.RateLimited, Message: "no place"})
		}, door{})
	}
	if err != nil || r != nil || status != records.Queued || execution == "" {
		t.Fatalf("%q, %q, %+v, %v", execution, status, r, err)
	}
	return execution
}

// ended waits until an execution is as it should be.
func (q *queuing) ended(t testing.TB, p skill.Principal, id string, status records.Status) *records.View {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		v, err := q.Get(context.Background(), p, id, records.WholeResult)
		if err != nil {
			t.Fatal(err)
		}
		if v.Status == status {
			return v
		}
		if v.Status != records.Running && v.Status != records.Queued || time.Now().After(end) {
			t.Fatalf("%s is %s (%+v), not %s", id, v.Status, v.Error, status)
		}
	}
}

// drained fails unless the queue is, and the sums are.
func drained(t testing.TB, db *store.DB) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var calls, sums int
		musttest.Do(t, db.Read.QueryRowContext(context.Background(), "SELECT (SELECT count(*) FROM queued_calls), (SELECT count(*) FROM queued_sums)").Scan(&calls, &sums))
		if calls == 0 && sums == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d calls and %d sums are left", calls, sums)
		}
	}
}
