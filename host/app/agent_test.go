package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/host/agent"
	"openskill/host/agent/llm/llmtest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// schemaOfText is of skills that want a text.
const schemaOfText = "input_schema: {type: object, additionalProperties: false, required: [text], properties: {text: {type: string, description: What is said.}}}\n"

// addSkills puts skills into the folder of skills, each a module that prints a text.
func addSkills(t *testing.T, dir string, prints map[string]string) {
	t.Helper()
	for id, text := range prints {
		folder := filepath.Join(dir, id)
		musttest.Do(t, os.MkdirAll(folder, 0o700))
		after := time.Duration(0)
		if id == "slowly" {
			after = 10 * time.Second
		}
		manifest := manifestOf(id, "1.0.0", "type: wasm\nruntime: wasi\nentry: m.wasm\nlimits: {timeout_ms: 20000}\n"+schemaOfText)
		for name, b := range map[string][]byte{"skill.yaml": []byte(manifest), "m.wasm": says(text, after)} {
			musttest.Do(t, os.WriteFile(filepath.Join(folder, name), b, 0o600))
		}
	}
}

// talking is a host whose model follows a script.
type talking struct {
	*serving
	model *llmtest.Server
}

// talk starts a host with a scripted model, which is asked over HTTP as OpenAI's is.
func talk(t *testing.T, flags map[string]string, rules ...llmtest.Rule) *talking {
	t.Helper()
	model := musttest.Get(llmtest.New(llmtest.Script{Rules: rules}))(t)
	server := llmtest.NewServer(model, nil)
	all := map[string]string{"openai-api-base": server.Start(t) + "/v1", "openai-model": "scripted"}
	for k, v := range flags {
		all[k] = v
	}
	s := settings(t, all)
	addSkills(t, s.SkillsDir, map[string]string{
		"greet": `{"said": "hello"}`, "slowly": `{"said": "at last"}`,
		"fails": `{"success": false, "error": {"code": "CONFLICT", "message": "the door is shut"}}`,
	})
	v := &talking{serve(t, s), server}
	go func() {
		for v.log.Scan() { // nobody reads it
		}
	}()
	return v
}

// post sends a body and gives the status and the answer's body.
func (v *talking) send(t *testing.T, path, body string, out any) int {
	t.Helper()
	req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, v.url+path, strings.NewReader(body)))(t)
	return v.roundTrip(t, req, out)
}

func (v *talking) get(t *testing.T, path string, out any) int {
	t.Helper()
	req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, v.url+path, nil))(t)
	return v.roundTrip(t, req, out)
}

func (v *talking) roundTrip(t *testing.T, req *http.Request, out any) int {
	t.Helper()
	req.Close = true
	res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req)
	musttest.Do(t, err)
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		t.Fatalf("%s %s: %d: %v", req.Method, req.URL.Path, res.StatusCode, err)
	}
	return res.StatusCode
}

// said is an answer of the chat, or why there is none.
type said struct {
	agent.Answer
	Error *skill.ResultError `json:"error"`
}

// turn says a message.
func (v *talking) turn(t *testing.T, message, more string) (int, said) {
	t.Helper()
	var out said
	status := v.send(t, "/agent/chat", fmt.Sprintf(`{"message": %q%s}`, message, more), &out)
	return status, out
}

// records are the executions of a session, by the agent-service route.
func (v *talking) records(t *testing.T, session string) (all []record) {
	t.Helper()
	var out struct {
		Data struct {
			Iterations []record `json:"iterations"`
		} `json:"data"`
	}
	v.get(t, "/api/agent/executions/"+session, &out)
	return out.Data.Iterations
}

type record struct {
	Index  int    `json:"index"`
	Skill  string `json:"skill_name"`
	Status string `json:"status"`
	Tokens int    `json:"token_usage"`
}

func step(n int) *int { return &n }

func greet(text string) llmtest.Call {
	return llmtest.Call{Name: "greet", Arguments: llmtest.Arguments(`{"text": "` + text + `"}`)}
}

// answered is the rule that ends what a tool was called for.
func answered(say string) llmtest.Rule {
	return llmtest.Rule{When: llmtest.When{User: say, AfterTool: "greet", Result: "hello"}, Say: "it said hello, for " + say}
}

