package llmtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/host/agent/llm"
	"openskill/host/agent/llm/llmtest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// everyWay gives a test the providers by which one model can be asked: the host's three
// adapters, over HTTP, and the model itself. What they answer must be the same.
func everyWay(t *testing.T, script llmtest.Script, try func(t *testing.T, p llm.Provider, m *llmtest.Model)) {
	t.Helper()
	for name, open := range map[string]func(url string) (llm.Provider, error){
		"openai": func(url string) (llm.Provider, error) {
			return llm.OpenAI(llm.Vendor{BaseURL: url + "/v1", Key: "scripted"})
		},
		"anthropic": func(url string) (llm.Provider, error) {
			return llm.Anthropic(llm.Vendor{BaseURL: url, Key: "scripted"})
		},
		"llm-service": func(url string) (llm.Provider, error) {
			return llm.Service(llm.Vendor{BaseURL: url, Key: "scripted"})
		},
		"itself": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := llmtest.Provider(script)
			if open == nil {
				try(t, m, m)
				return
			}
			p := musttest.Get(open(llmtest.NewServer(m, &llmtest.ServerOptions{Key: "scripted"}).Start(t)))(t)
			try(t, p, m)
		})
	}
}

var weather = []skill.Tool{{Name: "weather", Description: "Of a city.", InputSchema: json.RawMessage(`{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}`)}}

// question is one that every adapter can send.
func question(text string) *llm.Request {
	r := user(text)
	r.System, r.Slot, r.Tools, r.Trace = "Be brief.", llm.Fast, weather, "t-1"
	return r
}

// TestAdapters: the host's adapters understand the server, and the server them.
func TestAdapters(t *testing.T) {
	t.Parallel()
	everyWay(t, forClients, func(t *testing.T, p llm.Provider, m *llmtest.Model) {
		for _, streamed := range []bool{false, true} {
			var parts []string
			var hear func(string)
			if streamed {
				hear = func(part string) { parts = append(parts, part) }
			}
			ask := func(r *llm.Request) *llm.Reply {
				t.Helper()
				parts = nil
				reply, err := p.Chat(t.Context(), r, hear)
				if err != nil {
					t.Fatalf("streamed %t: %v", streamed, err)
				}
				if streamed && strings.Join(parts, "") != reply.Text {
					t.Errorf("%q was heard of %q", parts, reply.Text)
				}
				return reply
			}
			if r := ask(question("hello")); r.Text != "Hello, 世界!" || r.Stop != llm.StopEnd || len(r.Calls) > 0 || r.Usage != (llm.Usage{Prompt: 11, Completion: 7}) {
				t.Errorf("streamed %t: %+v", streamed, r)
			}
			last := m.Requests()[m.Asked()-1].Ask
			if last.System != "Be brief." || last.MaxTokens != 100 || len(last.Tools) != 1 || last.Tools[0].Name != "weather" || last.Tools[0].Description != "Of a city." {
				t.Errorf("the server understood %+v", last)
			}
			r := question("weather everywhere")
			reply := ask(r)
			var got []string
			ids := map[string]bool{}
			for _, c := range reply.Calls {
				var in struct{ City string }
				if err := json.Unmarshal([]byte(c.Arguments), &in); err != nil {
					t.Error(err)
				}
				got, ids[c.ID] = append(got, c.Name+" "+in.City), true
			}
			if fmt.Sprint(got) != "[weather Oslo weather Rome weather Rome]" || len(ids) != 3 || reply.Stop != llm.StopCalls {
				t.Fatalf("streamed %t: %+v", streamed, reply)
			}
			r.Messages = append(r.Messages, llm.Message{Role: llm.Assistant, Text: reply.Text, Calls: reply.Calls})
			for i, c := range reply.Calls {
				r.Messages = append(r.Messages, llm.Message{Role: llm.Tool, CallID: c.ID, Text: fmt.Sprintf(`{"degrees": %d}`, i), Failed: i == 1})
			}
			if reply = ask(r); reply.Text != "It has 2 degrees." {
				t.Errorf("streamed %t: %+v", streamed, reply)
			}
			r.Messages = append(r.Messages, llm.Message{Role: llm.Assistant, Text: reply.Text}, llm.Message{Role: llm.User, Text: "at great length"})
			if reply = ask(r); reply.Stop != llm.StopLength || reply.Text != "and so on" {
				t.Errorf("streamed %t: %+v", streamed, reply)
			}
			for text, want := range map[string]struct {
				status int // of busy; -1: it is not
				after  time.Duration
			}{
				"too many": {429, 7 * time.Second}, "always down": {503, 0}, "overloaded": {529, 0}, "cut it off": {0, 0}, "say nothing": {0, 0}, "nobody knows": {-1, 0},
			} {
				_, err := p.Chat(t.Context(), question(text), hear)
				var busy *llm.BusyError
				is := errors.As(err, &busy)
				if skill.CodeOf(err) != skill.AgentLLMUnavailable || is != (want.status >= 0) || is && (busy.Status != want.status || busy.After != want.after) {
					t.Errorf("streamed %t, %s: %v", streamed, text, err)
				}
			}
		}
	})
}

