package selftest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"openskill/examples/hostile"
	"openskill/host/selftest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// fake is a host that does right until a field says otherwise.
type fake struct {
	server *httptest.Server

	called  func(ctx context.Context, tenant string, id skill.ID) *skill.Result // nil: answers
	add     func(u *hostile.Upload) error
	health  func() error
	usage   func(played bool) selftest.Usage
	memory  func(played bool) int64
	state   func(played bool) string
	crashes func() bool
	played  atomic.Bool // the case was called
}

// own reports whether a skill is of the self-test itself, which begins every run by some.
func own(id skill.ID) bool { return strings.HasPrefix(string(id), "hostile_") }

func (f *fake) Add(_ context.Context, _ string, u *hostile.Upload) (skill.ID, error) {
	if f.add != nil && !own(u.ID) {
		f.played.Store(true)
		return u.ID, f.add(u)
	}
	return u.ID, nil
}

func (f *fake) Remove(context.Context, string, skill.ID) {}

func (f *fake) Invoke(ctx context.Context, tenant string, id skill.ID, _ json.RawMessage) *skill.Result {
	if own(id) {
		return &skill.Result{Success: true, Data: json.RawMessage(hostile.CanaryData)}
	}
	f.played.Store(true)
	if f.called != nil {
		return f.called(ctx, tenant, id)
	}
	return &skill.Result{Success: true, Data: json.RawMessage("{}")}
}

func (f *fake) Health(context.Context) error {
	if f.health != nil && f.played.Load() {
		return f.health()
	}
	return nil
}

func (f *fake) Usage(context.Context) selftest.Usage {
	if f.usage != nil {
		return f.usage(f.played.Load())
	}
	return selftest.Usage{PID: 1}
}

func (f *fake) Memory() int64 {
	if f.memory != nil {
		return f.memory(f.played.Load())
	}
	return 1 << 20
}

func (f *fake) State(context.Context) (string, error) {
	if f.state != nil {
		return f.state(f.played.Load()), nil
	}
	return "", nil
}

func (f *fake) CPU() time.Duration { return 0 }
func (f *fake) Secrets() []string  { return []string{"/srv/host"} }
func (f *fake) Planted() string    { return "" }
func (f *fake) Busy() []int        { return []int{2} }
func (f *fake) Crash([]int) bool   { return f.crashes != nil && f.crashes() }

func (f *fake) Address() string {
	if f.server == nil {
		return "127.0.0.1:1"
	}
	return f.server.Listener.Addr().String()
}

func refuse(code skill.Code, message string) *skill.Result {
	return skill.Failure("x", "t", skill.Meta{}, &skill.Error{Code: code, Message: message})
}

func raw(code skill.Code, status int, message string) *skill.Result {
	return &skill.Result{Error: &skill.ResultError{Code: code, Status: status, Message: message}}
}

// endless is a case that must end by its deadline.
func endless() hostile.Case {
	return hostile.Case{
		Name: "E01 endless", Promise: hostile.Ends, Limit: "the deadline", Ends: []skill.Code{skill.Timeout},
		Limits: skill.Limits{Timeout: 20 * time.Millisecond, Memory: 64 << 20}, Wears: true,
		Upload: func() *hostile.Upload { return &hostile.Upload{ID: "endless"} },
	}
}

// play plays one case by a clock of its own: what is late here is late on purpose, however
// busy the machine is.
func play(t *testing.T, f *fake, c hostile.Case) (row selftest.Row) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		report := musttest.Get(selftest.Run(t.Context(), f, selftest.Options{Cases: []hostile.Case{c}, Filter: c.Name}))(t)
		if len(report.Rows) != 1 {
			t.Fatalf("%d rows", len(report.Rows))
		}
		row = report.Rows[0]
	})
	return row
}