// TestAgentChat has a scripted model take turns of every kind, over HTTP, on a real host
// with real skills; what it calls is on record under its conversation.
func TestAgentChat(t *testing.T) {
	v := talk(t, nil,
		llmtest.Rule{When: llmtest.When{User: "^single"}, Say: "I will look. ", Calls: []llmtest.Call{greet("x")}},
		answered("^single"),
		llmtest.Rule{When: llmtest.When{User: "^parallel"}, Calls: []llmtest.Call{greet("a"), greet("b"), {Name: "fails", Arguments: `{"text": "c"}`}}},
		llmtest.Rule{When: llmtest.When{User: "^parallel", Step: step(1)}, Say: "all three"},
		llmtest.Rule{When: llmtest.When{User: "^mends"}, Calls: []llmtest.Call{{Name: "greet", Arguments: `{"txt": 1}`}}},
		llmtest.Rule{When: llmtest.When{User: "^mends", Result: `(?s)txt.*text`}, Calls: []llmtest.Call{greet("now right")}},
		answered("^mends"),
		llmtest.Rule{When: llmtest.When{User: "^never mends"}, Calls: []llmtest.Call{{Name: "greet", Arguments: `{"txt": 1}`}}},
		llmtest.Rule{When: llmtest.When{User: "^never mends", AfterTool: "greet"}, Calls: []llmtest.Call{{Name: "greet", Arguments: `no JSON`}}},
		llmtest.Rule{When: llmtest.When{User: "^unknown"}, Calls: []llmtest.Call{{Name: "gret", Arguments: `{}`}}},
		llmtest.Rule{When: llmtest.When{User: "^unknown", Result: `greet`, AfterTool: "gret"}, Calls: []llmtest.Call{greet("found")}},
		answered("^unknown"),
		llmtest.Rule{When: llmtest.When{User: "^fails"}, Calls: []llmtest.Call{{Name: "fails", Arguments: `{"text": "x"}`}}},
		llmtest.Rule{When: llmtest.When{User: "^fails", Result: "CONFLICT.*the door is shut"}, Say: "it is shut"},
		llmtest.Rule{When: llmtest.When{User: "^for ever"}, Calls: []llmtest.Call{greet("again")}},
		llmtest.Rule{When: llmtest.When{User: "^for ever", AfterTool: "greet"}, Say: "once more. ", Calls: []llmtest.Call{greet("again")}},
		llmtest.Rule{When: llmtest.When{User: "^ten thousand"}, Calls: []llmtest.Call{{Name: "greet", Arguments: `{"text": "x"}`, Repeat: 10_000}}},
		llmtest.Rule{When: llmtest.When{User: "^busy once"}, Status: 503, Times: 1},
		llmtest.Rule{When: llmtest.When{User: "^busy once"}, Say: "here I am"},
		llmtest.Rule{When: llmtest.When{User: "^busy for good"}, Status: 503, Say: "overloaded"},
		llmtest.Rule{When: llmtest.When{User: "^garbage"}, Raw: "<html>no model here</html>"},
		llmtest.Rule{When: llmtest.When{User: "^cut off"}, Say: strings.Repeat("words ", 100), CutAfter: 40},
		llmtest.Rule{When: llmtest.When{User: "^remembers"}, Say: "noted"},
		llmtest.Rule{When: llmtest.When{User: "^what did I say"}, Say: "you said it before"},
	)
	var out said
	if status := v.send(t, "/agent/chat", `{"message": "single one", "conversation_id": "01a202dd-0000-7000-8000-000000000000"}`, &out); status != 404 {
		t.Errorf("a conversation that there is not: %d %+v", status, out.Error)
	}
	for _, c := range []struct {
		message, more string
		status        int
		stop          agent.StopReason
		code          skill.Code
		answer        string
		calls         []bool // whether each succeeded
		iterations    int
		ran           int // that are on record
	}{
		{"single one", "", 200, agent.StopCompleted, "", "it said hello", []bool{true}, 2, 1},
		{"parallel", "", 200, agent.StopCompleted, "", "all three", []bool{true, true, false}, 2, 3},
		{"mends it", "", 200, agent.StopCompleted, "", "it said hello", []bool{false, true}, 3, 1},
		{"never mends it", "", 200, agent.StopInvalidCalls, "", "", []bool{false, false, false, false}, 4, 0},
		{"unknown tool", "", 200, agent.StopCompleted, "", "it said hello", []bool{false, true}, 3, 1},
		{"fails", "", 200, agent.StopCompleted, "", "it is shut", []bool{false}, 2, 1},
		{"for ever", `, "max_iterations": 3`, 200, "max_iterations", "", "once more", []bool{true, true, true}, 3, 3},
		{"for ever", `, "max_tool_calls": 2`, 200, "max_tool_calls", "", "", []bool{true, true, false}, 3, 2},
		{"busy once", "", 200, agent.StopCompleted, "", "here I am", []bool{}, 1, 0},
		{"busy for good", "", 503, "", skill.AgentLLMUnavailable, "", nil, 0, 0},
		{"garbage", "", 502, "", skill.AgentLLMParseError, "", nil, 0, 0},
		{"cut off", "", 503, "", skill.AgentLLMUnavailable, "", nil, 0, 0},
	} {
		status, got := v.turn(t, c.message, c.more)
		if c.code != "" {
			if got.Error == nil || status != c.status && !(c.message == "cut off" && status == 502) || got.Error.Status != status {
				t.Errorf("%s: %d %+v", c.message, status, got.Error)
			}
			continue
		}
		var succeeded []bool
		for _, call := range got.ToolCalls {
			if succeeded = append(succeeded, call.Success); call.Success != (call.Error == nil) || call.ID == "" || call.SkillID == "" || (call.ExecutionID != "") != (call.Success || call.SkillID == "fails") || len(call.Arguments) == 0 {
				t.Errorf("%s: a call is %+v", c.message, call)
			}
		}
		if status != c.status || got.StopReason != c.stop || fmt.Sprint(succeeded) != fmt.Sprint(c.calls) || got.Iterations != c.iterations ||
			!strings.Contains(got.Answer.Answer, c.answer) || got.Answer.Answer == "" || got.Usage.TotalTokens == 0 || got.Trace == "" || got.Conversation == "" {
			t.Errorf("%s%s: %d %+v, calls %v", c.message, c.more, status, got, succeeded)
		}
		recorded := v.records(t, got.Conversation)
		if len(recorded) != c.ran {
			t.Errorf("%s: on record are %+v, want %d", c.message, recorded, c.ran)
		}
		for i, r := range recorded {
			if i > 0 && r.Index < recorded[i-1].Index || r.Index >= c.iterations || r.Skill != "greet" && r.Skill != "fails" {
				t.Errorf("%s: on record are %+v", c.message, recorded)
			}
		}
	}

	// As many calls as the budget allows, and the answer does not list ten thousand.
	status, got := v.turn(t, "ten thousand", "")
	if ran := len(v.records(t, got.Conversation)); status != 200 || got.StopReason != "max_tool_calls" || ran != 32 || len(got.ToolCalls) > 100 {
		t.Errorf("ten thousand calls: %d %s, %d on record, %d listed", status, got.StopReason, ran, len(got.ToolCalls))
	}

	// A second turn of a conversation: the model is shown the first.
	_, first := v.turn(t, "remembers: the sea is blue", "")
	_, second := v.turn(t, "what did I say", `, "conversation_id": "`+first.Conversation+`"`)
	asked := v.model.Requests()
	if shown := asked[len(asked)-1].Ask.Messages; second.Conversation != first.Conversation || len(shown) != 3 || shown[0].Text != "remembers: the sea is blue" || shown[1].Text != "noted" {
		t.Errorf("it was shown %+v", shown)
	}
	var view agent.View
	if status := v.get(t, "/agent/conversations/"+first.Conversation, &view); status != 200 || len(view.Messages) != 4 {
		t.Errorf("%d %+v", status, view)
	}
}

