package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/host/dispatch/approval"
	"openskill/sdk/skill"
)

// waiting is a call that waits for an approval, as the conversation keeps it.
type waiting struct {
	Call      llm.Call `json:"call"`
	Iteration int      `json:"iteration"`
	Approval  string   `json:"approval_id"`
	Skill     string   `json:"skill_id"`
	Script    string   `json:"script,omitempty"`
	Workspace string   `json:"workspace,omitempty"`
	Decided   decided  `json:"decided,omitempty"`
}

type decided string

const (
	yes decided = "yes"
	no  decided = "no"
)

func (w *waiting) awaited() Awaited {
	return Awaited{ApprovalID: w.Approval, ToolCallID: w.Call.ID, SkillID: w.Skill, Script: w.Script}
}

// What a model is told of calls that are not made because of an approval.
const (
	wentOn      = "The call was not approved and not made: the user continued with something else."
	notApproved = "The call was not approved, and not made. Tell the user so, and do not make it again unless they ask for it."
)

// Approve says whether the calls that a conversation waits with may be made, as far as
// they wait for this approval, and goes on with the turn when none of them waits any more.
// Who may decide is a matter of the record of approvals; where the caller may not, or
// asked for it, somebody else decides there, and this call only goes on. A caller may
// always say no: the call is not made then. hear and errors are as with [Agent.Turn].
func (a *Agent) Approve(ctx context.Context, p skill.Principal, id string, d Decision, hear func(Event)) (*Answer, error) {
	d.Conversation = id
	return a.serve(ctx, p, &d.ChatRequest, hear, func(ctx context.Context, t *turn) error {
		return t.decide(ctx, &d)
	}, func() error {
		if id == "" {
			return gone(nil)
		}
		return nil
	})
}

// decide notes what the caller says. What has been decided already, here or elsewhere,
// stays as it is.
func (t *turn) decide(ctx context.Context, d *Decision) error {
	waits := t.waits(ctx)
	if len(waits) == 0 {
		return &skill.Error{Op: "chat.Approve", Code: skill.Conflict, Message: "no pending approval in this conversation; read the conversation for its state"}
	}
	open := undecided(waits)
	id := d.ApprovalID
	if id == "" && len(open) > 1 && d.Approve {
		t.lookUp(ctx, waits)
		open = undecided(waits)
	}
	switch {
	case id != "" && !slices.Contains(open, id):
		return &skill.Error{
			Op: "chat.Approve", Code: skill.Conflict, Subject: "approval_id",
			Message: "approval_id: this approval is not pending in this conversation; pending: " + strings.Join(open, ", "),
		}
	case id == "" && len(open) > 1:
		return invalid("approval_id", "several approvals are pending; set approval_id to one of "+strings.Join(open, ", "))
	case id == "" && len(open) == 1:
		id = open[0]
	}
	if id != "" {
		verdict, err := t.settle(ctx, id, d.Approve)
		if err != nil {
			return t.endOr(ctx, err)
		}
		note(waits, id, verdict)
		t.lookUp(ctx, waits)
	}
	if len(undecided(waits)) > 0 {
		t.left = waits
		return t.keepPending(ctx, waits)
	}
	kept, err := t.read(ctx)
	if err != nil {
		return err
	}
	t.before, t.resume = kept, waits
	// From here on the calls are this turn's: should the host stop they are not made, which
	// is better than twice.
	return t.keepPending(ctx, nil)
}

// settle is what becomes of the calls that wait for an approval. A yes is only ever a
// reason to make the call: whether it may run is for the door to say.
func (t *turn) settle(ctx context.Context, id string, approve bool) (decided, error) {
	verdict := no
	if approve {
		verdict = yes
	}
	record := t.o.Approvals
	if record == nil {
		return verdict, nil
	}
	a, err := record.Get(ctx, t.p, id)
	if err == nil && a.State == approval.Pending {
		a, err = record.Decide(ctx, t.p, id, approve)
	}
	switch code := skill.CodeOf(err); {
	case !approve && (err == nil || code == skill.Forbidden || code == skill.NotFound || code == skill.Conflict):
		return no, nil // who called says no to its own call
	case code == skill.NotFound:
		return yes, nil // it is no longer on record: the call asks again
	case err != nil:
		return "", err
	case a.State == approval.Denied:
		return no, nil
	}
	return yes, nil
}

// lookUp notes what others have decided meanwhile.
func (t *turn) lookUp(ctx context.Context, waits []waiting) {
	if t.o.Approvals == nil {
		return
	}
	for _, id := range undecided(waits) {
		a, err := t.o.Approvals.Get(ctx, t.p, id)
		switch {
		case err != nil: // it stays undecided
		case a.State == approval.Approved:
			note(waits, id, yes)
		case a.State == approval.Denied:
			note(waits, id, no)
		}
	}
}

