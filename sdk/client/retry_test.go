package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"openskill/sdk/skill"
)

// What a host refused before anything began is sent again, as it was; nothing else is.
func TestRetries(t *testing.T) {
	t.Parallel()
	const limited = `{"error": {"code": "RATE_LIMITED", "status": 429, "message": "later"}}`
	const gone = `{"error": {"code": "AUDIT_UNAVAILABLE", "status": 503, "message": "later"}}`
	const fine = `{"success": true, "skill_id": "echo", "trace_id": "t", "data": {}, "error": null, "meta": {}}`
	for _, tc := range []struct {
		name    string
		method  string
		retries int
		status  int
		after   string // Retry-After
		body    string
		sent    int             // requests in all, the last of which is answered well if it is the third
		waits   []time.Duration // at least so long, and a quarter more at most
		fails   bool
	}{
		{"429", "POST", 0, 429, "", limited, 3, []time.Duration{250 * time.Millisecond, 500 * time.Millisecond}, false},
		{"429 with a time", "POST", 0, 429, "7", limited, 3, []time.Duration{7 * time.Second, 7 * time.Second}, false},
		{"429 with a time that is too long", "POST", 0, 429, "61", limited, 1, nil, true},
		{"once", "POST", 1, 429, "", limited, 2, []time.Duration{250 * time.Millisecond}, true},
		{"never", "POST", -1, 429, "1", limited, 1, nil, true},
		{"503 in answer to a call", "POST", 0, 503, "", gone, 1, nil, true},
		{"503 with a time", "POST", 0, 503, "1", gone, 3, []time.Duration{time.Second, time.Second}, false},
		{"503 in answer to a question", "GET", 0, 503, "", gone, 3, []time.Duration{250 * time.Millisecond, 500 * time.Millisecond}, false},
		{"500", "GET", 0, 500, "1", gone, 1, nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			sent := 0
			answer := func(w http.ResponseWriter, r *http.Request) {
				sent++
				if b, err := io.ReadAll(r.Body); tc.method == "POST" && string(b) != `{"input":{}}` || err != nil {
					t.Errorf("request %d: %q, %v", sent, b, err)
				}
				if sent == 3 {
					says(200, fine)(w, r)
					return
				}
				if tc.after != "" {
					w.Header().Set("Retry-After", tc.after)
				}
				says(tc.status, tc.body)(w, r)
			}
			c := answers(t, &Options{Retries: tc.retries}, map[string]http.HandlerFunc{"POST /skills/echo:invoke": answer, "GET /skills/echo": answer})
			var waits []time.Duration
			c.sleep = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
			var err error
			if tc.method == "GET" {
				_, err = c.Skill(t.Context(), "echo")
			} else {
				_, err = c.Invoke(t.Context(), "echo", nil)
			}
			var e *Error
			if errors.As(err, &e) != tc.fails || sent != tc.sent || len(waits) != len(tc.waits) {
				t.Fatalf("%d requests, waited %v, %v", sent, waits, err)
			}
			for i, d := range waits {
				if d < tc.waits[i] || d > tc.waits[i]+tc.waits[i]/4 {
					t.Errorf("waited %v, want %v", waits, tc.waits)
				}
			}
		})
	}
}

