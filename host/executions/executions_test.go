package executions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/audit"
	"openskill/host/audit/audittest"
	"openskill/host/executions"
	"openskill/host/executions/executionstest"
	"openskill/sdk/skill"
)

// house is a manager with a door, records and results in memory.
type house struct {
	*executions.Manager
	door    *executionstest.Door
	records *audittest.Store
	results *executionstest.Results
	held    chan struct{} // lets calls of "held" go on
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

func newHouse(t *testing.T, o executions.Options) *house {
	t.Helper()
	h := &house{records: &audittest.Store{}, results: &executionstest.Results{}, held: make(chan struct{})}
	return h.manager(t, o)
}

func (h *house) manager(t *testing.T, o executions.Options) *house {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	if o.Records == nil {
		o.Records = h.records
	}
	if o.Results == nil {
		o.Results = h.results
	}
	var err error
	if h.Manager, err = executions.New(o); err != nil {
		t.Fatal(err)
	}
	h.door = &executionstest.Door{Inner: h, Store: h.records, Manager: h.Manager}
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
		h := newHouse(t, executions.Options{Keep: 10 * time.Minute})
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
		if v, err := h.Get(t.Context(), ann, id); err != nil || v.Status != audit.Running || v.Result != nil || v.FinishedAt != nil {
			t.Fatalf("while it runs: %+v, %v", v, err)
		}
		close(h.held)
		synctest.Wait()
		v, err := h.Get(t.Context(), ann, id)
		if err != nil || v.Status != audit.Success || v.FinishedAt == nil {
			t.Fatalf("afterwards: %+v, %v", v, err)
		}
		var result skill.Result
		if err := json.Unmarshal(v.Result, &result); err != nil || !result.Success || string(result.Data) != `{"n":1}` || result.Meta.ExecutionID != id {
			t.Errorf("result %s, %v", v.Result, err)
		}
		time.Sleep(10*time.Minute + time.Second)
		if v, err := h.Get(t.Context(), ann, id); err != nil || v.Status != audit.Success || v.Result != nil {
			t.Errorf("when it has expired: %+v, %v", v, err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if names, err := h.results.Names(t.Context(), "a", id, time.Time{}); err != nil || len(names) > 0 {
			t.Errorf("it is still there: %q, %v", names, err)
		}
	})
}

// Who asks until the call has ended finds its result there, also in the moment between
// the record of its end and the keeping of the result.
func TestNoEndWithoutItsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, executions.Options{})
		gate := make(chan struct{})
		id, _, err := h.Start(t.Context(), ann, func(ctx context.Context, started func(string)) *skill.Result {
			r := h.door.Start(ctx, ann, skill.Request{SkillID: "echo", Input: json.RawMessage("{}")}, started)
			<-gate // its end is on record
			return r
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if v, err := h.Get(t.Context(), ann, id); err != nil || v.Status != audit.Running || v.FinishedAt != nil || v.Output != nil {
			t.Errorf("between: %+v, %v", v, err)
		}
		time.Sleep(time.Minute) // whoever should have kept it is gone
		if v, err := h.Get(t.Context(), ann, id); err != nil || v.Status != audit.Success || v.Result != nil {
			t.Errorf("a minute later: %+v, %v", v, err)
		}
		close(gate)
		synctest.Wait()
		if v, err := h.Get(t.Context(), ann, id); err != nil || v.Result == nil {
			t.Errorf("in the end: %+v, %v", v, err)
		}
	})
}

func TestACallThatIsRefusedBeforeItBegins(t *testing.T) {
	h := newHouse(t, executions.Options{PerTenant: 1})
	for range 3 { // none of them keeps its place
		id, r, err := h.begin(t.Context(), ann, "refused")
		if id != "" || err != nil || r == nil || r.Error == nil || r.Error.Code != skill.RateLimited {
			t.Fatalf("%q, %+v, %v", id, r, err)
		}
	}
}

// A panic on the way of a long call ends that call, and nothing of it is shown.
func TestALongCallThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, executions.Options{PerTenant: 1})
		for range 2 { // it gives its place back
			id, r, err := h.begin(t.Context(), ann, "panics")
			if id == "" || err != nil {
				t.Fatalf("%q, %+v, %v", id, r, err)
			}
			synctest.Wait()
			b, err := h.results.Get(t.Context(), "a", id, "", time.Time{})
			if err != nil || !strings.Contains(string(b), "INTERNAL") || strings.Contains(string(b), "secret") {
				t.Errorf("%s, %v", b, err)
			}
		}
	})
}

