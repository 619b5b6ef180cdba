package console

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/selftest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// Every form needs the token of its session, and no page of another origin may send one.
func TestForms(t *testing.T) {
	f := open(t, nil)
	f.answers["POST /skills/echo:disable"] = `{"id":"echo","version":"1.0.0","digest":"","state":"disabled"}`
	v, other := f.signedIn(t, "operator"), f.signedIn(t, "other")
	own := v.csrf
	for name, token := range map[string]string{"none": "", "another's": other.csrf, "longer": own + "x"} {
		v.csrf = token
		for _, path := range []string{"/console/skills/echo/disable", "/console/signout", "/console/keys", "/console/chat", "/console/executions/verify"} {
			if w := v.post(t, path); w.Code != 403 {
				t.Errorf("%s, token %s: %d", path, name, w.Code)
			}
			v.csrf = token
		}
	}
	v.csrf = own
	for header, value := range map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"} {
		v.header = http.Header{header: {value}}
		if w := v.post(t, "/console/skills/echo/disable"); w.Code != 403 {
			t.Errorf("%s: %d", header, w.Code)
		}
		if w := (&visitor{f: f, header: v.header}).post(t, "/console/signin", "credential", f.shown["operator"]); w.Code != 403 {
			t.Errorf("signing in by %s: %d", header, w.Code)
		}
	}
	v.header, v.csrf = nil, own
	if w := v.post(t, "/console/skills/echo/disable", "version", "1.0.0"); w.Code != 303 || w.Header().Get("Location") != "/console/skills/echo" {
		t.Errorf("with the token: %d %v", w.Code, w.Header())
	}
	if last := f.asked[len(f.asked)-1]; last != `key:operator POST /skills/echo:disable {"version":"1.0.0"}` {
		t.Errorf("asked %s", last)
	}
	if w := v.get(t, "/console/x"); !strings.Contains(w.Body.String(), "echo 1.0.0 can no longer be called.") {
		t.Errorf("what came of it is not said: %s", w.Body)
	}
	for _, path := range []string{"/console/skills/echo/disable", "/console/signout"} {
		if w := v.get(t, path); w.Code == 303 && strings.Contains(w.Header().Get("Location"), "signin") || f.signed(t) != 2 {
			t.Errorf("GET %s does something: %d", path, w.Code)
		}
	}
}

// Who makes a key reads what each scope allows, and not its name alone.
func TestScopesHaveWords(t *testing.T) {
	for _, scope := range skill.Scopes() {
		if scopeWords[scope] == "" {
			t.Errorf("%s has no words", scope)
		}
	}
	if len(scopeWords) != len(skill.Scopes()) {
		t.Errorf("words for %d scopes, of %d", len(scopeWords), len(skill.Scopes()))
	}
}

// A page without a scope is shown to nobody, and no other test would miss it.
func TestEveryPageHasAScope(t *testing.T) {
	said := musttest.Get(os.ReadFile("../../docs/console.md"))(t)
	table := regexp.MustCompile(`(?m)^\| ([A-Z][A-Za-z, ]+) \| .*`+"`").FindAllStringSubmatch(string(said), -1)
	named := map[string]bool{}
	for _, row := range table {
		for _, name := range strings.Split(row[1], ", ") {
			named[name] = true
		}
	}
	for _, l := range navigation {
		if len(needs[l.Section]) == 0 {
			t.Errorf("%s has no scope, so nobody sees it: give %q a row in needs, and the page one in TestScopesOfPages", l.Path, l.Section)
		}
		if !named[l.Name] {
			t.Errorf("docs/console.md has no row for the page %s and its scope", l.Name)
		}
	}
}