// Each rule of the oracle fails a host that breaks it, and only then.
func TestOracle(t *testing.T) {
	t.Parallel()
	timeout := func(context.Context, string, skill.ID) *skill.Result { return refuse(skill.Timeout, "too late") }
	after := func(before, then selftest.Usage) func(bool) selftest.Usage {
		return func(played bool) selftest.Usage {
			if played {
				return then
			}
			return before
		}
	}
	one := selftest.Usage{PID: 1, Goroutines: 10, Threads: 10, Descriptors: 10, Memory: 100 << 20}
	with := func(change func(*selftest.Usage)) selftest.Usage { u := one; change(&u); return u }
	answers := func(r *skill.Result) func(context.Context, string, skill.ID) *skill.Result {
		return func(context.Context, string, skill.ID) *skill.Result { return r }
	}
	for _, tc := range []struct {
		name string
		host *fake
		says string // of the problem; "" for none
	}{
		{"nothing is wrong", &fake{called: timeout}, ""},
		{"as much as may stay", &fake{called: timeout, usage: after(one, with(func(u *selftest.Usage) { u.Goroutines += 10; u.Threads += 4; u.Descriptors += 9; u.Memory += 64 << 20 }))}, ""},
		{"what is not known", &fake{called: timeout, usage: after(selftest.Usage{PID: 1, Goroutines: -1, Threads: -1, Descriptors: -1, Memory: -1}, one)}, ""},
		{"another code", &fake{called: answers(refuse(skill.FuelExhausted, "no fuel"))}, "ended with FUEL_EXHAUSTED"},
		{"a success", &fake{}, "ended with answered"},
		{"a crash of the host's part", &fake{called: answers(refuse(skill.Internal, ""))}, "ended with INTERNAL"},
		{"late", &fake{called: func(ctx context.Context, _ string, _ skill.ID) *skill.Result {
			<-time.After(300 * time.Millisecond)
			return refuse(skill.Timeout, "too late")
		}}, "after its deadline"},
		{"an unknown code", &fake{called: answers(raw("TIME_OUT", 408, "x"))}, "is not published"},
		{"a wrong status", &fake{called: answers(raw(skill.Timeout, 500, "x"))}, "is not published"},
		{"a long message", &fake{called: answers(raw(skill.Timeout, 408, strings.Repeat("x", 513)))}, "message of 513 bytes"},
		{"no message", &fake{called: answers(raw(skill.Timeout, 408, ""))}, "message of 0 bytes"},
		{"control characters", &fake{called: answers(raw(skill.Timeout, 408, "\x1b[31mred"))}, "control characters"},
		{"bidirectional text", &fake{called: answers(raw(skill.Timeout, 408, "a\u202eb"))}, "control characters"},
		{"a path of the host", &fake{called: answers(raw(skill.Timeout, 408, "open /srv/host/state: gone"))}, "tells"},
		{"a path in the details", &fake{called: answers(&skill.Result{Error: &skill.ResultError{Code: skill.Timeout, Status: 408, Message: "x", Details: map[string]any{"at": "/srv/host"}}})}, "tells"},
		{"a Go panic", &fake{called: answers(raw(skill.Timeout, 408, "runtime error: index out of range"))}, "tells"},
		{"another process", &fake{called: timeout, usage: after(one, with(func(u *selftest.Usage) { u.PID = 2 }))}, "another process"},
		{"goroutines", &fake{called: timeout, usage: after(one, with(func(u *selftest.Usage) { u.Goroutines += 11 }))}, "21 goroutines, were 10"},
		{"threads", &fake{called: timeout, usage: after(one, with(func(u *selftest.Usage) { u.Threads += 5 }))}, "threads"},
		{"descriptors", &fake{called: timeout, usage: after(one, with(func(u *selftest.Usage) { u.Descriptors += 10 }))}, "descriptors"},
		{"memory", &fake{called: timeout, usage: after(one, with(func(u *selftest.Usage) { u.Memory += 65 << 20 }))}, "MiB of memory"},
		{"memory of the run", &fake{called: timeout, memory: func(played bool) int64 {
			if played {
				return 1<<20 + 129<<20
			}
			return 1 << 20
		}}, "1 runs took 129 MiB"},
		{"data that changed", &fake{called: timeout, state: func(played bool) string { return fmt.Sprint(played) }}, "changed"},
		{"no health", &fake{called: timeout, health: func() error { return errors.New("down") }}, "questions for health failed"},
		{"slow health", &fake{called: timeout, health: func() error { <-time.After(150 * time.Millisecond); return nil }}, "at p99"},
		{"refused", &fake{add: func(*hostile.Upload) error { return &skill.Error{Code: skill.InvalidModule, Message: "no"} }}, "should be admitted"},
		{"not tried", &fake{add: func(*hostile.Upload) error { return errors.New("no connection") }}, "could not be tried"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			row := play(t, tc.host, endless())
			all := strings.Join(row.Problems, "\n")
			if tc.says == "" && (row.Verdict != selftest.Pass || all != "") || tc.says != "" && (row.Verdict != selftest.Fail || !strings.Contains(all, tc.says)) {
				t.Errorf("%s: %s, %q; want %q", row.Case, row.Verdict, all, tc.says)
			}
		})
	}
}

