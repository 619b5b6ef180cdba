package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/agent"
	"openskill/host/api"
	"openskill/host/records"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestTheTableIsTheContract: openapi.yaml has every row of the table and no
// other operation, each with the same scopes.
func TestTheTableIsTheContract(t *testing.T) {
	doc := musttest.Get(contract())(t)
	said := doc.operations()
	for _, r := range api.Routes() {
		name := r.Method + " " + r.Path
		op := said[name]
		delete(said, name)
		if op == nil {
			if !strings.HasPrefix(r.Path, "/docs/") && r.Path != "/console/upload" { // the files of a page, and one of the pages
				t.Errorf("openapi.yaml has no %s", name)
			}
			continue
		}
		var scopes []string
		list, _ := op["x-scopes"].([]any)
		for _, s := range list {
			scopes = append(scopes, fmt.Sprint(s))
		}
		security, own := op["security"].([]any)
		open := own && len(security) == 0
		if !slices.Equal(scopes, r.Scopes) || open != r.Open() || r.Open() == (len(r.Scopes) > 0) {
			t.Errorf("%s: openapi.yaml has the scopes %q and open %v, the table %q and %v", name, scopes, open, r.Scopes, r.Open())
		}
		for _, s := range r.Scopes {
			if bare := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(s, ":*"), ":{id}"), ":{name}"); !skill.ValidScope(bare) {
				t.Errorf("%s: %q is no scope", name, s)
			}
		}
	}
	for name := range said {
		t.Errorf("the table has no %s", name)
	}
}

// TestMethodsOfPaths: a path is of a route as the table writes it, and of no other.
func TestMethodsOfPaths(t *testing.T) {
	const get = "GET, HEAD, OPTIONS"
	w := newWorld(t)
	for path, want := range map[string]string{
		"/skills": "GET, HEAD, POST, OPTIONS", "/skills/": "GET, HEAD, POST, OPTIONS", "/skills/echo": "GET, HEAD, PATCH, DELETE, OPTIONS",
		"/skills/echo:enable": "POST, OPTIONS", "/skills/echo:disable": "POST, OPTIONS", "/skills/echo:approve": "POST, OPTIONS", "/skills/echo:rollback": "POST, OPTIONS",
		"/skills/echo/versions/1.0.0": "GET, HEAD, DELETE, OPTIONS", "/skills/echo/versions/1.0.0+b": "GET, HEAD, DELETE, OPTIONS",
		"/skills/echo/versions/": "GET, HEAD, OPTIONS", "/skills/echo/versions/a/b": "", "/skills/echo/versions/1.0.0:enable": "GET, HEAD, DELETE, OPTIONS", "/skills/:enable": "",
		"/skills/echo/versions": "GET, HEAD, OPTIONS", "/skills/echo:invoke": "POST, OPTIONS", "/docs": "GET, HEAD, OPTIONS",
		"/docs/docs.js": "GET, HEAD, OPTIONS",
		"/agent-skills": get, "/agent-skills/": get, "/agent-skills/x": get, "/agent-skills/x:y": "", "/agent-skills/x/grant": get, "/agent-skills/x:allow": "POST, OPTIONS", "/agent-skills/x:revoke": "POST, OPTIONS", "/agent-skills/x/": get, "/agent-skills//resources/y": "",
		"/agent-skills/x/resources": "", "/agent-skills/x/resources/": "", "/agent-skills/x/resources/y/z": get, "/agent-skills/x/others/y": "",
		"/agent-skills/x/scripts/y": "", "/agent-skills/x/scripts/y:run": "POST, OPTIONS", "/agent-skills/x/scripts/y/z:run": "POST, OPTIONS",
		"/agent-skills/x/scripts/y:run/": "POST, OPTIONS", "/agent-skills/x/scripts/:run": "", "/agent-skills/x:y/scripts/z:run": "POST, OPTIONS",
		"/agent/chat": "POST, OPTIONS", "/agent/conversations": get, "/agent/conversations/x": "GET, HEAD, DELETE, OPTIONS", "/agent/conversations/x:approve": "POST, OPTIONS",
		"/agent/conversations/x:deny": "", "/agent/conversations/:approve": "", "/agent/conversations/x/y": "", "/agent": "", "/agent/chat/x": "",
		"/api/agent/execute": "POST, OPTIONS", "/api/agent/execute/x": "",
		"/tools": get, "/tools/x": "", "/approvals": get, "/approvals/x": get, "/approvals/x/y": "", "/approvals/x:approve": "POST, OPTIONS",
		"/approvals/x:deny": "POST, OPTIONS", "/approvals/x:other": "", "/approvals/:deny": "", "/mcp": "GET, POST, DELETE, OPTIONS", "/mcp/x": "",
		"": "", "/": "", "//": "", "/skills//versions": "", "/skills/:invoke": "", "/skills/a/b:invoke": "", "/skills/echo:run": "",
		"/skills/echo/other": "", "/skill": "", "/Skills": "", "/docs/other.js": "", "/docs/": "GET, HEAD, OPTIONS",
	} {
		if path == "" || strings.HasPrefix(path, "//") { // a client asks for / then, or for another host
			continue
		}
		resp, _ := w.plain(t, "nobody", request{method: "OPTIONS", path: path})
		if got := resp.Header.Get("Allow"); got != want {
			t.Errorf("%q allows %q, want %q", path, got, want)
		}
	}
}

