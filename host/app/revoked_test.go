package app

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"openskill/host/agent/llm/llmtest"
	"openskill/host/app/config"
	"openskill/host/identity"
	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// working is a host with a skill that takes 10 s, whose callers show keys and JWTs.
type working struct {
	*serving
	db   *store.DB
	keys *identity.Keys
	ends chan end
	due  int
}

// end is the end of a request.
type end struct{ what, answer string }

const jwtSecret = "0123456789abcdef0123456789abcdef"

func working10s(t *testing.T, s *config.Settings) *working {
	t.Helper()
	addSkills(t, s.SkillsDir, map[string]string{"slowly": `{"said": "at last"}`})
	db := musttest.Get(OpenStore(t.Context(), s, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() { _ = db.Close() })
	w := &working{db: db, keys: ManageKeys(db, skill.Local()), ends: make(chan end, 16)}
	w.serving = serve(t, s)
	go func() {
		for w.log.Scan() { // nobody reads it
		}
	}()
	return w
}

func workingSettings(t *testing.T) *config.Settings {
	t.Helper()
	model, err := llmtest.New(llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "slow task"}, Say: `{"thought": "next", "action": {"type": "skill_call", "skill": "slowly", "params": {"text": "x"}}}`},
		{Calls: []llmtest.Call{{Name: "slowly", Arguments: `{"text": "x"}`}}},
	}})
	musttest.Do(t, err)
	s := settings(t, map[string]string{
		"auth": "required", "jwt-issuer": "test", "jwt-audience": "test",
		"openai-api-base": llmtest.NewServer(model, nil).Start(t) + "/v1", "openai-model": "scripted",
	})
	s.JWTSecret = jwtSecret // which has no flag
	return s
}

func (w *working) newKey(t *testing.T, life time.Duration) (id, text string) {
	t.Helper()
	k, text, err := w.keys.Create(t.Context(), identity.NewKey{Name: "found", Tenant: "acme", Scopes: skill.Scopes(), Life: life, By: "test"})
	musttest.Do(t, err)
	return k.ID, text
}

// ask sends a request, and returns when it is answered or a stream begins.
func (w *working) ask(t *testing.T, key, method, path, body string, headers ...string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Close = true
	for i, h := 0, append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}, headers...); i < len(h); i += 2 {
		req.Header.Set(h[i], h[i+1])
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req)
}

func (w *working) answer(t *testing.T, key, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	res, err := w.ask(t, key, method, path, body, headers...)
	musttest.Do(t, err)
	defer res.Body.Close()
	b := musttest.Get(io.ReadAll(res.Body))(t)
	return res, string(b)
}

// start sends a request whose end wait tells.
func (w *working) start(t *testing.T, key, what, method, path, body string, headers ...string) {
	t.Helper()
	w.due++
	go func() {
		res, err := w.ask(t, key, method, path, body, headers...)
		if err != nil {
			w.ends <- end{what, err.Error()}
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body) // a stream may be cut off
		w.ends <- end{what, res.Status + " " + string(b)}
	}()
}

// running waits until so many calls are on record and have not ended.
func (w *working) running(t *testing.T, n int) (ids []string) {
	t.Helper()
	for until := time.Now().Add(8 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		list, _, err := records.NewStore(w.db).Executions(t.Context(), records.Query{Tenant: "acme", Status: records.Running, Limit: 100})
		musttest.Do(t, err)
		if len(list) == n {
			for _, e := range list {
				ids = append(ids, e.ExecutionID)
			}
			return ids
		}
		select {
		case e := <-w.ends:
			t.Fatalf("%s ended before the credentials did: %s", e.what, e.answer)
		default:
		}
		if time.Now().After(until) {
			t.Fatalf("%d calls run, want %d", len(list), n)
		}
	}
}

