package records_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// clock is what all hosts of a test take for the time.
type clock struct{ at atomic.Int64 }

func clockAt(at time.Time) *clock {
	c := &clock{}
	c.set(at)
	return c
}

func (c *clock) set(at time.Time)                         { c.at.Store(at.UnixNano()) }
func (c *clock) now() time.Time                           { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) of(o *records.ManagerOptions, _ *queuing) { o.Now = c.now }

// six is a quarter past six.
var six = time.Date(2026, 11, 30, 6, 15, 0, 0, time.UTC)

// every makes a schedule of calls at each full hour.
func (q *queuing) every(t *testing.T, p skill.Principal, name string, id skill.ID, missed skill.Missed) {
	t.Helper()
	s, err := q.Schedules(door{}).Create(t.Context(), p, &skill.Schedule{Name: name, Cron: "0 * * * *", TimeZone: "UTC", Missed: missed},
		&skill.Request{SkillID: id, TraceID: "t-1", Input: json.RawMessage(`{"n": 1}`)})
	if err != nil || s.Name != name || s.Skill != id || string(s.Input) != `{"n": 1}` || s.NextAt.Minute() != 0 || s.LastAt != nil {
		t.Fatalf("%+v, %v", s, err)
	}
}

// movesOn waits until a schedule has a later time than at.
func (q *queuing) movesOn(t *testing.T, p skill.Principal, name string, at time.Time) *skill.Schedule {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s, err := q.Schedules(door{}).Get(t.Context(), p, name)
		if err != nil {
			t.Fatal(err)
		}
		if s.NextAt.After(at) {
			return s
		}
		if time.Now().After(end) {
			t.Fatalf("%+v at %s", s, at)
		}
	}
}

// Each time of a schedule has one call, whichever hosts look.
func TestSchedulesMakeCallsOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		open, r, c := fresh(t), newRuns(), clockAt(six)
		db := open()
		one, two := newQueuing(t, db, r, 4, c.of), newQueuing(t, open(), r, 4, c.of)
		for i := range 20 {
			one.every(t, ann, fmt.Sprintf("s-%02d", i), "echo", skill.RunMissed)
		}
		for hour := 1; hour <= 3; hour++ {
			at := six.Add(time.Duration(hour)*time.Hour - 15*time.Minute)
			c.set(at)
			for i := range 20 {
				s := two.movesOn(t, ann, fmt.Sprintf("s-%02d", i), at)
				if !s.NextAt.Equal(at.Add(time.Hour)) || s.LastAt == nil || !s.LastAt.Equal(at) || s.Skipped != "" {
					t.Errorf("%+v", s)
				}
				v := one.ended(t, ann, s.LastID, records.Success)
				if v.Principal != "ann" || v.Skill != "echo" || v.TraceID != s.LastID || !strings.Contains(string(v.Input.JSON), `"n"`) {
					t.Errorf("%+v", v)
				}
			}
		}
		drained(t, db)
		if n := len(r.list()); n != 60 {
			t.Errorf("%d calls", n)
		}
		sound(t, db)
	})
}

// Times at which no host was there are one call or none.
func TestMissedTimes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		r, c := newRuns(), clockAt(six)
		q := newQueuing(t, fresh(t)(), r, 4, c.of)
		q.every(t, ann, "run", "echo", skill.RunMissed)
		q.every(t, ann, "skip", "echo", skill.SkipMissed)
		later := six.Add(48 * time.Hour)
		c.set(later)
		if s := q.movesOn(t, ann, "skip", later); s.LastAt != nil || s.LastID != "" || !s.NextAt.Equal(later.Add(45*time.Minute)) {
			t.Errorf("%+v", s)
		}
		s := q.movesOn(t, ann, "run", later)
		if s.LastAt == nil || !s.NextAt.Equal(later.Add(45*time.Minute)) {
			t.Errorf("%+v", s)
		}
		q.ended(t, ann, s.LastID, records.Success)
		c.set(s.NextAt.Add(time.Second)) // both are in time
		if s := q.movesOn(t, ann, "skip", s.NextAt); s.LastID == "" {
			t.Errorf("%+v", s)
		}
		q.movesOn(t, ann, "run", s.NextAt)
	})
}

