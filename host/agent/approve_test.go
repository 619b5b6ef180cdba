package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/store/storetest"
	"openskill/internal/musttest"

	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/host/dispatch/approval"
	"openskill/sdk/skill"
)

var (
	boss     = skill.Principal{ID: "eve", Type: skill.Human, Tenant: "acme", Scopes: skill.Scopes()}
	operator = skill.Local()
)

// approvalBench is a chat whose tool run_skill_script asks the record of approvals, as
// the door does.
type approvalBench struct {
	*bench
	record *approval.Store
	ran    []string // scripts, in order
}

func newApprovalBench(t *testing.T, policy approval.Policy, p llm.Provider, changes ...func(*Options)) *approvalBench {
	t.Helper()
	record := musttest.Get(approval.Open(t.Context(), approval.Options{DB: storetest.SQLite(t), Policy: policy}))(t)
	t.Cleanup(func() {
		if err := record.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &approvalBench{record: record}
	b.bench = newBench(t, p, append([]func(*Options){func(o *Options) { o.Approvals = record }}, changes...)...)
	ran := make(chan string, 100)
	b.box.tools["run_skill_script"] = func(ctx context.Context, c tools.Call) *tools.Outcome {
		var args struct {
			Skill  string `json:"skill_name"`
			Script string `json:"script_file"`
		}
		if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil {
			return goesWrong(c, skill.InvalidArgument, err.Error())
		}
		b.box.mu.Lock()
		p := b.box.who[len(b.box.who)-1]
		b.box.mu.Unlock()
		err := record.Check(ctx, approval.Ask{
			Skill: args.Skill, Script: args.Script, Digest: "sha256:1", Tenant: p.Tenant, Caller: p.ID, Arguments: []string{c.Arguments},
		})
		if err != nil {
			o := goesWrong(c, skill.Forbidden, err.Error())
			o.Arguments = json.RawMessage(c.Arguments)
			if e, ok := errors.AsType[*skill.Error](err); ok && e.Details["state"] == "pending" {
				o.Approval, _ = e.Details["approval_id"].(string)
			}
			return o
		}
		ran <- args.Script
		b.box.mu.Lock()
		b.ran = append(b.ran, <-ran)
		b.box.mu.Unlock()
		return works(c, args.Script+" ran")
	}
	return b
}

func scriptCall(name string) string {
	return `{"skill_name":"units","script_file":"scripts/` + name + `"}`
}

func (b *approvalBench) approve(t *testing.T, p skill.Principal, id string, d Decision, hear func(Event)) *Answer {
	t.Helper()
	a, err := b.Approve(t.Context(), p, id, d, hear)
	if err != nil {
		t.Fatalf("the approval failed: %v", err)
	}
	return a
}

func TestApproval(t *testing.T) {
	model := scripted(saysAndCalls("I convert.", "run_skill_script", scriptCall("a.py"), "echo", `{}`), says("Converted."))
	b := newApprovalBench(t, approval.PerCall, model)
	h := &heard{}
	a := b.turn(t, ChatRequest{Message: "Convert"}, h.Hear)
	same(t, "reason", a.StopReason, StopApprovalRequired)
	same(t, "answer", a.Answer, "I convert.")
	if !strings.HasSuffix(h.kinds(), "approval_required done") {
		t.Errorf("events: %s", h.kinds())
	}
	same(t, "approvals", len(a.Approvals), 1)
	wait := a.Approvals[0]
	same(t, "what waits", wait, Awaited{ApprovalID: wait.ApprovalID, ToolCallID: "c1", SkillID: "units", Script: "scripts/a.py"})
	same(t, "the event", *h.events[len(h.events)-2].Approval, wait)
	same(t, "code of the call", a.ToolCalls[0].Error.Code, skill.Forbidden)
	sameLines(t, "kept", b.kept(t, a.Conversation), []string{"u:Convert", "a:I convert. run_skill_script(c1) echo(c2)", "t:<tool_result>{}</tool_result> ->c2"})
	v, err := b.Get(t.Context(), someone, a.Conversation)
	musttest.Do(t, err)
	if !slices.Equal(v.Pending, []Awaited{wait}) {
		t.Errorf("what a reader sees: %+v", v.Pending)
	}

	// Who asked does not decide, and nobody else's conversation can be gone on with.
	_, err = b.Approve(t.Context(), someone, a.Conversation, Decision{Approve: true}, nil)
	code(t, err, skill.Forbidden)
	_, err = b.Approve(t.Context(), boss, a.Conversation, Decision{Approve: true}, nil)
	code(t, err, skill.NotFound)
	_, err = b.Approve(t.Context(), someone, a.Conversation, Decision{ApprovalID: "another", Approve: true}, nil)
	code(t, err, skill.Conflict)
	same(t, "runs", len(b.ran), 0)

	// Somebody who may decides on the record, and the caller goes on.
	musttest.Get(b.record.Decide(t.Context(), boss, wait.ApprovalID, true))(t)
	h = &heard{}
	on := b.approve(t, someone, a.Conversation, Decision{Approve: true, ChatRequest: ChatRequest{Trace: "trace-2"}}, h.Hear)
	same(t, "answer", on.Answer, "Converted.")
	same(t, "reason", on.StopReason, StopCompleted)
	same(t, "trace", on.Trace, "trace-2")
	same(t, "runs", strings.Join(b.ran, " "), "scripts/a.py")
	same(t, "calls", len(on.ToolCalls), 1)
	same(t, "success", on.ToolCalls[0].Success, true)
	same(t, "events", h.kinds(), "start tool_start:c1 tool_end:c1 text usage done")
	sameLines(t, "kept", b.kept(t, a.Conversation), []string{
		"u:Convert", "a:I convert. run_skill_script(c1) echo(c2)", "t:<tool_result>{}</tool_result> ->c2",
		"t:<tool_result>scripts/a.py ran</tool_result> ->c1", "a:Converted.",
	})
	same(t, "shown to the model", len(model.asked[1].Messages), 4)
	call := b.box.calls[len(b.box.calls)-1]
	same(t, "where it is on record", call.Turn, skill.Turn{Session: a.Conversation, Iteration: 0})

	_, err = b.Approve(t.Context(), someone, a.Conversation, Decision{Approve: true}, nil)
	code(t, err, skill.Conflict)
	same(t, "runs", len(b.ran), 1)
}

// The operator on the host's own machine decides in the conversation itself.
func TestTheOperatorApproves(t *testing.T) {
	model := scripted(calls("run_skill_script", scriptCall("a.py")), says("Converted."))
	b := newApprovalBench(t, approval.PerCall, model)
	a := musttest.Get(b.Turn(t.Context(), operator, ChatRequest{Message: "Convert"}, nil))(t)
	on := b.approve(t, operator, a.Conversation, Decision{ApprovalID: a.Approvals[0].ApprovalID, Approve: true}, nil)
	same(t, "answer", on.Answer, "Converted.")
	same(t, "runs", len(b.ran), 1)
	got := musttest.Get(b.record.Get(t.Context(), operator, a.Approvals[0].ApprovalID))(t)
	same(t, "on record", got.State, approval.Used)
	same(t, "decided by", got.DecidedBy, "local")
}

func TestNotApproved(t *testing.T) {
	for _, c := range []struct {
		name string
		who  skill.Principal
		do   func(t *testing.T, b *approvalBench, a *Answer) // before the caller says
		yes  bool
		want approval.State
	}{
		{"the operator says no", operator, nil, false, approval.Denied},
		{"the caller says no", someone, nil, false, approval.Pending},
		{"another one has said no", someone, func(t *testing.T, b *approvalBench, a *Answer) {
			t.Helper()
			musttest.Get(b.record.Decide(t.Context(), boss, a.Approvals[0].ApprovalID, false))(t)
		}, true, approval.Denied},
		{"the caller says no to what is approved", someone, func(t *testing.T, b *approvalBench, a *Answer) {
			t.Helper()
			musttest.Get(b.record.Decide(t.Context(), boss, a.Approvals[0].ApprovalID, true))(t)
		}, false, approval.Approved},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := scripted(calls("run_skill_script", scriptCall("a.py")), says("Then not."))
			b := newApprovalBench(t, approval.PerCall, model)
			a := musttest.Get(b.Turn(t.Context(), c.who, ChatRequest{Message: "Convert"}, nil))(t)
			if c.do != nil {
				c.do(t, b, a)
			}
			on := b.approve(t, c.who, a.Conversation, Decision{Approve: c.yes}, nil)
			same(t, "answer", on.Answer, "Then not.")
			same(t, "runs", len(b.ran), 0)
			same(t, "code", on.ToolCalls[0].Error.Code, skill.Forbidden)
			last := model.asked[1].Messages[2]
			same(t, "the model is told", last.Text, notApproved)
			got := musttest.Get(b.record.Get(t.Context(), boss, a.Approvals[0].ApprovalID))(t)
			same(t, "on record", got.State, c.want)
		})
	}
}