// Each page is for who has its scope, and the navigation shows no other.
func TestScopesOfPages(t *testing.T) {
	f := open(t, func(o *Options) {
		o.Settings = func() []Setting { return []Setting{{Name: "OPENSKILL_X", Value: "1", From: "flag"}} }
		o.Chain = func(_ context.Context, tenant string) (*ChainState, error) {
			return &ChainState{Tenant: tenant, Records: 7}, nil
		}
	})
	f.answers["GET /skills"] = `{"data":[],"next":null}`
	for _, path := range []string{"/agent-skills", "/executions", "/workspaces", "/approvals", "/agent/conversations", "/audit/changes"} {
		f.answers["GET "+path] = `{"data":[],"next":null}`
	}
	pages := []string{"overview", "skills", "upload", "agent-skills", "executions", "workspaces", "approvals", "chat", "changes", "keys", "settings"}
	for key, can := range map[string]string{
		"operator": "overview skills upload agent-skills executions workspaces approvals chat changes keys settings",
		"reader":   "skills agent-skills executions approvals",
		"other":    "overview skills agent-skills executions approvals",
		"nothing":  "",
	} {
		v := f.signedIn(t, key)
		for _, page := range pages {
			want := 403
			if strings.Contains(" "+can+" ", " "+page+" ") {
				want = 200
			}
			w := v.get(t, "/console/"+page)
			if w.Code != want {
				t.Errorf("%s by %s: %d, want %d", page, key, w.Code, want)
			}
			if strings.Contains(w.Body.String(), `href="/console/`+page+`"`) != (want == 200) && page != "upload" {
				t.Errorf("%s by %s: the navigation says something else", page, key)
			}
		}
		for _, path := range []string{"/console/keys", "/console/keys/abc/revoke"} {
			if w := v.post(t, path); key != "operator" && w.Code != 403 {
				t.Errorf("POST %s by %s: %d", path, key, w.Code)
			}
		}
		w := v.post(t, "/console/executions/verify", "tenant", "globex")
		switch body := w.Body.String(); key {
		case "operator", "other":
			if w.Code != 200 || !strings.Contains(body, "The chain of globex is whole") {
				t.Errorf("the chain by %s: %d", key, w.Code)
			}
		default:
			if w.Code != 403 {
				t.Errorf("the chain by %s: %d", key, w.Code)
			}
		}
	}
	// Another tenant's figures and chain are the operator's to see.
	f.o.Recent.Add(&records.EndedCall{Tenant: "acme", Skill: "secret-skill"})
	v := f.signedIn(t, "other")
	if w := v.get(t, "/console/overview?tenant=acme"); strings.Contains(w.Body.String(), "secret-skill") || strings.Contains(w.Body.String(), "acme") {
		t.Error("figures of another tenant are shown")
	}
	if w := v.post(t, "/console/executions/verify", "tenant", "acme"); strings.Contains(w.Body.String(), "chain of acme") {
		t.Error("the chain of another tenant is looked at")
	}
	// A request that a skill was not permitted to send is told of at once.
	f.o.Recent.Denied("acme", "denied-skill")
	if w := v.get(t, "/console/overview"); strings.Contains(w.Body.String(), "denied-skill") {
		t.Error("denied requests of another tenant are shown")
	}
	if w := f.signedIn(t, "operator").get(t, "/console/overview"); !strings.Contains(w.Body.String(), "denied-skill") {
		t.Error("the operator does not see denied requests")
	}
	if w := f.signedIn(t, "operator").get(t, "/console/overview?tenant=acme"); !strings.Contains(w.Body.String(), "secret-skill") {
		t.Error("the operator does not see figures")
	}
}

