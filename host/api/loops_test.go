package api_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"openskill/host/agent/conversations"
	"openskill/internal/musttest"

	"openskill/host/agent"
	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/host/records"
	"openskill/host/store/storetest"
	"openskill/sdk/skill"
)

var (
	_ api.Chat  = (*agent.Agent)(nil)
	_ api.React = (*agent.Agent)(nil)
)

// model is a provider made of a function.
type model func(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error)

func (m model) Chat(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
	return m(ctx, r, text)
}

// says is a reply of so many tokens.
func says(text string, hear func(string), calls ...llm.Call) (*llm.Reply, error) {
	if hear != nil && text != "" {
		hear(text)
	}
	stop := llm.StopEnd
	if calls != nil {
		stop = llm.StopCalls
	}
	return &llm.Reply{Text: text, Calls: calls, Stop: stop, Usage: llm.Usage{Prompt: 100, Completion: 10}}, nil
}

// looping starts an edge on the parts of a world, with the agents of the host before m.
func looping(t *testing.T, m model) *world {
	t.Helper()
	w := newWorld(t)
	log := slog.New(slog.DiscardHandler)
	models := musttest.Get(llm.NewModels(llm.Options{Backends: []llm.Backend{{Name: "test", Provider: m, Model: "m-1", Free: true}}, Pause: time.Millisecond, Log: log}))(t)
	box := musttest.Get(tools.New(tools.Options{Door: w.door, Catalogue: worldCatalogue{apitest.NewCatalogue()}, Log: log}))(t)
	kept := conversations.NewStore(storetest.SQLite(t))
	works, err := agent.New(agent.Options{
		Models: models, Tools: box.For, Store: kept, Sessions: kept, Log: log, Concurrent: 1024, ToolCalls: 4, Cost: 1 << 40, Fuel: 1 << 40, Days: 1,
		Chat: agent.ChatOptions{Iterations: 10, Tokens: 65536, Time: time.Minute, ReplyTokens: 4096, History: 20, Keep: 200, Retries: 3, Conversations: 100},
		Task: agent.TaskLimits{
			Iterations: 10, Tokens: 8192, MinTokens: 500, ReplyTokens: 2048, IterationTimeout: time.Minute, Timeout: time.Minute, MaxTimeout: time.Minute,
			History: 5, ShortHistory: 3,
		},
	})
	musttest.Do(t, err)
	inner := w.Door
	w.server = start(t, func(o *api.Options) {
		o.Door, o.Executions, o.Authenticate, o.Chat, o.React = w.door, w.manager, w.keys.Authenticate, works, works
	})
	w.Door = inner
	return w
}

// turnOf takes a turn of bob's as events.
func (w *world) turnOf(t *testing.T, body string) []happening {
	t.Helper()
	c := w.dial(t)
	c.send(t, talk(body, "X-API-Key", "bob"))
	_, events := c.listen(t)
	return events.rest()
}

// recordsTold are what is told of a session.
type recordsTold struct {
	Status     string
	Tokens     int `json:"total_token_usage"`
	Iterations []struct {
		Index  int
		Skill  string `json:"skill_name"`
		Status string
		Tokens int `json:"token_usage"`
	}
}

// recordsOf gives what bob reads of a session.
func (w *world) recordsOf(t *testing.T, session string) (out recordsTold) {
	t.Helper()
	resp, body := w.as(t, "bob", "GET", "/api/agent/executions/"+session, "")
	if err := json.Unmarshal(body, &struct{ Data any }{&out}); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	return out
}

