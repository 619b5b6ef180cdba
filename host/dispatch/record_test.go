package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"openskill/host/records"
	"openskill/host/records/replay"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// book is a record in memory, which can fail.
type book struct {
	mu              sync.Mutex
	started         []records.Started
	finished        []records.Finished
	inputs, outputs []string
	failStart       error
	failEnd         error
}

func (b *book) Started(_ context.Context, s *records.Started, input []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failStart != nil {
		return b.failStart
	}
	b.started, b.inputs = append(b.started, *s), append(b.inputs, string(input))
	return nil
}

func (b *book) Finished(ctx context.Context, of *records.Started, f *records.Finished, output []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil || of.ExecutionID != f.ExecutionID {
		return errors.New("of another, or given up")
	}
	b.finished, b.outputs = append(b.finished, *f), append(b.outputs, string(output))
	return b.failEnd
}

func unavailable() error {
	return &skill.Error{Op: "test", Code: skill.AuditUnavailable, Message: "the record cannot be written"}
}

// What a skill says of the tokens that it used is on record beside those that the host has
// counted, and is no more than a number. What is not one is left out, and the call goes on.
func TestReportedTokensAreOnRecord(t *testing.T) {
	for name, c := range map[string]struct {
		said string
		want int
	}{
		"nothing":       {``, 0},
		"a number":      {`, "token_usage": 1500`, 1500},
		"zero":          {`, "token_usage": 0`, 0},
		"the most":      {`, "token_usage": 2147483647`, 2147483647},
		"more":          {`, "token_usage": 2147483648`, 0},
		"far more":      {`, "token_usage": ` + strings.Repeat("9", 200), 0},
		"negative":      {`, "token_usage": -1`, 0},
		"a fraction":    {`, "token_usage": 1.5`, 0},
		"an exponent":   {`, "token_usage": 1e3`, 0},
		"a text":        {`, "token_usage": "1500"`, 0},
		"null":          {`, "token_usage": null`, 0},
		"true":          {`, "token_usage": true`, 0},
		"an object":     {`, "token_usage": {"total_tokens": 1500, "more": 1}`, 0},
		"a long object": {`, "token_usage": {"x": "` + strings.Repeat("x", 1_000_000) + `"}`, 0},
		"deep":          {`, "token_usage": ` + strings.Repeat("[", 200) + strings.Repeat("]", 200), 0},
	} {
		for _, success := range []bool{true, false} {
			t.Run(fmt.Sprint(name, success), func(t *testing.T) {
				var b book
				var left skill.Usage
				h := open(t, func(o *Options) { o.Recorder, o.Quotas = &b, leaves(func(u skill.Usage) { left = u }) })
				result := `{"success": true, "data": {"mean": 2}`
				if !success {
					result = `{"success": false, "error": {"code": "NOT_FOUND", "message": "m"}`
				}
				h.wasm.Answer = runnertest.Always(skill.Reply{Stdout: []byte(result + c.said + `, "duration_ms": 3}`), Usage: skill.Usage{Fuel: 5}})
				req := ask("plain", `{}`)
				req.Turn = skill.Turn{Session: "0190-s", Tokens: 17}
				r := h.Invoke(context.Background(), skill.Local(), req)
				if r.Success != success || success && string(r.Data) != `{"mean": 2}` || !success && r.Error.Code != skill.NotFound {
					t.Fatalf("%s %+v", r.Data, r.Error)
				}
				if f := b.finished[0]; f.Reported != c.want || f.Tokens != 17 {
					t.Errorf("%d reported, %d counted; want %d and 17", f.Reported, f.Tokens, c.want)
				}
				if left != (skill.Usage{Fuel: 5}) {
					t.Errorf("quotas are told %+v", left)
				}
			})
		}
	}
}

// leaves are quotas with room for everything.
type leaves func(skill.Usage)

func (l leaves) Enter(context.Context, skill.Principal, string, skill.ID, int, uint64) (func(skill.Usage), error) {
	return l, nil
}

