package app

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"openskill/host/api"
	"openskill/internal/musttest"

	"openskill/host/identity"
	"openskill/sdk/skill"
)

// varies is what two answers to the same question differ in.
var varies = regexp.MustCompile(`"(latency_ms|execution_id|timestamp|trace_id|request_id)":("[^"]*"|\d+)`)

// asks is a tenant's client.
type asks struct {
	*serving
	key string
}

// ask gives the status and the body of an answer.
func (a asks) ask(t *testing.T, method, path, contentType, body string) (int, string) {
	t.Helper()
	req := musttest.Get(http.NewRequestWithContext(t.Context(), method, a.url+path, strings.NewReader(body)))(t)
	req.Close = true
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("X-Api-Key", a.key)
	req.Header.Set("X-Trace-Id", "trace-of-"+a.key[4:8])
	res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req)
	musttest.Do(t, err)
	defer res.Body.Close()
	b := musttest.Get(io.ReadAll(res.Body))(t)
	return res.StatusCode, string(b)
}

// want asks and reads the answer, which must have a status.
func (a asks) want(t *testing.T, status int, method, path, body string) answer {
	t.Helper()
	got, text := a.ask(t, method, path, "application/json", body)
	var out answer
	if err := json.Unmarshal([]byte(text), &out); err != nil || got != status {
		t.Fatalf("%s %s: %d %s, want %d", method, path, got, text, status)
	}
	return out
}

