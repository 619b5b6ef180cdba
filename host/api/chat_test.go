package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/agent"
	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// agentPaths are the paths of the agent, with a body each.
var agentPaths = [][3]string{
	{"POST", "/agent/chat", `{"message":"x"}`},
	{"GET", "/agent/conversations"},
	{"GET", "/agent/conversations/00000000-0000-7000-9000-000000000001"},
	{"DELETE", "/agent/conversations/00000000-0000-7000-9000-000000000001"},
	{"POST", "/agent/conversations/00000000-0000-7000-9000-000000000001:approve", `{}`},
	{"POST", "/api/agent/execute", `{"task":"x"}`},
}

// A host without the agent says so on its paths, but to nobody who may not use it.
func TestWithoutTheAgent(t *testing.T) {
	keys := apitest.Keys{"reader": {ID: "r", Type: skill.Agent, Tenant: "a", Scopes: []string{skill.ScopeRead}}, "agent": {ID: "a", Type: skill.Agent, Tenant: "a", Scopes: []string{skill.ScopeAgent}}}
	s := start(t, func(o *api.Options) { o.Authenticate = keys.Authenticate })
	for _, r := range agentPaths {
		for key, status := range map[string]int{"": 401, "reader": 403, "agent": 404} {
			resp, body := s.do(t, r[0], r[1], r[2], "X-API-Key", key)
			if off := bytes.Contains(body, []byte("the agent is disabled")); resp.StatusCode != status || off != (status == 404) {
				t.Errorf("%s %s by %q: %d %s", r[0], r[1], key, resp.StatusCode, body)
			}
		}
	}
}

