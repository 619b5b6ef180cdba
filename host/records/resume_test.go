package records_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// lost makes the running calls of all hosts those of one that is gone.
func lost(t *testing.T, db *store.DB) {
	t.Helper()
	for _, table := range []string{"queued_calls", "running_executions"} {
		musttest.Get(db.Exec(t.Context(), "UPDATE "+table+" SET instance = 'gone@nowhere'"))(t)
	}
}

// sound fails unless the chains are whole.
func sound(t *testing.T, db *store.DB) {
	t.Helper()
	report := musttest.Get(records.Verify(t.Context(), records.NewStore(db), records.VerifyOptions{Rows: true}))(t)
	if !report.Whole() {
		t.Errorf("%+v", report.Chains)
	}
}

// runsAgain waits until a call runs for the nth time.
func (r *runs) runsAgain(t *testing.T, id string, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); r.count(id) < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it ran %d times, not %d", r.count(id), n)
		}
	}
}

// A call of an idempotent skill whose host is gone begins again on another one, under the same record. What
// the first host says later does not count, neither the end nor the result.
func TestIdempotentCallsBeginAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		open := fresh(t)
		db, r := open(), newRuns()
		one := newQueuing(t, open(), r, 1, func(_ *records.ManagerOptions, q *queuing) { q.hold, q.told = make(chan struct{}), make(chan error, 1) })
		id := one.accept(t, ann, "again", `{"n":1}`)
		one.ended(t, ann, id, records.Running)
		if list, _, err := one.List(t.Context(), ann, records.Query{Status: records.Queued}); err != nil || len(list) > 0 || one.Queued() > 0 {
			t.Errorf("one that runs is queued: %+v, %v", list, err)
		}
		lost(t, db)
		two := newQueuing(t, open(), r, 1, nil)
		r.runsAgain(t, id, 2)
		close(one.hold) // too late
		if err := <-one.told; skill.CodeOf(err) != skill.AuditUnavailable {
			t.Errorf("the end on the host before: %v", err)
		}
		one.stop()
		if v := two.ended(t, ann, id, records.Running); len(v.Result) > 0 {
			t.Errorf("the result of the host before: %s", v.Result)
		}
		close(r.hold)
		drained(t, db)
		if v := two.ended(t, ann, id, records.Success); !strings.Contains(string(v.Result), `{"n":1}`) {
			t.Errorf("%s", v.Result)
		}
		changes := musttest.Get(records.NewStore(db).Changes(t.Context(), records.ChangeQuery{Tenant: ann.Tenant, Limit: 10}))(t)
		if len(changes) != 1 || changes[0].Action != records.ResumeExecution || changes[0].Subject != id || changes[0].Details["from"] != "gone@nowhere" || changes[0].Details["to"] != two.log.Instance() {
			t.Errorf("%+v", changes)
		}
		sound(t, db)
	})
}

// A host that stops leaves such a call to the next one, as often as need be; one that took hosts with it ends.
func TestIdempotentCallsAreHandedOver(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "test.db")
	open := func() *store.DB { return storetest.Open(t, url) }
	db, r := open(), newRuns()
	one := newQueuing(t, open(), r, 1, nil)
	id := one.accept(t, ann, "again", `{"n":1}`)
	one.ended(t, ann, id, records.Running)
	for n := 2; n <= 6; n++ { // handed over
		one.stop()
		one = newQueuing(t, open(), r, 1, nil)
		r.runsAgain(t, id, n)
	}
	for n := 7; n <= 9; n++ { // its hosts are gone
		lost(t, db)
		newQueuing(t, open(), r, 1, nil)
		r.runsAgain(t, id, n)
	}
	time.Sleep(6 * time.Second) // the host looks after its calls every five seconds, and leaves this one alone
	if has := musttest.Get(records.NewStore(db).Resumable(t.Context(), []string{id}))(t); len(has) > 0 {
		t.Errorf("it may begin once more: %v", has)
	}
	var left int
	musttest.Do(t, db.Read.QueryRowContext(t.Context(), "SELECT again FROM queued_calls WHERE id = $1", id).Scan(&left))
	if left != 1 {
		t.Errorf("again is %d", left)
	}
	lost(t, db)
	one = newQueuing(t, open(), r, 1, nil)
	if v := one.ended(t, ann, id, records.Terminated); v.Error.Code != skill.WorkerCrashed {
		t.Errorf("%+v", v.Error)
	}
	drained(t, db)
	sound(t, db)
	if n := r.count(id); n != 9 {
		t.Errorf("it ran %d times", n)
	}
	close(r.hold)
}