func TestRunsAreOnRecord(t *testing.T) {
	var b book
	now := time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.FixedZone("x", 3600))
	h := open(t, func(o *Options) {
		o.Recorder = &b
		o.Now = func() time.Time { return now }
	})
	h.wasm.Answer = func(_ context.Context, c *skill.Call) (*skill.Reply, error) {
		if len(b.started) != 1 || b.started[0].ExecutionID != c.ExecutionID {
			t.Error("it ran before it was on record")
		}
		return runnertest.Prints(`{"mean": 2}`), nil
	}
	p := skill.Principal{ID: "ada", Type: skill.Human, Tenant: "acme", Scopes: []string{"skills:invoke:stats"}, Key: "k1"}
	req := ask("stats", `{"numbers": [1, 3]}`)
	req.TraceID, req.Turn = "t-1", skill.Turn{Session: "0190-s", Iteration: 2, Tokens: 17}
	req.Limits.Fuel = 900
	var began string
	r := h.Start(context.Background(), p, req, func(id string) { began = id })
	if !r.Success || !r.Meta.Ran || began != r.Meta.ExecutionID {
		t.Fatalf("%+v, begun as %q", r.Error, began)
	}
	s, f := b.started[0], b.finished[0]
	if s.Tenant != "acme" || s.Principal != "ada" || s.PrincipalType != skill.Human || s.Key != "k1" || s.TraceID != "t-1" || s.Session != "0190-s" ||
		s.Iteration != 2 || s.Skill != "stats" || s.Version != "0.1.0" || s.Digest == "" || s.Limits.Fuel != 900 || s.Script != "" {
		t.Errorf("%+v", s)
	}
	if want := time.Date(2026, 1, 2, 2, 4, 5, 123456000, time.UTC); s.Time != want || f.Time != want {
		t.Errorf("%v, %v", s.Time, f.Time)
	}
	if f.Status != records.Success || f.Code != "" || f.Message != "" || f.Runner != skill.WasmWASI || f.Tokens != 17 {
		t.Errorf("%+v", f)
	}
	if b.inputs[0] != `{"numbers": [1, 3]}` || b.outputs[0] != `{"mean": 2}` {
		t.Errorf("%q, %q", b.inputs, b.outputs)
	}
}

// TestEveryEndIsOnRecord: each start has its end, with a status that the host decides
// and words that are nobody's input.
func TestEveryEndIsOnRecord(t *testing.T) {
	secret := "hunter2"
	for name, tc := range map[string]struct {
		answer func(context.Context, *skill.Call) (*skill.Reply, error)
		status records.Status
		code   skill.Code
	}{
		"time ran out": {func(context.Context, *skill.Call) (*skill.Reply, error) {
			return &skill.Reply{Code: skill.Timeout}, nil
		}, records.TimedOut, skill.Timeout},
		"out of fuel": {func(context.Context, *skill.Call) (*skill.Reply, error) {
			return &skill.Reply{Code: skill.FuelExhausted}, nil
		}, records.Failed, skill.FuelExhausted},
		"it failed":   {func(context.Context, *skill.Call) (*skill.Reply, error) { return nil, errors.New(secret) }, records.Failed, skill.Internal},
		"it panicked": {func(context.Context, *skill.Call) (*skill.Reply, error) { panic(secret) }, records.Failed, skill.Internal},
		"its own error": {func(context.Context, *skill.Call) (*skill.Reply, error) {
			return runnertest.Prints(`{"success": false, "error": {"code": "TIMEOUT", "message": "hunter2"}}`), nil
		}, records.Failed, skill.ToolInvocationError},
		"it says cancel": {func(context.Context, *skill.Call) (*skill.Reply, error) {
			return runnertest.Prints(`{"success": false, "error": {"code": "CANCELLED", "message": "x"}}`), nil
		}, records.Failed, skill.ToolInvocationError},
		"exit": {func(context.Context, *skill.Call) (*skill.Reply, error) {
			return &skill.Reply{ExitCode: 3, Stderr: []byte(secret)}, nil
		}, records.Failed, skill.GuestExit},
	} {
		t.Run(name, func(t *testing.T) {
			var b book
			h := open(t, func(o *Options) { o.Recorder = &b })
			h.wasm.Answer = tc.answer
			r := h.Invoke(context.Background(), skill.Local(), ask("stats", "{}"))
			if r.Success || len(b.started) != 1 || len(b.finished) != 1 {
				t.Fatalf("%+v: %d started, %d finished", r, len(b.started), len(b.finished))
			}
			f := b.finished[0]
			if f.Status != tc.status || f.Code != tc.code || f.Code != r.Error.Code || f.Message == "" {
				t.Errorf("%+v, answered %+v", f, r.Error)
			}
			if strings.Contains(f.Message, secret) {
				t.Errorf("the record has a guest's words: %q", f.Message)
			}
		})
	}
	t.Run("the caller left", func(t *testing.T) {
		var b book
		h := open(t, func(o *Options) { o.Recorder = &b })
		ctx, cancel := context.WithCancel(context.Background())
		h.wasm.Answer = func(ctx context.Context, _ *skill.Call) (*skill.Reply, error) {
			cancel()
			return &skill.Reply{Code: skill.Cancelled}, nil
		}
		h.Invoke(ctx, skill.Local(), ask("stats", "{}"))
		if len(b.finished) != 1 || b.finished[0].Status != records.Terminated || b.finished[0].Code != skill.Cancelled {
			t.Errorf("%+v", b.finished)
		}
	})
}

