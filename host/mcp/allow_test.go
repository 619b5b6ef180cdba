package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/host/dispatch/allow"
	"openskill/host/dispatch/approval"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

const forms = `{"properties":{"http_1":{"default":false,"description":"Not allowed before","title":"Requests to https://a.example GET,HEAD","type":"boolean"},` +
	`"http_2":{"default":false,"description":"Not allowed before","title":"Requests to https://b.example POST","type":"boolean"}},"type":"object"}`

// TestGrantIsAsked has the operator asked what a script may do: what is ticked is allowed, and no more.
func TestGrantIsAsked(t *testing.T) {
	sessions(t, func(t *testing.T, open func(*testing.T, *Server, string, *mcp.ClientOptions) *mcp.ClientSession) {
		for _, c := range []struct {
			name   string
			answer func(*mcp.ElicitParams) (*mcp.ElicitResult, error)
			holds  []string
		}{
			{"all", ticks("http_1", "http_2"), []string{"https://a.example GET,HEAD", "https://b.example POST"}},
			{"one", ticks("http_2"), []string{"https://b.example POST"}},
			{"none", ticks(), nil},
			{"decline", says("decline"), nil},
			{"cancel", says("cancel"), nil},
			{"an error", func(*mcp.ElicitParams) (*mcp.ElicitResult, error) { return &mcp.ElicitResult{Action: "maybe"}, nil }, nil},
		} {
			t.Run(c.name, func(t *testing.T) {
				a, agents := newAsker(t)
				web, s := listen(t, Options{AgentSkills: agents, Grants: a})
				p := &person{answer: c.answer}
				cs := open(t, s, web.URL, p.client())
				res := runAsker(t, cs, nil)
				want := strings.Join(c.holds, ";")
				if c.holds == nil {
					want = "nothing"
				}
				if res.IsError || !strings.Contains(textOf(t, res), want) {
					t.Errorf("%v %q", res.IsError, textOf(t, res))
				}
				a.holds(t, c.holds...)
				failed := runAsker(t, cs, map[string]any{"fail": true})
				if told := strings.Contains(textOf(t, failed), "openskill skills allow asker; over HTTP: GET /agent-skills/asker/grant, then POST /agent-skills/asker:allow"); !failed.IsError || told != (c.holds == nil) {
					t.Errorf("%v %q", failed.IsError, textOf(t, failed))
				}
				if p.times() != 1 {
					t.Fatalf("asked %d times", p.times())
				}
				form, _ := json.Marshal(p.asked[0].RequestedSchema)
				if m := p.asked[0].Message; string(form) != forms || !strings.Contains(m, "asker") || !strings.Contains(m, "sha256:1") || !strings.Contains(m, "Variables without a value here: API_KEY.") {
					t.Errorf("%s\n%s", m, form)
				}
				a.becomes("sha256:2") // which is another question
				if runAsker(t, cs, nil); p.times() != 2 {
					t.Errorf("asked %d times", p.times())
				}
			})
		}
	})
}

// TestChangedGrantIsAsked offers what other files were allowed: variables keep value and hosts.
func TestChangedGrantIsAsked(t *testing.T) {
	sessions(t, func(t *testing.T, open func(*testing.T, *Server, string, *mcp.ClientOptions) *mcp.ClientSession) {
		a, agents := newAsker(t)
		a.before(t)
		web, s := listen(t, Options{AgentSkills: agents, Grants: a})
		p := &person{answer: ticks("env_1", "http_3")}
		cs := open(t, s, web.URL, p.client())
		res := runAsker(t, cs, nil)
		if res.IsError || !strings.Contains(textOf(t, res), "https://a.example GET,HEAD;API_KEY=sk-") || strings.Contains(textOf(t, res), keptValue) {
			t.Errorf("%v %q", res.IsError, textOf(t, res))
		}
		a.holds(t, "https://a.example GET,HEAD", "API_KEY")
		form, _ := json.Marshal(p.asked[0].RequestedSchema)
		for _, want := range []string{"Variable API_KEY", "Allowed before; the value goes to a.example alone", "https://old.example GET", "https://a.example GET,HEAD", "https://b.example POST"} {
			if !strings.Contains(string(form), want) {
				t.Errorf("the form lacks %q: %s", want, form)
			}
		}
		if text := string(form) + p.asked[0].Message; strings.Contains(text, keptValue) || strings.Contains(text, "without a value") || !strings.Contains(text, "Since it was allowed, files added: 0, changed: 1, removed: 0.") {
			t.Errorf("%s", text)
		}
	})
}