// refused waits until all requests have ended, and looks how, and at the records of the calls.
func (w *working) refused(t *testing.T, calls []string) {
	t.Helper()
	late := time.After(6 * time.Second) // two are the promise, and ten what the calls would take
	for ; w.due > 0; w.due-- {
		select {
		case e := <-w.ends:
			if !strings.Contains(e.what, "stream of") && !strings.Contains(e.answer, string(skill.Unauthorized)) || strings.Contains(e.answer, "at last") {
				t.Errorf("%s ended with %s", e.what, e.answer)
			}
		case <-late:
			t.Fatalf("%d requests go on", w.due)
		}
	}
	for _, id := range calls {
		for {
			e := musttest.Get(records.NewStore(w.db).Execution(t.Context(), "acme", id))(t)
			if e.Finished != nil {
				if e.Finished.Status != records.Terminated || e.Finished.Code != skill.Unauthorized {
					t.Errorf("on record: %s %s", e.Finished.Status, e.Finished.Code)
				}
				break
			}
			select {
			case <-late:
				t.Fatal("a call goes on")
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

const (
	slowCall = `{"input": {"text": "x"}}`
	slowTool = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slowly","arguments":{"text":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	toolCall = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slowly","arguments":{"text":"x"}}}`
	hello    = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
)

// A key is revoked through the database, as the command line does it, while work of all kinds
// is under way.
func TestRevocationEndsWorkUnderWay(t *testing.T) {
	w := working10s(t, workingSettings(t))
	id, key := w.newKey(t, 0)
	begun, body := w.answer(t, key, "POST", "/mcp", hello)
	session := begun.Header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatalf("no session: %s", body)
	}
	signed, body := w.answer(t, "", "POST", "/console/signin", url.Values{"credential": {key}}.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	if len(signed.Cookies()) == 0 {
		t.Fatalf("not signed in: %s %s", signed.Status, body)
	}
	cookie := signed.Cookies()[0].Name + "=" + signed.Cookies()[0].Value
	_, page := w.answer(t, "", "GET", "/console/chat", "", "Cookie", cookie)
	token := regexp.MustCompile(`data-csrf="([^"]+)"`).FindStringSubmatch(page)
	if token == nil {
		t.Fatalf("no token: %s", page)
	}
	if long, body := w.answer(t, key, "POST", "/skills/slowly:invoke", slowCall, "Prefer", "respond-async"); long.StatusCode != http.StatusAccepted {
		t.Fatalf("%s: %s", long.Status, body)
	}

	taskTool := strings.Replace(slowTool, `clientCapabilities":{}`, `clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, 1)
	if task, body := w.answer(t, key, "POST", "/mcp", taskTool, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "slowly"); !strings.Contains(body, `"resultType":"task"`) {
		t.Fatalf("%s: %s", task.Status, body)
	}

	w.start(t, key, "the call", "POST", "/skills/slowly:invoke", slowCall)
	w.start(t, key, "the turn", "POST", "/agent/chat", `{"message": "go"}`, "Accept", "application/json")
	w.start(t, key, "the streamed turn", "POST", "/agent/chat", `{"message": "go", "stream": true}`)
	w.start(t, key, "the task", "POST", "/api/agent/execute", `{"task": "slow task"}`)
	w.start(t, key, "the call over MCP", "POST", "/mcp", toolCall, "Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-06-18")
	w.start(t, key, "the call over MCP without a session", "POST", "/mcp", slowTool, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "slowly")
	w.start(t, key, "the stream of MCP", "GET", "/mcp", "", "Mcp-Session-Id", session, "Accept", "text/event-stream")
	w.start(t, "", "the turn of the console", "POST", "/console/chat/stream", url.Values{"csrf": {token[1]}, "message": {"go"}}.Encode(),
		"Cookie", cookie, "Content-Type", "application/x-www-form-urlencoded")
	w.start(t, "", "the stream of the console", "GET", "/console/executions/live", "", "Cookie", cookie, "Accept", "text/event-stream")
	calls := w.running(t, 9)
	musttest.Get(w.keys.Revoke(t.Context(), id))(t)
	w.refused(t, calls)
}

// Credentials end by themselves too.
func TestExpiryEndsWorkUnderWay(t *testing.T) {
	w := working10s(t, workingSettings(t))
	const soon = 3 * time.Second
	for what, credential := range map[string]func() (text string, after func()){
		"a key that expires": func() (string, func()) {
			_, text := w.newKey(t, soon)
			return text, func() {}
		},
		"a key that is rotated": func() (string, func()) {
			id, text := w.newKey(t, 0)
			return text, func() {
				if _, _, err := w.keys.Rotate(t.Context(), id, 0); err != nil {
					t.Fatal(err)
				}
			}
		},
		"a JWT that expires": func() (string, func()) {
			enc := base64.RawURLEncoding.EncodeToString
			text := enc([]byte(`{"alg":"HS256"}`)) + "." + enc(fmt.Appendf(nil, `{"iss":"test","aud":"test","sub":"ann","tenant":"acme","exp":%d,"scope":"%s"}`, time.Now().Add(soon-clockSkew).Unix(), strings.Join(skill.Scopes(), " ")))
			h := hmac.New(sha256.New, []byte(jwtSecret))
			h.Write([]byte(text))
			return text + "." + enc(h.Sum(nil)), func() {}
		},
	} {
		t.Run(what, func(t *testing.T) {
			text, after := credential()
			w.start(t, text, "the call", "POST", "/skills/slowly:invoke", slowCall)
			calls := w.running(t, 1)
			after()
			w.refused(t, calls)
		})
	}
}

// On one of two hosts on one database a key is revoked by its console, and work ends on the
// other one.
func TestRevocationEndsWorkOnOtherHosts(t *testing.T) {
	pgtest.Need(t)
	s := workingSettings(t)
	s.DatabaseURL = pgtest.Start(t)
	w := working10s(t, s)
	other := musttest.Get(store.Open(t.Context(), store.Options{URL: s.DatabaseURL}))(t)
	defer other.Close()
	id, key := w.newKey(t, 0)
	w.start(t, key, "the call", "POST", "/skills/slowly:invoke", slowCall)
	calls := w.running(t, 1)
	musttest.Get(ManageKeys(other, skill.Local()).Revoke(t.Context(), id))(t)
	w.refused(t, calls)
}