// TestAgentBudgets reaches what bounds a turn beside its rounds and calls.
func TestAgentBudgets(t *testing.T) {
	loop := []llmtest.Rule{
		{When: llmtest.When{User: "^on"}, Calls: []llmtest.Call{greet("x")}},
		{When: llmtest.When{User: "^on", AfterTool: "greet"}, Calls: []llmtest.Call{greet("x")}, Usage: &llmtest.Usage{Prompt: 500, Completion: 500}},
		{When: llmtest.When{User: "^slow model"}, DelayMS: 20_000, Say: "too late"},
		{When: llmtest.When{User: "^slow skill"}, Calls: []llmtest.Call{{Name: "slowly", Arguments: `{"text": "x"}`}}},
		{When: llmtest.When{User: "^slow skill", AfterTool: "slowly"}, Say: "it came too late"},
	}
	for name, c := range map[string]struct {
		flags         map[string]string
		message, more string
		status        int
		stop          agent.StopReason
	}{
		"tokens":     {nil, "on and on", `, "max_tokens": 2500, "max_iterations": 100`, 200, "max_tokens"},
		"money":      {map[string]string{"agent-cents": "1", "agent-prices": "scripted=5/5"}, "on and on", "", 200, "max_cost"},
		"fuel":       {map[string]string{"agent-fuel": "50"}, "on and on", "", 200, "max_fuel"},
		"time":       {map[string]string{"agent-timeout-s": "1"}, "slow skill", "", 200, "timeout"},
		"slow model": {map[string]string{"llm-timeout-s": "1"}, "slow model", "", 503, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := talk(t, c.flags, loop...)
			begun := time.Now()
			status, got := v.turn(t, c.message, c.more)
			if status != c.status || got.StopReason != c.stop || time.Since(begun) > 9*time.Second {
				t.Errorf("after %v: %d %+v %+v", time.Since(begun), status, got.Answer, got.Error)
			}
			if status != 200 && (got.Error == nil || got.Error.Code != skill.AgentLLMUnavailable) {
				t.Errorf("%+v", got.Error)
			}
		})
	}
	t.Run("a model without a price", func(t *testing.T) {
		t.Parallel()
		model := llmtest.NewServer(llmtest.Provider(llmtest.Script{Rules: []llmtest.Rule{{Say: "hello"}}}), nil)
		s := settings(t, map[string]string{"openai-api-base": model.Start(t) + "/v1", "agent-cents": "1"})
		if h, err := Open(s, nil); err == nil || !strings.Contains(err.Error(), "OPENSKILL_AGENT_PRICES") {
			if err == nil {
				_ = h.Close()
			}
			t.Errorf("a host whose money is bounded by nothing: %v", err)
		}
	})
}