// A wait ends with the context, and one that would outlast it is not begun.
func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	sent := 0
	c := answers(t, nil, map[string]http.HandlerFunc{"GET /skills/echo": func(w http.ResponseWriter, r *http.Request) {
		sent++
		w.Header().Set("Retry-After", "20")
		says(429, `{"error": {"code": "RATE_LIMITED", "status": 429, "message": "later"}}`)(w, r)
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var e *Error
	if _, err := c.Skill(ctx, "echo"); !errors.As(err, &e) || e.Code != skill.RateLimited || e.RetryAfter != 20*time.Second || sent != 1 {
		t.Errorf("%d requests, %v", sent, err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	c.sleep = func(ctx context.Context, d time.Duration) error { cancel(); return sleep(ctx, d) }
	if _, err := c.Skill(ctx, "echo"); !errors.As(err, &e) || sent != 2 {
		t.Errorf("%d requests, %v", sent, err)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for given, want := range map[string]time.Duration{
		"": 0, "0": 0, "5": 5 * time.Second, "-1": 0, "soon": 0, "1.5": 0, "99999999999": 0,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second, "Thu, 01 Jan 2026 00:00:00 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {given}}, now); got != want {
			t.Errorf("%q: %v, want %v", given, got, want)
		}
	}
}

func TestUploads(t *testing.T) {
	t.Parallel()
	parts := func(want string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			var got []string
			if err := r.ParseMultipartForm(1 << 20); err != nil {
				t.Errorf("%s: %v", r.RequestURI, err)
				return
			}
			for _, name := range []string{"archive", "module", "manifest"} {
				for _, f := range r.MultipartForm.File[name] {
					in, err := f.Open()
					if err != nil {
						t.Error(err)
						return
					}
					b, _ := io.ReadAll(in)
					got = append(got, name+"="+string(b))
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %q, want %q", r.RequestURI, got, want)
			}
			says(201, `{"id": "greet", "version": "1.0.0", "digest": "d", "state": "disabled", "report": {}}`)(w, r)
		}
	}
	const state = `{"id": "greet", "version": "1.0.0", "digest": "d", "state": "enabled"}`
	c := answers(t, nil, map[string]http.HandlerFunc{
		"POST /skills?dry_run=true": parts("archive=PK"), "POST /skills": parts("module=wasm manifest=id: greet"),
		"POST /skills/greet:enable": wants(t, `{"version":"1.0.0"}`, state), "POST /skills/greet:disable": wants(t, "", state),
	})
	if r, err := c.Upload(t.Context(), &Upload{Archive: []byte("PK"), DryRun: true}); err != nil || r.ID != "greet" || r.State != skill.StateDisabled {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := c.Upload(t.Context(), &Upload{Module: []byte("wasm"), Manifest: []byte("id: greet")}); err != nil {
		t.Error(err)
	}
	for _, u := range []Upload{{}, {Module: []byte("m")}, {Manifest: []byte("m")}, {Archive: []byte("a"), Module: []byte("m"), Manifest: []byte("y")}} {
		if r, err := c.Upload(t.Context(), &u); err == nil {
			t.Errorf("%+v: %+v", u, r)
		}
	}
	if v, err := c.Enable(t.Context(), "greet", "1.0.0"); err != nil || v.State != skill.StateEnabled {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := c.Disable(t.Context(), "greet", ""); err != nil {
		t.Error(err)
	}
	if _, err := c.Enable(t.Context(), "../x", ""); err == nil {
		t.Error("an id that leads elsewhere")
	}
	pulls := answers(t, nil, map[string]http.HandlerFunc{"POST /skills": wants(t, `{"reference":"r.example/a:1.0.0","enable":true}`, `{"id": "a", "state": "enabled"}`)})
	if r, err := pulls.Pull(t.Context(), "r.example/a:1.0.0", true); err != nil || r.State != skill.StateEnabled {
		t.Errorf("%+v, %v", r, err)
	}
}

// A run is looked at until it has ended; its result is that of Invoke.
func TestRuns(t *testing.T) {
	t.Parallel()
	const result = `{"success": true, "skill_id": "slow", "trace_id": "t", "data": {"n": 1}, "error": null, "meta": {"execution_id": "e-1"}}`
	const failed = `{"success": false, "skill_id": "slow", "trace_id": "t", "data": null, "error": {"code": "TIMEOUT", "status": 408, "message": "late"}, "meta": {}}`
	last, looks := "", 0
	c := answers(t, nil, map[string]http.HandlerFunc{
		"POST /skills/slow:invoke": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Prefer") != "respond-async" {
				t.Errorf("Prefer: %q", r.Header.Get("Prefer"))
			}
			says(202, `{"id": "e-1", "status": "running"}`)(w, r)
		},
		"POST /skills/fast:invoke": says(200, result),
		"POST /skills/lost:invoke": says(202, `{}`),
		"GET /executions/e-1": func(w http.ResponseWriter, r *http.Request) {
			if looks++; looks < 3 {
				says(200, `{"id": "e-1", "status": "`+[]string{"queued", "running"}[looks-1]+`"}`)(w, r)
				return
			}
			says(200, last)(w, r)
		},
		"DELETE /executions/e-1": says(200, `{"id": "e-1", "status": "terminated"}`),
	})
	var waits []time.Duration
	c.sleep = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
	for body, want := range map[string]string{
		`{"id": "e-1", "status": "success", "result": ` + result + `}`:                                                        "",
		`{"id": "e-1", "status": "timeout", "result": ` + failed + `}`:                                                        "TIMEOUT: late",
		`{"id": "e-1", "status": "failed", "error": {"code": "TRAP", "status": 502, "message": "it broke"}, "trace_id": "t"}`: "TRAP: it broke",
		`{"id": "e-1", "status": "success"}`:                                                                                  "no longer stored",
	} {
		last, looks, waits = body, 0, nil
		run, err := c.Start(t.Context(), "slow", nil)
		if err != nil || run.ID != "e-1" {
			t.Fatalf("%+v, %v", run, err)
		}
		r, err := run.Wait(t.Context())
		switch {
		case want == "" && (err != nil || string(r.Data) != `{"n": 1}`):
			t.Errorf("%+v, %v", r, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %s", err, want)
		}
		if len(waits) != 2 || waits[0] != firstPause || waits[1] != 2*firstPause {
			t.Errorf("waited %v", waits)
		}
	}
	run, err := c.Start(t.Context(), "fast", nil)
	if err != nil || run.ID != "e-1" {
		t.Fatalf("%+v, %v", run, err)
	}
	if r, err := run.Wait(t.Context()); err != nil || string(r.Data) != `{"n": 1}` {
		t.Errorf("%+v, %v", r, err)
	}
	if e, err := run.Cancel(t.Context()); err != nil || e.Status != "terminated" {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := c.Start(t.Context(), "lost", nil); err == nil {
		t.Error("an answer that names no execution")
	}
	last, looks = `{"id": "e-1", "status": "running"}`, 0
	ctx, cancel := context.WithCancel(t.Context())
	c.sleep = func(context.Context, time.Duration) error { cancel(); return ctx.Err() }
	run = &Run{ID: "e-1", c: c}
	if _, err := run.Wait(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "e-1") {
		t.Errorf("%v", err)
	}
}