// No call is made while the one before has not ended, and none where the queue of the tenant is full.
func TestSkippedTimes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		r, c := newRuns(), clockAt(six)
		db := fresh(t)()
		q := newQueuing(t, db, r, 1, func(o *records.ManagerOptions, _ *queuing) {
			o.Now, o.Alone, o.Queue.Most = c.now, true, records.Room{Items: 1}
		})
		q.every(t, ann, "long", "held", skill.RunMissed)
		at := q.movesOn(t, ann, "long", six).NextAt
		c.set(at)
		first := q.movesOn(t, ann, "long", at)
		q.ended(t, ann, first.LastID, records.Running)
		c.set(first.NextAt)
		if s := q.movesOn(t, ann, "long", first.NextAt); s.Skipped != skill.Conflict || s.LastID != first.LastID || !s.LastAt.Equal(*first.LastAt) {
			t.Errorf("%+v", s)
		}
		drained(t, db)
		q.accept(t, ann, "echo", `{}`) // which waits: the only place is taken
		q.every(t, ann, "full", "echo", skill.RunMissed)
		at = q.movesOn(t, ann, "full", six).NextAt
		c.set(at)
		if s := q.movesOn(t, ann, "full", at); s.Skipped != skill.RateLimited || s.LastID != "" {
			t.Errorf("%+v", s)
		}
		close(r.hold)
		q.ended(t, ann, first.LastID, records.Success)
		drained(t, db)
		musttest.Do(t, q.Schedules(door{}).Delete(t.Context(), ann, "long"))
		at = q.movesOn(t, ann, "full", six).NextAt
		c.set(at)
		s := q.movesOn(t, ann, "full", at)
		if s.Skipped != "" {
			t.Errorf("%+v", s)
		}
		q.ended(t, ann, s.LastID, records.Success)
	})
}

// A schedule ends, on record, when the credentials that made it are not valid any more; and one whose row was changed.
func TestSchedulesEnd(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		r, c := newRuns(), clockAt(six)
		db := fresh(t)()
		q := newQueuing(t, db, r, 4, func(o *records.ManagerOptions, q *queuing) {
			o.Now = c.now
			q.admit = func(p skill.Principal) error {
				switch p.ID {
				case "amy":
					return &skill.Error{Code: skill.Unauthorized, Message: "revoked"}
				case "bob":
					return &skill.Error{Code: skill.AuditUnavailable, Message: "another host can tell"}
				}
				return nil
			}
		})
		for _, p := range []skill.Principal{ann, amy, bob} {
			q.every(t, p, "one", "echo", skill.RunMissed)
		}
		q.every(t, ann, "damaged", "echo", skill.RunMissed)
		musttest.Get(db.Exec(t.Context(), "UPDATE schedules SET body = (SELECT body FROM schedules WHERE principal = 'amy') WHERE name = 'damaged'"))(t)
		at := six.Add(45 * time.Minute)
		c.set(at)
		q.ended(t, ann, q.movesOn(t, ann, "one", at).LastID, records.Success)
		gone := func(p skill.Principal, name string) {
			t.Helper()
			for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
				_, err := q.Schedules(door{}).Get(t.Context(), p, name)
				if code(err) == skill.NotFound {
					return
				}
				if time.Now().After(end) {
					t.Fatalf("%s of %s is there: %v", name, p.ID, err)
				}
			}
		}
		gone(amy, "one")
		gone(ann, "damaged")
		if s := musttest.Get(q.Schedules(door{}).Get(t.Context(), bob, "one"))(t); !s.NextAt.Equal(at) {
			t.Errorf("%+v", s)
		}
		if err := q.Schedules(door{}).Delete(t.Context(), bob, "one"); err != nil {
			t.Error(err)
		}
		var said []string
		list, err := records.NewStore(db).Changes(t.Context(), records.ChangeQuery{Limit: 100})
		musttest.Do(t, err)
		for _, c := range list {
			said = append(said, c.Action+" "+c.Principal+" "+c.Subject+" "+c.Details["reason"])
		}
		for _, want := range []string{"schedule.create amy one ", "schedule.end amy one its credentials are no longer valid", "schedule.end ann damaged its row is damaged", "schedule.delete bob one "} {
			if !strings.Contains(strings.Join(said, "\n"), want) {
				t.Errorf("%q is not among\n%s", want, strings.Join(said, "\n"))
			}
		}
		if len(r.list()) != 1 {
			t.Errorf("%v ran", r.list())
		}
		sound(t, db)
	})
}

