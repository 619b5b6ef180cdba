package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/host/identity"
	"openskill/host/mcp"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// tenant is a caller of a tenant who shows its own name as key.
func tenant(name string, scopes ...string) skill.Principal {
	return skill.Principal{ID: name + "-caller", Type: skill.Agent, Tenant: name, Scopes: scopes, Key: name + "-key"}
}

// tellsCaller is a door that notes whom each call was for.
type tellsCaller struct {
	*apitest.Door
	mu  sync.Mutex
	who []skill.Principal
}

func (d *tellsCaller) Invoke(ctx context.Context, p skill.Principal, r skill.Request) *skill.Result {
	d.mu.Lock()
	d.who = append(d.who, p)
	d.mu.Unlock()
	return d.Door.Invoke(ctx, p, r)
}

// A06: three tenants on one connection, each with its own rights, and now and then one
// who is nobody.
func TestEachRequestHasItsOwnCaller(t *testing.T) {
	keys := apitest.Keys{}
	for _, name := range []string{"a", "bb", "ccc"} {
		keys[strings.Repeat(name, 20)] = tenant(name, skill.ScopeInvoke)
	}
	door := &tellsCaller{Door: apitest.NewDoor()}
	s := start(t, func(o *api.Options) { o.Authenticate, o.Door = keys.Authenticate, door })
	c := s.dial(t)
	var want []string
	for i := range 90 {
		name := []string{"a", "bb", "ccc"}[i%3]
		shown := "X-API-Key: " + strings.Repeat(name, 20)
		if i%2 == 0 {
			shown = "Authorization: Bearer " + strings.Repeat(name, 20)
		}
		status := 200
		if i%7 == 6 {
			shown, status = "X-API-Key: "+strings.Repeat("x", 20*len(name)), 401
		} else {
			want = append(want, name)
		}
		body := `{"input":{"text":"` + name + `"}}`
		c.send(t, "POST /skills/echo:invoke HTTP/1.1\r\nHost: x\r\n"+shown+"\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body)
		resp, got := c.answer(t, "POST", "/skills/echo:invoke")
		if resp.StatusCode != status || resp.Close != (status == 401) {
			t.Fatalf("request %d: %d, close %v, %s", i, resp.StatusCode, resp.Close, got)
		}
		if resp.Close { // the body of a refused request is not read
			c = s.dial(t)
		}
	}
	// Looked at after all of them: aliases of the buffers would have changed.
	if len(door.who) != len(want) {
		t.Fatalf("%d calls, want %d", len(door.who), len(want))
	}
	for i, p := range door.who {
		if p.Tenant != want[i] || p.ID != want[i]+"-caller" || p.Key != want[i]+"-key" {
			t.Errorf("call %d was for %+v, want %s", i, p, want[i])
		}
	}
}

// Whatever was wrong with credentials, the answer is the same, and it comes before
// anything is read or done.
func TestWhoIsNotKnownIsToldNothing(t *testing.T) {
	keys := apitest.Keys{"good": tenant("a", skill.Scopes()...)}
	uploads := &apitest.Uploads{Dir: t.TempDir()}
	s := start(t, func(o *api.Options) { o.Authenticate, o.Uploads = keys.Authenticate, uploads })
	bodies := map[string]string{}
	for _, tc := range []struct{ name, query, header, value string }{
		{"nothing", "", "Accept", "*/*"},
		{"another key", "", "X-API-Key", "bad"},
		{"an empty one", "", "X-API-Key", ""},
		{"another token", "", "Authorization", "Bearer bad"},
		{"another scheme", "", "Authorization", "Basic Z29vZDo="},
		{"in the query too", "?api_key=good", "X-API-Key", "good"},
		{"in the query alone", "?Access-Token=good", "Accept", "*/*"},
		{"written otherwise in the query", "?%41PIkey=good", "X-API-Key", "good"},
	} {
		for _, r := range []struct{ method, path, body string }{
			{"GET", "/skills", ""},
			{"POST", "/skills/echo:invoke", `{"input":{"text":"x"}}`},
			{"POST", "/skills/other:invoke", `{"inp`},
			{"GET", "/approvals/00000000-0000-7000-8000-000000000000", ""},
			{"POST", "/skills", "no archive"},
		} {
			resp, body := s.do(t, r.method, r.path+tc.query, r.body, tc.header, tc.value, "X-Trace-Id", "t-1")
			if resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") != "Bearer" || resp.Header.Get("X-Trace-Id") != "t-1" {
				t.Errorf("%s: %s %s: %d %v", tc.name, r.method, r.path, resp.StatusCode, resp.Header)
			}
			if bytes.Contains(body, []byte("good")) || bytes.Contains(body, []byte("bad")) {
				t.Errorf("%s: the answer repeats what was shown: %s", tc.name, body)
			}
			if first, ok := bodies[r.method+r.path]; ok && first != string(body) {
				t.Errorf("%s: %s %s is answered otherwise:\n%s\n%s", tc.name, r.method, r.path, first, body)
			}
			bodies[r.method+r.path] = string(body)
		}
	}
	if bodies["GET/skills"] != bodies["POST/skills"] || bodies["GET/skills"] != bodies["GET/approvals/00000000-0000-7000-8000-000000000000"] {
		t.Errorf("paths are told apart: %v", bodies)
	}
	if n := len(s.Door.Calls()); n > 0 || uploads.Open() > 0 || len(uploads.Seen()) > 0 {
		t.Errorf("%d calls, %d uploads", n, len(uploads.Seen()))
	}
	for _, path := range []string{"/health", "/healthz", "/readyz", "/openapi.json", "/docs", "/docs/docs.js"} {
		if resp, _ := s.do(t, "GET", path+"?api_key=x", "", "X-API-Key", "bad"); resp.StatusCode != 200 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

// The answer comes before the body: an upload of a stranger takes no room, and no time.
func TestStrangersSendNoBodies(t *testing.T) {
	keys := apitest.Keys{"reader": tenant("a", skill.ScopeRead)}
	uploads := &apitest.Uploads{Dir: t.TempDir()}
	s := start(t, func(o *api.Options) { o.Authenticate, o.Uploads = keys.Authenticate, uploads })
	for _, tc := range []struct {
		name, head, path string
		status           int
	}{
		{"a call", "Content-Length: 900000", "/skills/echo:invoke", 401},
		{"a call in chunks", "Transfer-Encoding: chunked", "/skills/echo:invoke", 401},
		{"a call that is too large", "Content-Length: 99000000", "/skills/echo:invoke", 401},
		{"an upload", "Content-Length: 9000000\r\nContent-Type: multipart/form-data; boundary=x", "/skills", 401},
		{"an upload that asks first", "Expect: 100-continue\r\nContent-Length: 9000000\r\nContent-Type: multipart/form-data; boundary=x", "/skills", 401},
		{"an upload without the scope", "X-API-Key: reader\r\nContent-Length: 9000000\r\nContent-Type: multipart/form-data; boundary=x", "/skills", 403},
		{"one that asks first", "X-API-Key: reader\r\nExpect: 100-continue\r\nContent-Length: 9000000\r\nContent-Type: multipart/form-data; boundary=x", "/skills", 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := s.dial(t)
			c.send(t, "POST "+tc.path+" HTTP/1.1\r\nHost: x\r\n"+tc.head+"\r\n\r\n")
			if strings.Contains(tc.head, "Content-Length: 9000") && !strings.Contains(tc.head, "Expect") {
				c.send(t, strings.Repeat("x", 8<<10)) // fasthttp waits for the beginning
			}
			if strings.Contains(tc.head, "chunked") {
				c.send(t, "2000\r\n"+strings.Repeat("x", 0x2000)+"\r\n")
			}
			resp, body := c.answer(t, "POST", tc.path)
			if resp.StatusCode != tc.status || !resp.Close {
				t.Errorf("%d, close %v, %s", resp.StatusCode, resp.Close, body)
			}
		})
	}
	if uploads.Open() > 0 || len(uploads.Seen()) > 0 {
		t.Error("an upload began")
	}
}

// Who shows nothing where that is allowed may what the operator lets such callers; for
// more it is asked who it is, not told that it may not.
func TestWhoShowsNothing(t *testing.T) {
	keys := apitest.Keys{"": {ID: "anonymous", Type: skill.Anonymous, Tenant: "anonymous", Scopes: []string{skill.ScopeRead}}}
	s := start(t, func(o *api.Options) { o.Authenticate = keys.Authenticate })
	if resp, body := s.do(t, "GET", "/skills", ""); resp.StatusCode != 200 {
		t.Errorf("the catalogue: %d %s", resp.StatusCode, body)
	}
	if resp, body := s.do(t, "GET", "/skills", "", "X-API-Key", "bad"); resp.StatusCode != 401 {
		t.Errorf("the catalogue with a wrong key: %d %s", resp.StatusCode, body)
	}
	if resp, body := s.do(t, "POST", "/skills/echo:invoke", `{"input":{"text":"x"}}`); resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("a call: %d %s", resp.StatusCode, body)
	}
}

