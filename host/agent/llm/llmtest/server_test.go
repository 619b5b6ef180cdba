package llmtest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"openskill/host/agent/llm"
	"openskill/host/agent/llm/llmtest"
	"openskill/internal/musttest"
)

// post asks a server, as the vendor of the path is asked.
func post(t *testing.T, url, path, body string) (int, http.Header, string, error) {
	t.Helper()
	req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(body)))(t)
	req.Header.Set("Content-Type", "application/json")
	if strings.HasSuffix(path, "/messages") {
		req.Header.Set("Anthropic-Version", "2023-06-01")
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, res.Header, string(b), err
}

const (
	chats    = "/v1/chat/completions"
	messages = "/v1/messages"
	slots    = "/api/llm/chat"
)

// TestRefusedRequests: what the vendors refuse is refused in their words for it.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	url := llmtest.NewServer(llmtest.Provider(llmtest.Script{Rules: said("ok")}), &llmtest.ServerOptions{MaxBody: 1 << 20}).Start(t)
	const (
		asked    = `{"role": "user", "content": "x"}`
		called   = `{"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}]}`
		answered = `{"role": "tool", "tool_call_id": "a", "content": "r"}`
		used     = `{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]}`
		result   = `{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "r"}]}`
	)
	openAI := func(messages, more string) string {
		return `{"model": "m", "messages": [` + messages + `]` + more + `}`
	}
	anthropic := func(messages, more string) string {
		return `{"model": "m", "max_tokens": 5, "messages": [` + messages + `]` + more + `}`
	}
	service := func(messages, more string) string {
		return `{"slot": "fast", "messages": [` + messages + `]` + more + `}`
	}
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{chats, openAI(asked, ""), 200, `"content":"ok"`},
		{"/compatible-mode/v1/chat/completions/", openAI(asked, ""), 200, `"content":"ok"`},
		{chats, openAI(`{"role": "developer", "content": "x"}, `+asked+`, `+called+`, `+answered+`, `+asked, `, "max_completion_tokens": 5, "tools": [{"type": "function", "function": {"name": "t"}}], "tool_choice": "auto"`), 200, "ok"},
		{chats, `{`, 400, "could not parse"},
		{chats, `{"messages": [` + asked + `]}`, 400, "model"},
		{chats, openAI("", ""), 400, "at least one"},
		{chats, openAI(asked, `, "stream_options": {}`), 400, "only allowed when 'stream'"},
		{chats, openAI(asked, `, "max_tokens": 0`), 400, "at least 1"},
		{chats, openAI(asked, `, "max_tokens": 1, "max_completion_tokens": 1`), 400, "exclude each other"},
		{chats, openAI(asked, `, "temperature": 2.1`), 400, "from 0 to 2"},
		{chats, openAI(asked, `, "tools": []`), 400, "has 0"},
		{chats, openAI(asked, `, "tools": [`+strings.TrimSuffix(strings.Repeat(`{},`, 129), ",")+`]`), 400, "has 129"},
		{chats, openAI(asked, `, "tool_choice": "auto"`), 400, "'tool_choice'"},
		{chats, openAI(asked, `, "tools": [{"type": "function", "function": {"name": "a b"}}]`), 400, "tools[0]"},
		{chats, openAI(asked, `, "tools": [{"type": "function", "function": {"name": "a", "parameters": {"type": "array"}}}]`), 400, "Invalid schema for function 'a'"},
		{chats, openAI(asked, `, "response_format": {"type": "json_object"}`), 400, "must contain the word 'json'"},
		{chats, openAI(`{"role": "user", "content": "in JSON"}`, `, "response_format": {"type": "json_object"}`), 200, "ok"},
		{chats, openAI(`{"role": "user", "content": [{"type": "image_url"}]}`, ""), 400, "reads text alone"},
		{chats, openAI(`{"role": "user", "content": 7}`, ""), 400, "content must be"},
		{chats, openAI(`{"role": "narrator", "content": "x"}`, ""), 400, "narrator"},
		{chats, openAI(`{"role": "assistant"}`, ""), 400, "needs content or tool_calls"},
		{chats, openAI(asked+`, `+answered, ""), 400, "must be a response to"},
		{chats, openAI(asked+`, `+called+`, `+answered+`, `+answered, ""), 400, "must be a response to"},
		{chats, openAI(asked+`, `+called+`, `+asked, ""), 400, "must be followed by"},
		{chats, openAI(asked+`, `+called, ""), 400, "must be followed by"},
		{chats, openAI(`{"role": "assistant", "tool_calls": [{"id": "", "type": "function", "function": {"name": "t", "arguments": "{}"}}]}`, ""), 400, "an id of its own"},
		{chats, openAI(`{"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "t"}}]}`, ""), 400, "arguments as a string"},
		{chats, strings.Repeat(" ", 1<<20+1), 413, "too large"},
		{"/v1/embeddings", `{}`, 404, "there is no POST /v1/embeddings here"},
		{"/v1/models", `{}`, 405, "the method is GET"},

		{messages, anthropic(asked, ""), 200, `"text":"ok"`},
		{messages, anthropic(asked+`, `+used+`, `+result, `, "tools": [{"name": "t", "input_schema": {"type": "object"}}], "system": [{"type": "text", "text": "s"}]`), 200, "ok"},
		{messages, `]`, 400, "not valid JSON"},
		{messages, `{"max_tokens": 5, "messages": [` + asked + `]}`, 400, "model: Field required"},
		{messages, `{"model": "m", "messages": [` + asked + `]}`, 400, "max_tokens: Field required"},
		{messages, `{"model": "m", "max_tokens": 0, "messages": [` + asked + `]}`, 400, "greater than or equal to 1"},
		{messages, anthropic("", ""), 400, "at least one message"},
		{messages, anthropic(used, ""), 400, "first message must use"},
		{messages, anthropic(asked, `, "temperature": 1.5`), 400, "from 0 to 1"},
		{messages, anthropic(asked, `, "system": [{"type": "text", "text": ""}]`), 400, "system: text content blocks"},
		{messages, anthropic(asked, `, "tools": [{"name": "a b", "input_schema": {"type": "object"}}]`), 400, "tools.0.name"},
		{messages, anthropic(asked, `, "tools": [{"name": "a"}]`), 400, "input_schema.type"},
		{messages, anthropic(asked, `, "tools": [{"name": "a", "input_schema": {"type": "object"}}, {"name": "a", "input_schema": {"type": "object"}}]`), 400, "must be unique"},
		{messages, anthropic(`{"role": "user", "content": ""}`, ""), 400, "must be non-empty"},
		{messages, anthropic(`{"role": "user", "content": []}`, ""), 400, "non-empty content"},
		{messages, anthropic(asked+`, {"role": "system", "content": "x"}`, ""), 400, "'user' or 'assistant'"},
		{messages, anthropic(asked+`, `+used, ""), 400, "without `tool_result`"},
		{messages, anthropic(asked+`, `+used+`, `+asked, ""), 400, "without `tool_result`"},
		{messages, anthropic(asked+`, `+result, ""), 400, "unexpected `tool_use_id`"},
		{messages, anthropic(asked+`, `+used+`, {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "tool_result", "tool_use_id": "a"}]}`, ""), 400, "come first"},
		{messages, anthropic(asked+`, {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": "{}"}]}`, ""), 400, "an object as input"},
		{messages, anthropic(`{"role": "user", "content": [{"type": "image"}]}`, ""), 400, "of type image"},

		{slots, service(asked, ""), 200, `"content":"ok"`},
		{slots, `[]`, 400, "not JSON"},
		{slots, `{"slot": "slow", "messages": [` + asked + `]}`, 400, "fast or reasoning"},
		{slots, service(asked, `, "stream": true`), 400, "must be false"},
		{slots, service("", ""), 400, "at least one"},
		{slots, service(asked+`, `+called, ""), 400, "must be followed by"},
	} {
		status, header, body, err := post(t, url, c.path, c.body)
		var v struct{ Error struct{ Message string } }
		if err != nil || status != c.status || header.Get("Content-Type") != "application/json" || json.Unmarshal([]byte(body), &v) != nil ||
			!strings.Contains(body+v.Error.Message, c.want) {
			t.Errorf("%s %.120s: %d %.300s, %v; want %d with %q", c.path, c.body, status, body, err, c.status, c.want)
		}
	}
}

