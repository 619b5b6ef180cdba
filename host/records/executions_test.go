package records_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/records"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// house is a manager with a door, records and results in memory.
type house struct {
	*records.Manager
	door    *storetest.Door
	records *faulty
	results *brokenResults
	held    chan struct{} // lets calls of "held" go on
}

// brokenResults cannot be written or read while err is set.
type brokenResults struct {
	records.Results
	err error
}

func (b *brokenResults) Put(ctx context.Context, k *records.Kept, most records.Room) error {
	if b.err != nil {
		return b.err
	}
	return b.Results.Put(ctx, k, most)
}

func (b *brokenResults) Get(ctx context.Context, tenant, id, name string, most int, now time.Time) ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.Results.Get(ctx, tenant, id, name, most, now)
}

func (b *brokenResults) Sizes(ctx context.Context, tenant, id string, now time.Time) (map[string]int, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.Results.Sizes(ctx, tenant, id, now)
}

func (h *house) Invoke(ctx context.Context, _ skill.Principal, r skill.Request) *skill.Result {
	switch r.SkillID {
	case "held":
		select {
		case <-h.held:
		case <-ctx.Done():
			return skill.Failure(r.SkillID, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.Cancelled, Message: context.Cause(ctx).Error()})
		}
	case "files":
		var files []skill.Artifact
		if err := json.Unmarshal(r.Input, &files); err != nil {
			panic(err)
		}
		for i := range files {
			files[i].Data = []byte(strings.Repeat("x", int(files[i].Size)))
		}
		return &skill.Result{Success: true, SkillID: r.SkillID, Data: json.RawMessage(`{}`), Meta: skill.Meta{Artifacts: files}}
	case "panics":
		panic("a secret")
	}
	return &skill.Result{Success: true, SkillID: r.SkillID, TraceID: r.TraceID, Data: json.RawMessage(`{"n":1}`)}
}

func newHouse(t *testing.T, o records.ManagerOptions) *house {
	t.Helper()
	recs := newFaulty(t)
	h := &house{records: recs, results: &brokenResults{Results: records.NewResults(recs.db)}, held: make(chan struct{})}
	return h.manager(t, o)
}

func (h *house) manager(t *testing.T, o records.ManagerOptions) *house {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	if o.Records == nil {
		o.Records = h.records
	}
	if o.Results == nil {
		o.Results = h.results
	}
	var err error
	if h.Manager, err = records.NewManager(o); err != nil {
		t.Fatal(err)
	}
	h.door = &storetest.Door{Inner: h, Store: h.records, Manager: h.Manager}
	return h
}

// begin starts a long call.
func (h *house) begin(ctx context.Context, p skill.Principal, id skill.ID) (string, *skill.Result, error) {
	return h.Start(ctx, p, func(ctx context.Context, started func(string)) *skill.Result {
		return h.door.Start(ctx, p, skill.Request{SkillID: id, TraceID: "t-1", Input: json.RawMessage("{}")}, started)
	})
}

func caller(tenant, id string, scopes ...string) skill.Principal {
	return skill.Principal{ID: id, Type: skill.Agent, Tenant: tenant, Scopes: scopes}
}

var (
	ann      = caller("a", "ann", skill.ScopeInvoke, skill.ScopeExecutions)
	amy      = caller("a", "amy", skill.ScopeInvoke, skill.ScopeExecutions)
	chief    = caller("a", "chief", skill.ScopeAllExecutions)
	bob      = caller("b", "bob", skill.ScopeInvoke, skill.ScopeExecutions, skill.ScopeAllExecutions)
	operator = skill.Local()
)

// code is the code of an error, to be compared.
func code(err error) skill.Code { return skill.CodeOf(err) }

// A long call goes on when who asked for it has left, and its result is there until it
// has expired.
func TestALongCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, records.ManagerOptions{Keep: 10 * time.Minute})
		tending, stop := context.WithCancel(t.Context())
		defer stop()
		go h.Tend(tending)
		ctx, leave := context.WithCancel(t.Context())
		id, r, err := h.begin(ctx, ann, "held")
		if err != nil || r != nil || id == "" {
			t.Fatalf("%q, %v, %v", id, r, err)
		}
		leave()
		synctest.Wait()
		if v, err := h.Get(t.Context(), ann, id, records.WholeResult); err != nil || v.Status != records.Running || v.Result != nil || v.FinishedAt != nil {
			t.Fatalf("while it runs: %+v, %v", v, err)
		}
		close(h.held)
		synctest.Wait()
		v, err := h.Get(t.Context(), ann, id, records.WholeResult)
		if err != nil || v.Status != records.Success || v.FinishedAt == nil {
			t.Fatalf("afterwards: %+v, %v", v, err)
		}
		var result skill.Result
		if err := json.Unmarshal(v.Result, &result); err != nil || !result.Success || string(result.Data) != `{"n":1}` || result.Meta.ExecutionID != id {
			t.Errorf("result %s, %v", v.Result, err)
		}
		time.Sleep(10*time.Minute + time.Second)
		if v, err := h.Get(t.Context(), ann, id, records.WholeResult); err != nil || v.Status != records.Success || v.Result != nil {
			t.Errorf("when it has expired: %+v, %v", v, err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if sizes, err := h.results.Sizes(t.Context(), "a", id, time.Unix(0, 0)); err != nil || len(sizes) > 0 {
			t.Errorf("it is still there: %v, %v", sizes, err)
		}
	})
}

