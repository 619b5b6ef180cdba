package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

const key = "sk-secret-1234567890"

func TestOpenAIExchanges(t *testing.T) {
	runExchanges(t, "testdata/openai", func(base string) (Provider, error) {
		return OpenAI(Vendor{BaseURL: base + "/v1/", Key: key})
	})
}

func dialOpenAI(base string, c *http.Client) (Provider, error) {
	return OpenAI(Vendor{BaseURL: base, Key: key, HTTP: c})
}

var openAIForm = form{
	Whole: func(text string) string {
		return fmt.Sprintf(`{"choices":[{"message":{"content":%q},"finish_reason":"stop"}]}`, text)
	},
	Part: func(text string) string {
		return fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", text)
	},
	End:  "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
	Mark: "data: [DONE]\n\n",
}

func TestOpenAIHostile(t *testing.T) { runHostile(t, openAIForm, dialOpenAI) }

func askOpenAI(text string) *Request {
	return &Request{Model: "gpt-4o", MaxTokens: 10, Messages: []Message{{Role: User, Text: text}}}
}

// A server that does not take stream_options is asked once with them, and the agent does
// not notice.
func TestOpenAIStreamOptions(t *testing.T) {
	for name, no := range map[string]struct {
		status int
		body   string
	}{
		"Groq":    {400, `{"error":{"message":"property 'stream_options' is unsupported, did you mean 'stream'?","type":"invalid_request_error"}}`},
		"Mistral": {422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options","include_usage"],"msg":"Extra inputs are not permitted"}]}}`},
	} {
		var with, without int
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if bytes.Contains(body, []byte("stream_options")) {
				with++
				w.WriteHeader(no.status)
				_, _ = io.WriteString(w, no.body)
				return
			}
			without++
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, openAIForm.Part("hello")+openAIForm.End+openAIForm.Mark)
		}))
		p := musttest.Get(dialOpenAI(s.URL, s.Client()))(t)
		for range 3 {
			if reply, err := p.Chat(t.Context(), askOpenAI("hi"), func(string) {}); err != nil || reply.Text != "hello" {
				t.Errorf("%s: %+v, %v", name, reply, err)
			}
		}
		if with != 1 || without != 3 {
			t.Errorf("%s: asked %d times with stream_options and %d without", name, with, without)
		}
		s.Close()
	}
}

// openAIRecorder keeps the last request, wherever it was to go.
type openAIRecorder struct {
	canned
	request *http.Request
	body    map[string]any
}

func (r *openAIRecorder) RoundTrip(req *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.request, r.body = req, nil
	if err := json.Unmarshal(b, &r.body); err != nil {
		return nil, err
	}
	return r.canned.RoundTrip(req)
}

func record() *openAIRecorder {
	return &openAIRecorder{canned: canned{Type: "application/json", Body: []byte(openAIForm.Whole("hello"))}}
}

// Only OpenAI itself is told of the tokens that a model may think, and of no temperature.
func TestOpenAIModelsThatThink(t *testing.T) {
	warm := 0.3
	for _, c := range []struct {
		base, model string
		thinks      bool
	}{
		{"", "o1", true},
		{"", "o3-mini", true},
		{"", "gpt-5", true},
		{"", "gpt-5.1-codex", true},
		{"https://API.openai.com/v1", "o4-mini-2025-04-16", true},
		{"", "gpt-5-chat-latest", false},
		{"", "gpt-4o", false},
		{"", "o200", false},
		{"https://broker.example/v1", "o3-mini", false},
		{"https://api.openai.com.example/v1", "gpt-5", false},
	} {
		rec := record()
		p := musttest.Get(OpenAI(Vendor{BaseURL: c.base, HTTP: &http.Client{Transport: rec}}))(t)
		r := askOpenAI("hi")
		r.Model, r.Temperature = c.model, &warm
		musttest.Get(p.Chat(t.Context(), r, nil))(t)
		_, completion := rec.body["max_completion_tokens"]
		_, most := rec.body["max_tokens"]
		_, temperature := rec.body["temperature"]
		if completion != c.thinks || most == c.thinks || temperature == c.thinks {
			t.Errorf("%s at %q: %v", c.model, c.base, rec.body)
		}
	}
}

