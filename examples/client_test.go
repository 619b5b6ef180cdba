package examples_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/admission"
	"openskill/host/agent/llm/llmtest"
	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// forClients is the model that the tests of clients talk with.
func forClients() llmtest.Script {
	return llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{System: `"?finish"?`, JSON: new(true), Step: new(0)}, Say: `{"action": {"type": "skill_call", "skill": "add_numbers", "params": {"num1": 1, "num2": 2}}}`, Times: 1},
		{When: llmtest.When{JSON: new(true)}, Say: `{"action": {"type": "finish", "result": {"summary": "It is 3."}}}`},
		{When: llmtest.When{User: "add"}, Calls: []llmtest.Call{{Name: "add_numbers", Arguments: `{"num1": 3, "num2": 5}`}}},
		{When: llmtest.When{AfterTool: "add_numbers"}, Say: "It is 8."},
		{When: llmtest.When{User: "greet"}, Calls: []llmtest.Call{{Name: "run_skill_script", Arguments: `{"skill_name": "greeter", "script_file": "hi.js"}`}}},
		{When: llmtest.When{AfterTool: "run_skill_script", Result: "hi"}, Say: "It said hi."},
		{When: llmtest.When{AfterTool: "run_skill_script"}, Say: "I may not."},
	}}
}