// request is one that there is an answer to.
type request struct {
	method, path, body string
	header             []string
}

// things are what requests name: those of our tenant, or others that there are not.
type things struct{ skill, version, execution, artifact, approval, conversation, file, space, schedule string }

// requestFor makes a request for a route, about these things.
func requestFor(t testing.TB, r api.Route, about things) request {
	t.Helper()
	out := request{method: r.Method}
	out.path = strings.NewReplacer(
		"/v1/skills/{id}/versions/{version}", "/v1/skills/skill_"+about.skill+"/versions/1.0.0", "/v1/skills/{id}", "/v1/skills/skill_"+about.skill, "/v1/files/{id}", "/v1/files/file-"+about.file,
		"/files/{id}", "/files/"+about.file, "/workspaces/{id}", "/workspaces/"+about.space, "/schedules/{name}", "/schedules/"+about.schedule, "/webhooks/{name}", "/webhooks/"+about.schedule,
		"/executions/{id}", "/executions/"+about.execution, "/approvals/{id}", "/approvals/"+about.approval, "{session_id}", about.execution,
		"/conversations/{id}", "/conversations/"+about.conversation, "{id}", about.skill, "{name}", "unit-converter", "protected-resource/{path}", "protected-resource/mcp", "{path}", "references/conversion-table.md", "{script}", "convert.py",
		"{version}", about.version, "{artifact}", about.artifact,
	).Replace(r.Path)
	switch r.Method + " " + r.Path {
	case "POST /skills/{id}:invoke":
		out.body = `{"input":{"text":"x"}}`
	case "POST /skills":
		body, ct := form(t, part{name: "archive", content: "x"})
		out.body, out.header = body, []string{"Content-Type", ct}
	case "POST /v1/skills", "POST /v1/skills/{id}/versions":
		body, ct := form(t, part{header: `Content-Disposition: form-data; name="files[]"; filename="a/SKILL.md"`, content: "x"})
		out.body, out.header = body, []string{"Content-Type", ct}
	case "POST /v1/skills/{id}":
		out.body = `{"default_version":"1.0.0"}`
	case "POST /v1/files":
		body, ct := form(t, part{header: `Content-Disposition: form-data; name="file"; filename="a.txt"`, content: "x"})
		out.body, out.header = body, []string{"Content-Type", ct}
	case "PATCH /skills/{id}":
		out.body, out.header = `{"description":"changed"}`, []string{"Content-Type", "application/json"}
	case "POST /agent-skills/{name}:allow":
		out.body = `{"digest":"sha256:1"}`
	case "POST /workspaces/{id}:fork":
		out.body = `{"id":"f-` + about.execution + `"}`
	case "POST /schedules":
		out.body = `{"name":"s-` + about.execution + `","skill":"` + about.skill + `","cron":"@yearly"}`
	case "POST /webhooks":
		out.body = `{"name":"w","url":"https://refused.example.com/"}`
	case "POST /agent/chat":
		out.body = `{"message":"go on","conversation_id":"` + about.conversation + `"}`
	case "POST /code:run":
		out.body = `{"language":"python","code":"1"}`
	case "POST /api/agent/execute":
		out.body = `{"task":"look"}`
	case "POST /mcp":
		out.body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
		out.header = []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}
	}
	return out
}

// send makes a request of a caller, without looking at more of the answer than asked.
func (w *world) send(t testing.TB, key string, r request) (*http.Response, []byte) {
	t.Helper()
	if strings.HasPrefix(r.path, "/mcp") {
		return w.plain(t, key, r)
	}
	return w.as(t, key, r.method, r.path, r.body, r.header...)
}