// TestChangedGrantIsRefused runs nothing where the operator does not allow what changed.
func TestChangedGrantIsRefused(t *testing.T) {
	a, agents := newAsker(t)
	a.before(t)
	p := &person{answer: says("decline")}
	cs := connect(t, newServer(t, Options{AgentSkills: agents, Grants: a}), skill.Local(), p.client())
	for range 2 {
		if res := runAsker(t, cs, nil); !res.IsError || !strings.HasPrefix(textOf(t, res), "FORBIDDEN: ") || !strings.Contains(textOf(t, res), "POST /agent-skills/asker:allow") {
			t.Errorf("%q", textOf(t, res))
		}
	}
	if p.times() != 1 {
		t.Errorf("asked %d times", p.times())
	}
	a.holds(t, "https://old.example GET", "API_KEY")
}

// TestGrantsAreAskedOfTheOperatorAlone holds that agents are not asked, nor clients that cannot ask.
func TestGrantsAreAskedOfTheOperatorAlone(t *testing.T) {
	a, agents := newAsker(t)
	s := newServer(t, Options{AgentSkills: agents, Grants: a})
	p := &person{answer: ticks("http_1")}
	admin := skill.Local()
	less := skill.Local()
	less.Scopes = slices.DeleteFunc(slices.Clone(less.Scopes), func(scope string) bool { return scope == skill.ScopeAdmin })
	for name, cs := range map[string]*mcp.ClientSession{
		"an agent":                      connect(t, s, skill.Principal{ID: "a", Type: skill.Agent, Tenant: "t", Scopes: admin.Scopes}, p.client()),
		"an operator without the scope": connect(t, s, less, p.client()),
		"a client that does not":        connect(t, s, admin, nil),
	} {
		if res := runAsker(t, cs, nil); res.IsError || !strings.Contains(textOf(t, res), "nothing") || p.times() != 0 {
			t.Errorf("%s: %q, asked %d times", name, textOf(t, res), p.times())
		}
	}
	a.holds(t)
}

// TestNothingToAskAbout holds that no question is empty, and that scripts are read once for it.
func TestNothingToAskAbout(t *testing.T) {
	for name, of := range map[string]struct {
		env  []allow.Ask
		http []allow.Ask
		told bool
	}{
		"nothing":                     {nil, nil, false},
		"what the settings give":      {[]allow.Ask{{Name: "API_KEY", Given: true}}, []allow.Ask{{Name: "https://a.example GET", Given: true}}, false},
		"a variable without a value":  {[]allow.Ask{{Name: "API_KEY"}}, nil, true},
		"a rule too long to be shown": {nil, []allow.Ask{{Name: "https://a.example/" + strings.Repeat("x", 200) + " GET"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			a, agents := newAsker(t)
			a.current.Env, a.current.HTTP = of.env, of.http
			p := &person{answer: ticks("http_1")}
			cs := connect(t, newServer(t, Options{AgentSkills: agents, Grants: a}), skill.Local(), p.client())
			for range 2 {
				if res := runAsker(t, cs, map[string]any{"fail": true}); !res.IsError || strings.Contains(textOf(t, res), "openskill skills allow asker") != of.told {
					t.Errorf("%q", textOf(t, res))
				}
			}
			if p.times() != 0 || a.reviews != 1 {
				t.Errorf("asked %d times, read %d times", p.times(), a.reviews)
			}
			a.holds(t)
		})
	}
}

// TestQuestionsAreBounded offers 32 boxes at most, and says how many there are beyond.
func TestQuestionsAreBounded(t *testing.T) {
	r := &allow.Review{Current: allow.Current{Skill: "asker", Digest: "sha256:1"}}
	for i := range 300 {
		r.HTTP = append(r.HTTP, allow.Ask{Name: fmt.Sprintf("https://%d.example GET", i)})
		r.Env = append(r.Env, allow.Ask{Name: fmt.Sprintf("V%d", i)})
	}
	o := offerOf(r)
	if len(o.items) != mostItems || !strings.Contains(o.message(), "268 more are not listed") || len(o.message()) > 2000 || !json.Valid(o.form()) {
		t.Errorf("%d, %s", len(o.items), o.message())
	}
}

// TestApprovalAfterGrant asks both questions, one after the other.
func TestApprovalAfterGrant(t *testing.T) {
	revisions(t, func(t *testing.T, handshake bool) {
		agents, store := guarded(t, approval.PerCall)
		g, _ := newAsker(t)
		web, _ := listen(t, Options{AgentSkills: agents, Approvals: store, Grants: counterGrants{g}})
		p := &person{answer: func(p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			if strings.HasSuffix(p.Message, "Approve this run?") {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"http_1": true}}, nil
		}}
		cs := surf(t, web.URL, handshake, p.client())
		if res, err := cs.CallTool(t.Context(), count()); err != nil || res.IsError || p.times() != 2 {
			t.Errorf("%+v, %v, asked %d times", res, err, p.times())
		}
		g.holds(t, "https://a.example GET,HEAD")
	})
}