// Who asks until the call has ended finds its result there, also in the moment between
// the record of its end and the keeping of the result.
func TestNoEndWithoutItsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, records.ManagerOptions{})
		gate := make(chan struct{})
		id, _, err := h.Start(t.Context(), ann, func(ctx context.Context, started func(string)) *skill.Result {
			r := h.door.Start(ctx, ann, skill.Request{SkillID: "echo", Input: json.RawMessage("{}")}, started)
			<-gate // its end is on record
			return r
		})
		musttest.Do(t, err)
		synctest.Wait()
		if v, err := h.Get(t.Context(), ann, id, records.WholeResult); err != nil || v.Status != records.Running || v.FinishedAt != nil || v.Output != nil {
			t.Errorf("between: %+v, %v", v, err)
		}
		time.Sleep(time.Minute) // whoever should have kept it is gone
		if v, err := h.Get(t.Context(), ann, id, records.WholeResult); err != nil || v.Status != records.Success || v.Result != nil {
			t.Errorf("a minute later: %+v, %v", v, err)
		}
		close(gate)
		synctest.Wait()
		if v, err := h.Get(t.Context(), ann, id, records.WholeResult); err != nil || v.Result == nil {
			t.Errorf("in the end: %+v, %v", v, err)
		}
	})
}

func TestACallThatIsRefusedBeforeItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, records.ManagerOptions{Long: 1})
		for range 3 { // none of them keeps its place
			id, r, err := h.begin(t.Context(), ann, "refused")
			if id != "" || err != nil || r == nil || r.Error == nil || r.Error.Code != skill.RateLimited {
				t.Fatalf("%q, %+v, %v", id, r, err)
			}
			synctest.Wait() // the place is free a moment after the answer
		}
	})
}

// A panic on the way of a long call ends that call, and nothing of it is shown.
func TestALongCallThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, records.ManagerOptions{Long: 1})
		for range 2 { // it gives its place back
			id, r, err := h.begin(t.Context(), ann, "panics")
			if id == "" || err != nil {
				t.Fatalf("%q, %+v, %v", id, r, err)
			}
			synctest.Wait()
			b, err := h.results.Get(t.Context(), "a", id, "", records.WholeResult, time.Unix(0, 0))
			if err != nil || !strings.Contains(string(b), "INTERNAL") || strings.Contains(string(b), "secret") {
				t.Errorf("%s, %v", b, err)
			}
		}
	})
}

// Who leaves before the call is on record has not called.
func TestWhoLeavesBeforeTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, records.ManagerOptions{})
		ctx, leave := context.WithCancel(t.Context())
		var cause error
		go func() {
			time.Sleep(time.Second)
			leave()
		}()
		id, r, err := h.Start(ctx, ann, func(ctx context.Context, _ func(string)) *skill.Result {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return skill.Failure("x", "", skill.Meta{}, &skill.Error{Code: skill.Cancelled, Message: "left"})
		})
		if id != "" || err != nil || r == nil || cause == nil {
			t.Errorf("%q, %v, %v, %v", id, r, err, cause)
		}
	})
}

func TestLongCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, records.ManagerOptions{Long: 5})
		for i := range 3 {
			if _, _, err := h.begin(t.Context(), ann, "held"); err != nil {
				t.Fatalf("%d: %v", i, err)
			}
		}
		_, _, err := h.begin(t.Context(), amy, "held")
		if e, ok := errors.AsType[*skill.Error](err); !ok || e.Code != skill.RateLimited || e.Details["limit"] != 5 || e.Details["retry_after_ms"] == nil {
			t.Errorf("the fourth of the tenant: %v", err)
		}
		if _, _, err := h.begin(t.Context(), bob, "held"); err != nil {
			t.Fatalf("another tenant's: %v", err)
		}
		if _, _, err := h.begin(t.Context(), bob, "held"); code(err) != skill.RateLimited {
			t.Errorf("the last place, which is kept for a third tenant: %v", err)
		}
		close(h.held)
		synctest.Wait()
		for range 5 {
			if _, _, err := h.begin(t.Context(), ann, "held"); err != nil {
				t.Errorf("when they have ended: %v", err)
			}
			synctest.Wait()
		}
	})
}

