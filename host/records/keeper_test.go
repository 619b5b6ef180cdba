package records_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func body(t testing.TB, v any) []byte {
	t.Helper()
	return musttest.Get(json.Marshal(v))(t)
}

// abandoned puts a running call of another host on record.
func abandoned(t *testing.T, s records.Store, instance string) *records.Started {
	t.Helper()
	c := call("acme")
	c.Instance, c.Time = instance, time.Now().UTC().Truncate(time.Microsecond)
	if err := s.Append(t.Context(), []*records.Entry{{
		Record:  records.Record{Tenant: c.Tenant, Kind: records.KindStarted, ExecutionID: c.ExecutionID, Time: c.Time, Body: body(t, c)},
		Started: c,
	}}); err != nil {
		t.Fatal(err)
	}
	return c
}

// A host that stops ends what runs on record and lets nothing begin.
func TestCloseEndsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		l := open(t, s, nil)
		c, ended := call("acme"), call("acme")
		wantCode(t, l.Started(t.Context(), c, nil), "")
		wantCode(t, l.Started(t.Context(), ended, nil), "")
		wantCode(t, l.Finished(t.Context(), ended, success(), nil), "")
		// One is written while the host stops: it never begins.
		s.Before(func(_ context.Context, op string) error {
			if op == "Append" {
				time.Sleep(time.Second)
			}
			return nil
		})
		late, waits := call("acme"), call("acme")
		go func() { wantCode(t, l.Started(t.Context(), late, nil), skill.AuditUnavailable) }()
		synctest.Wait()
		go func() { wantCode(t, l.Started(t.Context(), waits, nil), skill.AuditUnavailable) }()
		synctest.Wait()
		for range 2 {
			if err := l.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		wantStatus(t, s, c.ExecutionID, records.Terminated, skill.Cancelled)
		wantStatus(t, s, ended.ExecutionID, records.Success, "")
		wantStatus(t, s, late.ExecutionID, records.Terminated, skill.Cancelled)
		wantStatus(t, s, waits.ExecutionID, "", "")
		wantCode(t, l.Started(t.Context(), call("acme"), nil), skill.AuditUnavailable)
		wantCode(t, l.Finished(t.Context(), c, success(), nil), skill.AuditUnavailable)
		if e, err := s.Execution(t.Context(), "", c.ExecutionID); err != nil || e.Finished.Message != "the host exited before the call finished" {
			t.Errorf("%+v, %v", e, err)
		}
		wantWhole(t, s)
	})
}

// A store that is away keeps a host from stopping no longer than it is given.
func TestCloseWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		var bad atomic.Bool
		s.Before(failing(&bad, errStore))
		l := musttest.Get(records.Open(t.Context(), records.Options{Store: s, Log: slog.New(slog.DiscardHandler)}))(t)
		c := call("acme")
		wantCode(t, l.Started(t.Context(), c, nil), "")
		bad.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		if err := l.Close(ctx); err == nil || time.Since(began) != 5*time.Second {
			t.Errorf("closed after %v with %v", time.Since(began), err)
		}
		// The next host ends what this one could not.
		bad.Store(false)
		time.Sleep(20 * time.Second)
		open(t, s, nil)
		wantStatus(t, s, c.ExecutionID, records.Terminated, skill.WorkerCrashed)
	})
}

func TestOpenNeedsTheStore(t *testing.T) {
	s := newFaulty(t)
	s.Before(func(context.Context, string) error { return errStore })
	_, err := records.Open(t.Context(), records.Options{Store: s})
	wantCode(t, err, skill.AuditUnavailable)
	if _, err := records.Open(t.Context(), records.Options{}); err == nil {
		t.Error("a log without a store")
	}
	if _, err := records.Open(t.Context(), records.Options{Store: s, Policy: "everything"}); err == nil {
		t.Error("a log with a policy that there is not")
	}
}

// What a host left that crashed is ended 15 s after it was alive last, by any other.
func TestOrphans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		musttest.Get(s.Alive(t.Context(), "crashed"))(t)
		var left []*records.Started
		for range 450 {
			left = append(left, abandoned(t, s, "crashed"))
		}
		a, b := open(t, s, nil), open(t, s, nil)
		own := call("acme")
		wantCode(t, a.Started(t.Context(), own, nil), "")
		time.Sleep(14 * time.Second)
		wantStatus(t, s, left[0].ExecutionID, records.Running, "")
		time.Sleep(7 * time.Second)
		for _, c := range left {
			wantStatus(t, s, c.ExecutionID, records.Terminated, skill.WorkerCrashed)
		}
		time.Sleep(time.Hour) // hosts that are alive are left alone
		wantStatus(t, s, own.ExecutionID, records.Running, "")
		wantCode(t, a.Finished(t.Context(), own, success(), nil), "")
		wantWhole(t, s)
		_ = b
	})
}

// A host that was silent for long is ended by the next one that starts.
func TestOrphansAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		musttest.Get(s.Alive(t.Context(), "crashed"))(t)
		c, gone := abandoned(t, s, "crashed"), abandoned(t, s, "said that it is gone")
		time.Sleep(16 * time.Second)
		open(t, s, nil)
		wantStatus(t, s, c.ExecutionID, records.Terminated, skill.WorkerCrashed)
		wantStatus(t, s, gone.ExecutionID, records.Terminated, skill.WorkerCrashed)
	})
}

// While the database is away no host can say that it is alive. When it is back, none
// takes another one for dead that only could not say so.
func TestNobodyIsTakenForDeadAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		var bad atomic.Bool
		s.Before(failing(&bad, errStore))
		a := open(t, s, nil)
		time.Sleep(2 * time.Second)
		open(t, s, nil)
		c := call("acme")
		wantCode(t, a.Started(t.Context(), c, nil), "")
		time.Sleep(time.Minute)
		bad.Store(true)
		time.Sleep(time.Hour)
		bad.Store(false)
		time.Sleep(time.Minute)
		wantStatus(t, s, c.ExecutionID, records.Running, "")
		wantCode(t, a.Finished(t.Context(), c, success(), nil), "")
	})
}