// TestWhoIsLetIn walks every route with every kind of caller, and writes down how each is
// answered. What the table opens is not refused for its scopes, and the rest is.
func TestWhoIsLetIn(t *testing.T) {
	w := newWorld(t)
	kinds := []string{"nobody", "anonymous"}
	w.keys["anonymous"] = skill.Principal{ID: "anonymous", Type: skill.Anonymous, Tenant: "anonymous"}
	ann := w.keys["ann"]
	for _, scope := range append(skill.Scopes(), skill.ScopeInvoke+":mark-skill") {
		p := ann
		p.Scopes = []string{scope}
		w.keys[scope] = p
		kinds = append(kinds, scope)
	}
	kinds = append(kinds, "bob", "operator")

	var table bytes.Buffer
	tw := tabwriter.NewWriter(&table, 0, 1, 1, ' ', 0)
	row := func(first string, cells []string) {
		_, _ = fmt.Fprintln(tw, first+"\t"+strings.Join(cells, "\t")) // into memory
	}
	row("", kinds)
	for i, r := range api.Routes() {
		var cells []string
		for k, kind := range kinds {
			about := w.ours(t, fmt.Sprintf("%d-%d", i, k))
			req := requestFor(t, r, about)
			resp, body := w.send(t, kind, req)
			status := resp.StatusCode
			cells = append(cells, fmt.Sprint(status))
			p := w.keys[kind]
			subject := about.skill
			if strings.Contains(r.Path, "{name}") {
				subject = "unit-converter"
			}
			refused := 403
			if p.Type == skill.Anonymous {
				refused = 401
			}
			switch {
			case r.Open() && status != 200, !r.Open() && kind == "nobody" && status != 401, kind == "operator" && (status == 401 || status == 403):
				t.Errorf("%s %s by %s: %d %s", r.Method, r.Path, kind, status, body)
			case !r.Open() && p.ID != "" && !r.LetsIn(p, subject) && status != refused:
				t.Errorf("%s %s by %s: %d, and it is not open to that one: %s", r.Method, r.Path, kind, status, body)
			}
		}
		row(r.Method+" "+r.Path, cells)
	}
	musttest.Do(t, tw.Flush())
	const file = "testdata/access.txt"
	if *update {
		musttest.Do(t, os.WriteFile(file, table.Bytes(), 0o644))
		return
	}
	want := musttest.Get(os.ReadFile(file))(t)
	if diff := cmp.Diff(string(want), table.String()); diff != "" {
		t.Errorf("run with -update after checking:\n%s", diff)
	}
}

// ours makes things of our tenant that nobody has used yet.
func (w *world) ours(t *testing.T, word string) things {
	t.Helper()
	sum := sha256.Sum256([]byte("mark " + word))
	if resp, body := w.as(t, "ann", "POST", "/files?name=mark-"+word, "mark "+word); resp.StatusCode != 201 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	space, leave, err := w.spaces.Enter(t.Context(), w.keys["ann"], "mark-space", time.Minute)
	musttest.Do(t, err)
	musttest.Do(t, w.spaces.Save(t.Context(), w.keys["ann"], space, &records.WorkspaceChange{Written: []skill.Artifact{{Name: "mark.txt", Data: []byte("mark")}}}))
	leave()
	for path, body := range map[string]string{"/schedules": `"skill":"mark-skill","cron":"@yearly"`, "/webhooks": `"url":"https://mark.example.com/"`} {
		if resp, body := w.as(t, "ann", "POST", path, `{"name":"mark-schedule",`+body+`}`); resp.StatusCode != 201 && resp.StatusCode != 409 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
	}
	return things{
		space: "mark-space", schedule: "mark-schedule",
		file:  hex.EncodeToString(sum[:]),
		skill: "mark-skill", version: "1.0.0-mark", artifact: "mark/of%20a+b.csv",
		execution:    w.run(t, "ann", "mark-skill", `{"mark":"`+word+`"}`),
		approval:     askFor(t, w.approvals, ours, "mark-asker", "sha256:mark-"+word),
		conversation: w.chat.Add(w.keys["ann"], "mark "+word, agent.Awaited{ApprovalID: "mark-approval", ToolCallID: "call_1", SkillID: "mark-skill"}),
	}
}

// nothings are as many things that there are not.
func nothings() things {
	return things{file: strings.Repeat("4e", 32), space: "kram-space", schedule: "kram-schedule", skill: "kram-skill", version: "1.0.0-kram", artifact: "kram/of%20a+b.csv", execution: storetest.ExecutionID(0xffffff), approval: storetest.ExecutionID(0xeeeeee), conversation: storetest.ExecutionID(0xdddddd)}
}