// TestAgentStream reads a turn as events; and a client that leaves in the middle ends the
// model's answer and the skill that runs.
func TestAgentStream(t *testing.T) {
	v := talk(t, nil,
		llmtest.Rule{When: llmtest.When{User: "^single"}, Say: "I will look. ", Calls: []llmtest.Call{greet("x")}},
		answered("^single"),
		llmtest.Rule{When: llmtest.When{User: "^slow skill"}, Calls: []llmtest.Call{{Name: "slowly", Arguments: `{"text": "x"}`}}},
		llmtest.Rule{When: llmtest.When{User: "^slow skill", AfterTool: "slowly"}, Say: "nobody hears it"},
	)
	events := func(ctx context.Context, message string, each func(kind, data string) bool) {
		t.Helper()
		req := musttest.Get(http.NewRequestWithContext(ctx, http.MethodPost, v.url+"/agent/chat", strings.NewReader(`{"message": "`+message+`", "stream": true}`)))(t)
		req.Close = true
		res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req)
		musttest.Do(t, err)
		defer res.Body.Close()
		kind := ""
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if k, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				kind = k
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && !each(kind, data) {
				return
			}
		}
	}
	var kinds []string
	text, done := "", agent.Answer{}
	events(t.Context(), "single", func(kind, data string) bool {
		if n := len(kinds); n == 0 || kinds[n-1] != kind {
			kinds = append(kinds, kind)
		}
		switch kind {
		case "text":
			var part struct{ Text string }
			_ = json.Unmarshal([]byte(data), &part)
			text += part.Text
		case "done":
			_ = json.Unmarshal([]byte(data), &done)
		}
		return true
	})
	if got := strings.Join(kinds, " "); got != "start text usage tool_start tool_end text usage done" {
		t.Errorf("the events are %s", got)
	}
	if !strings.HasPrefix(text, "I will look. ") || !strings.HasSuffix(text, done.Answer) || done.StopReason != agent.StopCompleted {
		t.Errorf("heard %q, and at the end %+v", text, done)
	}

	conversation := ""
	ctx, leave := context.WithCancel(t.Context())
	events(ctx, "slow skill", func(kind, data string) bool {
		var begin struct {
			ID string `json:"conversation_id"`
		}
		if kind == "start" {
			_ = json.Unmarshal([]byte(data), &begin)
			conversation = begin.ID
		}
		return kind != "tool_start"
	})
	leave()
	deadline := time.Now().Add(8 * time.Second) // less than the skill takes
	for {
		if all := v.records(t, conversation); len(all) == 1 && all[0].Status == "terminated" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the skill runs on: %+v", v.records(t, conversation))
		}
		time.Sleep(20 * time.Millisecond)
	}
	if n := v.model.Requests(); len(n) != 3 {
		t.Errorf("the model was asked %d times", len(n))
	}
}