// counterGrants are those of an asker, for the skill of guarded.
type counterGrants struct{ *asker }

func (g counterGrants) Standing(ctx context.Context, p skill.Principal, _ json.RawMessage) (allow.Standing, error) {
	return g.asker.Standing(ctx, p, json.RawMessage(`{"skill_name":"asker","script_file":"go"}`))
}

// TestLateAnswers takes no answer after its time, and asks again.
func TestLateAnswers(t *testing.T) {
	sessions(t, func(t *testing.T, open func(*testing.T, *Server, string, *mcp.ClientOptions) *mcp.ClientSession) {
		a, agents := newAsker(t)
		web, s := listen(t, Options{AgentSkills: agents, Grants: a})
		var mu sync.Mutex
		var late time.Duration
		s.asked.now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Unix(0, 0).Add(late)
		}
		p := &person{answer: func(p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			mu.Lock()
			late += answerTime
			mu.Unlock()
			return ticks("http_1")(p)
		}}
		cs := open(t, s, web.URL, p.client())
		for n := range 2 {
			if res := runAsker(t, cs, nil); !res.IsError || !strings.HasPrefix(textOf(t, res), "CONFLICT: ") || !strings.Contains(textOf(t, res), "more than 10 minutes ago") || p.times() != n+1 {
				t.Errorf("%q, asked %d times", textOf(t, res), p.times())
			}
		}
		a.holds(t)
	})
}

// TestAnswersForChangedFolders allows nothing where the files or the grant changed since the question.
func TestAnswersForChangedFolders(t *testing.T) {
	sessions(t, func(t *testing.T, open func(*testing.T, *Server, string, *mcp.ClientOptions) *mcp.ClientSession) {
		a, agents := newAsker(t)
		web, s := listen(t, Options{AgentSkills: agents, Grants: a})
		change := func() { a.becomes("sha256:2") }
		p := &person{answer: func(p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			change()
			return ticks("http_1")(p)
		}}
		cs := open(t, s, web.URL, p.client())
		if res := runAsker(t, cs, nil); !res.IsError || !strings.HasPrefix(textOf(t, res), "CONFLICT: digest mismatch") {
			t.Errorf("%q", textOf(t, res))
		}
		a.holds(t)
		change = func() { // what was revoked meanwhile, or allowed, stays so
			if _, err := a.store.Allow(t.Context(), skill.Local(), allow.Grant{Skill: "asker", Digest: "sha256:2", HTTP: []string{"https://c.example"}}); err != nil {
				t.Error(err)
			}
		}
		if res := runAsker(t, cs, nil); !res.IsError || !strings.Contains(textOf(t, res), "changed meanwhile") {
			t.Errorf("%q", textOf(t, res))
		}
		a.holds(t, "https://c.example GET,HEAD")
	})
}