// The end of a call before its own: by who made it and by the operator, once or twice,
// whether it is a long one or its client waits for it.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, records.ManagerOptions{})
		id, _, err := h.begin(t.Context(), ann, "held")
		musttest.Do(t, err)
		for name, p := range map[string]skill.Principal{
			"another of the tenant": amy, "who reads all of the tenant": chief, "another tenant": bob, "nobody": {},
			"another kind of caller of the same name": {ID: "ann", Type: skill.Human, Tenant: "a", Scopes: ann.Scopes},
			"the same name in another tenant":         caller("b", "ann", skill.ScopeInvoke, skill.ScopeExecutions),
		} {
			if v, err := h.Cancel(t.Context(), p, id); code(err) != skill.NotFound {
				t.Errorf("%s: %+v, %v", name, v, err)
			}
		}
		for i := range 3 {
			v, err := h.Cancel(t.Context(), ann, id)
			if err != nil || v.Status != records.Terminated || v.Error == nil || v.Error.Code != skill.Cancelled {
				t.Errorf("%d: %+v, %v", i, v, err)
			}
		}
		waits := make(chan *skill.Result, 1)
		go func() {
			waits <- h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "held", Input: json.RawMessage("{}")})
		}()
		synctest.Wait()
		if v, err := h.Cancel(t.Context(), operator, storetest.ExecutionID(2)); err != nil || v.Status != records.Terminated {
			t.Errorf("one that is waited for: %+v, %v", v, err)
		}
		if r := <-waits; r.Error == nil || r.Error.Code != skill.Cancelled {
			t.Errorf("who waited gets %+v", r)
		}
		done, _, err := h.begin(t.Context(), ann, "echo")
		musttest.Do(t, err)
		synctest.Wait()
		if v, err := h.Cancel(t.Context(), ann, done); err != nil || v.Status != records.Success || v.Result == nil {
			t.Errorf("one that has ended: %+v, %v", v, err)
		}
		for _, id := range []string{"", "x", storetest.ExecutionID(99), strings.ToUpper(id) + "A", "00000000-0000-7000-8000-00000000000g"} {
			if _, err := h.Cancel(t.Context(), ann, id); code(err) != skill.NotFound {
				t.Errorf("%q: %v", id, err)
			}
		}
	})
}

// A call on another host that has the same database ends soon after it was asked for.
func TestCancelOnAnotherHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, records.ManagerOptions{})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go h.Tend(ctx)
		id, _, err := h.begin(t.Context(), ann, "held")
		musttest.Do(t, err)
		other := (&house{records: h.records, results: h.results}).manager(t, records.ManagerOptions{EndWait: time.Millisecond})
		at := time.Now()
		if v, err := other.Cancel(t.Context(), ann, id); err != nil || v.Status != records.Running {
			t.Fatalf("%+v, %v", v, err)
		}
		time.Sleep(time.Second - time.Since(at))
		synctest.Wait()
		if v, err := other.Get(t.Context(), ann, id, records.WholeResult); err != nil || v.Status != records.Terminated || v.Result == nil {
			t.Errorf("a second later: %+v, %v", v, err)
		}
		h.results.err = errors.New("gone")
		if _, err := other.Cancel(t.Context(), ann, id); code(err) != skill.AuditUnavailable {
			t.Errorf("without its database: %v", err)
		}
	})
}

// A host that stops ends its long calls, and their ends are on record. Before, it gives them time.
func TestAHostThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, records.ManagerOptions{})
		id, _, err := h.begin(t.Context(), ann, "held")
		musttest.Do(t, err)
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Drain(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one that goes on: %v", err)
		}
		if _, _, err := h.begin(t.Context(), ann, "echo"); code(err) != skill.Cancelled {
			t.Errorf("meanwhile: %v", err)
		}
		time.AfterFunc(time.Minute, func() { close(h.held) })
		musttest.Do(t, h.Drain(t.Context()))
		if v, err := h.Get(t.Context(), ann, id, records.WholeResult); err != nil || v.Status != records.Success {
			t.Errorf("%+v, %v", v, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, records.ManagerOptions{})
		id, _, err := h.begin(t.Context(), ann, "held")
		musttest.Do(t, err)
		for range 2 {
			musttest.Do(t, h.Close(t.Context()))
		}
		if v, err := h.Get(t.Context(), ann, id, records.WholeResult); err != nil || v.Status != records.Terminated || !strings.Contains(string(v.Result), "CANCELLED") {
			t.Errorf("%+v, %v", v, err)
		}
		if _, _, err := h.begin(t.Context(), ann, "echo"); code(err) != skill.Cancelled {
			t.Errorf("afterwards: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, records.ManagerOptions{})
		stuck := make(chan struct{})
		if _, _, err := h.Start(t.Context(), ann, func(_ context.Context, started func(string)) *skill.Result {
			started(storetest.ExecutionID(1))
			<-stuck
			return &skill.Result{}
		}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that does not end: %v", err)
		}
		close(stuck)
	})
}