// An upload that must be refused, is; by another code, or not at all, fails.
func TestRefusals(t *testing.T) {
	t.Parallel()
	c := hostile.Case{
		Name: "W00 refused", Promise: hostile.Admission, Refused: []skill.Code{skill.InvalidModule},
		Upload: func() *hostile.Upload { return &hostile.Upload{ID: "bad"} },
	}
	for want, host := range map[string]*fake{
		"":                    {add: func(*hostile.Upload) error { return &skill.Error{Code: skill.InvalidModule, Message: "no"} }},
		"want INVALID_MODULE": {add: func(*hostile.Upload) error { return &skill.Error{Code: skill.TableLimit, Message: "no"} }},
		"ended with answered": {},
		"tells":               {add: func(*hostile.Upload) error { return &skill.Error{Code: skill.InvalidModule, Message: "in /srv/host"} }},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			row := play(t, host, c)
			if got := strings.Join(row.Problems, "\n"); !strings.Contains(got, want) || (want == "") != (row.Verdict == selftest.Pass) {
				t.Errorf("%s, %q; want %q", row.Verdict, got, want)
			}
		})
	}
}

// A row that was only late once is tried again, and then holds.
func TestSecondTry(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	row := play(t, &fake{called: func(context.Context, string, skill.ID) *skill.Result {
		if calls.Add(1) == 1 {
			<-time.After(300 * time.Millisecond)
		}
		return refuse(skill.Timeout, "too late")
	}}, endless())
	if row.Verdict != selftest.Pass || !strings.Contains(row.Happened, "second try") || calls.Load() != 2 {
		t.Errorf("%+v after %d calls", row, calls.Load())
	}
}

// A host without room for the call whose worker is to be killed is asked again: another
// call's worker was killed, or none. One that never has room fails the row.
func TestKillWithoutRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		refused int32
		found   bool // there was a worker to kill meanwhile
		want    selftest.Verdict
	}{{1, true, selftest.Pass}, {1, false, selftest.Pass}, {1000, true, selftest.Fail}, {1000, false, selftest.Fail}} {
		crash := endless()
		crash.Name, crash.Ends, crash.Wears = hostile.CrashName, []skill.Code{skill.WorkerCrashed}, false
		var calls atomic.Int32
		row := play(t, &fake{
			crashes: func() bool {
				<-time.After(time.Millisecond) // a call is on its way
				return c.found || calls.Load() > c.refused
			},
			called: func(context.Context, string, skill.ID) *skill.Result {
				if calls.Add(1) <= c.refused {
					return refuse(skill.RateLimited, "busy")
				}
				<-time.After(10 * time.Millisecond)
				return refuse(skill.WorkerCrashed, "gone")
			},
		}, crash)
		if row.Verdict != c.want {
			t.Errorf("%+v: %+v after %d calls", c, row, calls.Load())
		}
	}
}

// A canary that the database kept waiting once is a matter of time, and its row is tried
// again; one that is refused each time, or otherwise, fails it.
func TestCanaryRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code  skill.Code
		times int32
		want  selftest.Verdict
	}{{skill.AuditUnavailable, 1, selftest.Pass}, {skill.AuditUnavailable, 1 << 30, selftest.Fail}, {skill.RateLimited, 1, selftest.Fail}} {
		k := endless()
		report, err := selftest.Run(t.Context(), &refusing{fake: &fake{called: func(context.Context, string, skill.ID) *skill.Result {
			<-time.After(100 * time.Millisecond) // canaries are called meanwhile
			return refuse(skill.Timeout, "too late")
		}}, code: c.code, times: c.times}, selftest.Options{Cases: []hostile.Case{k}, Filter: k.Name})
		musttest.Do(t, err)
		if row := report.Rows[0]; row.Verdict != c.want {
			t.Errorf("%+v: %+v", c, row)
		}
	}
}