// A message in the place of a decision withdraws the calls.
func TestTheUserGoesOn(t *testing.T) {
	model := scripted(calls("run_skill_script", scriptCall("a.py")), says("Fine."))
	b := newApprovalBench(t, approval.PerCall, model)
	a := b.turn(t, ChatRequest{Message: "Convert"}, nil)
	on := b.turn(t, ChatRequest{Message: "Leave it", Conversation: a.Conversation}, nil)
	same(t, "answer", on.Answer, "Fine.")
	sameLines(t, "shown", inLines(model.asked[1].Messages), []string{
		"u:Convert", "a: run_skill_script(c1)", "t:" + wentOn + " ->c1 failed", "u:Leave it",
	})
	v, err := b.Get(t.Context(), someone, a.Conversation)
	musttest.Do(t, err)
	same(t, "pending", len(v.Pending), 0)
	_, err = b.Approve(t.Context(), someone, a.Conversation, Decision{Approve: true}, nil)
	code(t, err, skill.Conflict)
	same(t, "runs", len(b.ran), 0)
}

func TestSeveralApprovals(t *testing.T) {
	ask := calls("run_skill_script", scriptCall("a.py"), "run_skill_script", scriptCall("b.py"), "run_skill_script", scriptCall("c.py"))
	t.Run("one by one", func(t *testing.T) {
		model := scripted(ask, says("Done."))
		b := newApprovalBench(t, approval.PerCall, model)
		a, err := b.Turn(t.Context(), operator, ChatRequest{Message: "Convert"}, nil)
		musttest.Do(t, err)
		same(t, "approvals", len(a.Approvals), 3)
		for _, approve := range []bool{true, false} {
			_, err = b.Approve(t.Context(), operator, a.Conversation, Decision{Approve: approve}, nil)
			code(t, err, skill.InvalidArgument)
			if !strings.Contains(err.Error(), a.Approvals[2].ApprovalID) {
				t.Errorf("%v does not name what waits", err)
			}
		}
		h := &heard{}
		left := b.approve(t, operator, a.Conversation, Decision{ApprovalID: a.Approvals[1].ApprovalID, Approve: true}, h.Hear)
		same(t, "reason", left.StopReason, StopApprovalRequired)
		same(t, "events", h.kinds(), strings.Join([]string{"start", "approval_required", "approval_required", "done"}, " "))
		if !slices.Equal(left.Approvals, []Awaited{a.Approvals[0], a.Approvals[2]}) {
			t.Errorf("what is left: %+v", left.Approvals)
		}
		same(t, "questions", len(model.asked), 1)
		_, err = b.Approve(t.Context(), operator, a.Conversation, Decision{ApprovalID: a.Approvals[1].ApprovalID, Approve: true}, nil)
		code(t, err, skill.Conflict)
		b.approve(t, operator, a.Conversation, Decision{ApprovalID: a.Approvals[0].ApprovalID}, nil)
		same(t, "runs", len(b.ran), 0)
		end := b.approve(t, operator, a.Conversation, Decision{Approve: true}, nil)
		same(t, "answer", end.Answer, "Done.")
		same(t, "runs", len(b.ran), 2)
		same(t, "calls", len(end.ToolCalls), 3)
		for i, want := range []bool{false, true, true} {
			same(t, "success", end.ToolCalls[i].Success, want)
		}
	})
	t.Run("of one skill", func(t *testing.T) { // one approval for all of them
		b := newApprovalBench(t, approval.PerVersion, scripted(ask, says("Done.")))
		a := musttest.Get(b.Turn(t.Context(), operator, ChatRequest{Message: "Convert"}, nil))(t)
		same(t, "approvals", len(a.Approvals), 3)
		end := b.approve(t, operator, a.Conversation, Decision{Approve: true}, nil)
		same(t, "answer", end.Answer, "Done.")
		same(t, "runs", len(b.ran), 3)
	})
	t.Run("decided elsewhere", func(t *testing.T) {
		b := newApprovalBench(t, approval.PerCall, scripted(ask, says("Done.")))
		a := b.turn(t, ChatRequest{Message: "Convert"}, nil)
		for i, w := range a.Approvals {
			musttest.Get(b.record.Decide(t.Context(), boss, w.ApprovalID, i != 1))(t)
		}
		end := b.approve(t, someone, a.Conversation, Decision{Approve: true}, nil)
		same(t, "answer", end.Answer, "Done.")
		same(t, "runs", len(b.ran), 2)
	})
	t.Run("more than the budget", func(t *testing.T) {
		b := newApprovalBench(t, approval.PerVersion, scripted(ask, says("Never.")))
		a := musttest.Get(b.Turn(t.Context(), operator, ChatRequest{Message: "Convert"}, nil))(t)
		end := b.approve(t, operator, a.Conversation, Decision{Approve: true, ChatRequest: ChatRequest{MaxToolCalls: 2}}, nil)
		same(t, "reason", end.StopReason, StopToolCalls)
		same(t, "runs", len(b.ran), 2)
		same(t, "code", end.ToolCalls[2].Error.Code, skill.ToolInvocationError)
	})
}