// TestStrangeAnswers allows nothing by an answer that is not of the form.
func TestStrangeAnswers(t *testing.T) {
	many := map[string]any{}
	for i := range 5000 {
		many[fmt.Sprintf("http_%d", i+1)] = true
	}
	sessions(t, func(t *testing.T, open func(*testing.T, *Server, string, *mcp.ClientOptions) *mcp.ClientSession) {
		for name, content := range map[string]map[string]any{
			"an unknown box": {"http_1": true, "http_3": true}, "a rule": {"https://c.example GET": true}, "a variable": {"http_1": true, "API_KEY": "x"},
			"text": {"http_1": "true"}, "a number": {"http_1": 1}, "null": {"http_1": nil}, "a list": {"http_1": []any{true}}, "5,000 boxes": many,
			"a long value": {"http_1": strings.Repeat("x", 500_000)}, "no content": nil,
		} {
			t.Run(name, func(t *testing.T) {
				a, agents := newAsker(t)
				web, s := listen(t, Options{AgentSkills: agents, Grants: a})
				p := &person{answer: func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: content}, nil
				}}
				// The SDK's client and server refuse some of it themselves.
				res, err := open(t, s, web.URL, p.client()).CallTool(t.Context(), &mcp.CallToolParams{Name: "run_skill_script", Arguments: map[string]any{"skill_name": "asker", "script_file": "go"}})
				if err == nil && !strings.HasPrefix(textOf(t, res), "INVALID_ARGUMENT: invalid answer") && !strings.Contains(textOf(t, res), "nothing") {
					t.Errorf("%q", textOf(t, res))
				}
				if p.times() != 1 {
					t.Errorf("asked %d times", p.times())
				}
				a.holds(t)
			})
		}
	})
}

// TestParallelCallsAskOnce has a second call of a session wait for the answer to the first.
func TestParallelCallsAskOnce(t *testing.T) {
	a, agents := newAsker(t)
	web, _ := listen(t, Options{AgentSkills: agents, Grants: a})
	p := &person{answer: ticks("http_1")}
	cs := surf(t, web.URL, true, p.client())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_skill_script", Arguments: map[string]any{"skill_name": "asker", "script_file": "go"}})
			if err != nil || res.IsError {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	wg.Wait()
	if p.times() != 1 {
		t.Errorf("asked %d times", p.times())
	}
}

// TestClientLeavesAQuestion ends a call whose client leaves before it answers: the next session asks again.
func TestClientLeavesAQuestion(t *testing.T) {
	a, agents := newAsker(t)
	web, _ := listen(t, Options{AgentSkills: agents, Grants: a})
	asked, left := make(chan struct{}), make(chan struct{})
	p := &person{answer: func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
		close(asked)
		<-left
		return nil, errors.New("nobody is here")
	}}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, err := surf(t, web.URL, true, p.client()).CallTool(ctx, &mcp.CallToolParams{Name: "run_skill_script", Arguments: map[string]any{"skill_name": "asker", "script_file": "go"}})
	close(left)
	if err == nil {
		t.Error("the call succeeded")
	}
	again := &person{answer: ticks("http_1")}
	if res := runAsker(t, surf(t, web.URL, true, again.client()), nil); res.IsError || again.times() != 1 {
		t.Errorf("%q, asked %d times", textOf(t, res), again.times())
	}
}

