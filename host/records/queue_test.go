package records_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// Calls of two hosts on one database begin once each, whichever host begins them, in the order of a
// principal, and each has one record and its result.
func TestQueuedCallsBeginOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		open := fresh(t)
		r := newRuns()
		db := open()
		one, two := newQueuing(t, db, r, 4, nil), newQueuing(t, open(), r, 4, nil)
		ids := map[string]bool{}
		for i := range 60 {
			ids[[]*queuing{one, two}[i%2].accept(t, ann, "echo", fmt.Sprintf(`{"n": %d}`, i))] = true
		}
		if len(ids) != 60 {
			t.Fatalf("%d ids", len(ids))
		}
		for id := range ids {
			v := one.ended(t, ann, id, records.Success)
			if !strings.Contains(string(v.Result), `"n"`) || !strings.Contains(string(v.Input.JSON), `{"n"`) || v.Skill != "echo" {
				t.Errorf("%+v, %s", v, v.Result)
			}
		}
		drained(t, db)
		for id, n := range r.times {
			if n != 1 || !ids[id] {
				t.Errorf("%s ran %d times", id, n)
			}
		}
		list, _, err := two.List(t.Context(), ann, records.Query{Limit: 100})
		if err != nil || len(list) != 60 {
			t.Errorf("%d are on record, %v", len(list), err)
		}
	})
}

// While a call waits, its caller sees it, can list it and end it, and nobody else can.
func TestQueuedCallsAreSeen(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		db := fresh(t)()
		r := newRuns()
		q := newQueuing(t, db, r, 1, func(o *records.ManagerOptions, _ *queuing) { o.Alone = true })
		first := q.accept(t, ann, "held", `{}`)
		q.ended(t, ann, first, records.Running)
		var ids []string
		for range 3 {
			ids = append(ids, q.accept(t, ann, "echo", `{"secret": 1}`))
		}
		v := musttest.Get(q.Get(t.Context(), ann, ids[0], records.WholeResult))(t)
		if v.Status != records.Queued || v.Skill != "echo" || v.Principal != "ann" || v.StartedAt.IsZero() || v.Result != nil || v.FinishedAt != nil {
			t.Errorf("%+v", v)
		}
		for _, p := range []skill.Principal{amy, bob, {}} {
			if _, err := q.Get(t.Context(), p, ids[0], 0); err == nil {
				t.Errorf("%s sees it", p.ID)
			}
			if _, err := q.Cancel(t.Context(), p, ids[0]); code(err) != skill.NotFound {
				t.Errorf("%s ends it: %v", p.ID, err)
			}
			if list, _, _ := q.List(t.Context(), p, records.Query{Status: records.Queued, Limit: 10}); len(list) > 0 {
				t.Errorf("%s lists it", p.ID)
			}
		}
		var seen []string
		for cursor := ""; ; {
			page, next, err := q.List(t.Context(), ann, records.Query{Status: records.Queued, Skill: "echo", Limit: 2, Cursor: cursor})
			musttest.Do(t, err)
			for _, v := range page {
				seen = append(seen, v.ID)
			}
			if cursor = next; next == "" {
				break
			}
		}
		if fmt.Sprint(seen) != fmt.Sprint([]string{ids[2], ids[1], ids[0]}) {
			t.Errorf("%v, not %v from the end", seen, ids)
		}
		if _, _, err := q.List(t.Context(), ann, records.Query{Status: records.Queued, Code: "X"}); code(err) != skill.InvalidArgument {
			t.Errorf("with a code: %v", err)
		}
		for i, p := range []skill.Principal{ann, operator} {
			v, err := q.Cancel(t.Context(), p, ids[i])
			if err != nil || v.Status != records.Terminated || v.Error.Code != skill.Cancelled || !strings.Contains(string(v.Result), "CANCELLED") {
				t.Errorf("%+v, %v", v, err)
			}
		}
		// One that a host has taken, and that waits for something else.
		taken := q.accept(t, ann, "workspace", `{}`)
		if v, err := q.Cancel(t.Context(), ann, first); err != nil || v.Status != records.Terminated { // it runs
			t.Errorf("%+v, %v", v, err)
		}
		q.ended(t, ann, ids[2], records.Success)
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			var n int
			musttest.Do(t, db.Read.QueryRowContext(t.Context(), "SELECT count(*) FROM queued_calls WHERE instance <> ''").Scan(&n))
			if n == 1 {
				break
			}
			if time.Now().After(end) {
				t.Fatal("it is not taken")
			}
		}
		if list, _, err := q.List(t.Context(), ann, records.Query{Status: records.Queued, Limit: 10}); err != nil || len(list) != 1 {
			t.Errorf("%v, %v", list, err)
		}
		if v, err := q.Cancel(t.Context(), ann, taken); err != nil || v.Status != records.Terminated || v.Error.Code != skill.Cancelled {
			t.Errorf("%+v, %v", v, err)
		}
		drained(t, db)
		if n := len(r.list()); n != 2 {
			t.Errorf("%d ran", n)
		}
	})
}