// What is in the environment of the host is for other programs.
func TestOpenAIEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-of-the-environment")
	t.Setenv("OPENAI_BASE_URL", "https://elsewhere.example/v1")
	t.Setenv("OPENAI_ORG_ID", "org-of-the-environment")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Secret: of the environment")
	rec := record()
	p := musttest.Get(OpenAI(Vendor{HTTP: &http.Client{Transport: rec}}))(t)
	musttest.Get(p.Chat(t.Context(), askOpenAI("hi"), nil))(t)
	if got := rec.request.URL.String(); got != "https://api.openai.com/v1/chat/completions" {
		t.Errorf("it asks %s", got)
	}
	if h := fmt.Sprint(rec.request.Header); strings.Contains(h, "environment") || strings.Contains(h, "Authorization") || strings.Contains(h, "Stainless") {
		t.Errorf("it sends %s", h)
	}
}

func TestOpenAIOptions(t *testing.T) {
	for _, o := range []Vendor{
		{BaseURL: "ftp://host/v1"},
		{BaseURL: "host/v1"},
		{BaseURL: "https://"},
		{BaseURL: "https://user:" + key + "@host/v1"},
		{BaseURL: "https://host/v1?key=" + key},
		{BaseURL: "https://host/v1#" + key},
		{BaseURL: "https://" + key + "\x00/"},
		{Key: key + "\n"},
		{Key: "Bearer " + key},
	} {
		_, err := OpenAI(o)
		if skill.CodeOf(err) != skill.InvalidArgument || strings.Contains(err.Error(), key) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// An answer may ask for more calls than anybody allows; that is not the adapter's to say,
// up to a bound.
func TestOpenAIManyCalls(t *testing.T) {
	for n, want := range map[int]skill.Code{10_000: "", mostCalls: "", mostCalls + 1: skill.AgentLLMParseError} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%d,\"function\":{\"name\":\"echo\",\"arguments\":\"{}\"}}]}}]}\n\n", i)
		}
		b.WriteString(openAIForm.End + openAIForm.Mark)
		p := musttest.Get(dialOpenAI("http://vendor.invalid", &http.Client{Transport: canned{Type: "text/event-stream", Body: []byte(b.String())}}))(t)
		reply, err := p.Chat(t.Context(), askOpenAI("hi"), func(string) {})
		if skill.CodeOf(err) != want {
			t.Errorf("%d calls: %v", n, err)
		}
		if err == nil && len(reply.Calls) != n {
			t.Errorf("%d calls, and %d are told", n, len(reply.Calls))
		}
	}
}

// What an adapter gives can be sent back.
func TestOpenAIThereAndBack(t *testing.T) {
	answer := `{"choices":[{"message":{"content":null,"tool_calls":[
		{"id":"` + strings.Repeat("i", 100) + `","function":{"name":"` + strings.Repeat("n", 100) + `","arguments":"["}},
		{"id":"","function":{"name":"no such/tool","arguments":"\ud800"}}]}}]}`
	rec := record()
	rec.Body = []byte(answer)
	p := musttest.Get(dialOpenAI("http://vendor.invalid", &http.Client{Transport: rec}))(t)
	r := askOpenAI("hi")
	for range 3 {
		reply := musttest.Get(p.Chat(t.Context(), r, nil))(t)
		r.Messages = append(r.Messages, Message{Role: Assistant, Calls: reply.Calls})
		for _, c := range reply.Calls {
			r.Messages = append(r.Messages, Message{Role: Tool, CallID: c.ID, Text: "there is none", Failed: true})
		}
	}
	messages, _ := rec.body["messages"].([]any)
	var open []string
	for _, m := range messages {
		m, _ := m.(map[string]any)
		if id, ok := m["tool_call_id"].(string); ok {
			i := slices.Index(open, id)
			if i < 0 {
				t.Fatalf("%s answers no call of %q", id, open)
			}
			open = slices.Delete(open, i, i+1)
		}
		list, _ := m["tool_calls"].([]any)
		for _, c := range list {
			var call struct {
				ID       string
				Function struct{ Name, Arguments string }
			}
			b, _ := json.Marshal(c)
			musttest.Do(t, json.Unmarshal(b, &call))
			if len(call.ID) > 40 || len(call.Function.Name) > 64 || strings.ContainsAny(call.Function.Name, " /") || !json.Valid([]byte(call.Function.Arguments)) {
				t.Errorf("sent back: %+v", call)
			}
			if slices.Contains(open, call.ID) {
				t.Errorf("two calls of the id %s", call.ID)
			}
			open = append(open, call.ID)
		}
	}
	if len(messages) != 7 || len(open) != 0 {
		t.Errorf("%d messages, and no answer to %q", len(messages), open)
	}
}

