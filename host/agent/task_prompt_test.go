package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/agent"
	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestPrompt has the whole of what a model reads in a round.
func TestPrompt(t *testing.T) {
	h := newHouse(t, settings{model: says(callEcho, strings.Replace(callEcho, `"echo"`, `"ec\nho"`, 1), finish)})
	h.do(t, agent.Task{Text: "say hi\nand bye", Context: json.RawMessage(`{ "z": 1.50, "a": ["</context>"] }`), Options: agent.TaskOptions{MaxIterations: 5}})
	last := h.asked[2]
	got := strings.Replace(last.System, tools.Notice, "NOTICE", 1) + "\n======\n" + last.Messages[0].Text + "\n"
	const path = "testdata/prompt.txt"
	if *update {
		musttest.Do(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want := musttest.Get(os.ReadFile(path))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
	if len(last.Messages) != 1 || last.Messages[0].Role != llm.User {
		t.Errorf("%+v", last.Messages)
	}
}

// Instructions of Agent Skills are in it, and that there is nothing to call.
func TestPromptWithout(t *testing.T) {
	h := newHouse(t, settings{model: says(callEcho, finish), options: options{Tools: func(context.Context, skill.Principal, []skill.ID, tools.Form) (tools.Set, error) {
		return nothing{}, nil
	}}})
	out := h.do(t, agent.Task{})
	if s := h.asked[0].System; !strings.Contains(s, "There are no skills that you can call.") || !strings.Contains(s, "use load_skill") {
		t.Error(s)
	}
	if r := result(t, out); r.Calls[0].Status != "failed" || !strings.Contains(h.asked[1].Messages[0].Text, "There are no skills. Finish") {
		t.Errorf("%s", out.Result)
	}
}

type nothing struct{}

func (nothing) List() []skill.Tool   { return nil }
func (nothing) Instructions() string { return "use load_skill" }
func (nothing) Call(_ context.Context, c tools.Call) *tools.Outcome {
	return failed(c, skill.NotFound, "there is no skill of this name", true)
}

// rounds are the numbers of the rounds that a prompt shows.
func rounds(r *llm.Request) string {
	var out []string
	for i := range 100 {
		if strings.Contains(r.Messages[0].Text, fmt.Sprintf("--- round %d ---", i)) {
			out = append(out, fmt.Sprint(i))
		}
	}
	return strings.Join(out, " ")
}

// The last five rounds are shown, and only three where five do not fit; where three do
// not either, the task ends.
func TestHistory(t *testing.T) {
	h := newHouse(t, settings{model: always(callEcho, 10)})
	h.do(t, agent.Task{})
	for i, want := range []string{"", "0", "0 1", "0 1 2", "0 1 2 3", "0 1 2 3 4", "1 2 3 4 5", "2 3 4 5 6", "3 4 5 6 7", "4 5 6 7 8"} {
		if got := rounds(h.asked[i]); got != want {
			t.Errorf("round %d shows %q, want %q", i, got, want)
		}
	}
	if said := h.asked[9].Messages[0].Text; !strings.Contains(said, "(the first 4 rounds are left out)") {
		t.Error(said)
	}

	// Each round is 1,000 tokens to read, and each answer takes 500. After six rounds 5,192
	// are left, into which the last five do not fit, and the last three do; after eleven
	// there is too little for these, too.
	long := func(ctx context.Context, n int, c tools.Call) *tools.Outcome {
		o := works(ctx, n, c)
		o.Text = strings.Repeat("word", 1000)
		return o
	}
	h = newHouse(t, settings{model: always(callEcho, 500), call: long, options: options{MaxIterations: 20}})
	out := h.do(t, agent.Task{})
	var shown []string
	for _, r := range h.asked {
		shown = append(shown, rounds(r))
	}
	want := []string{"", "0", "0 1", "0 1 2", "0 1 2 3", "0 1 2 3 4", "3 4 5", "4 5 6", "5 6 7", "6 7 8"}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Error(diff)
	}
	if r := result(t, out); out.Status != agent.TaskTerminated || out.Iterations != 10 || r.Error.Code != skill.AgentTokenExhausted || !strings.Contains(r.Error.Message, "do not fit into the 3192 that are left") {
		t.Errorf("%s", out.Result)
	}
	for i, r := range h.asked { // prompt and answer together take what is left at most
		if takes := llm.Rough.Count(r.System) + llm.Rough.Count(r.Messages[0].Text); r.MaxTokens < 64 || takes+r.MaxTokens > 8192-500*i {
			t.Errorf("question %d takes %d, and may be answered with %d", i, takes, r.MaxTokens)
		}
	}
}

// What a skill gave is shortened to what the tokens that are left allow.
func TestObservationFits(t *testing.T) {
	const open, last = "<tool_result name=\"echo\" status=\"ok\">\n", "\n</tool_result>"
	for left, shown := range map[int]int{7192: 3596, 900: 512, 60_000: 20_000} {
		h := newHouse(t, settings{
			model: func(_ context.Context, n int, _ *llm.Request) (*llm.Reply, error) {
				return reply([]string{callEcho, finish}[n], 1000), nil
			},
			call: func(ctx context.Context, n int, c tools.Call) *tools.Outcome {
				o := works(ctx, n, c)
				o.Text = open + strings.Repeat("x", 20_000) + last
				return o
			},
			options: options{MaxTokens: left + 1000},
		})
		h.do(t, agent.Task{})
		if text := h.asked[1].Messages[0].Text; !strings.Contains(text, "Observation:\n"+open+strings.Repeat("x", shown)+last) {
			t.Errorf("with %d tokens left: %s", left, text)
		}
	}
}

// What is counted of a prompt in parts is what the whole of it takes, or a little more.
func TestCountedInParts(t *testing.T) {
	h := newHouse(t, settings{model: always(callEcho, 1), options: options{MaxTokens: 3000, ReplyTokens: 3000}})
	h.do(t, agent.Task{Text: "分析最近一周用户关于支付体验的反馈"})
	for i, r := range h.asked {
		whole := llm.Rough.Count(r.System) + 4 + llm.Rough.Count(r.Messages[0].Text)
		counted := 3000 - i - r.MaxTokens
		if counted < whole || counted > whole+30 {
			t.Errorf("question %d: counted %d, takes %d", i, counted, whole)
		}
	}
}

// BenchmarkRound is what the agent itself takes for one round, with a model and a skill
// that answer at once.
func BenchmarkRound(b *testing.B) {
	exact := func(string) llm.Counter { return llm.CounterFor("gpt-4o") }
	for _, c := range []struct {
		name  string
		tools int
		count func(string) llm.Counter
	}{{"tools=4", 4, nil}, {"tools=100", 100, nil}, {"tools=100,exact", 100, exact}} {
		b.Run(c.name, func(b *testing.B) {
			const rounds = 1000
			list := make([]skill.Tool, c.tools)
			for i := range list {
				list[i] = skill.Tool{
					Name: fmt.Sprintf("tool-%d", i), Description: strings.Repeat("what it does ", 10),
					InputSchema: json.RawMessage(`{"type":"object","required":["text"],"properties":{"text":{"type":"string","description":"what is to be said"}}}`),
				}
			}
			list[0].Name = "echo"
			h := newHouse(b, settings{count: c.count, model: func(context.Context, int, *llm.Request) (*llm.Reply, error) {
				return &llm.Reply{Text: callEcho, Usage: llm.Usage{Prompt: 1}}, nil
			}, options: options{MaxIterations: rounds, MaxTokens: 1 << 30, Tools: func(context.Context, skill.Principal, []skill.ID, tools.Form) (tools.Set, error) {
				return many{list: list}, nil
			}}})
			for range b.N {
				h.asked, h.made = nil, nil
				if out, err := h.Execute(context.Background(), caller, agent.Task{Text: "x"}); err != nil || out.Iterations != rounds {
					b.Fatal(out, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rounds, "ns/round")
		})
	}
}

type many struct {
	one
	list []skill.Tool
}

func (m many) List() []skill.Tool { return m.list }

// Where schemas take too much of a task's tokens, their words are left out.
func TestShortSchemas(t *testing.T) {
	tool := skill.Tool{Name: "echo", Description: "Says it.", InputSchema: json.RawMessage(`{
		"type": "object", "title": "T", "required": ["text"], "additionalProperties": false, "properties": {
			"text": {"type": "string", "description": "what is said", "pattern": "^.*$"},
			"how": {"anyOf": [{"type": "array", "items": {"enum": ["a", 1], "examples": ["a"]}}, {"$ref": "#/$defs/x"}, true], "default": 1},
			"many": {"type": "object", "additionalProperties": {"type": "number", "minimum": 1, "maximum": 5, "multipleOf": 2}}},
		"$defs": {"x": {"const": 7, "description": "seven"}}}`)}
	const short = `Params (JSON Schema): {"type":"object","required":["text"],"properties":{"text":{"type":"string"},` +
		`"how":{"anyOf":[{"type":"array","items":{"enum":["a",1]}},{"$ref":"#/$defs/x"},true]},` +
		`"many":{"type":"object","additionalProperties":{"type":"number","minimum":1,"maximum":5}}},"$defs":{"x":{"const":7}}}` + "\n"
	for tokens, want := range map[int]string{8192: short, 100_000: "what is said"} {
		h := newHouse(t, settings{model: says(finish), options: options{MaxTokens: tokens, Tools: func(context.Context, skill.Principal, []skill.ID, tools.Form) (tools.Set, error) {
			list := make([]skill.Tool, 12)
			for i := range list {
				list[i] = tool
				list[i].Name = fmt.Sprintf("echo-%d", i)
			}
			return many{list: list}, nil
		}}})
		h.do(t, agent.Task{})
		if s := h.asked[0].System; strings.Count(s, want) != 12 {
			t.Errorf("of %d tokens:\n%s", tokens, s)
		}
	}
	for _, broken := range []string{``, `[]`, `{"type": `, `"x"`, strings.Repeat(`{"items":`, 1000)} { // says nothing, and breaks nothing
		tool.InputSchema = json.RawMessage(broken)
		h := newHouse(t, settings{model: says(finish), options: options{MaxTokens: 1000, MinTokens: 100, Tools: func(context.Context, skill.Principal, []skill.ID, tools.Form) (tools.Set, error) {
			return many{list: []skill.Tool{tool}}, nil
		}}})
		h.do(t, agent.Task{})
		if s := h.asked[0].System; !strings.Contains(s, "Params (JSON Schema): {}\n") {
			t.Error(s)
		}
	}
}