// One whose host is gone can be cancelled, and does not begin again as another version.
func TestIdempotentCallsThatDoNotBeginAgain(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "test.db")
	open := func() *store.DB { return storetest.Open(t, url) }
	db, r := open(), newRuns()
	one := newQueuing(t, open(), r, 2, func(_ *records.ManagerOptions, q *queuing) { q.digest = "sha256:1" })
	cancelled := one.accept(t, ann, "again", `{"n":1}`)
	one.ended(t, ann, cancelled, records.Running)
	lost(t, db)
	musttest.Do(t, records.NewResults(db).Ask(t.Context(), cancelled, time.Now()))
	two := newQueuing(t, open(), r, 1, func(_ *records.ManagerOptions, q *queuing) { q.digest = "sha256:1" })
	if v := two.ended(t, ann, cancelled, records.Terminated); v.Error.Code != skill.Cancelled {
		t.Errorf("%+v", v.Error)
	}
	one.stop()
	changed := two.accept(t, ann, "again", `{"n":1}`)
	two.ended(t, ann, changed, records.Running)
	lost(t, db)
	three := newQueuing(t, open(), r, 1, func(o *records.ManagerOptions, q *queuing) {
		q.digest = "sha256:2"
		o.Now = func() time.Time { return time.Now().Add(2 * time.Minute) } // all hosts have what there is
	})
	if v := three.ended(t, ann, changed, records.Failed); v.Error.Code != skill.NotFound {
		t.Errorf("%+v", v.Error)
	}
	drained(t, db)
	sound(t, db)
	close(r.hold)
}

// A call that was released while its host runs it, and that no other host has taken, ends there with its result.
func TestIdempotentCallThatWasReleased(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		open := fresh(t)
		db, r := open(), newRuns()
		q := newQueuing(t, open(), r, 2, nil)
		id := q.accept(t, ann, "again", `{"n":1}`)
		q.ended(t, ann, id, records.Running)
		musttest.Get(db.Exec(t.Context(), "UPDATE queued_calls SET instance = ''"))(t)
		time.Sleep(100 * time.Millisecond) // the host looks at it
		close(r.hold)
		q.ended(t, ann, id, records.Success)
		drained(t, db)
		if v := q.ended(t, ann, id, records.Success); !strings.Contains(string(v.Result), `{"n":1}`) || r.count(id) != 1 {
			t.Errorf("%s, %d runs", v.Result, r.count(id))
		}
	})
}

// A host takes no running calls of silent hosts before it has reached the database for some time: while the database was away, they
// could not say that they are alive either.
func TestIdempotentCallsOfSilentHosts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		open := fresh(t)
		db, r := open(), newRuns()
		one := newQueuing(t, open(), r, 1, nil)
		id := one.accept(t, ann, "again", `{"n":1}`)
		one.ended(t, ann, id, records.Running)
		musttest.Get(db.Exec(t.Context(), "UPDATE instances SET seen = $1", db.At(time.Now().Add(-time.Minute))))(t)
		newQueuing(t, open(), r, 1, nil)
		time.Sleep(time.Second)
		close(r.hold)
		one.ended(t, ann, id, records.Success)
		drained(t, db)
		if n := r.count(id); n != 1 {
			t.Errorf("it ran %d times", n)
		}
	})
}

// Hosts whose clocks are five seconds before and behind that of the database do not take calls from each other.
func TestClocksApart(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for longer than a silent host is waited for")
	}
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		open, r := fresh(t), newRuns()
		db := open()
		var hosts []*queuing
		held := map[string]bool{}
		for _, off := range []time.Duration{5 * time.Second, -5 * time.Second} {
			q := newQueuing(t, open(), r, 2, func(o *records.ManagerOptions, q *queuing) {
				musttest.Do(t, q.log.Close(t.Context()))
				q.log = musttest.Get(records.Open(t.Context(), records.Options{
					Store: records.NewStore(db), Policy: records.KeepFull, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Now().Add(off) },
				}))(t)
				o.Records, o.Queue.Record, o.Now, o.Alone = q.log.Store(), q.log, q.log.DatabaseTime, true
				q.hold = r.hold
			})
			hosts = append(hosts, q)
			for _, id := range []skill.ID{"held", "again"} {
				id := q.accept(t, ann, id, `{}`)
				q.ended(t, ann, id, records.Running)
				held[id] = true
			}
		}
		time.Sleep(25 * time.Second)
		for id := range held {
			if n := r.count(id); n != 1 {
				t.Errorf("%s runs %d times", id, n)
			}
		}
		close(r.hold)
		for id := range held {
			hosts[0].ended(t, ann, id, records.Success)
		}
		drained(t, db)
		sound(t, db)
	})
}