// Two tenants of one host, with everything of it behind its edge: what is one's is
// answered to the other, on every route and by every name of it, as what there is not.
func TestTenantsFindNothingOfEachOther(t *testing.T) {
	s := settings(t, map[string]string{"auth": "required", "script-approval": "version", "audit-payload": "full"})
	scripts := filepath.Join(s.SkillsDir, "asker", "scripts")
	musttest.Do(t, os.MkdirAll(scripts, 0o700))
	for name, text := range map[string]string{"SKILL.md": "---\nname: asker\ndescription: Asks.\n---\nRun it.\n", "scripts/ask.py": "print(1)\n"} {
		musttest.Do(t, os.WriteFile(filepath.Join(s.SkillsDir, "asker", name), []byte(text), 0o600))
	}
	var scopes []string
	for _, scope := range skill.Scopes() {
		if scope != skill.ScopeHost && scope != skill.ScopeAdmin && scope != skill.ScopeMetrics {
			scopes = append(scopes, scope)
		}
	}
	db, err := OpenStore(t.Context(), s, slog.New(slog.DiscardHandler))
	musttest.Do(t, err)
	defer db.Close()
	keys := map[string]string{}
	for _, tenant := range []string{"mark-a", "b"} {
		if _, keys[tenant], err = identity.NewKeys(identity.NewKeyStore(db)).Create(t.Context(), identity.NewKey{Name: "of " + tenant, Tenant: tenant, Scopes: scopes, By: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	v := serve(t, s)
	go func() {
		for v.log.Scan() { // nobody reads it
		}
	}()
	ann, bob := asks{v, keys["mark-a"]}, asks{v, keys["b"]}
	if status, text := (asks{v, keys["b"][:len(keys["b"])-1] + "x"}).ask(t, "GET", "/skills", "", ""); status != 401 {
		t.Fatalf("another key: %d %s", status, text)
	}

	// What is ours.
	archive := zipped(t, map[string]string{"skill.yaml": manifestOf("markskill", "1.0.0", wasiEntry), "m.wasm": string(says(`{"mark": "ours"}`, 0))})
	ann.uploads(t, archive)
	ann.want(t, 200, "POST", "/skills/markskill:enable", "{}")
	run := ann.want(t, 200, "POST", "/skills/markskill:invoke", `{"input": {"mark": "ours"}}`).Meta.ExecutionID
	refused := ann.want(t, 403, "POST", "/agent-skills/asker/scripts/ask.py:run", `{"args": ["mark"]}`)
	approval, _ := refused.Error.Details["approval_id"].(string)
	if run == "" || approval == "" {
		t.Fatalf("execution %q, approval %q: %+v", run, approval, refused.Error)
	}
	for _, path := range []string{"/executions/" + run, "/approvals/" + approval, "/api/agent/executions/" + run} {
		if status, text := ann.ask(t, "GET", path, "", ""); status != 200 || !strings.Contains(text, "mark") {
			t.Fatalf("ours: %s: %d %s", path, status, text)
		}
	}

	nothing := strings.NewReplacer("mark", "kram", run, "01a202dd-0000-7000-8000-000000000000", approval, "01a202dd-0000-7000-8000-000000000001")
	same := func(method, path, contentType, body string) {
		t.Helper()
		if strings.HasPrefix(path, "/mcp") {
			return // it names nothing in its path; the test of the edge has its sessions
		}
		status, got := bob.ask(t, method, path, contentType, body)
		wantStatus, want := bob.ask(t, method, nothing.Replace(path), contentType, nothing.Replace(body))
		back := strings.NewReplacer("kram", "mark", "01a202dd-0000-7000-8000-000000000000", run, "01a202dd-0000-7000-8000-000000000001", approval)
		if a, b := varies.ReplaceAllString(got, ""), back.Replace(varies.ReplaceAllString(want, "")); status != wantStatus || a != b {
			t.Errorf("%s %s tells that there is something:\n%d %s\nand for what there is not:\n%d %s", method, path, status, got, wantStatus, want)
		}
		if !strings.Contains(path+body, "mark") && strings.Contains(strings.ReplaceAll(got, "markdown", ""), "mark") || !strings.Contains(path, run) && strings.Contains(varies.ReplaceAllString(got, ""), run) {
			t.Errorf("%s %s has a word of it: %s", method, path, got)
		}
	}
	names := strings.NewReplacer(
		"/executions/{id}", "/executions/"+run, "/approvals/{id}", "/approvals/"+approval, "{session_id}", run, "{id}", "markskill",
		"{name}", "asker", "{path}", "scripts/ask.py", "{script}", "none.py", "{version}", "1.0.0", "{artifact}", "mark.csv",
	)
	for _, r := range api.Routes() {
		if r.Open() || r.Method+r.Path == "POST/skills" {
			continue
		}
		body := ""
		if strings.HasSuffix(r.Path, ":invoke") {
			body = `{"input": {}}`
		}
		same(r.Method, names.Replace(r.Path), "application/json", body)
	}
	for _, query := range []string{"trace=trace-of-" + keys["mark-a"][4:8], "session=" + run, "skill=markskill", "tenant=mark-a", "principal=mark", "limit=100", "status=success"} {
		same("GET", "/executions?"+query, "", "")
		same("GET", "/skills?"+query, "", "")
	}
	if status, text := ann.ask(t, "GET", "/search?q=markskill", "", ""); status != 200 || !strings.Contains(text, `"name":"markskill"`) {
		t.Errorf("ours is not found: %d %s", status, text)
	}
	same("GET", "/search?q=markskill+asker&limit=20", "", "")
	for _, action := range []string{"enable", "disable", "rollback"} {
		same("POST", "/skills/markskill:"+action, "application/json", `{"tenant": "mark-a", "version": "1.0.0"}`)
	}
	if got := ann.want(t, 200, "POST", "/skills/markskill:invoke", `{"input": {}}`); got.Meta.Version != "1.0.0" {
		t.Errorf("ours afterwards: %+v", got)
	}

	// A key that is revoked is good for nothing within a second.
	id := strings.Split(keys["b"], "_")[1]
	musttest.Get(identity.NewKeys(identity.NewKeyStore(db)).Revoke(t.Context(), id))(t)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if status, _ := bob.ask(t, "GET", "/skills", "", ""); status == 401 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a revoked key is still good")
		}
	}
}

// uploads posts an archive.
func (a asks) uploads(t *testing.T, archive []byte) {
	t.Helper()
	var b bytes.Buffer
	contentType := multipartOf(t, &b, archive)
	if status, text := a.ask(t, "POST", "/skills", contentType, b.String()); status != 201 {
		t.Fatalf("the upload: %d %s", status, text)
	}
}

// multipartOf writes an upload, and gives its type.
func multipartOf(t *testing.T, to io.Writer, archive []byte) string {
	t.Helper()
	w := multipart.NewWriter(to)
	p, err := w.CreateFormFile("archive", "archive")
	if err == nil {
		_, err = p.Write(archive)
	}
	if err == nil {
		err = w.Close()
	}
	musttest.Do(t, err)
	return w.FormDataContentType()
}
