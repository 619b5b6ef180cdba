package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// chatHost is a host over HTTP that answers messages by what they say.
type chatHost struct {
	*httptest.Server
	key string // that it wants; "": none

	slow chan struct{} // a turn has begun that does not end
	left chan struct{} // its client has left

	mu    sync.Mutex
	asked []string // bodies, one a turn
}

func newChatHost(t *testing.T) *chatHost {
	t.Helper()
	h := &chatHost{slow: make(chan struct{}, 8), left: make(chan struct{}, 8)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /agent/chat", h.chat)
	mux.HandleFunc("POST /agent/conversations/{call}", h.approve)
	for path, body := range map[string]string{
		"GET /skills": `{"data": [
			{"id": "calculator", "description": "Statistics over numbers, 平均值和中位数, and the comparison of two values.", "enabled": true, "trust": "trusted"},
			{"id": "echo", "description": "Says it again.\u001b[2J", "enabled": false, "trust": "community"}], "next": null}`,
		"GET /agent-skills": `{"data": [{"name": "unit-converter", "description": "Miles and kilometres.", "trust": "trusted"}], "next": null}`,
		"GET /tools":        `[{"type": "function", "function": {"name": "calculator", "description": "Statistics."}}, {"type": "function", "function": {"name": "load_skill"}}]`,
		"GET /agent/conversations": `{"data": [
			{"id": "c-9", "title": "an older one\u202e", "updated_at": "2026-01-02T03:04:05Z", "messages": 4}], "next": null}`,
		"GET /agent/conversations/c-9": `{"id": "c-9", "title": "an older one", "updated_at": "2026-01-02T03:04:05Z", "messages": [
			{"role": "user", "text": "Convert 26.2 miles"}, {"role": "assistant", "calls": [{"id": "7", "name": "run_skill_script",
			 "arguments": "{\"skill_name\": \"unit-converter\", \"script_file\": \"scripts/convert.py\", \"args\": [\"--value\", \"26.2\"]}"}]}],
			"pending": [{"approval_id": "ap-7", "tool_call_id": "7", "skill_id": "run_skill_script"}]}`,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { problem(w, 404, "NOT_FOUND", "there is none") })
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.key != "" && r.Header.Get("Authorization") != "Bearer "+h.key {
			problem(w, 401, "UNAUTHORIZED", "this host wants to know who calls")
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

func problem(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error": {"code": %q, "status": %d, "message": %q}}`, code, status, message)
}

// turns gives what the host was asked.
func (h *chatHost) turns() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.asked...)
}

// eventStream writes events as a host does, and only the answer where no stream is wanted.
type eventStream struct {
	w       http.ResponseWriter
	streams bool
}

func (s eventStream) send(kind string, data any) {
	b, err := json.Marshal(data)
	switch {
	case err != nil:
		panic(err)
	case s.streams:
		fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", kind, b)
		s.w.(http.Flusher).Flush()
	case kind == "done":
		_, _ = s.w.Write(b)
	}
}

func (s eventStream) say(parts ...string) {
	for _, p := range parts {
		s.send("text", map[string]string{"text": p})
	}
}

type object = map[string]any

func (s eventStream) done(text, stop string, more object) {
	a := object{
		"conversation_id": "c-1", "answer": text, "tool_calls": []any{}, "iterations": 1, "stop_reason": stop, "trace_id": "t-1", "provider": "openai",
		"model": "gpt-4o", "usage": object{"prompt_tokens": 120, "completion_tokens": 12, "total_tokens": 132, "cost_usd": 0.0021},
	}
	for k, v := range more {
		a[k] = v
	}
	s.send("done", a)
}

var meanCall = object{"id": "1", "skill_id": "calculator", "arguments": object{"numbers": []int{3, 5}, "ops": []string{"mean"}}}

func with(o, more object) object {
	out := object{}
	for _, m := range []object{o, more} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// hostileText tries what a terminal can be made to do.
const hostileText = "ok\x1b]52;c;aGk=\x07 \x1b[2J\x1b[31mred\u202e over\rwritten \u009b2J"

func (h *chatHost) chat(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	var ask struct {
		Message string `json:"message"`
		Stream  bool   `json:"stream"`
	}
	_ = json.Unmarshal(b, &ask)
	h.mu.Lock()
	h.asked = append(h.asked, string(b))
	h.mu.Unlock()
	s := eventStream{w, ask.Stream}
	has := func(word string) bool { return strings.Contains(ask.Message, word) }
	if has("refuse") {
		problem(w, 409, "CONFLICT", "another message of this conversation is being answered")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if ask.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	s.send("start", object{"conversation_id": "c-1", "trace_id": "t-1"})
	switch {
	case has("mean"):
		s.say("Let me ", "see.")
		s.send("tool_start", meanCall)
		ended := with(meanCall, object{"success": true, "error": nil, "latency_ms": 12, "execution_id": "e-1"})
		s.send("tool_end", with(ended, object{"result": `{"mean":4}`}))
		s.say("The mean of 3", " and 5 ", "is 4.")
		s.done("The mean of 3 and 5 is 4.", "completed", object{"tool_calls": []any{ended}})
	case has("slow"), has("silent"):
		if has("slow") {
			s.say("Thinking about it")
		}
		h.slow <- struct{}{}
		<-r.Context().Done()
		h.left <- struct{}{}
	case has("中文"):
		parts := []string{"三与五的平均值是四，", "中位数也是四。", "这一行比窗口宽，所以要折行。"}
		s.send("tool_start", with(meanCall, object{"arguments": object{"问题": "请计算三与五的平均值和中位数，然后比较它们"}}))
		s.send("tool_end", with(meanCall, object{"success": false, "latency_ms": 3, "error": object{"code": "INVALID_ARGUMENT", "message": "输入不符合技能的模式：缺少字段 numbers"}}))
		s.say(parts...)
		s.done(strings.Join(parts, ""), "completed", nil)
	case has("hostile"):
		s.say(strings.Split(hostileText, "")...) // a part for each character
		s.send("tool_start", object{"id": "2", "skill_id": "e\x1b[2Jvil", "arguments": object{"a": "\x1b]0;x\x07"}})
		s.send("tool_end", object{"id": "2", "skill_id": "e\x1b[2Jvil", "arguments": object{}, "success": true, "latency_ms": 1, "result": "\x1b[2J\r\n\u202ex"})
		s.say(hostileText)
		s.done(hostileText, "max\x1b[2J", object{"model": "m\x1b[2J"})
	case has("run it"):
		call := object{"id": "7", "skill_id": "run_skill_script", "arguments": object{"skill_name": "unit-converter", "script_file": "scripts/convert.py", "args": []string{"--value", "26.2\x1b[2J"}}}
		s.send("tool_start", call)
		s.done("", "approval_required", object{
			"tool_calls": []any{with(call, object{"success": false, "error": object{"code": "FORBIDDEN", "status": 403, "message": "it waits for an approval"}})},
			"approvals":  []any{object{"approval_id": "ap-7", "tool_call_id": "7", "skill_id": "unit-converter", "script": "scripts/convert.py"}},
		})
	case has("limit"):
		s.say("I got as far as this.")
		s.done("The turn ended as max_tool_calls.", "max_tool_calls", nil)
	case has("rules"):
		s.say("echo")
		s.done("echo", "completed", object{"provider": "rules", "model": "", "usage": object{}})
	case has("break"):
		s.say("half an ans")
		s.send("error", object{"code": "AGENT_LLM_UNAVAILABLE", "status": 503, "message": "the model provider cannot be reached"})
	default:
		s.say("You said ", ask.Message)
		s.done("You said "+ask.Message, "completed", nil)
	}
}

func (h *chatHost) approve(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	h.asked = append(h.asked, r.PathValue("call")+" "+string(b))
	h.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	s := eventStream{w, true}
	s.send("start", object{"conversation_id": "c-1"})
	text := "Nothing was run."
	if strings.Contains(string(b), `"approve":true`) {
		text = "It is 42.16 km."
	}
	s.say(text)
	s.done(text, "completed", nil)
}