// TestAgentTask has tasks end in each of the ways that the agent-service documents know.
func TestAgentTask(t *testing.T) {
	call := func(name, params string) string {
		return `{"thought": "next", "action": {"type": "skill_call", "skill": "` + name + `", "params": ` + params + `}}`
	}
	const finish = `{"thought": "enough", "action": {"type": "finish", "result": {"summary": "well done", "findings": [1]}}}`
	v := talk(t, map[string]string{"agent-limits": "round_timeout_s:2"},
		llmtest.Rule{When: llmtest.When{User: "two steps(?s:.*)hello(?s:.*)hello"}, Say: finish, Usage: &llmtest.Usage{Prompt: 200, Completion: 100}},
		llmtest.Rule{When: llmtest.When{User: "two steps"}, Say: call("greet", `{"text": "x"}`), Usage: &llmtest.Usage{Prompt: 300, Completion: 200}},
		llmtest.Rule{When: llmtest.When{User: "no end"}, Say: call("greet", `{"text": "x"}`), Usage: &llmtest.Usage{Prompt: 1, Completion: 1}},
		llmtest.Rule{When: llmtest.When{User: "dear"}, Say: call("greet", `{"text": "x"}`), Usage: &llmtest.Usage{Prompt: 2000, Completion: 2000}},
		llmtest.Rule{When: llmtest.When{User: "slow skill"}, Say: call("slowly", `{"text": "x"}`)},
		llmtest.Rule{When: llmtest.When{User: "in words"}, Say: "I would rather talk."},
		llmtest.Rule{When: llmtest.When{User: "wrong(?s:.*)hello"}, Say: finish},
		llmtest.Rule{When: llmtest.When{User: "wrong(?s:.*)missing"}, Say: call("greet", `{"text": "mended"}`)},
		llmtest.Rule{When: llmtest.When{User: "wrong(?s:.*)greet, "}, Say: call("greet", `{}`)},
		llmtest.Rule{When: llmtest.When{User: "wrong"}, Say: call("nothing", `{}`)},
		llmtest.Rule{When: llmtest.When{User: "unreachable"}, Status: 503},
		llmtest.Rule{When: llmtest.When{User: "later gone(?s:.*)hello"}, Status: 503},
		llmtest.Rule{When: llmtest.When{User: "later gone"}, Say: call("greet", `{"text": "x"}`)},
	)
	type result struct {
		Summary    string            `json:"summary"`
		Partial    *bool             `json:"partial"`
		Findings   []any             `json:"findings"`
		SkillCalls []agent.SkillCall `json:"skill_calls"`
		Error      *struct{ Code skill.Code }
	}
	for _, c := range []struct {
		task, options string
		http          int
		status        agent.TaskStatus
		code          skill.Code
		iterations    int
		tokens        int
		calls         string
	}{
		{"two steps", "", 200, agent.TaskCompleted, "", 2, 1300, "success,success"},
		{"no end", `"max_iterations": 3`, 200, agent.TaskTerminated, skill.AgentMaxIterations, 3, 6, "success,success,success"},
		{"no end", "", 200, agent.TaskTerminated, skill.AgentMaxIterations, 10, 20, strings.TrimSuffix(strings.Repeat("success,", 10), ",")},
		{"dear", "", 200, agent.TaskTerminated, skill.AgentTokenExhausted, 2, 8000, "success,success"},
		{"slow skill", "", 200, agent.TaskTimedOut, skill.AgentExecutionTimeout, 1, -1, "failed"},
		{"in words", "", 200, agent.TaskCompleted, "", 0, -1, ""},
		{"wrong", "", 200, agent.TaskCompleted, "", 3, -1, "failed,failed,success"},
		{"unreachable", "", 503, agent.TaskFailed, skill.AgentLLMUnavailable, 0, 0, ""},
		{"later gone", "", 200, agent.TaskFailed, skill.AgentLLMUnavailable, 1, -1, "success"},
	} {
		var out struct {
			Data  *agent.Outcome     `json:"data"`
			Error *skill.ResultError `json:"error"`
			Meta  struct {
				RequestID string    `json:"request_id"`
				Timestamp time.Time `json:"timestamp"`
			} `json:"meta"`
		}
		status := v.send(t, "/api/agent/execute", fmt.Sprintf(`{"task": %q, "context": {"time_range": "7d"}, "options": {%s}}`, c.task, c.options), &out)
		var r result
		if out.Data == nil || json.Unmarshal(out.Data.Result, &r) != nil || out.Meta.RequestID == "" || out.Meta.Timestamp.IsZero() {
			t.Fatalf("%s: %d %+v %+v", c.task, status, out.Data, out.Error)
		}
		var calls []string
		for _, call := range r.SkillCalls {
			calls = append(calls, call.Status)
		}
		if status != c.http || out.Data.Status != c.status || out.Data.Iterations != c.iterations || c.tokens >= 0 && out.Data.TotalTokens != c.tokens ||
			strings.Join(calls, ",") != c.calls || r.Partial == nil || *r.Partial != (c.status != agent.TaskCompleted) || r.Summary == "" || r.SkillCalls == nil {
			t.Errorf("%s: %d %s %d %d %s", c.task, status, out.Data.Status, out.Data.Iterations, out.Data.TotalTokens, out.Data.Result)
		}
		if c.code != "" && (r.Error == nil || r.Error.Code != c.code || r.Findings == nil) || (out.Error != nil) != (status != 200) {
			t.Errorf("%s: %+v, %+v", c.task, r, out.Error)
		}
		var kept struct {
			Data struct {
				Session    string   `json:"session_id"`
				Principal  string   `json:"principal_id"`
				Status     string   `json:"status"`
				Tokens     int      `json:"total_token_usage"`
				Iterations []record `json:"iterations"`
			} `json:"data"`
		}
		if status := v.get(t, "/api/agent/executions/"+out.Data.SessionID, &kept); status != 200 || kept.Data.Status != string(c.status) ||
			kept.Data.Tokens != out.Data.TotalTokens || kept.Data.Principal != "local" || len(kept.Data.Iterations) != strings.Count(c.calls, "success")+strings.Count(c.task, "slow") {
			t.Errorf("%s: kept are %+v", c.task, kept.Data)
		}
	}

	for body, want := range map[string]struct {
		status int
		code   skill.Code
	}{
		`{"task": ""}`:                        {400, skill.AgentInvalidTask},
		`{"task": "  \n "}`:                   {400, skill.AgentInvalidTask},
		`{"task": "` + long(2001, "文") + `"}`: {400, skill.AgentInvalidTask},
		`{}`:                                  {422, skill.AgentValidationError},
		`{"task": 1}`:                         {422, skill.AgentValidationError},
		`{"task": "x", "context": []}`:        {422, skill.AgentValidationError},
		`{"task": "x", "more": 1}`:            {422, skill.AgentValidationError},
		`{"task": "x", "options": {"max_iterations": 11}}`:   {422, skill.AgentValidationError},
		`{"task": "x", "options": {"max_iterations": 0}}`:    {422, skill.AgentValidationError},
		`{"task": "x", "options": {"timeout_seconds": 9}}`:   {422, skill.AgentValidationError},
		`{"task": "x", "options": {"timeout_seconds": 601}}`: {422, skill.AgentValidationError},
		`{"task": "x", "options": {"skills": ["nothing"]}}`:  {404, skill.AgentSkillNotFound},
		`{`: {422, skill.AgentValidationError},
	} {
		var out struct{ Error *skill.ResultError }
		if status := v.send(t, "/api/agent/execute", body, &out); status != want.status || out.Error == nil || out.Error.Code != want.code || out.Error.Status != status {
			t.Errorf("%.60s: %d %+v, want %d %s", body, status, out.Error, want.status, want.code)
		}
	}
	// A task of the longest length is one.
	var out struct{ Error *skill.ResultError }
	if status := v.send(t, "/api/agent/execute", `{"task": "in words `+long(1991, "文")+`"}`, &out); status != 200 {
		t.Errorf("2,000 characters: %d %+v", status, out.Error)
	}
}

func long(n int, s string) string { return strings.Repeat(s, n) }