// Invalid and too many schedules are refused, and callers see only their own.
func TestSchedulesAreRefused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		q := newQueuing(t, fresh(t)(), newRuns(), 1, nil)
		create := func(p skill.Principal, d records.Door, input string, change func(s *skill.Schedule)) error {
			s := &skill.Schedule{Name: "a", Cron: "@yearly", TimeZone: "UTC", Missed: skill.SkipMissed}
			change(s)
			_, err := q.Schedules(d).Create(t.Context(), p, s, &skill.Request{SkillID: "echo", TraceID: "t-1", Input: json.RawMessage(input)})
			return err
		}
		for name, change := range map[string]func(s *skill.Schedule){
			"no name":         func(s *skill.Schedule) { s.Name = "" },
			"a long name":     func(s *skill.Schedule) { s.Name = strings.Repeat("n", 65) },
			"missed":          func(s *skill.Schedule) { s.Missed = "perhaps" },
			"no cron":         func(s *skill.Schedule) { s.Cron = "" },
			"seconds":         func(s *skill.Schedule) { s.Cron = "* * * * * *" },
			"an interval":     func(s *skill.Schedule) { s.Cron = "@every 1s" },
			"at the start":    func(s *skill.Schedule) { s.Cron = "@reboot" },
			"two zones":       func(s *skill.Schedule) { s.Cron = "CRON_TZ=UTC * * * * *" },
			"never":           func(s *skill.Schedule) { s.Cron = "0 0 31 2 *" },
			"a long one":      func(s *skill.Schedule) { s.Cron = strings.Repeat("1,", 128) + "1 * * * *" },
			"no zone":         func(s *skill.Schedule) { s.TimeZone = "" },
			"the machine's":   func(s *skill.Schedule) { s.TimeZone = "Local" },
			"a file":          func(s *skill.Schedule) { s.TimeZone = "../../etc/passwd" },
			"a place on Mars": func(s *skill.Schedule) { s.TimeZone = "Mars/Olympus" },
		} {
			if err := create(ann, door{}, `{}`, change); code(err) != skill.InvalidArgument {
				t.Errorf("%s: %v", name, err)
			}
		}
		as := func(*skill.Schedule) {}
		if err := create(ann, door{}, `{"x":"`+strings.Repeat("x", 64<<10)+`"}`, as); code(err) != skill.InvalidArgument {
			t.Errorf("a large input: %v", err)
		}
		for _, kind := range []skill.PrincipalType{skill.Human, skill.Anonymous} {
			if err := create(skill.Principal{ID: "who", Tenant: "a", Type: kind}, door{}, `{}`, as); code(err) != skill.Forbidden {
				t.Errorf("%s: %v", kind, err)
			}
		}
		refusing := door{skill.Failure("echo", "", skill.Meta{}, &skill.Error{Code: skill.NotFound, Message: "skill not found"})}
		if err := create(ann, refusing, `{}`, as); code(err) != skill.NotFound {
			t.Errorf("of no skill: %v", err)
		}
		for i := range 100 {
			musttest.Do(t, create(ann, door{}, `{}`, func(s *skill.Schedule) { s.Name = fmt.Sprintf("%03d", i) }))
		}
		for _, name := range []string{"007", "100"} {
			if err := create(ann, door{}, `{}`, func(s *skill.Schedule) { s.Name = name }); code(err) != skill.Conflict {
				t.Errorf("%s: %v", name, err)
			}
		}
		for i := range 900 { // of the rest of the tenant
			musttest.Do(t, create(skill.Principal{ID: fmt.Sprint("p", i/100), Tenant: ann.Tenant, Type: skill.Agent}, door{}, `{}`, func(s *skill.Schedule) { s.Name = fmt.Sprintf("%03d", i) }))
		}
		if err := create(amy, door{}, `{}`, as); code(err) != skill.Conflict {
			t.Errorf("the tenant has more than 1000: %v", err)
		}
		musttest.Do(t, create(bob, door{}, `{}`, as))
		if err := q.Schedules(door{}).Delete(t.Context(), amy, "007"); code(err) != skill.NotFound {
			t.Errorf("amy: %v", err)
		}
		if _, err := q.Schedules(door{}).Get(t.Context(), bob, "007"); code(err) != skill.NotFound {
			t.Errorf("bob: %v", err)
		}
		var names []string
		for cursor := ""; ; {
			page, next, err := q.Schedules(door{}).List(t.Context(), ann, cursor, 30)
			musttest.Do(t, err)
			for _, s := range page {
				names = append(names, s.Name)
			}
			if cursor = next; next == "" {
				break
			}
		}
		if len(names) != 100 || names[0] != "000" || names[99] != "099" {
			t.Errorf("%d: %v", len(names), names)
		}
	})
}