// Who leaves before the call is on record has not called.
func TestWhoLeavesBeforeTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, executions.Options{})
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
		h := newHouse(t, executions.Options{Long: 5, PerTenant: 3})
		for i := range 3 {
			if _, _, err := h.begin(t.Context(), ann, "held"); err != nil {
				t.Fatalf("%d: %v", i, err)
			}
		}
		_, _, err := h.begin(t.Context(), amy, "held")
		var e *skill.Error
		if !errors.As(err, &e) || e.Code != skill.RateLimited || e.Details["limit"] != 3 || e.Details["retry_after_ms"] == nil {
			t.Errorf("the fourth of the tenant: %v", err)
		}
		for i := range 2 {
			if _, _, err := h.begin(t.Context(), bob, "held"); err != nil {
				t.Fatalf("another tenant's, %d: %v", i, err)
			}
		}
		if _, _, err := h.begin(t.Context(), bob, "held"); code(err) != skill.RateLimited {
			t.Errorf("the sixth of all: %v", err)
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
		h := newHouse(t, executions.Options{})
		id, _, err := h.begin(t.Context(), ann, "held")
		if err != nil {
			t.Fatal(err)
		}
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
			if err != nil || v.Status != audit.Terminated || v.Error == nil || v.Error.Code != skill.Cancelled {
				t.Errorf("%d: %+v, %v", i, v, err)
			}
		}
		waits := make(chan *skill.Result, 1)
		go func() {
			waits <- h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "held", Input: json.RawMessage("{}")})
		}()
		synctest.Wait()
		if v, err := h.Cancel(t.Context(), operator, executionstest.ID(2)); err != nil || v.Status != audit.Terminated {
			t.Errorf("one that is waited for: %+v, %v", v, err)
		}
		if r := <-waits; r.Error == nil || r.Error.Code != skill.Cancelled {
			t.Errorf("who waited gets %+v", r)
		}
		done, _, err := h.begin(t.Context(), ann, "echo")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if v, err := h.Cancel(t.Context(), ann, done); err != nil || v.Status != audit.Success || v.Result == nil {
			t.Errorf("one that has ended: %+v, %v", v, err)
		}
		for _, id := range []string{"", "x", executionstest.ID(99), strings.ToUpper(id) + "A", "00000000-0000-7000-8000-00000000000g"} {
			if _, err := h.Cancel(t.Context(), ann, id); code(err) != skill.NotFound {
				t.Errorf("%q: %v", id, err)
			}
		}
	})
}

// A call on another host that has the same database ends soon after it was asked for.
func TestCancelOnAnotherHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, executions.Options{})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go h.Tend(ctx)
		id, _, err := h.begin(t.Context(), ann, "held")
		if err != nil {
			t.Fatal(err)
		}
		other := (&house{records: h.records, results: h.results}).manager(t, executions.Options{EndWait: time.Millisecond})
		at := time.Now()
		if v, err := other.Cancel(t.Context(), ann, id); err != nil || v.Status != audit.Running {
			t.Fatalf("%+v, %v", v, err)
		}
		time.Sleep(time.Second - time.Since(at))
		synctest.Wait()
		if v, err := other.Get(t.Context(), ann, id); err != nil || v.Status != audit.Terminated || v.Result == nil {
			t.Errorf("a second later: %+v, %v", v, err)
		}
		h.results.Fail(errors.New("gone"))
		if _, err := other.Cancel(t.Context(), ann, id); code(err) != skill.AuditUnavailable {
			t.Errorf("without its database: %v", err)
		}
	})
}