// TestWithoutARecordNothingRuns: a call whose start cannot be written does not begin,
// and one whose end cannot be written is not answered with its result.
func TestWithoutARecordNothingRuns(t *testing.T) {
	b := book{failStart: unavailable()}
	h := open(t, func(o *Options) { o.Recorder = &b })
	r := h.Start(context.Background(), skill.Local(), ask("stats", "{}"), func(string) { t.Error("it began") })
	if r.Success || r.Error.Code != skill.AuditUnavailable || r.Error.Status != 503 || len(h.wasm.Calls()) != 0 {
		t.Errorf("%+v, %d runs", r.Error, len(h.wasm.Calls()))
	}
	b.failStart, b.failEnd = nil, unavailable()
	h.wasm.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) {
		return runnertest.Prints(`{"mean": 2}`), nil
	}
	r = h.Invoke(context.Background(), skill.Local(), ask("stats", "{}"))
	if r.Success || r.Error.Code != skill.AuditUnavailable || r.Data != nil || len(h.wasm.Calls()) != 1 {
		t.Errorf("%+v", r)
	}
	b.failEnd = nil
	if r = h.Invoke(context.Background(), skill.Local(), ask("stats", "{}")); !r.Success {
		t.Errorf("the record can be written again: %+v", r.Error)
	}
}

// TestRefusedCallsAreNoRuns: what never ran has no record.
func TestRefusedCallsAreNoRuns(t *testing.T) {
	var b book
	h := open(t, func(o *Options) { o.Recorder = &b })
	one := skill.Principal{ID: "x", Type: skill.Human, Scopes: []string{"skills:invoke:plain"}}
	for want, do := range map[skill.Code]func() *skill.Result{
		skill.Unauthorized:    func() *skill.Result { return h.Invoke(context.Background(), skill.Principal{}, ask("stats", "{}")) },
		skill.Forbidden:       func() *skill.Result { return h.Invoke(context.Background(), one, ask("stats", "{}")) },
		skill.NotFound:        func() *skill.Result { return h.Invoke(context.Background(), skill.Local(), ask("nobody", "{}")) },
		skill.InvalidArgument: func() *skill.Result { return h.Invoke(context.Background(), skill.Local(), ask("stats", "[]")) },
	} {
		if r := do(); r.Error == nil || r.Error.Code != want || r.Meta.Ran {
			t.Errorf("%+v, want %s, ran %v", r.Error, want, r.Meta.Ran)
		}
	}
	if len(b.started)+len(b.finished) != 0 {
		t.Errorf("%+v", b.started)
	}
}

