package llm

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestAnthropicExchanges(t *testing.T) {
	runExchanges(t, "testdata/anthropic", func(base string) (Provider, error) {
		return Anthropic(Vendor{BaseURL: base, Key: key})
	})
}

func dialAnthropic(base string, c *http.Client) (Provider, error) {
	return Anthropic(Vendor{BaseURL: base, Key: key, HTTP: c})
}

var anthropicForm = form{
	Whole: func(text string) string {
		return fmt.Sprintf(`{"type":"message","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`, text)
	},
	Begin: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
	Part: func(text string) string {
		return fmt.Sprintf("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%q}}\n\n", text)
	},
	End:  "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
	Mark: "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
}

func TestAnthropicHostile(t *testing.T) { runHostile(t, anthropicForm, dialAnthropic) }

func askAnthropic(text string) *Request {
	return &Request{Model: "claude-sonnet-4-5", MaxTokens: 10, Messages: []Message{{Role: User, Text: text}}}
}

type anthropicRecorder struct {
	canned
	request *http.Request
	body    string
}

func (r *anthropicRecorder) RoundTrip(req *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.request, r.body = req, string(b)
	return r.canned.RoundTrip(req)
}

// What is in the environment of the host, or in its files, is for other programs. And the
// version in a base URL is not doubled.
func TestAnthropicEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-of-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "token-of-the-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "https://elsewhere.example")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Secret: of the environment")
	for base, want := range map[string]string{
		"":                               "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com/v1/":  "https://api.anthropic.com/v1/messages",
		"https://gateway.example/claude": "https://gateway.example/claude/v1/messages",
		"https://v1":                     "https://v1/v1/messages",
	} {
		rec := &anthropicRecorder{canned: canned{Type: "application/json", Body: []byte(anthropicForm.Whole("hello"))}}
		p := musttest.Get(Anthropic(Vendor{BaseURL: base, HTTP: &http.Client{Transport: rec}}))(t)
		musttest.Get(p.Chat(t.Context(), askAnthropic("hi"), nil))(t)
		if got := rec.request.URL.String(); got != want {
			t.Errorf("%q: it asks %s", base, got)
		}
		if h := fmt.Sprint(rec.request.Header); strings.Contains(h, "environment") || strings.Contains(h, "Api-Key") || strings.Contains(h, "Stainless") {
			t.Errorf("it sends %s", h)
		}
	}
}

// How long a reply may be is for the caller to say: the vendor's module would refuse this.
func TestAnthropicLongReplies(t *testing.T) {
	rec := &anthropicRecorder{canned: canned{Type: "application/json", Body: []byte(anthropicForm.Whole("hello"))}}
	p := musttest.Get(dialAnthropic("http://vendor.invalid", &http.Client{Transport: rec}))(t)
	r := askAnthropic("hi")
	r.MaxTokens = 100_000
	if _, err := p.Chat(t.Context(), r, nil); err != nil || !strings.Contains(rec.body, `"max_tokens":100000`) {
		t.Errorf("%v, sent %s", err, rec.body)
	}
}

func TestAnthropicOptions(t *testing.T) {
	for _, o := range []Vendor{{BaseURL: "host"}, {BaseURL: "https://user:" + key + "@host"}, {Key: key + "\r\n"}} {
		if _, err := Anthropic(o); skill.CodeOf(err) != skill.InvalidArgument || strings.Contains(err.Error(), key) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func FuzzAnthropicAnswers(f *testing.F) {
	f.Add([]byte(anthropicForm.Begin + anthropicForm.Part("one") + anthropicForm.End + anthropicForm.Mark))
	f.Add([]byte(anthropicForm.Whole("one")))
	f.Add([]byte("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":-1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"\",\"name\":\"f\",\"input\":[]}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":9,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\n" + anthropicForm.End))
	f.Add([]byte("event: error\ndata: {\"error\":7}\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		fuzzAnswer(t, askAnthropic("hi"), body, func(c *http.Client) (Provider, error) { return dialAnthropic("http://vendor.invalid", c) })
	})
}

func BenchmarkAnthropicChat(b *testing.B) {
	r := askAnthropic("hi")
	for range 10 {
		r.Messages = append(r.Messages, Message{Role: Assistant, Text: strings.Repeat("hello ", 100)}, Message{Role: User, Text: strings.Repeat("hello ", 100)})
	}
	for name, c := range map[string]struct {
		canned canned
		hear   func(string)
	}{
		"whole":      {canned{Type: "application/json", Body: []byte(anthropicForm.Whole("hello"))}, nil},
		"100 chunks": {canned{Type: "text/event-stream", Body: []byte(anthropicForm.Begin + strings.Repeat(anthropicForm.Part("hello"), 100) + anthropicForm.End + anthropicForm.Mark)}, func(string) {}},
	} {
		b.Run(name, func(b *testing.B) {
			p, err := dialAnthropic("http://vendor.invalid", &http.Client{Transport: c.canned})
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