// TestForgedGrants holds that an answer is for one use, by the caller that was asked, for its call.
func TestForgedGrants(t *testing.T) {
	a, agents := newAsker(t)
	other := skill.Local()
	other.ID = "other"
	web, _ := listen(t, Options{AgentSkills: agents, Grants: a, Principal: func(r *http.Request) (skill.Principal, error) {
		if r.Header.Get("X-API-Key") != "" {
			return other, nil
		}
		return skill.Local(), nil
	}})
	call := func(args, rest string, headers ...string) string {
		t.Helper()
		body, h := modern("tools/call", `"name":"run_skill_script","arguments":`+args+rest)
		_, text, _ := send(t, web.URL, strings.Replace(body, `"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}`, 1), append(h, headers...)...)
		return text
	}
	const args, others = `{"skill_name":"asker","script_file":"go"}`, `{"skill_name":"asker","script_file":"go","args":[]}`
	state := func() string {
		t.Helper()
		var asked struct {
			Result struct {
				ResultType, RequestState string
				InputRequests            map[string]any
			}
		}
		if text := call(args, ""); json.Unmarshal([]byte(text), &asked) != nil || asked.Result.ResultType != "input_required" || asked.Result.InputRequests["allow"] == nil || strings.Contains(text, keptValue) {
			t.Fatalf("%s", text)
		}
		return asked.Result.RequestState
	}
	yes := func(state string) string {
		return `,"requestState":"` + state + `","inputResponses":{"allow":{"action":"accept","content":{"http_1":true}}}`
	}
	first := state()
	nonce, seal, _ := strings.Cut(first, ".")
	for name, text := range map[string]string{
		"no state": call(args, yes("")), "no seal": call(args, yes(nonce)), "another seal": call(args, yes(nonce+"."+strings.Repeat("0", len(seal)))), "another nonce": call(args, yes("A."+seal)),
		"another call": call(others, yes(first)), "another caller": call(args, yes(first), "X-API-Key", "other"),
	} {
		if !strings.Contains(text, "CONFLICT: ") {
			t.Errorf("%s: %s", name, text)
		}
	}
	a.holds(t)
	texts := make([]string, 8) // at once
	var wg sync.WaitGroup
	for i := range texts {
		wg.Go(func() { texts[i] = call(args, yes(first)) })
	}
	wg.Wait()
	if all := strings.Join(texts, "\n"); strings.Count(all, "CONFLICT: ") != len(texts)-1 {
		t.Errorf("%s", all)
	}
	a.holds(t, "https://a.example GET,HEAD")
	musttest.Do(t, a.store.Revoke(t.Context(), skill.Local(), "asker"))
	if text := call(args, yes(first)); !strings.Contains(text, "CONFLICT: ") {
		t.Errorf("used before: %s", text)
	}
	a.holds(t)
	// Two questions are open; the answer to the second is about a grant that is not there any more.
	one, two := state(), state()
	if text := call(args, yes(one)); strings.Contains(text, `"isError":true`) {
		t.Errorf("%s", text)
	}
	if text := call(args, strings.Replace(yes(two), "http_1", "http_2", 1)); !strings.Contains(text, "changed meanwhile") {
		t.Errorf("%s", text)
	}
	a.holds(t, "https://a.example GET,HEAD")
	for name, response := range map[string]string{
		"no object": `7`, "no action": `{}`, "another kind": `{"roots":[]}`, "a long action": `{"action":"` + strings.Repeat("x", 100_000) + `"}`, "cut off": `{"action":"accept","content":{"http_1":`,
	} {
		call(args, `,"requestState":"`+one+`","inputResponses":{"allow":`+response+`}`)
		a.holds(t, "https://a.example GET,HEAD")
		_ = name
	}
	if text := call(args, `,"x":"`+strings.Repeat("x", 2<<20)+`"`+yes(two)); !strings.Contains(text, "too large") {
		t.Errorf("%.300s", text)
	}
}

// TestAskedIsBounded reaches the limits of what is kept of questions: no more are asked then.
func TestAskedIsBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	a := newAsked(time.Hour)
	a.now = func() time.Time { return now }
	first, _ := a.open(&offer{who: "x"})
	for range mostOpen - 1 {
		a.open(&offer{who: "x"})
	}
	if _, ok := a.open(&offer{who: "x"}); ok {
		t.Error("one more is open")
	}
	if a.take(first, "y") != nil || a.take(first, "x") == nil || a.take(first, "x") != nil {
		t.Error("a nonce is not for its principal, or not for one use")
	}
	now = now.Add(answerTime)
	if _, ok := a.open(&offer{who: "x"}); !ok || len(a.offers) != 1 {
		t.Errorf("%d are open", len(a.offers))
	}
	at := func(i int) subject { return subject{"x", "s", "asker", fmt.Sprint(i)} }
	for i := range mostSettled + 10 {
		a.settle(at(i))
		a.hush(&allow.Review{Current: allow.Current{Digest: fmt.Sprint(i)}}, false)
		now = now.Add(time.Second)
	}
	if len(a.settled) != mostSettled || len(a.silent) > mostQuiet || a.was(at(9)) || !a.was(at(10)) {
		t.Errorf("%d and %d are kept", len(a.settled), len(a.silent))
	}
	stateless := subject{"x", "", "asker", "1"}
	a.settle(stateless)
	if now = now.Add(time.Hour - 1); !a.was(stateless) {
		t.Error("a refusal without a session is forgotten early")
	}
	if now = now.Add(1); a.was(stateless) || !a.was(at(20)) {
		t.Error("a refusal without a session stays, or one with a session does not")
	}
}