func note(waits []waiting, id string, verdict decided) {
	for i := range waits {
		if waits[i].Approval == id && waits[i].Decided == "" {
			waits[i].Decided = verdict
		}
	}
}

// undecided are the approvals that are waited for, each once.
func undecided(waits []waiting) []string {
	var ids []string
	for i := range waits {
		if waits[i].Decided == "" && !slices.Contains(ids, waits[i].Approval) {
			ids = append(ids, waits[i].Approval)
		}
	}
	return ids
}

// stillWaiting is the end of a turn in which something was decided, and not all.
func (t *turn) stillWaiting() (turnEnd, error) {
	for i := range t.left {
		if t.left[i].Decided == "" {
			t.await(&t.left[i])
		}
	}
	return turnEnd{reason: StopApprovalRequired}, nil
}

func (t *turn) await(w *waiting) {
	a := w.awaited()
	t.awaited = append(t.awaited, a)
	t.say(Event{Kind: EventApproval, Approval: &a})
}

// makeDecided makes the calls that waited, tells the model, and says whether the turn ends by that.
func (t *turn) makeDecided(ctx context.Context) (StopReason, error) {
	n := 0
	for i := range t.resume {
		if t.resume[i].Decided == yes {
			n++
		}
	}
	may := t.budget.takeCalls(n)
	t.beyond = n - may
	calls := make([]asked, len(t.resume))
	for i, w := range t.resume {
		calls[i] = asked{call: w.Call, name: w.Call.Name, iteration: w.Iteration}
		switch {
		case w.Decided != yes:
			calls[i].outcome = t.notExecuted(&calls[i], skill.Forbidden, notApproved)
		case may == 0:
			calls[i].outcome = t.notExecuted(&calls[i], skill.ToolInvocationError, "The call was not made: the limit of calls in a turn is reached.")
		default:
			may--
		}
	}
	t.call(ctx, calls)
	add := t.answers(calls)
	if err := t.keepWaiting(ctx, calls, add); err != nil {
		return "", err
	}
	kept := append(t.before, add...)
	begin := lastOfUser(kept)
	if begin < 0 { // the turn is longer than what is kept of a conversation
		kept, begin = append([]llm.Message{{Role: llm.User, Text: "(The beginning of this conversation was removed.)"}}, kept...), 0
	}
	t.remember(kept[:begin], repaired(kept[begin:]))
	return t.after(ctx, calls)
}

// keepWaiting keeps messages, and which of the calls wait for an approval; these are told.
func (t *turn) keepWaiting(ctx context.Context, calls []asked, add []llm.Message) error {
	var waits []waiting
	for i := range calls {
		if o := calls[i].outcome; o.Approval != "" {
			waits = append(waits, t.waitingOf(ctx, &calls[i], o))
		}
	}
	if err := t.setPending(waits); err != nil {
		return err
	}
	if err := t.keep(ctx, add...); err != nil {
		return err
	}
	for i := range waits {
		t.await(&waits[i])
	}
	return nil
}

// waitingOf says what waits, in the words of the record where the caller may read it, and
// else in those of the call.
func (t *turn) waitingOf(ctx context.Context, c *asked, o *tools.Outcome) waiting {
	var args struct {
		Skill  string `json:"skill_name"`
		Script string `json:"script_file"`
	}
	_ = json.Unmarshal(o.Arguments, &args) // what is not there is ""
	w := waiting{Call: c.call, Iteration: c.iteration, Approval: o.Approval, Skill: args.Skill, Script: args.Script, Workspace: t.room}
	if t.o.Approvals != nil {
		if a, err := t.o.Approvals.Get(ctx, t.p, o.Approval); err == nil {
			w.Skill, w.Script = a.Skill, a.Script
		}
	}
	w.Skill, w.Script = skill.CleanText(cmp.Or(w.Skill, o.Skill), 64), skill.CleanText(w.Script, 255)
	return w
}

// waits are the calls that wait for an approval.
func (t *turn) waits(ctx context.Context) []waiting {
	list, err := parsePending(t.conv.Pending)
	if err != nil { // somebody changed the database: the calls are answered as if they were cut off
		t.o.Log.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "cannot read the pending approvals of a conversation", t.attrs(nil, slog.String("cause", err.Error()))...)
	}
	return list
}

func parsePending(b []byte) ([]waiting, error) {
	if len(b) == 0 {
		return nil, nil
	}
	var list []waiting
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("pending: %w", err)
	}
	return list, nil
}

func (t *turn) setPending(waits []waiting) error {
	t.conv.Pending = nil
	if len(waits) == 0 {
		return nil
	}
	b, err := json.Marshal(waits)
	t.conv.Pending = b
	return err
}

func (t *turn) keepPending(ctx context.Context, waits []waiting) error {
	if err := t.setPending(waits); err != nil {
		return err
	}
	return t.keep(ctx)
}
