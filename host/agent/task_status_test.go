package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/agent"
	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// until waits for the end of a context, as a model or a skill that never answers.
func until(ctx context.Context) {
	<-ctx.Done()
}

// TestStatuses has each way in which a task ends, field by field.
func TestStatuses(t *testing.T) {
	slow := func(ctx context.Context, _ int, _ *llm.Request) (*llm.Reply, error) {
		until(ctx)
		return nil, llm.Ended(ctx)
	}
	gone := func(context.Context, int, *llm.Request) (*llm.Reply, error) {
		return nil, llm.Unavailable("fake", 500, "out of order", 0, errVendor)
	}
	// then gives answers of a model until there are none, and is another one then.
	then := func(next model, answers ...string) model {
		return func(ctx context.Context, n int, r *llm.Request) (*llm.Reply, error) {
			if n < len(answers) {
				return reply(answers[n], 100), nil
			}
			return next(ctx, n, r)
		}
	}
	for name, c := range map[string]struct {
		settings
		options agent.TaskOptions
		took    time.Duration // by the clock of the test, at least
	}{
		"completed":         {settings: settings{model: says(callEcho, callEcho, finish)}},
		"completed-at-once": {settings: settings{model: says(finish)}},
		"completed-prose":   {settings: settings{model: says(callEcho, "All is <well>.\nReally.")}},
		"completed-keys": {settings: settings{model: says(
			`{"action": {"type": "finish", "result": {"skill_calls": "none of yours", "z": 1, "partial": true, "a": 1.50e3, "summary": ["kept"]}}}`)}},
		"terminated-iterations": {settings: settings{model: always(callEcho, 50)}, options: agent.TaskOptions{MaxIterations: 2}},
		"terminated-tokens":     {settings: settings{model: always(callEcho, 3900)}},
		"terminated-money":      {settings: settings{model: always(callEcho, 100), price: llm.Price{Prompt: 10, Completion: 20}, options: options{Cost: 2400}}},
		"terminated-fuel":       {settings: settings{model: always(callEcho, 100), options: options{Fuel: 1999}}},
		"terminated-prompt":     {settings: settings{model: says(), options: options{MaxTokens: 300}}},
		"timeout-model":         {settings: settings{model: then(slow, callEcho)}, took: time.Minute},
		"timeout-skill": {settings: settings{model: always(callEcho, 100), call: func(ctx context.Context, _ int, c tools.Call) *tools.Outcome {
			until(ctx)
			return failed(c, skill.Cancelled, "the call was cancelled", false)
		}}, took: time.Minute},
		"timeout-task": {settings: settings{
			model: func(context.Context, int, *llm.Request) (*llm.Reply, error) {
				time.Sleep(4 * time.Second)
				return reply(callEcho, 100), nil
			},
		}, options: agent.TaskOptions{TimeoutSeconds: 10}, took: 12 * time.Second},
		"timeout-task-in-round": {settings: settings{model: then(slow, callEcho)}, options: agent.TaskOptions{TimeoutSeconds: 60}, took: time.Minute},
		"failed-model":          {settings: settings{model: gone}},
		"failed-model-later":    {settings: settings{model: then(gone, callEcho)}},
		"failed-refused": {settings: settings{model: func(context.Context, int, *llm.Request) (*llm.Reply, error) {
			return &llm.Reply{Stop: llm.StopRefused, Usage: llm.Usage{Prompt: 90}}, nil
		}}},
		"failed-panic": {settings: settings{model: then(func(context.Context, int, *llm.Request) (*llm.Reply, error) { panic("a secret") }, callEcho)}},
		"completed-failed-skill": {settings: settings{model: says(callEcho, finish), call: func(_ context.Context, _ int, c tools.Call) *tools.Outcome {
			return failed(c, skill.Trap, "unreachable\ninstruction", false)
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, c.settings)
				begun := time.Now()
				out := h.do(t, agent.Task{Options: c.options, Trace: "t-1"})
				result(t, out)
				h.kept(t, out)
				golden(t, name, out)
				if took := time.Since(begun); took < c.took || took > c.took+time.Second {
					t.Errorf("it took %s, want %s", took, c.took)
				}
				if text := string(out.Result) + message(out.Err); strings.Contains(text, "secret") || strings.Contains(text, "10.0.0.7") {
					t.Errorf("it tells of the host: %s", text)
				}
			})
		})
	}
}