// The overview of a tenant shows what it has stored and used, as the API tells who is signed in.
func TestOverviewShowsUsage(t *testing.T) {
	f := open(t, nil)
	f.answers["GET /usage"] = `{"tenant":"beta","stored":[{"kind":"uploads","count":3,"count_limit":100,"bytes":2097152,"bytes_limit":1073741824},{"kind":"keys","count":2,"count_limit":null,"bytes":null,"bytes_limit":null}],
		"today":[{"kind":"model_cost","used":2500000,"limit":100000000}],"resets_at":"2026-01-02T00:00:00Z"}`
	page := f.signedIn(t, "other").get(t, "/console/overview").Body.String()
	for _, want := range []string{"Storage and limits", "3 of 100", "2.0 MiB of 1.0 GiB", "$2.50 of $100.00"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	delete(f.answers, "GET /usage")
	if page := f.signedIn(t, "other").get(t, "/console/overview").Body.String(); !strings.Contains(page, "Storage and limits are unavailable") {
		t.Error("the page does not say that usage cannot be read")
	}
}

// Where nobody is asked who they are, pages say so, and forms need their token all the same.
func TestOpenHost(t *testing.T) {
	f := open(t, func(o *Options) { o.Callers, o.Operator = nil, skill.Local() })
	f.answers["GET /skills"] = `{"data":[],"next":null}`
	v := &visitor{f: f}
	if w := v.get(t, "/console/skills"); w.Code != 200 || !strings.Contains(w.Body.String(), "Authentication is off") || v.cookie == nil {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := v.post(t, "/console/skills/echo/disable"); w.Code != 303 {
		t.Errorf("a form: %d", w.Code)
	}
	v.csrf = "wrong"
	if w := v.post(t, "/console/skills/echo/disable"); w.Code != 403 {
		t.Errorf("a form without its token: %d", w.Code)
	}
	if w := v.get(t, "/console/signin?next=//evil.example"); w.Code != 303 || w.Header().Get("Location") != "/console" {
		t.Errorf("the sign-in page: %d %v", w.Code, w.Header())
	}
	if _, err := New(Options{API: f.api}); err == nil {
		t.Error("a console that asks nobody and has no operator")
	}
}

func TestHeaders(t *testing.T) {
	f := open(t, nil)
	v := f.signedIn(t, "operator")
	for _, path := range []string{"/console/x", "/console/signin", "/console/assets/console.css", "/console/assets/nothing", "/console/assets/..%2fdoc.go"} {
		w := v.get(t, path)
		h := w.Header()
		if h.Get("Content-Security-Policy") != policy || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: %v", path, h)
		}
		body := w.Body.String()
		if strings.Contains(body, "<style") || strings.Contains(body, "onclick=") || strings.Contains(body, " style=") || regexp.MustCompile(`<script[^>]*>[^<]`).MatchString(body) {
			t.Errorf("%s has a script or a style in it", path)
		}
	}
	css := f.fileURL("console.css")
	if w := v.get(t, css); !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Code != 200 {
		t.Errorf("%s: %v", css, w.Header())
	}
}

// The live view shows what its caller may see, and ends with its session.
func TestLive(t *testing.T) {
	f := open(t, nil)
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	for _, how := range []string{"signs out", "is revoked", "loses a scope", "leaves"} {
		t.Run(how, func(t *testing.T) {
			f.addKey(t, "viewer", "acme", skill.ScopeRead, skill.ScopeAllExecutions)
			v := &visitor{f: f, host: strings.TrimPrefix(srv.URL, "http://")}
			v.post(t, "/console/signin", "credential", f.shown["viewer"])
			v.get(t, "/console/x")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req := musttest.Get(http.NewRequestWithContext(ctx, "GET", srv.URL+"/console/executions/live", nil))(t)
			req.AddCookie(v.cookie)
			resp, err := http.DefaultTransport.RoundTrip(req)
			musttest.Do(t, err)
			defer resp.Body.Close()
			if resp.Header.Get("Content-Type") != "text/event-stream" {
				t.Fatalf("%d %v", resp.StatusCode, resp.Header)
			}
			// The first bytes come when the view is there.
			first := make([]byte, 3)
			musttest.Get(io.ReadFull(resp.Body, first))(t)
			f.o.Tail.Add(&records.EndedCall{ID: "theirs", Tenant: "globex", Skill: "theirs"})
			f.o.Tail.Add(&records.EndedCall{ID: "ours", Tenant: "acme", Skill: "ours\n<script>\u202e", Code: "TIMEOUT"})
			got := make([]byte, 0, 1024)
			for !bytes.Contains(got, []byte("\n\nevent: call")) || !bytes.HasSuffix(got, []byte("\n\n")) {
				b := make([]byte, 4096)
				n := musttest.Get(resp.Body.Read(b))(t)
				got = append(got, b[:n]...)
			}
			if text := string(got); strings.Contains(text, "theirs") || strings.Contains(text, "<script>") || !strings.Contains(text, "&lt;script&gt;‹U+202E›") {
				t.Errorf("shown: %s", text)
			}
			switch how {
			case "is revoked":
				f.revoke(t, "viewer")
			case "loses a scope":
				for _, statement := range []string{"UPDATE api_key_changes SET revision = revision + 1", "UPDATE api_keys SET scopes = 'skills:read', revision = (SELECT revision FROM api_key_changes) WHERE id = '" + f.id("viewer") + "'"} {
					musttest.Get(f.db.Exec(t.Context(), statement))(t)
				}
				f.pass(time.Second)
			case "signs out":
				v.post(t, "/console/signout")
			case "leaves":
				cancel()
			}
			rest, err := io.ReadAll(resp.Body)
			if how != "leaves" && (err != nil || !strings.Contains(string(rest), "event: over")) {
				t.Errorf("the end: %q %v", rest, err)
			}
		})
	}
	srv.Close() // waits for them
	if w, err := f.o.Tail.Watch(skill.Principal{Tenant: "acme", ID: "key:viewer"}, func(*records.EndedCall) bool { return true }); err != nil {
		t.Errorf("the places of those who have left are taken: %v", err)
	} else {
		w.Close()
	}
}

// What a turn says is handed on event by event, its text made visible.
func TestChatStream(t *testing.T) {
	f := open(t, nil)
	f.answers["POST /agent/chat"] = "id: 1\nevent: start\ndata: {\"conversation_id\":\"c\"}\n\nid: 2\nevent: text\ndata: {\"text\":\"a\u202eb\\u001b[31m<b>\"}\n\n: alive\n\nid: 3\nevent: done\ndata: {}\n\n"
	v := f.signedIn(t, "operator")
	w := v.post(t, "/console/chat/stream", "message", "hello")
	body := w.Body.String()
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/event-stream" || strings.Count(body, "\n\n") != 4 {
		t.Errorf("%d %v %s", w.Code, w.Header(), body)
	}
	var said struct{ Text string }
	for line := range strings.SplitSeq(body, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(data, "text") {
			if err := json.Unmarshal([]byte(data), &said); err != nil {
				t.Error(err)
			}
		}
	}
	if said.Text != "a‹U+202E›b‹U+001B›[31m<b>" {
		t.Errorf("said %q", said.Text)
	}
	if asked := f.asked[len(f.asked)-1]; !strings.Contains(asked, `"message":"hello"`) || !strings.Contains(asked, `"stream":true`) {
		t.Errorf("asked %s", asked)
	}
	f.answers["POST /agent/chat"] = `429 {"error":{"code":"RATE_LIMITED","status":429,"message":"too many"}}`
	if w := v.post(t, "/console/chat/stream", "message", "hello"); w.Code != 422 || !strings.Contains(w.Body.String(), "too many") {
		t.Errorf("refused: %d %s", w.Code, w.Body)
	}
	if w := f.signedIn(t, "reader").post(t, "/console/chat/stream", "message", "x"); w.Code != 422 || !strings.Contains(w.Body.String(), "requires the scope") {
		t.Errorf("by a reader: %d %s", w.Code, w.Body)
	}
}