// A call that is refused when its turn comes is on record, with the reason; one for which there is no place then waits on.
func TestQueuedCallsAreRefused(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	var ahead atomic.Int64 // of the clock
	r := newRuns()
	q := newQueuing(t, db, r, 4, func(o *records.ManagerOptions, q *queuing) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		q.admit = func(p skill.Principal) error {
			if p.ID == "amy" {
				return &skill.Error{Code: skill.Unauthorized, Message: "a revoked key"}
			}
			return nil
		}
	})
	for _, c := range []struct {
		p      skill.Principal
		id     skill.ID
		status records.Status
		code   skill.Code
	}{
		{amy, "echo", records.Terminated, skill.Unauthorized},
		{ann, "gone", records.Failed, skill.NotFound},
		{ann, "panics", records.Failed, skill.Internal},
	} {
		id := q.accept(t, c.p, c.id, `{}`)
		if c.code == skill.NotFound { // after a minute no host is new
			ahead.Add(int64(2 * time.Minute))
		}
		v := q.ended(t, c.p, id, c.status)
		if v.Error == nil || v.Error.Code != c.code || !strings.Contains(string(v.Result), string(c.code)) || strings.Contains(string(v.Result), "secret") {
			t.Errorf("%s: %+v, %s", c.id, v, v.Result)
		}
	}
	id := q.accept(t, ann, "busy", `{}`)
	// A call that this host has taken and does not have, since its release failed, waits again.
	if id := q.accept(t, chief, "busy", `{}`); id != "" {
		musttest.Get(db.Exec(t.Context(), "UPDATE queued_calls SET instance = $1 WHERE id = $2", q.log.Instance(), id))(t)
		for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			var free bool
			musttest.Do(t, db.Read.QueryRowContext(t.Context(), "SELECT instance = '' FROM queued_calls WHERE id = $1", id).Scan(&free))
			if free {
				break
			}
			if time.Now().After(end) {
				t.Fatal("it is lost")
			}
		}
		musttest.Get(q.Cancel(t.Context(), operator, id))(t)
	}
	time.Sleep(200 * time.Millisecond)
	if v := musttest.Get(q.Get(t.Context(), ann, id, 0))(t); v.Status != records.Queued {
		t.Errorf("%+v", v)
	}
	ahead.Add(int64(25 * time.Hour))
	if v := q.ended(t, ann, id, records.TimedOut); v.Error.Code != skill.Timeout {
		t.Errorf("%+v", v)
	}
	// Of one that cannot be read, or is another caller's, the columns tell whose it is.
	for _, body := range []string{"x", "{}", `{"Principal": {"ID": "local", "Type": "operator", "Tenant": "local", "Scopes": ["admin"]}, "Request": {"SkillID": "echo"}, "Input": "e30="}`} {
		hold := q.accept(t, bob, "busy", `{}`)
		musttest.Get(db.Exec(t.Context(), "UPDATE queued_calls SET body = $1", []byte(body)))(t)
		ahead.Add(int64(time.Minute))
		if v := q.ended(t, bob, hold, records.Failed); v.Error.Code != skill.Internal || v.Skill != "busy" || v.Principal != "bob" {
			t.Errorf("%s: %+v", body, v)
		}
	}
	drained(t, db)
}