// A host whose operator has not said who callers are lets nobody in.
func TestWithoutAuthenticationNobodyIsLetIn(t *testing.T) {
	s := start(t, func(o *api.Options) { o.Authenticate = nil })
	if resp, body := s.do(t, "GET", "/skills", ""); resp.StatusCode != 401 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if resp, body := s.do(t, "GET", "/healthz", ""); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// A store of keys that cannot be asked is no reason to let anyone in, or to say that a
// key is wrong.
func TestKeysThatCannotBeLookedUp(t *testing.T) {
	s := start(t, func(o *api.Options) {
		o.Authenticate = func(context.Context, identity.Credentials) (skill.Principal, error) {
			return skill.Local(), &skill.Error{Code: skill.AuditUnavailable, Message: "keys cannot be looked up now"}
		}
	})
	resp, body := s.do(t, "POST", "/skills/echo:invoke", `{"input":{"text":"x"}}`)
	if resp.StatusCode != 503 || !bytes.Contains(body, []byte("AUDIT_UNAVAILABLE")) || len(s.Door.Calls()) > 0 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// A scope for one skill opens that one, and not so much as the names of the others.
func TestAScopeForOneSkill(t *testing.T) {
	keys := apitest.Keys{"k": tenant("a", skill.ScopeInvoke+":echo")}
	door := apitest.NewDoor()
	s := start(t, func(o *api.Options) { o.Authenticate, o.Door = keys.Authenticate, door })
	for path, want := range map[string]int{
		"/skills/sleep:invoke": 403, "/skills/nosuch:invoke": 403, "/skills/echo2:invoke": 403, "/skills/ech:invoke": 403, "/skills/a:echo:invoke": 403,
		"/agent-skills/unit-converter/scripts/convert.py:run": 403,
	} {
		if resp, body := s.do(t, "POST", path, `{"input":{"text":"x"}}`, "X-API-Key", "k"); resp.StatusCode != want || bytes.Contains(body, []byte("NOT_FOUND")) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	if resp, body := s.do(t, "GET", "/skills", "", "X-API-Key", "k"); resp.StatusCode != 403 {
		t.Errorf("the catalogue: %d %s", resp.StatusCode, body)
	}
	if n := len(door.Calls()); n > 0 {
		t.Errorf("%d calls reached the door", n)
	}
}

// A session of MCP belongs to who began it, and to the key that was shown then: records
// of its calls name that key.
func TestMCPSessionsBelongToTheirCallers(t *testing.T) {
	keys := apitest.Keys{"a": tenant("a", skill.ScopeRead, skill.ScopeInvoke), "b": tenant("b", skill.ScopeRead, skill.ScopeInvoke), "c": tenant("c", skill.ScopeUpload)}
	another := keys["a"]
	another.Key = "another"
	keys["a2"] = another
	m, err := mcp.New(mcp.Options{
		Door: apitest.NewDoor(), Catalogue: apitest.NewCatalogue(), KeepAlive: 20 * time.Millisecond,
		Principal: func(r *http.Request) (skill.Principal, error) { return api.PrincipalOf(r.Context()), nil },
	})
	musttest.Do(t, err)
	s := start(t, func(o *api.Options) { o.MCP, o.Authenticate = m, keys.Authenticate })
	t.Cleanup(func() { _ = m.Close() })
	do := func(method, key, session, body string) *http.Response {
		req := musttest.Get(http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr+"/mcp", strings.NewReader(body)))(t)
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "X-Api-Key": {key}, "Mcp-Session-Id": {session}}
		if session == "" {
			req.Header.Del("Mcp-Session-Id")
		}
		tr := &http.Transport{DisableKeepAlives: true}
		resp, err := tr.RoundTrip(req)
		musttest.Do(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return resp
	}
	post := func(key, session, body string) *http.Response { return do("POST", key, session, body) }
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	for key, want := range map[string]int{"x": 401, "c": 403} {
		if resp := post(key, "", initialize); resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", key, resp.StatusCode, want)
		}
	}
	resp := post("a", "", initialize)
	session := resp.Header.Get("Mcp-Session-Id")
	if resp.StatusCode != 200 || session == "" {
		t.Fatalf("initialize: %d, session %q", resp.StatusCode, session)
	}
	if resp := post("a", session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); resp.StatusCode != 202 {
		t.Errorf("initialized: %d", resp.StatusCode)
	}
	for key, want := range map[string]int{"a": 200, "a2": 404, "b": 404, "x": 401} {
		if resp := post(key, session, list); resp.StatusCode != want {
			t.Errorf("the session of a, shown by %s: %d, want %d", key, resp.StatusCode, want)
		}
	}
	if resp := do("DELETE", "b", session, ""); resp.StatusCode != 404 {
		t.Errorf("ended by b: %d", resp.StatusCode)
	}
	if resp := post("a", session, list); resp.StatusCode != 200 {
		t.Errorf("afterwards: %d", resp.StatusCode)
	}
}

// What is told of limits is in headers too.
func TestHeadersOfLimits(t *testing.T) {
	s := start(t, nil)
	for i, tc := range []struct {
		details string
		want    [4]string // Retry-After, RateLimit-Limit, -Remaining, -Reset
	}{
		{`{"retry_after_ms":1500,"limit":60,"remaining":0,"reset_ms":1500}`, [4]string{"2", "60", "0", "2"}},
		{`{"retry_after_ms":1,"limit":60}`, [4]string{"1", "60", "0", "1"}},
		{`{"retry_after_ms":86500000,"limit":1000000000,"remaining":3,"reset_ms":86500000}`, [4]string{"86400", "1000000000", "3", "86400"}},
		{`{"retry_after_ms":1000}`, [4]string{"1", "", "", ""}},
		{`{"limit":-1,"remaining":-5}`, [4]string{"1", "", "", ""}},
		{`{"limit":"many"}`, [4]string{"1", "", "", ""}},
		{`{}`, [4]string{"1", "", "", ""}},
	} {
		resp, body := s.do(t, "POST", "/skills/fail:invoke", fmt.Sprintf(`{"input":{"code":"RATE_LIMITED","message":"later","details":%s}}`, tc.details))
		h := resp.Header
		if got := [4]string{h.Get("Retry-After"), h.Get("RateLimit-Limit"), h.Get("RateLimit-Remaining"), h.Get("RateLimit-Reset")}; resp.StatusCode != 429 || got != tc.want {
			t.Errorf("%d: %d %q, want %q; %s", i, resp.StatusCode, got, tc.want, body)
		}
	}
}

// The places of uploads are each tenant's own: one that has taken its part keeps nobody
// else out.
func TestUploadsAreCountedByTenant(t *testing.T) {
	keys := apitest.Keys{"a": tenant("a", skill.ScopeUpload), "b": tenant("b", skill.ScopeUpload)}
	s, u := startUploads(t, func(o *api.Options) { o.Authenticate, o.Receiving = keys.Authenticate, 5 })
	body, ct := form(t, part{name: "archive", content: strings.Repeat("x", 100_000)})
	var slow []*raw
	for range 3 { // its share of the places
		c := s.dial(t)
		c.send(t, "POST /skills HTTP/1.1\r\nHost: localhost\r\nX-API-Key: a\r\nContent-Type: "+ct+"\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body[:50_000])
		slow = append(slow, c)
	}
	within(t, "three uploads to begin", func() bool { return u.Open() == 3 })
	send := func(key string) int {
		resp, _ := s.do(t, "POST", "/skills", body, "Content-Type", ct, "X-API-Key", key)
		return resp.StatusCode
	}
	within(t, "the tenant's places to be taken", func() bool { return send("a") == 429 })
	if status := send("b"); status != 201 {
		t.Errorf("the other tenant: %d", status)
	}
	for _, c := range slow {
		c.send(t, body[50_000:])
		if resp, answer := c.answer(t, "POST", "/skills"); resp.StatusCode != 201 {
			t.Errorf("%d %s", resp.StatusCode, answer)
		}
	}
	if status := send("a"); status != 201 {
		t.Errorf("afterwards: %d", status)
	}
}