// A panic is in the log with its stack; and nothing is answered of it.
func TestPanic(t *testing.T) {
	h := newHouse(t, settings{model: says(callEcho), call: func(context.Context, int, tools.Call) *tools.Outcome { panic("a secret") }})
	out := h.do(t, agent.Task{Trace: "t-1"})
	if out.Status != agent.TaskFailed || code(asError(out.Err)) != skill.AgentLoopError || out.TotalTokens != 100 {
		t.Errorf("%+v", out)
	}
	h.kept(t, out)
	if log := h.log.String(); !strings.Contains(log, "a secret") || !strings.Contains(log, "run.go") || !strings.Contains(log, `"trace_id":"t-1"`) {
		t.Errorf("the log: %s", log)
	}

	h = newHouse(t, settings{model: says(), options: options{Tools: func(context.Context, skill.Principal, []skill.ID, tools.Form) (tools.Set, error) { panic("a secret") }}})
	if _, err := h.Execute(t.Context(), caller, agent.Task{Text: "x"}); code(err) != skill.AgentLoopError || strings.Contains(skill.Failure("", "", skill.Meta{}, err).Error.Message, "secret") {
		t.Error(err)
	}
}

// A caller who leaves ends the task in every phase, and its session is a failed one.
func TestCancelled(t *testing.T) {
	for phase, wait := range map[string]settings{
		"in the model": {model: func(ctx context.Context, _ int, _ *llm.Request) (*llm.Reply, error) {
			until(ctx)
			return nil, llm.Ended(ctx)
		}},
		"in a skill": {model: says(callEcho), call: func(ctx context.Context, _ int, c tools.Call) *tools.Outcome {
			until(ctx)
			return failed(c, skill.Cancelled, "the call was cancelled", false)
		}},
	} {
		t.Run(phase, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, wait)
				ctx, leave := context.WithCancel(t.Context())
				done := make(chan error)
				go func() {
					_, err := h.Execute(ctx, caller, agent.Task{Text: "wait"})
					done <- err
				}()
				synctest.Wait()
				leave()
				err := <-done
				if code(err) != skill.Cancelled {
					t.Fatal(err)
				}
				var e *skill.Error
				id := ""
				if asSkillError(err, &e) {
					id, _ = e.Details["session_id"].(string)
				}
				s, err := h.sessions.Session(t.Context(), owner(), id)
				if err != nil || s.Status != "failed" {
					t.Errorf("%+v, %v", s, err)
				}
			})
		})
	}
	t.Run("before it begins", func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		leave()
		h := newHouse(t, settings{model: says(), options: options{Tools: func(ctx context.Context, _ skill.Principal, _ []skill.ID, _ tools.Form) (tools.Set, error) {
			return nil, ctx.Err()
		}}})
		if _, err := h.Execute(ctx, caller, agent.Task{Text: "x"}); code(err) != skill.Cancelled {
			t.Error(err)
		}
	})
	t.Run("by a deadline of the caller's own", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t, settings{model: func(ctx context.Context, _ int, _ *llm.Request) (*llm.Reply, error) {
				until(ctx)
				return nil, llm.Ended(ctx)
			}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			out, err := h.Execute(ctx, caller, agent.Task{Text: "x"})
			if err != nil || out.Status != agent.TaskTimedOut || code(asError(out.Err)) != skill.AgentExecutionTimeout {
				t.Errorf("%+v, %v", out, err)
			}
		})
	})
}

