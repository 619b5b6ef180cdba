package agent_test

import (
	"context"
	"strings"
	"testing"

	"openskill/host/agent"
	"openskill/host/agent/llm"
	"openskill/host/agent/llm/llmtest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestWires has tasks done by each vendor's adapter, over HTTP, with a model that follows
// a script.
func TestWires(t *testing.T) {
	usage := func(prompt, completion int) *llmtest.Usage {
		return &llmtest.Usage{Prompt: prompt, Completion: completion}
	}
	model, err := llmtest.New(llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "^Task: overloaded"}, Status: 503, Say: "try later"},
		{When: llmtest.When{User: "^Task: garbage"}, Raw: "<html>bad gateway</html>"},
		{When: llmtest.When{User: "^Task: prose"}, Say: "Nothing is to be done.", Usage: usage(10, 5)},
		{When: llmtest.When{User: "--- round 1 ---"}, Say: finish, Usage: usage(300, 30)},
		{When: llmtest.When{User: "--- round 0 ---"}, Say: "```json\n" + callEcho + "\n```", Usage: usage(200, 20)},
		{When: llmtest.When{User: "^Task: say hi", System: `\*\*echo\*\*`}, Say: callEcho, Usage: usage(100, 10)},
	}})
	musttest.Do(t, err)
	server := llmtest.NewServer(model, nil)
	base := server.Start(t)
	for name, open := range map[string]func() (llm.Provider, error){
		"openai": func() (llm.Provider, error) {
			return llm.OpenAI(llm.Vendor{BaseURL: base + "/v1", Key: "scripted"})
		},
		"anthropic": func() (llm.Provider, error) {
			return llm.Anthropic(llm.Vendor{BaseURL: base, Key: "scripted"})
		},
		"llm-service": func() (llm.Provider, error) { return llm.Service(llm.Vendor{BaseURL: base}) },
	} {
		t.Run(name, func(t *testing.T) {
			p := musttest.Get(open())(t)
			h := newHouse(t, settings{model: func(ctx context.Context, _ int, r *llm.Request) (*llm.Reply, error) {
				ask := *r
				ask.Model = "gpt-4o"
				reply, err := p.Chat(ctx, &ask, nil)
				if code(err) == skill.AgentLLMUnavailable { // so that this test does not wait before it is asked again
					err = llm.Unavailable(name, 500, "overloaded", 0, nil)
				}
				return reply, err
			}})
			out := h.do(t, agent.Task{Text: "say hi twice"})
			if r := result(t, out); out.Status != agent.TaskCompleted || out.Iterations != 2 || out.TotalTokens != 660 || r.Summary != "it said hi" {
				t.Errorf("%+v: %s", out, out.Result)
			}
			if out := h.do(t, agent.Task{Text: "prose"}); out.Status != agent.TaskCompleted || result(t, out).Summary != "Nothing is to be done." || out.TotalTokens != 15 {
				t.Errorf("%+v: %s", out, out.Result)
			}
			for _, text := range []string{"overloaded", "garbage"} {
				if out := h.do(t, agent.Task{Text: text}); out.Status != agent.TaskFailed || status(out) != 503 || result(t, out).Error.Code != skill.AgentLLMUnavailable {
					t.Errorf("%s: %+v: %s", text, out, out.Result)
				}
			}
		})
	}
	for _, r := range server.Requests() {
		if r.Wire == "llm-service" && r.Ask.Slot != llm.Reasoning || r.Wire != "anthropic" && !r.Ask.JSON || r.Stream || !strings.Contains(r.Ask.System, "JSON") {
			t.Errorf("%s: %+v", r.Wire, r.Ask)
		}
	}
}