// The bodies of a message and of a decision: what is taken, as what, and what of the rest
// is named.
func TestBodiesOfTurns(t *testing.T) {
	s, fake := talking(t, nil, nil)
	const long = 1 << 31
	for name, tc := range map[string]struct {
		body string
		want agent.ChatRequest
	}{
		"the least":    {`{"message":"x"}`, agent.ChatRequest{Message: "x"}},
		"all of it":    {`{"message":"\u4f60\n","provider":"p","model":"m","max_iterations":1,"max_tool_calls":2.0,"max_tokens":3e2,"max_validation_retries":4,"timeout_ms":5,"stream":false}`, agent.ChatRequest{Message: "你\n", Provider: "p", Model: "m", MaxIterations: 1, MaxToolCalls: 2, MaxTokens: 300, MaxRetries: 4, TimeoutMS: 5}},
		"huge numbers": {`{"message":"x","max_tokens":9007199254740991}`, agent.ChatRequest{Message: "x", MaxTokens: long - 1}},
		"a NUL":        {`{"message":"a\u0000b"}`, agent.ChatRequest{Message: "a\x00b"}}, // text is the agent's to judge
		"white space":  {" \r\n{ \"message\" : \"x\" }\n", agent.ChatRequest{Message: "x"}},
	} {
		resp, body := s.do(t, "POST", "/agent/chat", tc.body, "X-Trace-Id", "t-1")
		if resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
			continue
		}
		turns := fake.Turns()
		tc.want.Trace = "t-1"
		if diff := cmp.Diff(tc.want, turns[len(turns)-1]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}

	id := fake.Add(skill.Local(), "x", waits("a1"), waits("a2"), waits("a3"))
	turns := len(fake.Turns())
	for i, tc := range []struct {
		body string
		want agent.Decision
	}{
		{"", agent.Decision{Approve: true}},
		{`{"approval_id":"a3","approve":false,"provider":"p","model":"m","max_iterations":1,"max_tool_calls":2,"max_tokens":3,"max_validation_retries":4,"timeout_ms":5}`, agent.Decision{ApprovalID: "a3", ChatRequest: agent.ChatRequest{Provider: "p", Model: "m", MaxIterations: 1, MaxToolCalls: 2, MaxTokens: 3, MaxRetries: 4, TimeoutMS: 5}}},
		{`{}`, agent.Decision{Approve: true}},
	} {
		resp, body := s.do(t, "POST", "/agent/conversations/"+id+":approve", tc.body, "X-Trace-Id", "t-1")
		if resp.StatusCode != 200 {
			t.Fatalf("%d: %d %s", i, resp.StatusCode, body)
		}
		tc.want.Trace = "t-1"
		if diff := cmp.Diff(tc.want, fake.Decisions()[i]); diff != "" {
			t.Errorf("%d: %s", i, diff)
		}
	}

	deep := strings.Repeat("[", 100_000)
	for _, tc := range []struct{ body, field, problem string }{
		{`{"max_tokens":1,"max_tokens":1}`, "max_tokens", "appears more than once"},
		{`{"provider":"p","\u0070rovider":"q"}`, "provider", "appears more than once"},
		{`{"Stream":true}`, "Stream", "is not a known key; "},
		{`{"input":{}}`, "input", "is not a known key; "},
		{`{"stream":"true"}`, "stream", "must be true or false"},
		{`{"stream":null}`, "stream", "must be true or false"},
		{`{"stream":{}}`, "stream", "must be true or false"},
		{`{"provider":1}`, "provider", "must be a string"},
		{`{"provider":""}`, "provider", "must be 1 to 64 characters long"},
		{`{"provider":"` + strings.Repeat("é", 65) + `"}`, "provider", "must be 1 to 64 characters long"},
		{`{"model":["m"]}`, "model", "must be a string"},
		{`{"model":"` + strings.Repeat("m", 257) + `"}`, "model", "must be 1 to 256 characters long"},
		{`{"max_iterations":0}`, "max_iterations", "must be a whole number, 1 or more"},
		{`{"max_iterations":-1}`, "max_iterations", "must be a whole number, 1 or more"},
		{`{"max_tool_calls":1.5}`, "max_tool_calls", "must be a whole number, 1 or more"},
		{`{"max_tool_calls":"1"}`, "max_tool_calls", "must be a whole number, 1 or more"},
		{`{"max_tokens":9007199254740992}`, "max_tokens", "must be a whole number, 1 or more"},
		{`{"max_tokens":1e999}`, "max_tokens", "must be a whole number, 1 or more"},
		{`{"max_validation_retries":0}`, "max_validation_retries", "must be a whole number, 1 or more"},
		{`{"timeout_ms":"1"}`, "timeout_ms", "must be a whole number, 1 or more"},
		{`{"max_tokens":null}`, "max_tokens", "must be a whole number, 1 or more"},
		{`[]`, "body", "expected a JSON object"},
		{`{"model":"` + "a\x00b" + `"}`, "model", ""},
		{"{\"model\":\"a\xff\"}", "model", ""},
		{`{"model":"\ud800"}`, "model", ""},
		{`{"model":` + deep, "", "nested deeper than 256"},
		{`{"model":"x"}{}`, "body", "expected nothing after"},
		{`{"model":"x"`, "body", ""},
		{`{"model":"x"}` + "\x00", "body", "expected nothing after"},
	} {
		for path, more := range map[string]string{"/agent/chat": `"message":"x"`, "/agent/conversations/" + id + ":approve": `"approve":true`} {
			body := tc.body
			if strings.HasPrefix(body, "{") {
				body = "{" + more + "," + body[1:]
			}
			resp, got := s.do(t, "POST", path, body, "Accept", "text/event-stream")
			checkField(t, body, resp, got, 400, skill.InvalidArgument, tc.field, tc.problem)
		}
	}
	for body, problem := range map[string]string{
		"": "is empty", `{}`: "is missing", `{"message":null}`: "must be a string", `{"message":["x"]}`: "must be a string", `{"message":1}`: "must be a string",
		`{"message":"x","message":"y"}`: "appears more than once",
	} {
		field := "message"
		if body == "" {
			field = "body"
		}
		resp, got := s.do(t, "POST", "/agent/chat", body)
		checkField(t, body, resp, got, 400, skill.InvalidArgument, field, problem)
	}
	many := "[" + strings.TrimSuffix(strings.Repeat(`{"name":"a","text":""},`, 101), ",") + "]"
	for _, tc := range []struct{ body, field, problem string }{
		{`{"message":"x","files":{}}`, "files", "must be a list of at most 100 files"},
		{`{"message":"x","files":` + many + `}`, "files", "must be a list of at most 100 files"},
		{`{"message":"x","files":[{"execution_id":"x-1"}]}`, "files.0.name", "is missing"},
		{`{"message":"x","files":[{"name":""}]}`, "files.0.name", "must be 1 to 255 characters long"},
		{`{"message":"x","workspace":"../w"}`, "workspace", "must be 1 to 64 of a-z A-Z 0-9 _ -"},
	} {
		resp, got := s.do(t, "POST", "/agent/chat", tc.body)
		checkField(t, tc.body, resp, got, 400, skill.InvalidArgument, tc.field, tc.problem)
	}
	for field, value := range map[string]string{"conversation_id": `""`, "approve": "1", "approval_id": "7"} {
		path := "/agent/chat"
		if field != "conversation_id" {
			path = "/agent/conversations/" + id + ":approve"
		}
		resp, got := s.do(t, "POST", path, `{"`+field+`":`+value+`}`)
		checkField(t, field, resp, got, 400, skill.InvalidArgument, field, "must be ")
	}
	if n, asked := len(fake.Turns())-turns, len(fake.Decisions()); n > 0 || asked != 3 {
		t.Errorf("%d turns and %d decisions of what was refused", n, asked-3)
	}
}