// A conversation through the host's own loop: what it tells keeps the contract, its calls
// are executions on record, and they are those of the conversation.
func TestAConversationWithTheHostsAgent(t *testing.T) {
	w := looping(t, func(_ context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
		switch last := r.Messages[len(r.Messages)-1]; {
		case last.Role == llm.Tool && last.Failed: // the second call of the first round
			return says("One was wrong.", text, llm.Call{ID: "c", Name: "echo", Arguments: `{"text":"right"}`})
		case last.Role == llm.Tool:
			return says("All is said.", text)
		case last.Text == "again":
			return says("Again.", text)
		}
		return says("I look.\n\ndata: x\n\n", text, llm.Call{ID: "a", Name: "echo", Arguments: `{"text":"one"}`}, llm.Call{ID: "b", Name: "echo", Arguments: `{"text":2}`})
	})
	all := w.turnOf(t, `{"message":"look","stream":true}`)
	var a agent.Answer
	if err := json.Unmarshal([]byte(all[len(all)-1].Data), &a); err != nil || all[len(all)-1].Kind != "done" {
		t.Fatalf("%v: %v", err, all)
	}
	if a.Answer != "All is said." || a.StopReason != agent.StopCompleted || a.Iterations != 3 || len(a.ToolCalls) != 3 || a.Usage.TotalTokens != 330 || a.Provider != "test" || a.Model != "m-1" {
		t.Errorf("%+v", a)
	}
	count := map[string]int{}
	for _, h := range all {
		count[h.Kind]++
	}
	if count["text"] != 3 || count["tool_start"] != 3 || count["tool_end"] != 3 || count["usage"] != 3 {
		t.Errorf("%v", count)
	}
	for i, want := range []bool{true, false, true} {
		if c := a.ToolCalls[i]; c.Success != want || c.SkillID != "echo" || want == (c.Error != nil) {
			t.Errorf("call %d: %+v", i, c)
		}
	}
	if r := w.recordsOf(t, a.Conversation); r.Tokens != 220 || r.Status != "completed" || len(r.Iterations) != 3 || r.Iterations[2].Index != 1 || r.Iterations[2].Skill != "echo" {
		t.Errorf("%+v", r)
	}
	resp, body := w.as(t, "bob", "GET", "/executions?session="+a.Conversation, "")
	var page struct{ Data []records.View }
	if err := json.Unmarshal(body, &page); err != nil || len(page.Data) != 3 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}

	if resp, body := w.as(t, "bob", "POST", "/agent/chat", `{"message":"again","conversation_id":"`+a.Conversation+`"}`); resp.StatusCode != 200 || !strings.Contains(string(body), `"answer":"Again."`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	var v agent.View
	if resp, body := w.as(t, "bob", "GET", "/agent/conversations/"+a.Conversation, ""); resp.StatusCode != 200 || json.Unmarshal(body, &v) != nil || len(v.Messages) != 9 || v.Iterations != 4 || v.TotalTokens != 440 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	for _, r := range [][3]string{
		{"GET", "/agent/conversations/" + a.Conversation},
		{"DELETE", "/agent/conversations/" + a.Conversation},
		{"POST", "/agent/chat", `{"message":"x","conversation_id":"` + a.Conversation + `"}`},
		{"POST", "/agent/conversations/" + a.Conversation + ":approve"},
		{"GET", "/api/agent/executions/" + a.Conversation},
	} {
		if resp, body := w.as(t, "ann", r[0], r[1], r[2]); resp.StatusCode != 404 {
			t.Errorf("%s %s by another tenant: %d %s", r[0], r[1], resp.StatusCode, body)
		}
	}
	for _, id := range []string{"x", "%00", "%ff", strings.Repeat("0", 36), strings.Repeat("x", 4000), strings.ToUpper(a.Conversation) + "0"} {
		for _, r := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", ":approve"}} {
			if resp, body := w.as(t, "bob", r[0], "/agent/conversations/"+id+r[1], ""); resp.StatusCode != 404 {
				t.Errorf("%s %.40s: %d %s", r[0], id, resp.StatusCode, body)
			}
		}
	}
	if resp, body := w.as(t, "bob", "POST", "/agent/conversations/"+a.Conversation+":approve", ""); resp.StatusCode != 409 {
		t.Errorf("nothing waits: %d %s", resp.StatusCode, body)
	}
	if resp, body := w.as(t, "bob", "GET", "/agent/conversations?cursor=x", ""); resp.StatusCode != 400 {
		t.Errorf("a cursor that is none: %d %s", resp.StatusCode, body)
	}
	if resp, body := w.as(t, "bob", "DELETE", "/agent/conversations/"+a.Conversation, ""); resp.StatusCode != 204 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if resp, _ := w.as(t, "bob", "GET", "/agent/conversations/"+a.Conversation, ""); resp.StatusCode != 404 {
		t.Errorf("afterwards: %d", resp.StatusCode)
	}
	if len(w.recordsOf(t, a.Conversation).Iterations) != 3 {
		t.Error("the records went with the conversation")
	}
}