// A host that sleeps for long is taken for dead. When it wakes up its calls are ended on
// record, and their callers are told nothing else.
func TestTakenForDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		a := open(t, s, nil)
		c := call("acme")
		wantCode(t, a.Started(t.Context(), c, nil), "")
		musttest.Do(t, s.Gone(t.Context(), a.Instance()))
		open(t, s, nil)
		wantStatus(t, s, c.ExecutionID, records.Terminated, skill.WorkerCrashed)
		wantCode(t, a.Finished(t.Context(), c, success(), nil), skill.AuditUnavailable)
		wantStatus(t, s, c.ExecutionID, records.Terminated, skill.WorkerCrashed)
		c.Instance = "" // an id that was there before is no new one
		wantCode(t, a.Started(t.Context(), c, nil), skill.AuditUnavailable)
		wantWhole(t, s)
	})
}

// An end whose answer was lost is written again, and that is no other end.
func TestEndWrittenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		var bad atomic.Bool
		s.After(failing(&bad, errStore))
		l := open(t, s, nil)
		c := call("acme")
		wantCode(t, l.Started(t.Context(), c, nil), "")
		bad.Store(true)
		time.AfterFunc(time.Second, func() { bad.Store(false) })
		wantCode(t, l.Finished(t.Context(), c, success(), nil), "")
		wantStatus(t, s, c.ExecutionID, records.Success, "")
		wantWhole(t, s)
	})
}

// On Linux a host whose process is gone is seen at once.
func TestDeadProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells which process it was")
	}
	if os.Getenv("OPENSKILL_TEST_INSTANCE") != "" {
		os.Stdout.WriteString(records.NewInstance())
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestDeadProcess$")
	cmd.Env = append(os.Environ(), "OPENSKILL_TEST_INSTANCE=1")
	out := musttest.Get(cmd.Output())(t)
	dead, _, _ := strings.Cut(string(out), "PASS")
	if !strings.Contains(dead, "/") || len(dead) > 160 {
		t.Fatalf("the instance is %q", dead)
	}
	alive := records.NewInstance()
	at := func(instance string, field int, value string) string {
		f := strings.Split(instance, "/")
		f[field] = value
		return strings.Join(f, "/")
	}
	s := newFaulty(t)
	for _, i := range []string{dead, alive} {
		musttest.Get(s.Alive(t.Context(), i))(t)
	}
	gone := abandoned(t, s, dead)
	reused := abandoned(t, s, at(alive, 4, "17")) // this process id, of a process that started at another time
	left := map[string]*records.Started{}
	for name, instance := range map[string]string{
		"alive": alive, "no process": "elsewhere", "other boot": at(dead, 1, "0b9c"), "other namespace": at(dead, 2, "7"),
		"not a number": at(dead, 3, "x"), "more": dead + "/1", "negative": at(dead, 3, "-1"), "empty": "",
	} {
		musttest.Get(s.Alive(t.Context(), instance))(t)
		left[name] = abandoned(t, s, instance)
	}
	musttest.Get(s.Alive(t.Context(), at(alive, 4, "17")))(t)
	open(t, s, nil)
	wantStatus(t, s, gone.ExecutionID, records.Terminated, skill.WorkerCrashed)
	wantStatus(t, s, reused.ExecutionID, records.Terminated, skill.WorkerCrashed)
	for name, c := range left {
		if e, err := s.Execution(t.Context(), "", c.ExecutionID); err != nil || e.Status() != records.Running {
			t.Errorf("%s: %+v, %v; want it left alone", name, e, err)
		}
	}
	if a, b := records.NewInstance(), records.NewInstance(); a == b {
		t.Errorf("two hosts are named %s", a)
	}
}

// Records that are too old are removed in small steps, and the chain verifies by the
// record of that.
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFaulty(t)
		const keep = 3 * time.Hour
		l := open(t, s, func(o *records.Options) { o.Retention = keep })
		round := func(n int) {
			for range n {
				c := call("acme")
				wantCode(t, l.Started(t.Context(), c, nil), "")
				wantCode(t, l.Finished(t.Context(), c, success(), nil), "")
			}
		}
		round(800)
		old := call("acme")
		wantCode(t, l.Started(t.Context(), old, nil), "")
		time.Sleep(2 * time.Hour)
		round(5)
		wantCode(t, l.Finished(t.Context(), old, success(), nil), "")
		time.Sleep(2 * time.Hour)
		heads, err := s.Tenants(t.Context())
		if err != nil || len(heads) != 1 || heads[0].First != 1602 {
			t.Fatalf("the chain is %+v, %v; want its first record 1602, of a call that lasted", heads, err)
		}
		kept := heads
		round(1)
		wantWhole(t, s)
		time.Sleep(keep + time.Hour)
		round(1)
		heads, err = s.Tenants(t.Context())
		if err != nil || heads[0].First <= 1602 {
			t.Fatalf("the chain is %+v, %v", heads, err)
		}
		wantWhole(t, s)
		// A head from before the removal cannot be compared any more. One that is new can.
		r, err := records.Verify(t.Context(), s, records.VerifyOptions{Against: kept})
		if err != nil || r.Whole() || r.Chains[0].Found != 1 || r.Chains[0].Fault.Wrong != records.NotThere {
			t.Errorf("%+v, %v", r, err)
		}
		r, err = records.Verify(t.Context(), s, records.VerifyOptions{Against: heads})
		if err != nil || !r.Whole() {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