// An approval that nobody gave in time, or that was used up, is asked for anew.
func TestAnApprovalExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newApprovalBench(t, approval.PerCall, scripted(calls("run_skill_script", scriptCall("a.py")), says("Converted.")))
		a := musttest.Get(b.Turn(t.Context(), operator, ChatRequest{Message: "Convert"}, nil))(t)
		time.Sleep(time.Hour)
		again := b.approve(t, operator, a.Conversation, Decision{Approve: true}, nil)
		same(t, "reason", again.StopReason, StopApprovalRequired)
		if again.Approvals[0].ApprovalID == a.Approvals[0].ApprovalID {
			t.Error("the approval is the one that has expired")
		}
		same(t, "the call is the same", again.Approvals[0].ToolCallID, "c1")
		on := b.approve(t, operator, a.Conversation, Decision{Approve: true}, nil)
		same(t, "answer", on.Answer, "Converted.")
		same(t, "runs", len(b.ran), 1)
	})
}

// Without a record nobody decides here, and the door has the last word as ever.
func TestNoRecordOfApprovals(t *testing.T) {
	b := newApprovalBench(t, approval.PerCall, scripted(calls("run_skill_script", scriptCall("a.py")), says("Never.")), func(o *Options) { o.Approvals = nil })
	a := b.turn(t, ChatRequest{Message: "Convert"}, nil)
	same(t, "what waits", a.Approvals[0].Script, "scripts/a.py")
	again := b.approve(t, someone, a.Conversation, Decision{Approve: true}, nil)
	same(t, "reason", again.StopReason, StopApprovalRequired)
	same(t, "approval", again.Approvals[0].ApprovalID, a.Approvals[0].ApprovalID)
	same(t, "runs", len(b.ran), 0)
}