func TestScriptsAreOnRecord(t *testing.T) {
	var b book
	h := withScripts(t, func(o *Options) { o.Recorder = &b })
	h.python.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) { return runnertest.Prints("hi"), nil }
	r := h.RunScript(context.Background(), skill.Local(), skill.ScriptRequest{Skill: "greeter", Script: "hi.py", Args: []string{"--to", "ada"}, Stdin: []byte("x\xff")})
	if !r.Success {
		t.Fatalf("%+v", r.Error)
	}
	if len(b.started) != 1 || b.started[0].Script == "" || b.started[0].Session != r.Meta.ExecutionID {
		t.Errorf("%+v", b.started)
	}
	if want := `{"args":["--to","ada"],"input":"x�"}`; b.inputs[0] != want {
		t.Errorf("%s, want %s", b.inputs[0], want)
	}
}

// attic keeps artifacts, or cannot.
type attic struct {
	running []string
	kept    []string
	logs    []string // "failed" before those of a run that did
	fail    error
	lost    bool // another host goes on with the calls
}

func (a *attic) Ours(context.Context, string) bool { return !a.lost }

func (a *attic) Track(ctx context.Context, s *records.Started) (context.Context, func()) {
	a.running = append(a.running, s.ExecutionID)
	return ctx, func() { a.running = slices.DeleteFunc(a.running, func(id string) bool { return id == s.ExecutionID }) }
}

func (a *attic) Keep(_ context.Context, of *records.Started, list []skill.Artifact) error {
	for i, f := range list {
		a.kept = append(a.kept, of.Tenant+"/"+f.Name)
		list[i].URL = "/" + f.Name
	}
	return a.fail
}

func (a *attic) KeepLogs(_ context.Context, of *records.Started, failed bool, text func() string) {
	word := of.Tenant + " ended: "
	if failed {
		word = of.Tenant + " failed: "
	}
	a.logs = append(a.logs, word+text())
}

// What a run wrote to standard error is kept with its lines, without what is invisible and
// what names the host's own folders, and no more than the end of it.
func TestLogsAreKept(t *testing.T) {
	var b book
	var a attic
	h := open(t, func(o *Options) { o.Recorder, o.Executions = &b, &a })
	for _, c := range []struct {
		stderr, want string
		exit         uint32
	}{
		{"Traceback:\n  File \"x.py\"\n\tat 1\x1b[31m\u202e!\r\n\n", "local failed: Traceback:\n  File \"x.py\"\n\tat 1[31m!", 1},
		{"a note\n", "local ended: a note", 0},
		{strings.Repeat("x", maxKept) + "the end", "local ended: " + strings.Repeat("x", maxKept-len("the end")) + "the end", 0},
		{strings.Repeat("\xff-", maxKept) + "!", "", 0},
	} {
		h.wasm.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) {
			r := runnertest.Prints("{}")
			r.Stderr = []byte(c.stderr)
			if c.exit != 0 {
				r.Stdout, r.ExitCode = nil, c.exit
			}
			return r, nil
		}
		a.logs = nil
		if r := h.Invoke(context.Background(), skill.Local(), ask("stats", "{}")); r.Success != (c.exit == 0) || len(a.logs) != 1 {
			t.Fatalf("%+v, %q", r.Error, a.logs)
		}
		if got := a.logs[0]; c.want != "" && got != c.want || len(got) > maxKept+20 || !utf8.ValidString(got) {
			t.Errorf("%.60q has become %d bytes, %.200q; want %.200q", c.stderr, len(got), got, c.want)
		}
	}
	h.wasm.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) { return runnertest.Prints("{}"), nil }
	a.logs = nil
	if r := h.Invoke(context.Background(), skill.Local(), ask("stats", "{}")); !r.Success || a.logs != nil {
		t.Errorf("kept of a run that wrote nothing: %q", a.logs)
	}
}

