package console

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"openskill/host/internal/gate"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// A page whose answers are long is made in its tenant's turn, over however many connections it
// is asked for. No place is held while the API is asked, which has turns of its own.
func TestLongAnswersAreReadInTurns(t *testing.T) {
	turns := gate.New(gate.Options{Places: 1})
	taken := 0 // by the test
	f := open(t, func(o *Options) {
		o.Reads = turns
		api := o.API
		o.API = func(ctx context.Context, p skill.Principal, r *http.Request) (*http.Response, error) {
			if held, _, _, _ := turns.Load(); held != taken {
				t.Errorf("%s %s: %d places are held while the API is asked", r.Method, r.URL, held-taken)
			}
			return api(ctx, p, r)
		}
	})
	v := f.signedIn(t, "operator")
	f.answers["GET /skills/echo"], f.answers["GET /skills/echo/versions"] = `{"id":"echo","input_schema":{"type":"object","properties":{"x":{"type":"string"}}}}`, `{"data":[],"next":null}`
	for _, c := range []struct{ method, path, asks, answer string }{
		{"GET", "/console/skills", "GET /skills", `{"data":[{"id":"echo","description":"TEXT"}],"next":null}`},
		{"GET", "/console/skills?q=echo", "GET /skills", `{"data":[{"id":"echo","description":"TEXT"}],"next":null}`},
		{"POST", "/console/skills/echo/try", "POST /skills/echo:invoke", `{"success":true,"data":{"text":"TEXT"}}`},
		{"GET", "/console/executions", "GET /executions", `{"data":[{"id":"x","skill":"TEXT"}],"next":null}`},
		{"GET", "/console/executions/x", "GET /executions/x", `{"id":"x","status":"success","logs":"TEXT"}`},
		{"GET", "/console/agent-skills/x", "GET /agent-skills/x", `{"name":"x","content":"TEXT"}`},
		{"GET", "/console/chat/x", "GET /agent/conversations/x", `{"id":"x","messages":[{"role":"user","content":"TEXT"}]}`},
	} {
		page := func() int {
			if c.method == "POST" {
				return v.post(t, c.path).Code
			}
			return v.get(t, c.path).Code
		}
		for text, busy := range map[string]int{"short": 200, strings.Repeat("x", longAnswer): 429} {
			f.answers[c.asks] = strings.ReplaceAll(c.answer, "TEXT", text)
			leave := musttest.Get(turns.TryEnter("somebody else"))(t)
			taken = 1
			if code := page(); code != busy {
				t.Errorf("%s of %d bytes without a place: %d, want %d", c.path, len(text), code, busy)
			}
			leave()
			taken = 0
			if code := page(); code != 200 {
				t.Errorf("%s of %d bytes: %d", c.path, len(text), code)
			}
			if held, _, _, _ := turns.Load(); held > 0 {
				t.Fatalf("%s keeps its place", c.path)
			}
		}
	}
}

// Of a long result the page of an execution asks for the beginning, and says how much more
// there is.
func TestExecutionShowsTheBeginningOfItsResult(t *testing.T) {
	f := open(t, nil)
	f.answers["GET /executions/x"] = `{"id":"x","status":"success","result_bytes":16777216,"result_head":"{\"success\":true,\"data\":{\"text\":\"abc\u202e"}`
	page := f.signedIn(t, "operator").get(t, "/console/executions/x").Body.String()
	if asked := f.asked[len(f.asked)-1]; !strings.HasSuffix(asked, "GET /executions/x?result=head ") {
		t.Errorf("asked %s", asked)
	}
	if !strings.Contains(page, "abc‹U+202E› … (16777178 more bytes)") {
		i := max(strings.Index(page, "abc"), 0)
		t.Errorf("shown: %s", page[i:min(i+100, len(page))])
	}
	if n := len(pretty([]byte(`"` + strings.Repeat("é", 1<<20) + `"`))); n > mostShown+100 {
		t.Errorf("a long value is shown in %d bytes", n)
	}
}