// Hosts that are gone, or were, change nothing: what they had taken begins elsewhere, once.
func TestQueuedCallsOfHostsThatAreGone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		open := fresh(t)
		db, r := open(), newRuns()
		frozen, thaw := make(chan string, 1), make(chan struct{})
		one := newQueuing(t, open(), r, 1, func(_ *records.ManagerOptions, q *queuing) {
			q.before = func(id string) {
				frozen <- id
				<-thaw
			}
		})
		id := one.accept(t, ann, "echo", `{}`)
		<-frozen // it has been taken and is not on record
		// The other host has the first one for dead.
		musttest.Get(db.Exec(t.Context(), "UPDATE queued_calls SET instance = 'gone@nowhere'"))(t)
		two := newQueuing(t, open(), r, 1, nil)
		two.ended(t, ann, id, records.Success)
		close(thaw)
		drained(t, db)
		// One whose beginning is on record, and whose row was left behind, does not run.
		begun := abandoned(t, records.NewStore(db), "gone@nowhere")
		musttest.Get(db.Exec(t.Context(), `INSERT INTO queued_calls (id, tenant, principal_id, principal_type, skill_name, instance, created_at, bytes, body)
			VALUES ($1, 'acme', 'ann', 'agent', 'echo', 'gone@nowhere', $2, 0, $3)`, begun.ExecutionID, db.At(time.Now()), []byte("{}")))(t)
		three := newQueuing(t, open(), r, 1, nil)
		drained(t, db)
		two.stop()
		three.stop()
		one.stop()
		if len(r.list()) != 1 || r.times[id] != 1 {
			t.Errorf("%v ran", r.times)
		}
	})
}

// A host that stops leaves what waits, and the next one begins it.
func TestQueuedCallsOutliveTheirHost(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "test.db")
	open := func() *store.DB { return storetest.Open(t, url) }
	r := newRuns()
	one := newQueuing(t, open(), r, 1, func(o *records.ManagerOptions, _ *queuing) { o.Alone = true })
	held := one.accept(t, ann, "held", `{}`)
	one.ended(t, ann, held, records.Running)
	script := &records.QueuedCall{Principal: ann, Script: &skill.ScriptRequest{Skill: "unit-converter", Script: "scripts/convert.py", Args: []string{"a"}}}
	id, status, _, err := one.Accept(t.Context(), script, func(context.Context, func(string)) *skill.Result { panic("there is no place") }, door{})
	if err != nil || status != records.Queued {
		t.Fatalf("%s, %v", status, err)
	}
	refused := skill.Failure("echo", "", skill.Meta{}, &skill.Error{Code: skill.NotFound, Message: "no such skill"})
	if _, _, got, err := one.Accept(t.Context(), script, nil, door{refused}); err != nil || got != refused {
		t.Errorf("one that the door refuses: %+v, %v", got, err)
	}
	waits := one.accept(t, amy, "workspace", `{}`)
	musttest.Get(one.Cancel(t.Context(), ann, held))(t) // so that there is a place for it
	for taken := ""; taken != one.log.Instance(); time.Sleep(time.Millisecond) {
		musttest.Do(t, open().Read.QueryRowContext(t.Context(), "SELECT instance FROM queued_calls WHERE id = $1", waits).Scan(&taken))
	}
	one.stop()
	if _, status, _, err := one.Accept(t.Context(), script, nil, door{}); err == nil || status == records.Queued {
		t.Errorf("a host that has stopped: %s, %v", status, err)
	}
	close(r.hold)
	db := open()
	two := newQueuing(t, db, r, 1, nil)
	two.ended(t, amy, waits, records.Success)
	if v := two.ended(t, ann, id, records.Success); v.Skill != "unit-converter" || !strings.Contains(string(v.Result), "a script") {
		t.Errorf("%+v", v)
	}
	if v := two.ended(t, ann, held, records.Terminated); v.Error.Code != skill.Cancelled {
		t.Errorf("%+v", v.Error)
	}
	drained(t, db)
}

// The most that may wait of one tenant, in calls and in bytes.
func TestQueuedCallsAreBounded(t *testing.T) {
	t.Parallel()
	for _, most := range []records.Room{{Items: 3, Bytes: 1 << 20}, {Items: 100, Bytes: 3000}} {
		db := storetest.SQLite(t)
		q := newQueuing(t, db, newRuns(), 1, func(o *records.ManagerOptions, _ *queuing) { o.Queue.Most, o.Alone = most, true })
		q.ended(t, ann, q.accept(t, ann, "held", `{}`), records.Running)
		accepted := 0
		for range 6 {
			_, _, _, err := q.Accept(t.Context(), &records.QueuedCall{Principal: amy, Request: &skill.Request{SkillID: "echo", Input: json.RawMessage(`"` + strings.Repeat("x", 100) + `"`)}}, nil, door{})
			if err == nil {
				accepted++
			} else if code(err) != skill.RateLimited || !strings.Contains(err.Error(), "queued calls") {
				t.Errorf("%v", err)
			}
		}
		if accepted < 1 || accepted > 4 {
			t.Errorf("%+v: %d were accepted", most, accepted)
		}
		q.accept(t, bob, "echo", `{}`) // another tenant's
		close(q.runs.hold)
		drained(t, db)
	}
}