// TestWholeAnswers are the bodies, byte for byte.
func TestWholeAnswers(t *testing.T) {
	t.Parallel()
	url := llmtest.NewServer(llmtest.Provider(llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "call"}, Say: "Let me see.", Calls: []llmtest.Call{{Name: "t", Arguments: `{"a": "<b>"}`}, {Name: "t", Arguments: `{"a"`}, {Name: "t"}}, Usage: &llmtest.Usage{Prompt: 1, Completion: 2}},
		{Say: "ok", Usage: &llmtest.Usage{Unsaid: true}, Stop: llm.StopRefused},
	}}), nil).Start(t)
	for _, c := range []struct{ path, text, want string }{
		{chats, "call", `{"choices":[{"finish_reason":"tool_calls","index":0,"logprobs":null,"message":{"content":"Let me see.","refusal":null,"role":"assistant","tool_calls":[` +
			`{"function":{"arguments":"{\"a\": \"<b>\"}","name":"t"},"id":"call_1_0","type":"function"},{"function":{"arguments":"{\"a\"","name":"t"},"id":"call_1_1","type":"function"},{"function":{"arguments":"","name":"t"},"id":"call_1_2","type":"function"}]}}],` +
			`"created":1767225600,"id":"chatcmpl-scripted","model":"m","object":"chat.completion","system_fingerprint":null,"usage":{"completion_tokens":2,"prompt_tokens":1,"total_tokens":3}}`},
		{chats, "x", `{"choices":[{"finish_reason":"content_filter","index":0,"logprobs":null,"message":{"content":"ok","refusal":null,"role":"assistant"}}],"created":1767225600,"id":"chatcmpl-scripted","model":"m","object":"chat.completion","system_fingerprint":null}`},
		{messages, "call", `{"content":[{"text":"Let me see.","type":"text"},{"id":"call_1_0","input":{"a":"<b>"},"name":"t","type":"tool_use"},{"id":"call_1_1","input":"{\"a\"","name":"t","type":"tool_use"},{"id":"call_1_2","input":{},"name":"t","type":"tool_use"}],` +
			`"id":"msg_scripted","model":"m","role":"assistant","stop_reason":"tool_use","stop_sequence":null,"type":"message","usage":{"input_tokens":1,"output_tokens":2}}`},
		{messages, "x", `{"content":[{"text":"ok","type":"text"}],"id":"msg_scripted","model":"m","role":"assistant","stop_reason":"refusal","stop_sequence":null,"type":"message","usage":{"input_tokens":0,"output_tokens":0}}`},
		{slots, "x", `{"data":{"choices":[{"finish_reason":"content_filter","index":0,"message":{"content":"ok","refusal":null,"role":"assistant"}}],"model":"scripted"},"meta":{"request_id":"req_llm-service","timestamp":"2026-01-01T00:00:00Z"}}`},
	} {
		body := `{"model": "m", "slot": "reasoning", "max_tokens": 5, "messages": [{"role": "user", "content": "` + c.text + `"}]}`
		if status, _, got, err := post(t, url, c.path, body); err != nil || status != 200 || got != c.want {
			t.Errorf("%s %s: %d, %v\ngot  %s\nwant %s", c.path, c.text, status, err, got, c.want)
		}
	}
}