// TestClient holds every method of the client to what a host answers.
func TestClient(t *testing.T) {
	url := serve(t, forClients())
	ctx := client.WithTraceID(t.Context(), "by-client")
	c, err := client.New(url, nil)
	if err != nil {
		t.Fatal(err)
	}

	r, err := c.Invoke(ctx, "add_numbers", map[string]int{"num1": 1, "num2": 1})
	if err != nil || string(r.Data) != `{"sum":2}` || r.TraceID != "by-client" {
		t.Fatalf("%+v, %v", r, err)
	}
	if e, err := c.Execution(ctx, r.Meta.ExecutionID); err != nil || e.Status != "success" || e.Skill != "add_numbers" || e.FinishedAt.IsZero() || e.TraceID != "by-client" {
		t.Errorf("%+v, %v", e, err)
	}
	var failed *client.Error
	if r, err := c.Invoke(ctx, "add_numbers", nil); !errors.As(err, &failed) || failed.Code != skill.InvalidArgument || failed.TraceID != "by-client" || r == nil || r.Success {
		t.Errorf("%+v, %v", r, err)
	}
	n := 0
	for d, err := range c.Skills(ctx) {
		if n++; err != nil || !d.Enabled || d.ID != skill.RunCode && (d.ID != "add_numbers" || d.Trust != skill.Trusted) {
			t.Errorf("%+v, %v", d, err)
		}
	}
	for s, err := range c.AgentSkills(ctx) {
		if n++; err != nil || s.Name != "greeter" || len(s.Scripts) != 1 {
			t.Errorf("%+v, %v", s, err)
		}
	}
	if n != 3 {
		t.Errorf("%d skills", n)
	}
	if d, err := c.Skill(ctx, "add_numbers"); err != nil || d.Limits.TimeoutMS != 60000 || !json.Valid(d.InputSchema) {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := c.Skill(ctx, "nope"); !errors.As(err, &failed) || failed.Code != skill.NotFound {
		t.Error(err)
	}
	if s, text, err := c.AgentSkill(ctx, "greeter"); err != nil || s.Description != "Says hi." || !strings.Contains(text, "Run scripts/hi.js") {
		t.Errorf("%+v, %q, %v", s, text, err)
	}
	for _, format := range []string{"openai", "anthropic", "mcp"} {
		if b, err := c.Tools(ctx, format); err != nil || !strings.Contains(string(b), "add_numbers") {
			t.Errorf("%s: %s, %v", format, b, err)
		}
	}

	run, err := c.Start(ctx, "add_numbers", map[string]int{"num1": 2, "num2": 2})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := run.Wait(ctx); err != nil || string(r.Data) != `{"sum":4}` {
		t.Errorf("%+v, %v", r, err)
	}
	if e, err := run.Cancel(ctx); err != nil || e.Status != "success" {
		t.Errorf("cancelled after its end: %+v, %v", e, err)
	}

	var packed bytes.Buffer
	if err := admission.Pack(&packed, filepath.Join("skills", "json_diff")); err != nil {
		t.Fatal(err)
	}
	u := &client.Upload{Archive: packed.Bytes(), DryRun: true}
	if r, err := c.Upload(ctx, u); err != nil || r.ID != "json_diff" || r.State != skill.StateDryRun {
		t.Errorf("%+v, %v", r, err)
	}
	u.DryRun = false
	if r, err := c.Upload(ctx, u); err != nil || r.State != skill.StateDisabled {
		t.Errorf("%+v, %v", r, err)
	}
	if v, err := c.Enable(ctx, "json_diff", ""); err != nil || v.State != skill.StateEnabled {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := c.Disable(ctx, "json_diff", ""); err != nil || v.State != skill.StateDisabled {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := c.Upload(ctx, u); !errors.As(err, &failed) || failed.Code != skill.Conflict {
		t.Errorf("the same version again: %v", err)
	}
	if _, err := c.Pull(ctx, "127.0.0.1:1/x", false); !errors.As(err, &failed) || failed.Code != skill.Forbidden {
		t.Errorf("of a host that pulls nothing: %v", err)
	}

	a := c.NewAgent()
	if text, err := a.Run(ctx, "add them"); text != "It is 8." || err != nil || !a.Last().ToolCalls[0].Success {
		t.Errorf("%q, %v", text, err)
	}
	var shown string
	a.Hear = func(e client.Event) { shown += e.Result + e.Text }
	if text, err := a.Run(ctx, "add again"); text != "It is 8." || err != nil || shown != `{"sum":8}It is 8.` {
		t.Errorf("%q, %q, %v", text, shown, err)
	}
	for i, yes := range []bool{true, false} {
		var stopped *client.StoppedError
		if _, err := a.Run(ctx, "greet me"); !errors.As(err, &stopped) || len(stopped.Answer.Approvals) != 1 {
			t.Fatalf("%v", err)
		}
		waits := stopped.Answer.Approvals[0]
		if w, err := c.Approval(ctx, waits.ApprovalID); err != nil || w.State != "pending" || w.Script != "scripts/hi.js" || w.Trust != skill.Trusted {
			t.Errorf("%+v, %v", w, err)
		}
		if v, err := c.Conversation(ctx, a.Conversation); err != nil || len(v.Pending) != 1 || v.Pending[0] != waits || v.Messages[0].Role != "user" {
			t.Errorf("%+v, %v", v, err)
		}
		d := client.Decision{ApprovalID: waits.ApprovalID, Approve: yes}
		answer, want := (*client.ChatAnswer)(nil), []string{"It said hi.", "I may not."}[i]
		var err error
		if i == 0 {
			answer, err = c.Approve(ctx, a.Conversation, d)
		}
		for e, problem := range c.ApproveStream(ctx, a.Conversation, d) {
			if i == 1 {
				answer, err = e.Answer, problem
			} else if !errors.As(problem, &failed) { // it was decided already
				t.Errorf("%+v, %v", e, problem)
			}
		}
		if err != nil || answer.Answer != want || answer.StopReason != client.Completed {
			t.Errorf("%+v, %v; want %q", answer, err, want)
		}
	}
	if s, err := c.Session(ctx, a.Conversation); err != nil || len(s.Iterations) != 3 || s.Iterations[0].SkillName != "add_numbers" {
		t.Errorf("%+v, %v", s, err)
	}
	for s, err := range c.Conversations(ctx) {
		if err != nil || s.ID != a.Conversation || s.Title != "add them" {
			t.Errorf("%+v, %v", s, err)
		}
	}
	if err := c.DeleteConversation(ctx, a.Conversation); err != nil {
		t.Error(err)
	}
	if _, err := a.Run(ctx, "add"); !errors.As(err, &failed) || failed.Code != skill.NotFound {
		t.Error(err)
	}

	o, err := c.Execute(ctx, client.Task{Text: "Add 1 and 2.", Context: map[string]string{"for": "a test"}, Options: &client.TaskOptions{MaxIterations: 3}})
	if err != nil || o.Status != "completed" || o.Iterations != 1 || !strings.Contains(string(o.Result), "It is 3.") {
		t.Fatalf("%+v, %v", o, err)
	}
	if s, err := c.Session(ctx, o.SessionID); err != nil || s.Status != "completed" || len(s.Iterations) != 1 || s.TotalTokenUsage != o.TotalTokens {
		t.Errorf("%+v, %v", s, err)
	}
	if o, err := c.Execute(ctx, client.Task{}); !errors.As(err, &failed) || failed.Code != skill.AgentInvalidTask || o != nil {
		t.Errorf("%+v, %v", o, err)
	}
}