func TestArtifactsAreKept(t *testing.T) {
	var b book
	var a attic
	h := open(t, func(o *Options) { o.Recorder, o.Executions = &b, &a })
	h.wasm.Answer = func(_ context.Context, c *skill.Call) (*skill.Reply, error) {
		if !slices.Equal(a.running, []string{c.ExecutionID}) {
			t.Errorf("known to run: %q", a.running)
		}
		r := runnertest.Prints("{}")
		r.Artifacts = []skill.Artifact{{Name: "a.txt", Data: []byte("a"), Size: 1}, {Name: "../b", Data: []byte("b"), Size: 1}}
		return r, nil
	}
	if r := h.Invoke(context.Background(), skill.Local(), ask("stats", "{}")); !r.Success || !slices.Equal(a.kept, []string{"local/a.txt"}) || len(r.Meta.Artifacts) != 1 || r.Meta.Artifacts[0].URL != "/a.txt" {
		t.Errorf("%+v, kept %v", r, a.kept)
	}
	if f := b.finished[0]; len(f.Artifacts) != 1 || f.Artifacts[0].SHA256 != "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" {
		t.Errorf("%+v", f)
	}
	if len(a.running) != 0 {
		t.Errorf("still known to run: %q", a.running)
	}
	a.fail = &skill.Error{Op: "test", Code: skill.AuditUnavailable, Message: "full"}
	r := h.Invoke(context.Background(), skill.Local(), ask("stats", "{}"))
	if f := b.finished[1]; r.Success || r.Error.Code != skill.AuditUnavailable || r.Meta.Artifacts[0].URL != "" || f.Status != records.Failed || f.Artifacts != nil {
		t.Errorf("%+v, %+v", r.Error, f)
	}
}

// bounds refuse every second call, and know what the others used.
type bounds struct {
	calls int
	used  []skill.Usage
}

func (b *bounds) Enter(_ context.Context, _ skill.Principal, _ string, id skill.ID, perMinute int, fuel uint64) (func(skill.Usage), error) {
	if id == "rated" && perMinute != 2 || fuel == 0 {
		return nil, errors.New("wrong words")
	}
	if b.calls++; b.calls%2 == 0 {
		return nil, &skill.Error{Op: "test", Code: skill.RateLimited, Message: "later", Details: map[string]any{"retry_after_ms": int64(1)}}
	}
	return func(u skill.Usage) { b.used = append(b.used, u) }, nil
}

func TestQuotas(t *testing.T) {
	var b bounds
	h := open(t, func(o *Options) { o.Quotas = &b })
	h.wasm.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) {
		r := runnertest.Prints("{}")
		r.Usage.Fuel = 7
		return r, nil
	}
	for i := range 6 {
		r := h.Invoke(context.Background(), skill.Local(), ask("rated", "{}"))
		if r.Success != (i%2 == 0) || !r.Success && r.Error.Code != skill.RateLimited {
			t.Errorf("call %d: %+v", i, r.Error)
		}
	}
	if len(b.used) != 3 || b.used[0].Fuel != 7 {
		t.Errorf("%+v", b.used)
	}
}

// hangs is a place for recordings that does not answer.
type hangs struct{}

func (hangs) Most() uint64 { return 1 << 20 }

func (hangs) Keep(ctx context.Context, _ *replay.Ran) error {
	<-ctx.Done()
	return ctx.Err()
}

// A database that hangs costs a call its recording, and not its answer.
func TestRecordingHangs(t *testing.T) {
	h := open(t, func(o *Options) { o.Recorder, o.Recordings = &book{}, hangs{} })
	h.wasm.Answer = runnertest.Always(skill.Reply{Stdout: []byte(`{"mean": 2}`)})
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if r := h.Invoke(t.Context(), skill.Local(), ask("stats", "{}")); !r.Success || time.Since(begun) != keeping {
			t.Errorf("after %v: %+v", time.Since(begun), r.Error)
		}
	})
	if !strings.Contains(h.log.String(), "could not be recorded") {
		t.Errorf("logged: %s", h.log)
	}
}