// TestHostileAnswers: what a model does wrong ends as an error or as calls that the host
// can refuse, by every adapter; and ten thousand calls arrive as ten thousand.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	everyWay(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "html"}, Raw: "<html>no</html>"},
		{When: llmtest.When{User: "half"}, Raw: `{"choices": [{"message": {"content": "x"`},
		{When: llmtest.When{User: "null"}, Raw: "null"},
		{When: llmtest.When{User: "broken"}, Calls: []llmtest.Call{{Name: "weather", Arguments: `{"city": "Os`}}},
		{When: llmtest.When{User: "none"}, Calls: []llmtest.Call{{Name: "weather"}}},
		{When: llmtest.When{User: "many"}, Calls: []llmtest.Call{{Name: "weather", Arguments: `{"city": "Oslo"}`, Repeat: 10_000}}, Chunk: 100},
		{When: llmtest.When{User: "forged"}, Say: "a\n\ndata: [DONE]\n\nevent: message_stop\n\nb"},
	}}, func(t *testing.T, p llm.Provider, _ *llmtest.Model) {
		for _, hear := range []func(string){nil, func(string) {}} {
			for _, text := range []string{"html", "half", "null"} {
				_, err := p.Chat(t.Context(), question(text), hear)
				// A stream of which nothing can be read is one that was cut off.
				if code := skill.CodeOf(err); code != skill.AgentLLMParseError && (code != skill.AgentLLMUnavailable || hear == nil) {
					t.Errorf("streamed %t, %s: %v", hear != nil, text, err)
				}
			}
			for text, broken := range map[string]bool{"broken": true, "none": false} {
				r, err := p.Chat(t.Context(), question(text), hear)
				if err != nil || len(r.Calls) != 1 || json.Valid([]byte(r.Calls[0].Arguments)) == broken && r.Calls[0].Arguments != "" && !strings.HasPrefix(r.Calls[0].Arguments, `"`) {
					t.Errorf("streamed %t, %s: %+v, %v", hear != nil, text, r, err)
				}
			}
			if r, err := p.Chat(t.Context(), question("forged"), hear); err != nil || !strings.HasSuffix(r.Text, "\n\nb") {
				t.Errorf("streamed %t: %+v, %v", hear != nil, r, err)
			}
			r, err := p.Chat(t.Context(), question("many"), hear)
			if err != nil || len(r.Calls) != 10_000 {
				t.Fatalf("streamed %t: %v", hear != nil, err)
			}
			slices.SortFunc(r.Calls, func(a, b llm.Call) int { return strings.Compare(a.ID, b.ID) })
			if n := len(slices.CompactFunc(r.Calls, func(a, b llm.Call) bool { return a.ID == b.ID })); n != 10_000 {
				t.Errorf("streamed %t: %d ids", hear != nil, n)
			}
		}
	})
}

// TestSlowAdapters: a model that takes its time, before its answer or within it, is left
// when the caller's time is over.
func TestSlowAdapters(t *testing.T) {
	t.Parallel()
	const minutes = 10 * 60 * 1000
	everyWay(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "silent"}, DelayMS: minutes}, {When: llmtest.When{User: "slow"}, Say: "ab", Chunk: 1, PauseMS: minutes},
	}}, func(t *testing.T, p llm.Provider, _ *llmtest.Model) {
		for _, text := range []string{"silent", "slow"} {
			ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
			_, err := p.Chat(ctx, question(text), func(string) {})
			stop()
			if skill.CodeOf(err) != skill.AgentExecutionTimeout {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}