// How turns of the host's own loop end that do not end well.
func TestTurnsOfTheHostsAgentThatFail(t *testing.T) {
	w := looping(t, func(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
		switch r.Messages[len(r.Messages)-1].Text {
		case "down":
			return nil, llm.Unavailable("test", 503, "it is down", 0, nil)
		case "silent":
			return says("", text)
		case "panic":
			panic("secret of /etc/shadow")
		}
		calls := make([]llm.Call, 10_000) // G04
		for i := range calls {
			calls[i] = llm.Call{Name: "echo", Arguments: `{"text":"x"}`}
		}
		return says("", text, calls...)
	})
	for message, code := range map[string]skill.Code{"down": skill.AgentLLMUnavailable, "silent": skill.AgentLLMParseError, "panic": skill.AgentLoopError} {
		all := w.turnOf(t, `{"message":"`+message+`","stream":true}`)
		last := all[len(all)-1]
		if last.Kind != "error" || !strings.Contains(last.Data, `"`+string(code)+`"`) || strings.Contains(last.Data, "secret") {
			t.Errorf("%s: %v", message, last)
		}
		if resp, body := w.as(t, "bob", "POST", "/agent/chat", `{"message":"`+message+`"}`); resp.StatusCode != code.Status() || !strings.Contains(string(body), `"`+string(code)+`"`) {
			t.Errorf("%s: %d %s", message, resp.StatusCode, body)
		}
	}
	for _, message := range []string{`" "`, `"\u0000"`, `"` + strings.Repeat("x", 32<<10+1) + `"`} {
		if resp, body := w.as(t, "bob", "POST", "/agent/chat", `{"stream":true,"message":`+message+`}`); resp.StatusCode != 400 {
			t.Errorf("%.20s: %d %s", message, resp.StatusCode, body)
		}
	}
	for field, value := range map[string]string{"provider": "other", "model": "m-2"} {
		if resp, body := w.as(t, "bob", "POST", "/agent/chat", `{"message":"x","stream":true,"`+field+`":"`+value+`"}`); resp.StatusCode < 400 || resp.StatusCode > 499 {
			t.Errorf("%s: %d %s", value, resp.StatusCode, body)
		}
	}
	all := w.turnOf(t, `{"message":"many","stream":true,"max_tool_calls":3}`)
	var a agent.Answer
	if last := all[len(all)-1]; last.Kind != "done" || json.Unmarshal([]byte(last.Data), &a) != nil || string(a.StopReason) != string(agent.StopToolCalls) || len(a.ToolCalls) > 16 {
		t.Errorf("ten thousand calls: %d events, %+v", len(all), a)
	}
	if n := len(w.recordsOf(t, a.Conversation).Iterations); n != 3 {
		t.Errorf("%d of ten thousand calls were made, three were allowed", n)
	}
}