// One tenant with many queued calls does not hold up another, nor one principal another.
func TestQueuedCallsTakeTurns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		db := fresh(t)()
		r := newRuns()
		q := newQueuing(t, db, r, 1, func(o *records.ManagerOptions, _ *queuing) { o.Alone = true })
		q.ended(t, ann, q.accept(t, ann, "held", `{}`), records.Running)
		for i := range 300 {
			p := ann
			if i%2 == 1 { // a tenant with many principals has one turn, too
				p.ID = fmt.Sprint("ann-", i)
			}
			q.accept(t, p, "echo", `{}`)
		}
		q.accept(t, amy, "echo", `{}`)
		q.accept(t, bob, "echo", `{}`)
		close(r.hold)
		drained(t, db)
		at := map[string]int{}
		for i, who := range r.list() {
			if _, seen := at[who]; !seen {
				at[who] = i
			}
		}
		if at["amy"] > 160 || at["bob"] > 4 || len(r.list()) != 303 {
			t.Errorf("%d ran, and began at %v", len(r.list()), at)
		}
	})
}

// A host whose beginning of a call failed does not end that call where another host has begun it.
func TestQueuedCallInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		one := open(t, s, nil)
		c := call("acme")
		c.Contested = true
		s.Before(func(_ context.Context, op string) error {
			if op == "Append" {
				return errors.New("gone")
			}
			return nil
		})
		wantCode(t, one.Started(t.Context(), c, nil), skill.AuditUnavailable)
		s.Before(nil)
		two := open(t, s, nil)
		again := call("acme")
		again.ExecutionID, again.Contested = c.ExecutionID, true
		wantCode(t, two.Started(t.Context(), again, nil), "")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if e := musttest.Get(s.Execution(t.Context(), "acme", c.ExecutionID))(t); e.Finished != nil {
			t.Errorf("%+v", e.Finished)
		}
		wantCode(t, two.Finished(t.Context(), again, success(), nil), "")
		wantCode(t, one.Started(t.Context(), c, nil), skill.AuditUnavailable) // it is there already
	})
}

// A host whose queued calls cannot begin now does not look for them all the time.
func TestQueuedCallsThatCannotBegin(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	var looks atomic.Int64
	q := newQueuing(t, db, newRuns(), 8, func(o *records.ManagerOptions, _ *queuing) {
		o.Alone, o.AskEvery = true, 100*time.Millisecond
		o.Now = func() time.Time { looks.Add(1); return time.Now() }
	})
	busy, waits := ann, amy
	for _, p := range []skill.Principal{busy, waits} {
		id := skill.ID("busy")
		if p.ID == "amy" {
			id = "workspace"
		}
		q.accept(t, p, id, `{}`)
		q.accept(t, p, id, `{}`)
	}
	time.Sleep(500 * time.Millisecond)
	looks.Store(0)
	time.Sleep(time.Second)
	if n := looks.Load(); n > 500 {
		t.Errorf("%d looks at the clock in a second", n)
	}
	// Calls that wait for something do not keep all places.
	for i := range 20 {
		p := amy
		p.ID = fmt.Sprint("amy-", i)
		q.accept(t, p, "workspace", `{}`)
	}
	time.Sleep(500 * time.Millisecond)
	other := caller("c", "carl", skill.ScopeInvoke, skill.ScopeExecutions)
	q.ended(t, other, q.accept(t, other, "echo", `{}`), records.Success)
	var taken int
	musttest.Do(t, db.Read.QueryRowContext(t.Context(), "SELECT count(*) FROM queued_calls WHERE instance <> ''").Scan(&taken))
	if taken > 4 {
		t.Errorf("%d calls are taken and have not begun", taken)
	}
	close(q.runs.hold)
}