// A host that stops ends its long calls, and their ends are on record.
func TestAHostThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, executions.Options{})
		id, _, err := h.begin(t.Context(), ann, "held")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := h.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if v, err := h.Get(t.Context(), ann, id); err != nil || v.Status != audit.Terminated || !strings.Contains(string(v.Result), "CANCELLED") {
			t.Errorf("%+v, %v", v, err)
		}
		if _, _, err := h.begin(t.Context(), ann, "echo"); code(err) != skill.Cancelled {
			t.Errorf("afterwards: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, executions.Options{})
		stuck := make(chan struct{})
		if _, _, err := h.Start(t.Context(), ann, func(_ context.Context, started func(string)) *skill.Result {
			started(executionstest.ID(1))
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

// Who sees what of records, by id, by list and by session.
func TestWhoSeesWhat(t *testing.T) {
	h := newHouse(t, executions.Options{})
	ids := map[string]string{}
	for _, p := range []skill.Principal{ann, amy, bob} {
		r := h.door.Invoke(t.Context(), p, skill.Request{SkillID: "echo", TraceID: skill.TraceID("t-" + p.ID), Input: json.RawMessage("{}")})
		ids[p.ID] = r.Meta.ExecutionID
	}
	for _, tc := range []struct {
		name string
		who  skill.Principal
		sees string
	}{
		{"of one's own", ann, "ann"},
		{"of the tenant", chief, "amy ann"},
		{"of another tenant", bob, "bob"},
		{"of all", operator, "bob amy ann"},
		{"of all, by the one scope", caller("z", "z", skill.ScopeHost), "bob amy ann"},
		{"of a namesake", caller("c", "ann", skill.ScopeExecutions), ""},
		{"of a human of the same name", skill.Principal{ID: "ann", Type: skill.Human, Tenant: "a", Scopes: ann.Scopes}, ""},
	} {
		list, _, err := h.List(t.Context(), tc.who, executions.Query{Limit: 10})
		var got []string
		for _, v := range list {
			got = append(got, v.Principal)
		}
		if err != nil || strings.Join(got, " ") != tc.sees {
			t.Errorf("%s: list %q, %v", tc.name, got, err)
		}
		for owner, id := range ids {
			want := skill.Code("")
			if !strings.Contains(" "+tc.sees+" ", " "+owner+" ") {
				want = skill.NotFound
			}
			_, byID := h.Get(t.Context(), tc.who, id)
			_, bySession := h.Session(t.Context(), tc.who, id)
			if code(byID) != want || code(bySession) != want {
				t.Errorf("%s: %s by id %v, by session %v", tc.name, owner, byID, bySession)
			}
			list, _, err := h.List(t.Context(), tc.who, executions.Query{TraceID: "t-" + owner, Limit: 10})
			if err != nil || (len(list) > 0) != (want == "") {
				t.Errorf("%s: %s by trace: %d, %v", tc.name, owner, len(list), err)
			}
		}
	}
	for name, tc := range map[string]struct {
		who  skill.Principal
		q    executions.Query
		want skill.Code
	}{
		"another tenant by name":    {bob, executions.Query{Tenant: "a", Limit: 10}, skill.Forbidden},
		"another principal by name": {ann, executions.Query{Principal: "amy", Limit: 10}, skill.Forbidden},
		"without the scope":         {caller("a", "x", skill.ScopeInvoke), executions.Query{Limit: 10}, skill.Forbidden},
		"nobody":                    {skill.Principal{Scopes: skill.Scopes()}, executions.Query{Limit: 10}, skill.Unauthorized},
		"of no tenant":              {skill.Principal{ID: "x", Scopes: []string{skill.ScopeAllExecutions}}, executions.Query{Limit: 10}, skill.Forbidden},
		"one's own tenant by name":  {chief, executions.Query{Tenant: "a", Principal: "ann", Limit: 10}, ""},
		"a tenant, by the operator": {operator, executions.Query{Tenant: "b", Limit: 10}, ""},
	} {
		list, _, err := h.List(t.Context(), tc.who, tc.q)
		if code(err) != tc.want || (err == nil && len(list) != 1) {
			t.Errorf("%s: %d, %v", name, len(list), err)
		}
	}
}

// The files of a run are there for who may see it, as long as they are kept.
func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, executions.Options{MostOfOne: 100, MostOfAll: 250, Keep: time.Hour})
		run := func(files string) string {
			r := h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "files", Input: json.RawMessage(files)})
			if !r.Success {
				t.Fatalf("%+v", r.Error)
			}
			time.Sleep(time.Second)
			return r.Meta.ExecutionID
		}
		id := run(`[{"name":"a.csv","size":60},{"name":"b","size":50},{"name":"c","size":40},{"name":"\u001bd","size":0}]`)
		v, err := h.Get(t.Context(), ann, id)
		if err != nil || len(v.Artifacts) != 4 {
			t.Fatalf("%+v, %v", v, err)
		}
		for i, want := range []bool{true, false, true, false} {
			if a := v.Artifacts[i]; a.Kept != want {
				t.Errorf("%q kept: %v", a.Name, a.Kept)
			}
		}
		if b, err := h.File(t.Context(), ann, id, "a.csv"); err != nil || len(b) != 60 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		for name, p := range map[string]skill.Principal{"b": ann, "": ann, "../a.csv": ann, "\x1bd": ann, "nosuch": operator, "a.csv": bob, "c": amy} {
			if b, err := h.File(t.Context(), p, id, name); code(err) != skill.NotFound {
				t.Errorf("%q of %s: %d bytes, %v", name, p.ID, len(b), err)
			}
		}
		run(`[{"name":"x","size":90}]`)
		last := run(`[{"name":"x","size":90}]`)
		if b, err := h.File(t.Context(), ann, id, "a.csv"); code(err) != skill.NotFound {
			t.Errorf("the oldest made no room: %d bytes, %v", len(b), err)
		}
		if b, err := h.File(t.Context(), chief, last, "x"); err != nil || len(b) != 90 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		h.results.Fail(errors.New("full"))
		if r := h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "files", Input: json.RawMessage(`[{"name":"x","size":9}]`)}); r.Error == nil || r.Error.Code != skill.AuditUnavailable {
			t.Errorf("files that cannot be kept: %+v", r)
		}
		if _, err := h.File(t.Context(), ann, last, "x"); code(err) != skill.AuditUnavailable {
			t.Errorf("files that cannot be read: %v", err)
		}
	})
}

func TestSessionsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, executions.Options{})
		session := executionstest.ID(0xabc)
		for _, n := range []int{2, 0, 1, 1} {
			h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "echo", Input: json.RawMessage("{}"), Turn: skill.Turn{Session: session, Iteration: n}})
			time.Sleep(time.Second)
		}
		views, err := h.Session(t.Context(), ann, session)
		var got []string
		for _, v := range views {
			got = append(got, fmt.Sprint(v.Iteration, " ", v.ID[len(v.ID)-1:]))
		}
		if want := "0 2,1 3,1 4,2 1"; err != nil || strings.Join(got, ",") != want {
			t.Errorf("%q, want %s; %v", got, want, err)
		}
		for _, session := range []string{"", "x", executionstest.ID(5)} {
			if _, err := h.Session(t.Context(), ann, session); code(err) != skill.NotFound {
				t.Errorf("%q: %v", session, err)
			}
		}
	})
}

// fewAtOnce gives two executions a page, whatever is asked for.
type fewAtOnce struct{ executions.Records }

func (r fewAtOnce) Executions(ctx context.Context, q audit.Query) ([]*audit.Execution, string, error) {
	q.Limit = min(q.Limit, 2)
	return r.Records.Executions(ctx, q)
}

// A session is whole over pages, and bounded: what came before goes without its inputs.
func TestLargeSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, executions.Options{})
		h.manager(t, executions.Options{Records: fewAtOnce{h.records}})
		session := executionstest.ID(0xabc)
		input, err := json.Marshal(strings.Repeat("x", 5<<20))
		if err != nil {
			t.Fatal(err)
		}
		for n := range 5 {
			h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "echo", Input: input, Turn: skill.Turn{Session: session, Iteration: n}})
			time.Sleep(time.Second)
		}
		views, err := h.Session(t.Context(), ann, session)
		if err != nil || len(views) != 5 {
			t.Fatalf("%d, %v", len(views), err)
		}
		for i, v := range views {
			if whole := v.Input.JSON != nil; v.Iteration != i || whole != (i >= 2) || whole == v.Input.Truncated || v.Input.Bytes != int64(len(input)) {
				t.Errorf("%d: iteration %d with %d bytes of input, truncated %v", i, v.Iteration, len(v.Input.JSON), v.Input.Truncated)
			}
		}
	})
}

func TestReplay(t *testing.T) {
	var asked string
	h := newHouse(t, executions.Options{Replay: func(_ context.Context, p skill.Principal, id string) (any, error) {
		asked = p.ID + " " + id
		return map[string]bool{"identical": true}, nil
	}})
	id := h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "echo", Input: json.RawMessage("{}")}).Meta.ExecutionID
	if _, err := h.Replay(t.Context(), bob, id); code(err) != skill.NotFound || asked != "" {
		t.Errorf("another tenant: %v, asked %q", err, asked)
	}
	if _, err := h.Replay(t.Context(), ann, id); err != nil || asked != "ann "+id {
		t.Errorf("%v, asked %q", err, asked)
	}
	h.manager(t, executions.Options{})
	if _, err := h.Replay(t.Context(), ann, id); code(err) != skill.NotFound {
		t.Errorf("where nothing is recorded: %v", err)
	}
}

// Records that cannot be read are no reason to say that there is nothing.
func TestRecordsThatCannotBeRead(t *testing.T) {
	h := newHouse(t, executions.Options{})
	id := h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "echo", Input: json.RawMessage("{}")}).Meta.ExecutionID
	h.records.Before(func(context.Context, string) error { return errors.New("database is locked at /secret") })
	_, get := h.Get(t.Context(), ann, id)
	_, _, list := h.List(t.Context(), ann, executions.Query{Limit: 10})
	_, cancel := h.Cancel(t.Context(), ann, id)
	_, session := h.Session(t.Context(), ann, id)
	_, file := h.File(t.Context(), ann, id, "x")
	for name, err := range map[string]error{"get": get, "list": list, "cancel": cancel, "session": session, "file": file} {
		var e *skill.Error
		if !errors.As(err, &e) || e.Code != skill.AuditUnavailable || strings.Contains(e.Message, "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
