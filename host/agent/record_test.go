package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/host/dispatch/approval"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// record is a record of approvals that answers as it is told.
type record struct {
	state      approval.State
	get, later error
	decided    []bool
}

func (r *record) Get(context.Context, skill.Principal, string) (approval.Approval, error) {
	return approval.Approval{ID: "a-1", Skill: "units", Script: "a.py", State: r.state}, r.get
}

func (r *record) Decide(_ context.Context, _ skill.Principal, _ string, approve bool) (approval.Approval, error) {
	r.decided = append(r.decided, approve)
	state := approval.Denied
	if approve {
		state = approval.Approved
	}
	return approval.Approval{ID: "a-1", State: state}, r.later
}

// What the record of approvals says, and what becomes of the call by that. A yes makes
// the call whenever the record does not forbid it: the door asks the record again.
func TestTheRecordSays(t *testing.T) {
	of := func(c skill.Code) error { return &skill.Error{Code: c, Message: "said"} }
	for _, c := range []struct {
		name       string
		r          record
		yes        bool
		ends       skill.Code // the error
		made       bool       // the call
		isDecided  bool       // on the record
		stillWaits bool
	}{
		{name: "pending, yes", r: record{state: approval.Pending}, yes: true, made: true, isDecided: true},
		{name: "pending, no", r: record{state: approval.Pending}, isDecided: true},
		{name: "may not decide, yes", r: record{state: approval.Pending, later: of(skill.Forbidden)}, yes: true, ends: skill.Forbidden, isDecided: true, stillWaits: true},
		{name: "may not decide, no", r: record{state: approval.Pending, later: of(skill.Forbidden)}, isDecided: true},
		{name: "decided in this moment, yes", r: record{state: approval.Pending, later: of(skill.Conflict)}, yes: true, ends: skill.Conflict, isDecided: true, stillWaits: true},
		{name: "decided in this moment, no", r: record{state: approval.Pending, later: of(skill.Conflict)}, isDecided: true},
		{name: "cannot be written, no", r: record{state: approval.Pending, later: of(skill.Internal)}, ends: skill.Internal, isDecided: true, stillWaits: true},
		{name: "may not read, yes", r: record{get: of(skill.Forbidden)}, yes: true, ends: skill.Forbidden, stillWaits: true},
		{name: "may not read, no", r: record{get: of(skill.Forbidden)}},
		{name: "not there any more, yes", r: record{get: of(skill.NotFound)}, yes: true, made: true},
		{name: "not there any more, no", r: record{get: of(skill.NotFound)}},
		{name: "cannot be read, yes", r: record{get: of(skill.AuditUnavailable)}, yes: true, ends: skill.AuditUnavailable, stillWaits: true},
		{name: "fails in another way", r: record{get: errors.New("broken")}, yes: true, ends: skill.AgentLoopError, stillWaits: true},
		{name: "approved, yes", r: record{state: approval.Approved}, yes: true, made: true},
		{name: "approved, no", r: record{state: approval.Approved}},
		{name: "denied, yes", r: record{state: approval.Denied}, yes: true},
		{name: "used, yes", r: record{state: approval.Used}, yes: true, made: true},
		{name: "expired, yes", r: record{state: approval.Expired}, yes: true, made: true},
		{name: "expired, no", r: record{state: approval.Expired}},
	} {
		t.Run(c.name, func(t *testing.T) {
			asks := 0
			b := newBench(t, scripted(calls("ask", "{}"), says("Done.")), func(o *Options) { o.Approvals = &c.r })
			b.box.tools["ask"] = func(_ context.Context, call tools.Call) *tools.Outcome {
				if asks++; asks > 1 {
					return works(call, "ran")
				}
				o := goesWrong(call, skill.Forbidden, "ask first")
				o.Approval = "a-1"
				return o
			}
			first := b.turn(t, ChatRequest{Message: "Go"}, nil)
			a, err := b.Approve(t.Context(), someone, first.Conversation, Decision{Approve: c.yes}, nil)
			if c.ends != "" {
				code(t, err, c.ends)
			} else if err != nil {
				t.Fatal(err)
			} else {
				same(t, "answer", a.Answer, "Done.")
				same(t, "success of the call", a.ToolCalls[0].Success, c.made)
			}
			same(t, "calls", asks == 2, c.made)
			same(t, "is decided on the record", len(c.r.decided) == 1, c.isDecided)
			v := musttest.Get(b.Get(t.Context(), someone, first.Conversation))(t)
			same(t, "it still waits", len(v.Pending) == 1, c.stillWaits)
		})
	}
}