// TestHowItIsAnswered: statuses, garbage, and connections that end.
func TestHowItIsAnswered(t *testing.T) {
	t.Parallel()
	url := llmtest.NewServer(llmtest.Provider(llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "busy"}, Status: 503, RetryAfter: 2, Say: "later"},
		{When: llmtest.When{User: "garbage"}, Raw: "<html>\n"},
		{When: llmtest.When{User: "wrong proxy"}, Raw: "Bad Gateway", Status: 502},
		{When: llmtest.When{User: "short"}, Say: "a long answer", CutAfter: 10},
		{When: llmtest.When{User: "slow"}, Say: "a long answer", Chunk: 40, PauseMS: 1},
		{When: llmtest.When{User: "silent"}, CutAfter: -1},
	}}), nil).Start(t)
	for _, path := range []string{chats, messages} {
		for _, stream := range []string{"false", "true"} {
			ask := func(text string) (int, http.Header, string, error) {
				return post(t, url, path, `{"model": "m", "max_tokens": 5, "stream": `+stream+`, "messages": [{"role": "user", "content": "`+text+`"}]}`)
			}
			name := path + " stream " + stream
			if status, header, body, err := ask("busy"); err != nil || status != 503 || header.Get("Retry-After") != "2" || !strings.Contains(body, "later") || !json.Valid([]byte(body)) {
				t.Errorf("%s, busy: %d %s %v", name, status, body, err)
			}
			if status, _, body, err := ask("garbage"); err != nil || status != 200 || body != "<html>\n" {
				t.Errorf("%s, garbage: %d %s %v", name, status, body, err)
			}
			if status, _, body, err := ask("wrong proxy"); err != nil || status != 502 || body != "Bad Gateway" {
				t.Errorf("%s, a wrong proxy: %d %s %v", name, status, body, err)
			}
			if status, _, body, err := ask("short"); !errors.Is(err, io.ErrUnexpectedEOF) || status != 200 || len(body) != 10 {
				t.Errorf("%s, cut: %d %q %v", name, status, body, err)
			}
			if status, header, body, err := ask("slow"); err != nil || status != 200 || !strings.Contains(body, "a long answer") || (stream == "true") != strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
				t.Errorf("%s, slow: %d %v %s %v", name, status, header, body, err)
			}
			if _, _, body, err := ask("silent"); err == nil {
				t.Errorf("%s, silent: %s", name, body)
			}
		}
	}
}