// Of a tenant with more principals than calls that it may have taken at once, each has its turn.
func TestQueuedCallsOfManyPrincipals(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	r := newRuns()
	q := newQueuing(t, db, r, 64, func(_ *records.ManagerOptions, q *queuing) {
		q.before = func(string) { time.Sleep(5 * time.Millisecond) } // so that places are not what they wait for
	})
	for range 10 {
		for i := range 10 {
			p := ann
			p.ID = fmt.Sprint("ann-", i)
			q.accept(t, p, "echo", `{}`)
		}
	}
	drained(t, db)
	first := map[string]int{}
	for i, who := range r.list() {
		if _, seen := first[who]; !seen {
			first[who] = i
		}
	}
	for who, at := range first {
		if at > 60 {
			t.Errorf("%s began after %d others", who, at)
		}
	}
	if len(first) != 10 {
		t.Errorf("%v", first)
	}
}

// A call that was cancelled does not begin, also where that could not be put on record at once.
func TestQueuedCallIsCancelledForGood(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	r := newRuns()
	q := newQueuing(t, db, r, 1, func(o *records.ManagerOptions, _ *queuing) { o.Alone = true })
	held := q.accept(t, ann, "held", `{}`)
	q.ended(t, ann, held, records.Running)
	id := q.accept(t, ann, "echo", `{}`)
	musttest.Do(t, records.NewResults(db).Ask(t.Context(), id, time.Now()))
	close(r.hold)
	if v := q.ended(t, ann, id, records.Terminated); v.Error.Code != skill.Cancelled {
		t.Errorf("%+v", v)
	}
	drained(t, db)
	if r.count(id) != 0 {
		t.Error("it ran")
	}
}

// A call that cannot be queued has the answer that it would have without a queue.
func TestNotQueued(t *testing.T) {
	t.Parallel()
	q := newQueuing(t, storetest.SQLite(t), newRuns(), 1, func(o *records.ManagerOptions, _ *queuing) { o.Alone = true })
	q.ended(t, ann, q.accept(t, ann, "held", `{}`), records.Running)
	limited := skill.Failure("run_code", "", skill.Meta{}, &skill.Error{Code: skill.Conflict, Message: "a session"})
	_, _, r, err := q.Accept(t.Context(), &records.QueuedCall{Principal: ann, Request: &skill.Request{SkillID: "run_code"}}, nil, door{limited})
	if r != nil || code(err) != skill.RateLimited || !strings.Contains(err.Error(), "long calls") {
		t.Errorf("%+v, %v", r, err)
	}
	close(q.runs.hold)
}

// A database that needs long for a beginning does not cost a queued call its run.
func TestQueuedCallsOnASlowDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		l := open(t, s, nil)
		s.Before(func(_ context.Context, op string) error {
			if op == "Append" {
				time.Sleep(1500 * time.Millisecond)
			}
			return nil
		})
		var all sync.WaitGroup
		for range 4 {
			c := call("acme")
			c.Contested = true
			all.Go(func() { wantCode(t, l.Started(t.Context(), c, nil), "") })
			time.Sleep(time.Millisecond)
		}
		all.Wait()
	})
}

// A host that is told to stop while the beginning of a queued call is being written goes on with the call.
func TestStopWhileACallBegins(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "test.db")
	db, r, begins := storetest.Open(t, url), newRuns(), make(chan struct{})
	locked := make(chan struct{})
	q := newQueuing(t, storetest.Open(t, url), r, 1, func(_ *records.ManagerOptions, q *queuing) {
		q.before = func(string) {
			close(begins)
			<-locked
		}
	})
	id := q.accept(t, ann, "echo", `{}`)
	<-begins
	var stopped sync.WaitGroup
	musttest.Do(t, db.InTx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), "UPDATE queued_sums SET items = items")
		close(locked)
		time.Sleep(200 * time.Millisecond) // until it waits for the database
		stopped.Go(func() { _ = q.Drain(context.Background()) })
		time.Sleep(200 * time.Millisecond)
		return err
	}))
	stopped.Wait()
	q.stop()
	e, err := records.NewStore(db).Execution(t.Context(), ann.Tenant, id)
	if err != nil || e.Status() != records.Success || r.count(id) != 1 {
		t.Errorf("%s, %+v, %v", e.Status(), e.Finished, err)
	}
	drained(t, db)
}