// The model is asked again by package llm where its vendor is busy, and a task goes on.
func TestBusyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, settings{model: func(_ context.Context, n int, _ *llm.Request) (*llm.Reply, error) {
			switch n {
			case 0:
				return nil, llm.Unavailable("fake", 503, "", 0, nil)
			case 1:
				return reply(callEcho, 500), nil
			default:
				return reply(finish, 300), nil
			}
		}})
		if out := h.do(t, agent.Task{}); out.Status != agent.TaskCompleted || out.TotalTokens != 800 || len(h.asked) != 3 {
			t.Errorf("%+v after %d questions", out, len(h.asked))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, settings{model: func(context.Context, int, *llm.Request) (*llm.Reply, error) {
			return nil, llm.Unavailable("fake", 503, "", 0, nil)
		}})
		if out := h.do(t, agent.Task{}); status(out) != 503 || len(h.asked) != 2 {
			t.Errorf("%+v after %d questions", out, len(h.asked))
		}
	})
}

// What a vendor answers that cannot be read is no answer.
func TestUnreadable(t *testing.T) {
	h := newHouse(t, settings{model: func(context.Context, int, *llm.Request) (*llm.Reply, error) {
		return nil, llm.Unreadable("fake", "no JSON", nil)
	}})
	out := h.do(t, agent.Task{})
	if out.Status != agent.TaskFailed || code(asError(out.Err)) != skill.AgentLLMUnavailable || !strings.Contains(out.Err.Message, "cannot be read") {
		t.Errorf("%+v", out)
	}
}

// An answer that the last tokens have cut off is no result, and neither is one of which
// nothing is there.
func TestCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		tokens int
		status agent.TaskStatus
		says   string
	}{
		"by the task's tokens":      {callEcho[:40], 8000, agent.TaskTerminated, "fewer than 500 are left"},
		"by those of one answer":    {callEcho[:40], 1000, agent.TaskCompleted, callEcho[:40]},
		"before it began":           {" \n", 2048, agent.TaskTerminated, "without an answer"},
		"behind all that was asked": {callEcho, 8000, agent.TaskTerminated, "fewer than 500 are left"},
	} {
		h := newHouse(t, settings{model: func(context.Context, int, *llm.Request) (*llm.Reply, error) {
			r := reply(c.text, c.tokens)
			r.Stop = llm.StopLength
			return r, nil
		}})
		out := h.do(t, agent.Task{})
		r := result(t, out)
		if summary, _ := r.Summary.(string); out.Status != c.status || !strings.Contains(summary, c.says) || r.Error != nil && r.Error.Code != skill.AgentTokenExhausted {
			t.Errorf("%s: %s, %s", name, out.Status, out.Result)
		}
	}
}

// Everything that a result can hold is JSON that one reader and the next understand alike.
func TestHostileResults(t *testing.T) {
	for name, said := range map[string]string{
		"twice":      `{"action": {"type": "finish", "result": {"partial": 1, "partial": 2, "summary": "a", "summary": "b"}}}`,
		"number":     `{"action": {"type": "finish", "result": {"partial": true, "a": 1e400}}}`,
		"deep":       `{"action": {"type": "finish", "result": {"a": ` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}}}`,
		"too deep":   `{"action": {"type": "finish", "result": {"a": ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}}`,
		"bad text":   "{\"action\": {\"type\": \"finish\", \"result\": {\"summary\": \"\xff\xfe\\ud800\"}}}",
		"bad prose":  "\xff\xfe\x00",
		"separators": "{\"action\": {\"type\": \"finish\", \"result\": {\"summary\": \"a\u2028b</script>\"}}}",
		"huge":       strings.Repeat("x", 10<<20),
	} {
		t.Run(name, func(t *testing.T) {
			out := newHouse(t, settings{model: says(said)}).do(t, agent.Task{})
			result(t, out)
			if out.Status != agent.TaskCompleted || !json.Valid(out.Result) || len(out.Result) > 1<<20 {
				t.Errorf("%s: %.300s", out.Status, out.Result)
			}
			if n := strings.Count(string(out.Result), `"partial":`); n != 1 {
				t.Errorf("partial is there %d times", n)
			}
			if _, err := strictjson.Decode(out.Result, 128, nil); err != nil {
				t.Error(err)
			}
		})
	}
}