// TestEachPartAtOnce: a part of a stream is sent when it is said, and not with the next.
func TestEachPartAtOnce(t *testing.T) {
	t.Parallel()
	m := llmtest.Provider(llmtest.Script{Rules: []llmtest.Rule{{Say: "ab", Chunk: 1, PauseMS: 10 * 60 * 1000}}})
	url := llmtest.NewServer(m, nil).Start(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req := musttest.Get(http.NewRequestWithContext(ctx, http.MethodPost, url+chats, strings.NewReader(`{"model": "m", "stream": true, "messages": [{"role": "user", "content": "x"}]}`)))(t)
	res, err := (&http.Client{Transport: &http.Transport{}}).Do(req)
	musttest.Do(t, err)
	defer res.Body.Close()
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || !strings.Contains(line, `"role":"assistant"`) {
		t.Errorf("the first line is %q, %v, though the next one comes in ten minutes", line, err)
	}
}

// TestTenThousandCalls: an answer may ask for as many, streamed or not.
func TestTenThousandCalls(t *testing.T) {
	t.Parallel()
	url := llmtest.NewServer(llmtest.Provider(llmtest.Script{Rules: []llmtest.Rule{{Calls: []llmtest.Call{{Name: "t", Arguments: `{"a":1}`, Repeat: 10_000}}}}}), nil).Start(t)
	for path, marks := range map[string][2]string{chats: {`"id":"call_1_`, `"id":"call_1_`}, messages: {`"type":"tool_use"`, "event: content_block_stop"}} {
		for i, stream := range []string{"false", "true"} {
			_, _, body, err := post(t, url, path, `{"model": "m", "max_tokens": 5, "stream": `+stream+`, "messages": [{"role": "user", "content": "x"}]}`)
			if n := strings.Count(body, marks[i]); err != nil || n != 10_000 {
				t.Errorf("%s, stream %s: %d calls, %v", path, stream, n, err)
			}
		}
	}
}

// TestWhatWasAsked: a request is kept with its bytes, and as it was understood.
func TestWhatWasAsked(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(llmtest.Provider(llmtest.Script{Rules: said("ok")}), nil)
	url := s.Start(t)
	bodies := map[string]string{
		chats: `{"model": "m", "stream": true, "max_tokens": 7, "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "x"}]},
			{"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "t", "arguments": "{\"k\": 1}"}}]}, {"role": "tool", "tool_call_id": "a", "content": "r"}]}`,
		messages: `{"model": "m", "stream": true, "max_tokens": 7, "system": "s", "messages": [{"role": "user", "content": "x"},
			{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {"k": 1}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "r"}]}]}]}`,
	}
	for _, path := range []string{chats, messages} {
		if status, _, body, err := post(t, url, path, bodies[path]); status != 200 || err != nil {
			t.Fatalf("%s: %d %s %v", path, status, body, err)
		}
	}
	all := s.Requests()
	for i, path := range []string{chats, messages} {
		r, want := all[i], []string{"user:x", `assistant:a t({"k": 1})`, "tool:r of a"}
		var got []string
		for _, m := range r.Ask.Messages {
			text := string(m.Role) + ":" + m.Text
			for _, c := range m.Calls {
				text += fmt.Sprintf("%s %s(%s)", c.ID, c.Name, c.Arguments)
			}
			if m.CallID != "" {
				text += " of " + m.CallID
			}
			got = append(got, text)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || r.Ask.System != "s" || r.Ask.MaxTokens != 7 || !r.Stream || !bytes.Equal(r.Body, []byte(bodies[path])) || r.Header.Get("Content-Type") == "" {
			t.Errorf("%s: %q, %+v", path, got, r)
		}
	}
}

// TestServeEnds: a server ends when it is told to, with what is under way, and leaves
// nothing behind.
func TestServeEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	m := llmtest.Provider(llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "stream"}, Say: "ab", Chunk: 1, PauseMS: 10 * 60 * 1000},
		{DelayMS: 10 * 60 * 1000},
	}})
	ln := musttest.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- llmtest.NewServer(m, nil).Serve(ctx, ln) }()
	url := "http://" + ln.Addr().String()
	var asking, begun sync.WaitGroup
	for range 8 {
		begun.Add(1)
		asking.Go(func() {
			res, err := http.Post(url+chats, "application/json", strings.NewReader(`{"model": "m", "stream": true, "messages": [{"role": "user", "content": "stream"}]}`))
			begun.Done()
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			if rest, err := io.ReadAll(res.Body); err == nil {
				t.Errorf("it ended well: %s", rest)
			}
		})
	}
	asking.Go(func() {
		if _, _, body, err := post(t, url, chats, `{"model": "m", "messages": [{"role": "user", "content": "x"}]}`); err == nil {
			t.Errorf("it was answered: %s", body)
		}
	})
	begun.Wait()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	asking.Wait()
	http.DefaultClient.CloseIdleConnections()
}