// A03: another tenant that asks for what is ours, by every route and every way to name it,
// is answered to the byte as if there were no such thing; and in no list is a word of it.
func TestAnotherTenantFindsNothing(t *testing.T) {
	w := newWorld(t)
	own, none := w.ours(t, "secret"), nothings()
	resp, body := w.as(t, "ann", "GET", "/executions?limit=1", "")
	w.ours(t, "second")
	_, page := w.as(t, "ann", "GET", "/executions?limit=1", "")
	cursor := between(string(page), `"next":`, "}")
	if resp.StatusCode != 200 || !bytes.Contains(body, []byte("mark-ann")) || cursor == "" || cursor == "null" {
		t.Fatalf("ours: %d %s, cursor %s", resp.StatusCode, body, cursor)
	}
	session := w.mcpSession(t, "ann")
	w.as(t, "bob", "POST", "/skills/echo:invoke", `{"input":{"text":"x"}}`) // so that it has something of its own

	same := strings.NewReplacer(none.skill, own.skill, none.version, own.version, none.execution, own.execution, none.approval, own.approval, none.conversation, own.conversation, none.file, own.file, "kram", "mark")
	ask := func(theirs, none request) {
		t.Helper()
		var answers [2]string
		for i, r := range []request{theirs, none} {
			resp, body := w.send(t, "bob", request{r.method, r.path, r.body, append(r.header, "X-Trace-Id", "trace-of-bob")})
			resp.Header.Del("Date")
			answers[i] = fmt.Sprintf("%d %v %s", resp.StatusCode, resp.Header, body)
		}
		if other := same.Replace(answers[1]); other != answers[0] && !strings.Contains(answers[0], "Mcp-Session-Id") {
			t.Errorf("%s %s tells that there is something:\n%.2000s\nand for what there is not:\n%.2000s", theirs.method, theirs.path, answers[0], answers[1])
		}
		said := strings.Contains(strings.ToLower(theirs.path+theirs.body), "mark")
		if !strings.Contains(theirs.path, own.execution) && strings.Contains(answers[0], own.execution) {
			t.Errorf("%s %s names it: %.2000s", theirs.method, theirs.path, answers[0])
		}
		if !said && strings.Contains(strings.ReplaceAll(strings.ToLower(answers[0]), "markdown", ""), "mark") {
			t.Errorf("%s %s has a word of it: %.2000s", theirs.method, theirs.path, answers[0])
		}
	}
	for _, r := range api.Routes() {
		if r.Open() || r.Path == "/skills" && r.Method == "POST" {
			continue // they are the same for all, and name nothing
		}
		ask(requestFor(t, r, own), requestFor(t, r, none))
	}
	for _, query := range []string{"trace=trace-mark-ann", "session=" + own.execution, "principal=mark-ann", "skill=mark-skill", "tenant=" + ours, "limit=100", "cursor=" + cursorQuery(cursor)} {
		for _, path := range []string{"/executions?", "/skills?", "/approvals?", "/files?", "/workspaces?", "/schedules?", "/webhooks?", "/agent/conversations?"} {
			r := request{method: "GET", path: path + query}
			n := request{method: "GET", path: path + strings.NewReplacer("mark", "kram", own.execution, none.execution).Replace(query)}
			ask(r, n)
		}
	}
	for _, body := range []string{`"method":"tools/list"`, `"method":"tools/call","params":{"name":"mark-skill","arguments":{}}`} {
		resp, got := w.plain(t, "bob", request{"POST", "/mcp", `{"jsonrpc":"2.0","id":2,` + body + `}`, []string{
			"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Mcp-Session-Id", session,
		}})
		if resp.StatusCode != 404 || bytes.Contains(got, []byte("mark")) {
			t.Errorf("the session of ann: %d %s", resp.StatusCode, got)
		}
		bobs := w.mcpSession(t, "bob")
		resp, got = w.plain(t, "bob", request{"POST", "/mcp", `{"jsonrpc":"2.0","id":2,` + body + `}`, []string{
			"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Mcp-Session-Id", bobs,
		}})
		if text := strings.ReplaceAll(string(got), "mark-skill", ""); resp.StatusCode != 200 || strings.Contains(text, "mark") || strings.Contains(body, "list") != strings.Contains(text, "echo") {
			t.Errorf("a session of bob: %d %s", resp.StatusCode, got)
		}
	}
	if v, status := w.view(t, "ann", own.execution); status != 200 || v.Status != "success" || len(v.Artifacts) != 1 || !*v.Artifacts[0].Kept {
		t.Errorf("ours afterwards: %d %+v", status, v)
	}
	if n := len(w.uploads.Decisions()); n > 0 {
		t.Errorf("bob has decided about ours: %+v", w.uploads.Decisions())
	}
}

// between gives what is between two words.
func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	if i := strings.LastIndex(s, to); i >= 0 {
		s = s[:i]
	}
	return s
}

// cursorQuery is a cursor, as JSON has it, in a query.
func cursorQuery(text string) string {
	text = strings.ReplaceAll(strings.Trim(text, `"`), `\"`, `"`)
	return strings.NewReplacer("{", "%7B", "}", "%7D", `"`, "%22", ",", "%2C", ":", "%3A").Replace(text)
}

// mcpSession begins a session of MCP.
func (w *world) mcpSession(t testing.TB, key string) string {
	t.Helper()
	resp, body := w.plain(t, key, requestFor(t, api.Route{Method: "POST", Path: "/mcp"}, things{}))
	session := resp.Header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatalf("no session: %d %s", resp.StatusCode, body)
	}
	return session
}