func TestOpenAIErrorsAreTheVendorsName(t *testing.T) {
	p, err := OpenAI(Vendor{Name: "dashscope", HTTP: &http.Client{Transport: canned{}}})
	musttest.Do(t, err)
	_, err = p.Chat(t.Context(), askOpenAI("hi"), nil)
	if failed, ok := errors.AsType[*skill.Error](err); !ok || failed.Details["provider"] != "dashscope" {
		t.Errorf("%v", err)
	}
}

func FuzzOpenAIAnswers(f *testing.F) {
	f.Add([]byte(openAIForm.Part("one") + openAIForm.End + openAIForm.Mark))
	f.Add([]byte(openAIForm.Whole("one")))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}\n\n: x\n\nevent: error\ndata: {}\n\n"))
	f.Add([]byte("data: {\"error\":{\"message\":[{\"error\":\"x\"}],\"code\":429},\"choices\":[null,{\"message\":{\"content\":[1,{\"type\":\"text\",\"text\":\"x\"}]}}],\"usage\":{\"total_tokens\":\"1e999\"}}\r\n\r\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		fuzzAnswer(t, askOpenAI("hi"), body, func(c *http.Client) (Provider, error) { return dialOpenAI("http://vendor.invalid", c) })
	})
}

// What a question costs beside the model: a conversation of 21 messages with ten tools.
func BenchmarkOpenAIChat(b *testing.B) {
	r := askOpenAI("hi")
	for range 10 {
		r.Messages = append(r.Messages, Message{Role: Assistant, Text: strings.Repeat("hello ", 100)}, Message{Role: User, Text: strings.Repeat("hello ", 100)})
	}
	for i := range 10 {
		r.Tools = append(r.Tools, skill.Tool{
			Name: fmt.Sprintf("tool_%d", i), Description: "Statistics over a list of numbers.",
			InputSchema: []byte(`{"type":"object","properties":{"op":{"type":"string","enum":["mean","sum"],"description":"what to do"},"numbers":{"type":"array","items":{"type":"number"}}},"required":["op"]}`),
		})
	}
	for name, c := range map[string]struct {
		canned canned
		hear   func(string)
	}{
		"whole":       {canned{Type: "application/json", Body: []byte(openAIForm.Whole("hello"))}, nil},
		"100 chunks":  {canned{Type: "text/event-stream", Body: []byte(strings.Repeat(openAIForm.Part("hello"), 100) + openAIForm.End + openAIForm.Mark)}, func(string) {}},
		"1000 chunks": {canned{Type: "text/event-stream", Body: []byte(strings.Repeat(openAIForm.Part("hello"), 1000) + openAIForm.End + openAIForm.Mark)}, func(string) {}},
	} {
		b.Run(name, func(b *testing.B) {
			p, err := dialOpenAI("http://vendor.invalid", &http.Client{Transport: c.canned})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Chat(b.Context(), r, c.hear); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