// A host that stops after a yes has not made the calls, and they are not made later: the
// model is told that nobody knows.
func TestAHostStopsAfterAYes(t *testing.T) {
	b := newApprovalBench(t, approval.PerCall, scripted(calls("run_skill_script", scriptCall("a.py"))))
	a, err := b.Turn(t.Context(), operator, ChatRequest{Message: "Convert"}, nil)
	musttest.Do(t, err)
	b.box.tools["run_skill_script"] = func(context.Context, tools.Call) *tools.Outcome { return nil }
	_, err = b.Approve(t.Context(), operator, a.Conversation, Decision{Approve: true}, nil)
	code(t, err, skill.AgentLoopError)
	_, err = b.Approve(t.Context(), operator, a.Conversation, Decision{Approve: true}, nil)
	code(t, err, skill.Conflict)

	model := scripted(says("I do not know."))
	next := newBench(t, model, func(o *Options) { o.Store = b.store })
	musttest.Get(next.Turn(t.Context(), operator, ChatRequest{Message: "Well?", Conversation: a.Conversation}, nil))(t)
	sameLines(t, "shown", inLines(model.asked[0].Messages), []string{"u:Convert", "a: run_skill_script(c1)", "t:" + lostCall + " ->c1 failed", "u:Well?"})
}

