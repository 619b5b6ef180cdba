package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/agent"
	"openskill/host/agent/llm/llmtest"
	"openskill/internal/musttest"
)

// TestAgentSkillsInChat has a model find an Agent Skill in its prompt, load it, and run a
// script of it, which somebody must approve first: the turn waits, and goes on with a yes.
func TestAgentSkillsInChat(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "shouter")
	err := errors.Join(
		os.MkdirAll(filepath.Join(folder, "scripts"), 0o700),
		os.WriteFile(filepath.Join(folder, "SKILL.md"), []byte("---\nname: shouter\ndescription: Says a word loudly.\n---\nRun scripts/shout.js with the word.\n"), 0o600),
		os.WriteFile(filepath.Join(folder, "scripts", "shout.js"), []byte("console.log(scriptArgs.slice(1).join(' ').toUpperCase())\n"), 0o600))
	musttest.Do(t, err)
	run := llmtest.Call{Name: "run_skill_script", Arguments: `{"skill_name": "shouter", "script_file": "shout.js", "args": ["hello"]}`}
	v := talk(t, map[string]string{"agent-skills": filepath.Dir(folder), "script-approval": "version"},
		llmtest.Rule{When: llmtest.When{User: "^shout"}, Calls: []llmtest.Call{{Name: "load_skill", Arguments: `{"skill_name": "shouter"}`}}},
		llmtest.Rule{When: llmtest.When{User: "^shout", AfterTool: "load_skill", Result: "Run scripts/shout.js"}, Calls: []llmtest.Call{run}},
		llmtest.Rule{When: llmtest.When{User: "^shout", AfterTool: "run_skill_script", Result: "HELLO"}, Say: "it said HELLO"},
		llmtest.Rule{When: llmtest.When{User: "^shout", AfterTool: "run_skill_script", Result: "not approved"}, Say: "you said no"},
		llmtest.Rule{When: llmtest.When{User: "^something else"}, Say: "well then"},
	)
	_, waits := v.turn(t, "shout hello", "")
	if waits.StopReason != agent.StopApprovalRequired || len(waits.Approvals) != 1 || waits.Approvals[0].Script != "scripts/shout.js" || waits.Approvals[0].SkillID != "shouter" {
		t.Fatalf("%+v %+v", waits.Answer, waits.Error)
	}
	if asked := v.model.Requests(); !strings.Contains(asked[0].Ask.System, "Says a word loudly.") || !strings.Contains(asked[1].Ask.Messages[2].Text, "Run scripts/shout.js") {
		t.Errorf("the model is shown %s and %+v", asked[0].Ask.System, asked[1].Ask.Messages)
	}
	if recorded := v.records(t, waits.Conversation); len(recorded) != 0 {
		t.Errorf("it ran before it was approved: %+v", recorded)
	}
	var view agent.View
	if v.get(t, "/agent/conversations/"+waits.Conversation, &view); len(view.Pending) != 1 {
		t.Errorf("%+v", view.Pending)
	}
	var no, done, again said
	if status := v.send(t, "/agent/conversations/"+waits.Conversation+":approve", `{"approval_id": "another"}`, &no); status != 409 || no.Error == nil {
		t.Errorf("another approval: %d %+v", status, no)
	}
	if status := v.send(t, "/agent/conversations/"+waits.Conversation+":approve", `{}`, &done); status != 200 || done.Answer.Answer != "it said HELLO" || done.StopReason != agent.StopCompleted {
		t.Errorf("approved: %d %+v %+v", status, done.Answer, done.Error)
	}
	if recorded := v.records(t, waits.Conversation); len(recorded) != 1 || recorded[0].Skill != "shouter" || recorded[0].Status != "success" {
		t.Errorf("on record are %+v", recorded)
	}
	if status := v.send(t, "/agent/conversations/"+waits.Conversation+":approve", `{}`, &again); status != 409 {
		t.Errorf("approved twice: %d %+v", status, again.Error)
	}
	// It holds for the version: another conversation is not asked.
	if _, next := v.turn(t, "shout hello", ""); next.StopReason != agent.StopCompleted {
		t.Errorf("%+v", next.Answer)
	}

	// A changed skill asks again, and who says something else has said no.
	musttest.Do(t, os.WriteFile(filepath.Join(folder, "scripts", "shout.js"), []byte("console.log('changed')\n"), 0o600))
	var asked said
	for range 100 { // folders are looked at every other second at most
		if _, asked = v.turn(t, "shout hello", ""); asked.StopReason == agent.StopApprovalRequired {
			break
		}
	}
	if asked.StopReason != agent.StopApprovalRequired {
		t.Fatalf("a changed skill runs: %+v", asked.Answer)
	}
	if _, other := v.turn(t, "something else", `, "conversation_id": "`+asked.Conversation+`"`); other.StopReason != agent.StopCompleted {
		t.Errorf("%+v %+v", other.Answer, other.Error)
	}
	var denied said
	_, asked = v.turn(t, "shout hello", "")
	if v.send(t, "/agent/conversations/"+asked.Conversation+":approve", `{"approve": false}`, &denied); denied.Answer.Answer != "you said no" {
		t.Errorf("denied: %+v %+v", denied.Answer, denied.Error)
	}
}

// TestWithoutAModel: a host that was given no model answers by rules, says so, and has
// nobody to ask for tasks.
func TestWithoutAModel(t *testing.T) {
	s := settings(t, nil)
	addSkills(t, s.SkillsDir, map[string]string{"echo": `{"echoed": "hello"}`})
	v := &talking{serving: serve(t, s)}
	go func() {
		for v.log.Scan() { // nobody reads it
		}
	}()
	if status, got := v.turn(t, "echo: hello", ""); status != 200 || got.Provider != "rules" || len(got.ToolCalls) != 1 || !got.ToolCalls[0].Success || got.Usage.TotalTokens != 0 {
		t.Errorf("%d %+v %+v", status, got.Answer, got.Error)
	}
	if status, got := v.turn(t, "hello", ""); status != 200 || !strings.Contains(got.Answer.Answer, "find TEXT") || !strings.Contains(got.Answer.Answer, "搜索") {
		t.Errorf("the hint: %d %+v", status, got.Answer)
	}
	var task struct{ Error *struct{ Code string } }
	if status := v.send(t, "/api/agent/execute", `{"task": "do it"}`, &task); status != 503 || task.Error == nil || task.Error.Code != "AGENT_LLM_UNAVAILABLE" {
		t.Errorf("%d %+v", status, task.Error)
	}
	if got := Providers(s); len(got) != 1 || got[0] != "rules" {
		t.Errorf("providers are %q", got)
	}
}