// Times are those of the zone, also where its clocks are changed.
func TestTimesOfZones(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		c := clockAt(six)
		q := newQueuing(t, fresh(t)(), newRuns(), 1, func(o *records.ManagerOptions, _ *queuing) { o.Now, o.AskEvery = c.now, time.Hour })
		for i, tc := range []struct{ cron, zone, now, want string }{
			{"0 9 * * 1-5", "Europe/Berlin", "2026-11-27T08:00:01Z", "2026-11-30T08:00:00Z"},
			{"0 9 * * *", "America/New_York", "2026-07-01T00:00:00Z", "2026-07-01T13:00:00Z"},
			{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:30:00Z"}, // 2:30 is left out: at 3:30
			{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
			{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}, // 2:30 comes twice: at the first
			{"30 * * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"}, // each hour: at both
			{"0 0 29 2 *", "UTC", "2026-11-30T00:00:00Z", "2028-02-29T00:00:00Z"},
			{"@daily", "Asia/Kolkata", "2026-11-30T18:29:59Z", "2026-11-30T18:30:00Z"},
			{"0 6 1 * 1", "UTC", "2026-12-01T06:00:00Z", "2026-12-07T06:00:00Z"}, // each 1st and each Monday
			{"*/5 * * * *", "UTC", "2026-11-30T06:05:00Z", "2026-11-30T06:10:00Z"},
		} {
			c.set(musttest.Get(time.Parse(time.RFC3339, tc.now))(t))
			s, err := q.Schedules(door{}).Create(t.Context(), ann, &skill.Schedule{Name: fmt.Sprint(i), Cron: tc.cron, TimeZone: tc.zone, Missed: skill.RunMissed},
				&skill.Request{SkillID: "echo", TraceID: "t-1", Input: json.RawMessage(`{}`)})
			if err != nil || s.NextAt.Format(time.RFC3339) != tc.want {
				t.Errorf("%+v: %+v, %v", tc, s, err)
			}
		}
	})
}

// Schedules that a host cannot handle, and those of others, do not keep it from making the calls of a caller.
func TestSchedulesTakeTurns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		r, c := newRuns(), clockAt(six)
		db := fresh(t)()
		q := newQueuing(t, db, r, 4, func(o *records.ManagerOptions, q *queuing) {
			o.Now = c.now
			q.admit = func(p skill.Principal) error {
				switch p.ID {
				case "amy":
					return &skill.Error{Code: skill.AuditUnavailable, Message: "another host can tell"}
				}
				return nil
			}
		})
		for i := range 100 {
			q.every(t, amy, fmt.Sprintf("s-%02d", i), "echo", skill.RunMissed)
		}
		q.every(t, ann, "fails", "echo", skill.RunMissed)
		q.every(t, ann, "last", "echo", skill.RunMissed)
		// The transaction of this one fails: the id of its last call is none.
		musttest.Get(db.Exec(t.Context(), "UPDATE schedules SET last_id = 'x', next_at = 1 WHERE name = 'fails'"))(t)
		if !db.Postgres() {
			musttest.Get(db.Exec(t.Context(), "CREATE TRIGGER refused BEFORE UPDATE ON schedules WHEN NEW.name = 'fails' BEGIN SELECT RAISE(ABORT, 'refused'); END"))(t)
		}
		at := six.Add(45 * time.Minute)
		c.set(at)
		q.ended(t, ann, q.movesOn(t, ann, "last", at).LastID, records.Success)
		if n := len(r.list()); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}