// What waits is read from the database, which somebody may have changed.
func TestPendingThatCannotBeRead(t *testing.T) {
	b := newApprovalBench(t, approval.PerCall, scripted(calls("run_skill_script", scriptCall("a.py")), says("Fine.")))
	a := b.turn(t, ChatRequest{Message: "Convert"}, nil)
	conv, err := b.store.Get(t.Context(), ownerOf(someone), a.Conversation)
	musttest.Do(t, err)
	conv.Pending = []byte(`{"what":1}`)
	musttest.Do(t, b.store.Append(t.Context(), conv, nil, 200))
	if v, err := b.Get(t.Context(), someone, a.Conversation); err != nil || len(v.Pending) != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	_, err = b.Approve(t.Context(), someone, a.Conversation, Decision{Approve: true}, nil)
	code(t, err, skill.Conflict)
	same(t, "answer", b.turn(t, ChatRequest{Message: "Well?", Conversation: a.Conversation}, nil).Answer, "Fine.")
}

// A conversation of which the beginning of the turn is not kept any more can be gone on
// with: vendors want a user's message first.
func TestApprovalOfALongTurn(t *testing.T) {
	steps := make([]step, 0, 12)
	for range 8 {
		steps = append(steps, calls("echo", "{}"))
	}
	steps = append(steps, calls("run_skill_script", scriptCall("a.py")), says("Converted."))
	for _, keep := range []int{5, 200} {
		model := scripted(steps...)
		b := newApprovalBench(t, approval.PerCall, model, func(o *Options) { o.Chat.Keep, o.Chat.History, o.ToolCalls = keep, 4, 9 })
		a := musttest.Get(b.Turn(t.Context(), operator, ChatRequest{Message: "Convert"}, nil))(t)
		on := b.approve(t, operator, a.Conversation, Decision{Approve: true}, nil)
		same(t, "answer", on.Answer, "Converted.")
		shown := model.asked[9].Messages
		same(t, "the first message is a user's", shown[0].Role, llm.User)
		if keep == 200 {
			same(t, "messages", len(shown), 19)
			same(t, "the first message", shown[0].Text, "Convert")
		} else if !strings.Contains(shown[0].Text, "was removed") {
			t.Errorf("the first message: %s", shown[0].Text)
		}
		valid(t, shown)
	}
}