// The settings show what came of the last self-test, that there was none, or that it cannot
// be read.
func TestSelfTestOnSettings(t *testing.T) {
	f := open(t, func(o *Options) { o.Version = "1.2.3" })
	v := f.signedIn(t, "operator")
	row := func(n int, name string, verdict selftest.Verdict) selftest.Row {
		return selftest.Row{Promise: n, Case: name, Limit: "a limit", Happened: "it went on", Verdict: verdict, Problems: []string{"for 3 s"}}
	}
	for _, c := range []struct {
		name string
		last *selftest.Kept // nil: nothing is stored
		want []string
		not  string
	}{
		{"none", nil, []string{"Not run yet"}, "left out"},
		{
			"passed", &selftest.Kept{Version: "1.2.3", Report: selftest.Report{Passed: 7, Promises: []selftest.Row{row(2, "every run ends", selftest.Pass)}, Rows: []selftest.Row{row(0, "a row that passed", selftest.Pass)}}},
			[]string{"7 passed, 0 failed, 0 skipped", "every run ends", "it went on; for 3 s"},
			"a row that passed",
		},
		{
			"failed", &selftest.Kept{Version: "1.2.2", Report: selftest.Report{Passed: 6, Failed: 1, Rows: []selftest.Row{row(0, "memory is bounded", selftest.Fail)}}},
			[]string{"6 passed, 1 failed", "memory is bounded", "by version 1.2.2, while this host is 1.2.3", "badge bad"},
			"None was run",
		},
		{"unread", nil, []string{"Cannot read the report"}, "cut off"},
	} {
		if c.last != nil {
			musttest.Do(t, selftest.Keep(t.Context(), f.db, c.last))
		} else if _, err := f.db.Exec(t.Context(), "UPDATE selftest SET report = 'cut off'"); err != nil {
			t.Fatal(err)
		}
		body := v.get(t, "/console/settings").Body.String()
		body = strings.Join(strings.Fields(body), " ")
		for _, want := range c.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q", c.name, want)
			}
		}
		if strings.Contains(body, c.not) {
			t.Errorf("%s: %q is shown", c.name, c.not)
		}
	}
}

// What the page of an upload offers is what the API would let its caller do.
func TestDecisionsOffered(t *testing.T) {
	f := open(t, nil)
	up := `{"id":"up","version":"1.0.0","state":"enabled","enabled":true,"input_schema":{"type":"object"}}`
	f.answers["GET /skills/up"], f.answers["GET /skills/up/versions"] = up, `{"data":[`+up+`],"next":null}`
	for scope, want := range map[string]string{
		"":                 "",
		skill.ScopeUpload:  "disable rollback delete",
		skill.ScopeAdmin:   "disable rollback approve delete",
		skill.ScopeInvoke:  "",
		skill.ScopeMetrics: "",
	} {
		f.addKey(t, "one", "acme", append([]string{skill.ScopeRead}, strings.Fields(scope)...)...)
		body := f.signedIn(t, "one").get(t, "/console/skills/up").Body.String()
		for action := range decisions {
			if offered := strings.Contains(body, `action="/console/skills/up/`+action+`"`); offered != strings.Contains(want, action) {
				t.Errorf("with %q, %s is offered: %v", scope, action, offered)
			}
		}
	}
}