// A client that leaves ends the model's answer and the skill's run, and the conversation
// can go on.
func TestLeavingTheHostsAgent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	begun, ended := make(chan struct{}, 1), make(chan error, 1)
	w := looping(t, func(ctx context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
		last := r.Messages[len(r.Messages)-1]
		switch last.Text {
		case "think":
			text("Well")
			begun <- struct{}{}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, llm.Ended(ctx)
		case "again":
			return says("Here.", text)
		}
		return says("", text, llm.Call{ID: "a", Name: "mark-skill", Arguments: `{}`})
	})
	for _, message := range []string{"think", "run"} {
		w.Door.Add("mark-skill", func(ctx context.Context, _ skill.Request) (json.RawMessage, error) {
			begun <- struct{}{}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, &skill.Error{Code: skill.Cancelled, Message: "the call was cancelled"}
		})
		c := w.dial(t)
		c.send(t, talk(`{"message":"`+message+`","stream":true}`, "X-API-Key", "ann"))
		_, events := c.listen(t)
		var start struct {
			ID string `json:"conversation_id"`
		}
		musttest.Do(t, json.Unmarshal([]byte(events.until("start").Data), &start))
		wait(t, message, begun)
		_ = c.Close()
		if err := wait(t, "the end of "+message, ended); err == nil || err.Error() != "the client closed its connection" {
			t.Errorf("%s ended with %v", message, err)
		}
		within(t, "the conversation's end of the turn", func() bool {
			resp, body := w.as(t, "ann", "POST", "/agent/chat", `{"message":"again","conversation_id":"`+start.ID+`"}`)
			return resp.StatusCode == 200 && strings.Contains(string(body), `"answer":"Here."`)
		})
	}
}

// Tasks through the host's own loop, and what is told of them afterwards.
func TestTasksOfTheHostsAgent(t *testing.T) {
	w := looping(t, func(_ context.Context, r *llm.Request, text func(string)) (*llm.Reply, error) {
		prompt := r.Messages[len(r.Messages)-1].Text
		switch {
		case strings.Contains(prompt, "go on for ever"), strings.Contains(prompt, "look once") && !strings.Contains(prompt, "echoed"):
			return says(`{"thought":"t","action":{"type":"skill_call","skill":"echo","params":{"text":"x"}}}`, text)
		case strings.Contains(prompt, "down"):
			return nil, llm.Unavailable("test", 503, "it is down", 0, nil)
		}
		return says(`{"thought":"t","action":{"type":"finish","result":{"summary":"done"}}}`, text)
	})
	type outcome struct {
		Session    string `json:"session_id"`
		Status     string
		Iterations int
		Tokens     int `json:"total_token_usage"`
	}
	for _, tc := range []struct {
		body       string
		status     int
		outcome    string
		iterations int
	}{
		{`{"task":"look once"}`, 200, "completed", 1},
		{`{"task":"say it"}`, 200, "completed", 0},
		{`{"task":"go on for ever","options":{"max_iterations":2}}`, 200, "terminated", 2},
		{`{"task":"down"}`, 503, "failed", 0},
	} {
		resp, body := w.as(t, "bob", "POST", "/api/agent/execute", tc.body)
		var got struct{ Data outcome }
		if err := json.Unmarshal(body, &got); err != nil || resp.StatusCode != tc.status || got.Data.Status != tc.outcome || got.Data.Iterations != tc.iterations {
			t.Errorf("%s: %d %s", tc.body, resp.StatusCode, body)
			continue
		}
		kept := w.recordsOf(t, got.Data.Session)
		if kept.Status != tc.outcome || kept.Tokens != got.Data.Tokens || len(kept.Iterations) != tc.iterations {
			t.Errorf("%s: %+v afterwards, %+v in the answer", tc.body, kept, got.Data)
		}
		if resp, body := w.as(t, "ann", "GET", "/api/agent/executions/"+got.Data.Session, ""); resp.StatusCode != 404 {
			t.Errorf("%s, by another tenant: %d %s", tc.body, resp.StatusCode, body)
		}
		if resp, _ := w.as(t, "operator", "GET", "/api/agent/executions/"+got.Data.Session, ""); resp.StatusCode != 200 {
			t.Errorf("%s, by the operator: %d", tc.body, resp.StatusCode)
		}
	}
	for body, status := range map[string]int{
		`{"task":" "}`: 400, `{"task":"` + strings.Repeat("x", 2001) + `"}`: 400, `{"task":"x","options":{"skills":["none"]}}`: 404,
		`{"task":"x","options":{"max_iterations":11}}`: 422, `{"task":"x","options":{"timeout_seconds":9}}`: 422, `{"task":"x","options":{"skills":[]}}`: 422,
	} {
		if resp, got := w.as(t, "bob", "POST", "/api/agent/execute", body); resp.StatusCode != status {
			t.Errorf("%.60s: %d %s", body, resp.StatusCode, got)
		}
	}
}