func waits(id string) agent.Awaited {
	return agent.Awaited{ApprovalID: id, ToolCallID: "call-" + id, SkillID: "echo", Script: "scripts/x.py"}
}

// checkField holds the answer to a body against what is wrong with it; field "": anywhere.
func checkField(t *testing.T, body string, resp *http.Response, got []byte, status int, code skill.Code, field, problem string) {
	t.Helper()
	var p struct {
		Error struct {
			Code    skill.Code
			Details struct {
				Fields []struct{ Field, Problem string }
			}
		}
	}
	if err := json.Unmarshal(got, &p); err != nil || resp.StatusCode != status || p.Error.Code != code {
		t.Errorf("%.60q: %d %s", body, resp.StatusCode, got)
		return
	}
	if f := p.Error.Details.Fields; len(f) != 1 || f[0].Field != field && field != "" || !strings.Contains(f[0].Problem, problem) {
		t.Errorf("%.60q: %+v, want %s: %s", body, f, field, problem)
	}
}

// What is around a body, rather than in it.
func TestHostileRequestsToTheAgent(t *testing.T) {
	s, fake := talking(t, nil, nil)
	big := `{"message":"` + strings.Repeat("x", 1_000_000) + `"}`
	for name, tc := range map[string]struct {
		body   string
		header []string
		status int
	}{
		"a message of a megabyte":   {big, nil, 400},
		"a body over the limit":     {big + strings.Repeat(" ", 1<<20), nil, 413},
		"packed":                    {"\x1f\x8b", []string{"Content-Encoding", "gzip"}, 415},
		"a form of parts":           {`{"message":"x"}`, []string{"Content-Type", "multipart/form-data; boundary=x"}, 415},
		"text":                      {`{"message":"x"}`, []string{"Content-Type", "text/plain"}, 415},
		"a page of another origin":  {`{"message":"x"}`, []string{"Origin", "https://evil.example"}, 403},
		"a page of no origin":       {`{"message":"x"}`, []string{"Origin", "null"}, 403},
		"a page that does not tell": {`{"message":"x"}`, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"a name that points here":   {`{"message":"x"}`, []string{"Host", "evil.example", "Origin", "http://evil.example"}, 403},
	} {
		for _, path := range []string{"/agent/chat", "/agent/conversations/x:approve", "/api/agent/execute"} {
			body, status := tc.body, tc.status
			switch {
			case path == "/api/agent/execute":
				body = strings.Replace(body, `"message"`, `"task"`, 1)
			case strings.HasSuffix(path, ":approve") && status == 400:
				continue
			}
			if resp, got := s.do(t, "POST", path, body, append([]string{"Accept", "text/event-stream"}, tc.header...)...); resp.StatusCode != status {
				t.Errorf("%s to %s: %d %s", name, path, resp.StatusCode, got)
			}
		}
	}
	resp, body := s.do(t, "GET", "/agent/conversations", "", "Host", "evil.example")
	if resp.StatusCode != 403 {
		t.Errorf("a name that points here reads conversations: %d %s", resp.StatusCode, body)
	}

	// A body that is cut off is no message, whatever there is of it.
	for path, status := range map[string]int{"/agent/chat": 400, "/api/agent/execute": 422} {
		c := s.dial(t)
		c.send(t, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"+`{"message":"x"}`)
		musttest.Do(t, c.Conn.(*net.TCPConn).CloseWrite())
		if resp, body := c.answer(t, "POST", path); resp.StatusCode != status {
			t.Errorf("cut off: %d %s", resp.StatusCode, body)
		}
		c.ended(t)
	}
	if n := len(fake.Turns()) + len(fake.Decisions()); n > 0 {
		t.Errorf("%d of them reached the agent", n)
	}
}

// A conversation has one turn at a time, also for one who asks as a stream.
func TestTwoTurnsAtOnce(t *testing.T) {
	begun, goOn := make(chan struct{}, 2), make(chan struct{})
	s, fake := talking(t, func(_ context.Context, _ agent.ChatRequest, _ func(agent.Event), a *agent.Answer) error {
		begun <- struct{}{}
		<-goOn
		a.Answer = "done"
		return nil
	}, nil)
	id := fake.Add(skill.Local(), "x")
	body := `{"message":"x","stream":true,"conversation_id":"` + id + `"}`
	c := s.dial(t)
	c.send(t, talk(body))
	_, events := c.listen(t)
	wait(t, "the turn", begun)
	for _, accept := range []string{"text/event-stream", "application/json"} {
		if resp, got := s.do(t, "POST", "/agent/chat", body, "Accept", accept); resp.StatusCode != 409 {
			t.Errorf("%d %s", resp.StatusCode, got)
		}
	}
	close(goOn)
	if all := events.rest(); all[len(all)-1].Kind != "done" {
		t.Errorf("the first: %v", all)
	}
	if resp, got := s.do(t, "POST", "/agent/chat", body); resp.StatusCode != 200 {
		t.Errorf("afterwards: %d %s", resp.StatusCode, got)
	}
}

// A limit of the host's is told with what goes with it, by every way to ask.
func TestABusyAgent(t *testing.T) {
	busy := &skill.Error{Code: skill.RateLimited, Message: "too many turns are under way", Details: map[string]any{"retry_after_ms": 1500}}
	s := start(t, func(o *api.Options) { o.Chat, o.React = refusing{err: busy}, refusing{err: busy} })
	for _, r := range agentPaths {
		if r[0] != "POST" {
			continue
		}
		resp, body := s.do(t, r[0], r[1], r[2], "Accept", "text/event-stream")
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "2" {
			t.Errorf("%s: %d %v %s", r[1], resp.StatusCode, resp.Header, body)
		}
	}
}

// refusing is an agent that refuses everything.
type refusing struct {
	api.Chat
	api.React
	err error
}

func (r refusing) Turn(context.Context, skill.Principal, agent.ChatRequest, func(agent.Event)) (*agent.Answer, error) {
	return nil, r.err
}

func (r refusing) Approve(context.Context, skill.Principal, string, agent.Decision, func(agent.Event)) (*agent.Answer, error) {
	return nil, r.err
}

func (r refusing) Execute(context.Context, skill.Principal, agent.Task) (*agent.Outcome, error) {
	return nil, r.err
}

// Pages of conversations are whole, and hold nobody else's.
func TestPagesOfConversations(t *testing.T) {
	w := newWorld(t)
	want := map[string]bool{}
	for range 7 {
		want[w.chat.Add(w.keys["bob"], "x")] = true
		w.chat.Add(w.keys["ann"], "mark")
	}
	pages := 0
	for next := "/agent/conversations?limit=3"; next != ""; pages++ {
		_, body := w.as(t, "bob", "GET", next, "")
		var page struct {
			Data []agent.Summary
			Next *string
		}
		musttest.Do(t, json.Unmarshal(body, &page))
		for _, c := range page.Data {
			if !want[c.ID] {
				t.Errorf("%s twice, or another's", c.ID)
			}
			delete(want, c.ID)
		}
		if next = ""; page.Next != nil {
			next = "/agent/conversations?limit=3&cursor=" + *page.Next
		}
	}
	if len(want) > 0 || pages != 3 {
		t.Errorf("%d pages without %v", pages, want)
	}
	for _, query := range []string{"?limit=0", "?limit=101", "?limit=x", "?cursor=", "?cursor=a&cursor=b"} {
		if resp, body := w.as(t, "bob", "GET", "/agent/conversations"+query, ""); resp.StatusCode != 400 {
			t.Errorf("%s: %d %s", query, resp.StatusCode, body)
		}
	}
	if resp, body := w.as(t, "operator", "GET", "/agent/conversations", ""); resp.StatusCode != 200 || string(body) != "{\"data\":[],\"next\":null}\n" {
		t.Errorf("none: %d %s", resp.StatusCode, body)
	}
}