// refusing answers canaries with an error, once a case was called, so many times.
type refusing struct {
	*fake
	code    skill.Code
	times   int32
	refused atomic.Int32
}

func (r *refusing) Invoke(ctx context.Context, tenant string, id skill.ID, in json.RawMessage) *skill.Result {
	if own(id) && r.played.Load() && r.refused.Add(1) <= r.times {
		return refuse(r.code, "not now")
	}
	return r.fake.Invoke(ctx, tenant, id, in)
}

// What is switched off fails its row, and so does a canary that is not served.
func TestProtectionsAndCanary(t *testing.T) {
	t.Parallel()
	report, err := selftest.Run(t.Context(), &fake{}, selftest.Options{
		Filter: "protection",
		Protections: func() []selftest.Protection {
			return []selftest.Protection{
				{Name: "seccomp", On: true, Detail: "a filter"},
				{Name: "Landlock", Detail: "this kernel has none"},
				{Name: "memory", Detail: "no control groups here", Optional: true},
			}
		},
	})
	if err != nil || report.Passed != 1 || report.Failed != 1 || report.Skipped != 1 || report.OK() {
		t.Fatalf("%+v, %v", report, err)
	}
	if row := report.Rows[1]; row.Verdict != selftest.Fail || !strings.Contains(row.Problems[0], "this kernel has none") {
		t.Errorf("%+v", row)
	}
	bad := &fake{add: func(*hostile.Upload) error { return nil }}
	bad.state = func(bool) string { return "" }
	dead := &silent{fake: bad}
	if _, err := selftest.Run(t.Context(), dead, selftest.Options{Filter: "E01 endless loop"}); err == nil || !strings.Contains(err.Error(), "canary") {
		t.Errorf("a host without a canary: %v", err)
	}
}

// silent answers no canary.
type silent struct{ *fake }

func (s *silent) Invoke(context.Context, string, skill.ID, json.RawMessage) *skill.Result {
	return refuse(skill.RateLimited, "busy")
}

// The attacks over HTTP notice a server that gives in to them.
func TestAttacksNotice(t *testing.T) {
	t.Parallel()
	naive := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Trace-Id", "always the same")
		_, _ = io.WriteString(w, `{"trace_id": "t-aaaaa", "skill_id": "selftest_aaaaa"}`)
	}))
	t.Cleanup(naive.Close)
	for _, filter := range []string{"A04", "A06", "A07", "A08"} {
		t.Run(filter, func(t *testing.T) {
			t.Parallel()
			report, err := selftest.Run(t.Context(), &fake{server: naive}, selftest.Options{Filter: filter})
			if err != nil || len(report.Rows) != 1 || report.Rows[0].Verdict != selftest.Fail {
				t.Errorf("%+v, %v", report, err)
			}
		})
	}
}

// The numbers of a promise are those of the worst row.
func TestPromises(t *testing.T) {
	t.Parallel()
	c := endless()
	report, err := selftest.Run(t.Context(), &fake{called: func(context.Context, string, skill.ID) *skill.Result {
		<-time.After(60 * time.Millisecond)
		return refuse(skill.Timeout, "too late")
	}}, selftest.Options{Cases: []hostile.Case{c}, Filter: c.Name})
	musttest.Do(t, err)
	if len(report.Promises) != len(selftest.Promises) {
		t.Fatalf("%d promises", len(report.Promises))
	}
	two := report.Promises[hostile.Ends-1]
	var late int
	n, err := fmt.Sscanf(two.Happened, "1 calls, the latest ended %d ms after its deadline, 1 of 1 rows hold", &late)
	if n != 1 || err != nil || late < 40 || two.Verdict != selftest.Pass {
		t.Errorf("%+v, %v", two, err)
	}
	if seven := report.Promises[hostile.Real-1]; seven.Verdict != selftest.Skip || seven.Happened != "not tried" {
		t.Errorf("%+v", seven)
	}
}

// Names are those of the rows that come.
func TestNames(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes every module of the corpus")
	}
	t.Parallel()
	all := selftest.Names(selftest.Options{})
	if len(all) < 100 {
		t.Errorf("%d rows", len(all))
	}
	if got := selftest.Names(selftest.Options{Filter: "EIGHT HOSTILE"}); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

var _ selftest.Target = (*fake)(nil)