func TestApprovalsRefused(t *testing.T) {
	b := newBench(t, scripted(says("Hello.")))
	id := b.turn(t, ChatRequest{Message: "Hi"}, nil).Conversation
	for _, c := range []struct {
		who  skill.Principal
		id   string
		d    Decision
		want skill.Code
	}{
		{someone, "", Decision{}, skill.NotFound},
		{someone, "x", Decision{}, skill.NotFound},
		{someone, id, Decision{Approve: true}, skill.Conflict},
		{someone, id, Decision{ChatRequest: ChatRequest{MaxTokens: -1}}, skill.InvalidArgument},
		{someone, id, Decision{ChatRequest: ChatRequest{Model: "other"}}, skill.InvalidArgument},
		{skill.Principal{}, id, Decision{}, skill.Unauthorized},
		{skill.Principal{ID: "ann", Type: skill.Human, Tenant: "acme"}, id, Decision{}, skill.Forbidden},
	} {
		h := &heard{}
		_, err := b.Approve(t.Context(), c.who, c.id, c.d, h.Hear)
		code(t, err, c.want)
		same(t, "events", len(h.events), 0)
	}
}

// A client that leaves while the approved call runs: what became of it is kept, and
// nothing waits any more.
func TestLeavingAfterAYes(t *testing.T) {
	r := &record{state: approval.Pending}
	b := newBench(t, scripted(calls("ask", "{}"), says("never")), func(o *Options) { o.Approvals = r })
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	asks := 0
	b.box.tools["ask"] = func(ctx context.Context, c tools.Call) *tools.Outcome {
		if asks++; asks > 1 {
			leave()
			return b.box.tools["wait"](ctx, c)
		}
		o := goesWrong(c, skill.Forbidden, "ask first")
		o.Approval = "a-1"
		return o
	}
	id := b.turn(t, ChatRequest{Message: "Go"}, nil).Conversation
	_, err := b.Approve(ctx, someone, id, Decision{Approve: true}, nil)
	code(t, err, skill.Cancelled)
	sameLines(t, "kept", b.kept(t, id), []string{"u:Go", "a: ask(c1)", "t:the call was cancelled ->c1 failed"})
	_, err = b.Approve(t.Context(), someone, id, Decision{Approve: true}, nil)
	code(t, err, skill.Conflict)
	same(t, "calls", asks, 2)
}

// The largest answer that a vendor lets a model give can be kept, with all that waits.
func TestTheLargestAnswerIsKept(t *testing.T) {
	if testing.Short() {
		t.Skip("one large answer, for which the race detector takes longer than a database may")
	}
	worst := strings.Repeat("\x01", 1<<20)
	b := newBench(t, scripted(func(context.Context, *llm.Request, func(string)) (*llm.Reply, error) {
		r := &llm.Reply{Text: "a" + worst, Stop: llm.StopCalls, Usage: used}
		for range 1200 {
			r.Calls = append(r.Calls, llm.Call{ID: worst, Name: "ask", Arguments: `{"` + worst[:1000] + `":1}`})
		}
		return r, nil
	}), func(o *Options) { o.ToolCalls = 1_000_000 })
	b.box.tools["ask"] = func(_ context.Context, c tools.Call) *tools.Outcome {
		o := goesWrong(c, skill.Forbidden, "ask first")
		o.Approval = "a-1"
		return o
	}
	a := b.turn(t, ChatRequest{Message: "Go"}, nil)
	same(t, "reason", a.StopReason, StopApprovalRequired)
	conv := musttest.Get(b.store.Get(t.Context(), ownerOf(someone), a.Conversation))(t)
	list := musttest.Get(b.store.Messages(t.Context(), ownerOf(someone), a.Conversation, 2000))(t)
	body, _ := json.Marshal(list[1].Body)
	if n := max(len(body), len(conv.Pending)); n < 3<<20 || n > conversations.MostMessage {
		t.Errorf("the message has %d bytes, what waits %d: the largest of %d, or not the largest", len(body), len(conv.Pending), conversations.MostMessage)
	}
	same(t, "calls in the message", len(list[1].Body.Calls), maxCalls+shownBeyond)
}

// Lists of a caller who leaves are not the database's fault.
func TestLeavingAList(t *testing.T) {
	b := newBench(t, scripted(), func(o *Options) { o.Store = downStore{o.Store} })
	ctx, leave := context.WithCancel(t.Context())
	leave()
	_, _, err := b.List(ctx, someone, "", 10)
	code(t, err, skill.Cancelled)
}
