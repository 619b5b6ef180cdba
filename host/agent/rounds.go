package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/sdk/skill"
)

// Bounds on what of a model's answer is taken over, whatever its vendor lets it say.
const (
	leastReply   = 256       // tokens that must be left for an answer, or it is not asked for
	maxCalls     = 1024      // calls of tools, whatever the budget has room for
	maxText      = 256 << 10 // bytes of its text
	maxArguments = 128 << 10 // of the arguments of one call
	maxAllArgs   = 256 << 10 // of those of all calls together; all of it fits into a message that is kept
	shownBeyond  = 4         // calls beyond the budget that are told of one by one
)

// run asks the model, and calls what it asks for, until there is an answer or a limit is
// reached. Every round is kept before the next one begins.
func (t *turn) run(ctx context.Context) (turnEnd, error) {
	if len(t.left) > 0 {
		return t.stillWaiting()
	}
	if len(t.resume) > 0 {
		if reason, err := t.makeDecided(ctx); reason != "" || err != nil {
			return turnEnd{reason: reason}, err
		}
	}
	silent := false
	for {
		if reason, err := t.stopped(ctx); reason != "" || err != nil {
			return turnEnd{reason: reason}, err
		}
		if reason := t.budget.next(); reason != "" {
			return turnEnd{reason: reason}, nil
		}
		reply, reason, err := t.ask(ctx)
		if reason != "" || err != nil {
			return turnEnd{reason: reason}, err
		}
		switch {
		case reply.Stop == llm.StopRefused:
			return turnEnd{StopRefused, reply.Text}, nil
		case len(reply.Calls) > 0:
			silent = false
			if reason, err := t.round(ctx, reply); reason != "" || err != nil {
				return turnEnd{reason: reason}, err
			}
		case reply.Stop == llm.StopLength:
			return turnEnd{StopLength, reply.Text}, nil
		case !blank(reply.Text):
			return turnEnd{StopCompleted, reply.Text}, nil
		case silent:
			return turnEnd{}, &skill.Error{
				Op: "chat.ask", Code: skill.AgentLLMParseError, Details: map[string]any{"provider": t.model.Provider},
				Message: "the model returned two empty replies; rephrase or use another model",
			}
		default:
			silent = true
		}
	}
}

// ask puts one question to the model, if the budget has room for it.
func (t *turn) ask(ctx context.Context) (*llm.Reply, StopReason, error) {
	left := t.budget.tokensLeft()
	takes, fits := t.history.fit(left - leastReply)
	if !fits {
		return nil, StopTokens, nil
	}
	r := t.request
	r.Messages, r.MaxTokens = t.history.shown(), min(t.o.Chat.ReplyTokens, left-takes)
	var hear func(string)
	if t.hear != nil {
		hear = func(part string) {
			if part != "" {
				t.say(Event{Kind: EventText, Text: part})
			}
		}
	}
	t.asked++
	t.unkept = true
	reply, err := t.driver.ask(ctx, &r, hear)
	if err != nil {
		if reason, end := t.stopped(ctx); reason != "" || end != nil {
			return nil, reason, end
		}
		return nil, "", err
	}
	t.say(Event{Kind: EventUsage, Usage: t.usage()})
	said := *reply // which is the provider's, who may give it to others too
	if said.Text = plain(said.Text, maxText); !blank(said.Text) {
		t.lastText = said.Text
	}
	return &said, "", nil
}

// plain is text as it can be kept: UTF-8 without NUL, and not longer than most.
func plain(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	s = strings.ToValidUTF8(s, "")
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return s
}

// asked is a call that a model asks for.
type asked struct {
	call      llm.Call // as it is kept, and shown again
	name      string   // of the tool, as the model wrote it
	iteration int
	tokens    int            // that the answer took which asks for it, told with the first of its calls
	outcome   *tools.Outcome // set before the call: it is not to be made
}

// round makes the calls of one answer, keeps them with what they gave, and says whether
// the turn ends by that.
func (t *turn) round(ctx context.Context, reply *llm.Reply) (StopReason, error) {
	iteration := t.first + t.asked - 1
	calls := t.take(reply, iteration)
	said := llm.Message{Role: llm.Assistant, Text: reply.Text, Calls: make([]llm.Call, len(calls))}
	for i := range calls {
		said.Calls[i] = calls[i].call
	}
	t.call(ctx, calls)
	add := append([]llm.Message{said}, t.answers(calls)...)
	if err := t.keepWaiting(ctx, calls, add); err != nil {
		return "", err
	}
	for _, m := range add {
		t.show(m)
	}
	return t.after(ctx, calls)
}

// after says whether the calls of a round are the end of the turn.
func (t *turn) after(ctx context.Context, calls []asked) (StopReason, error) {
	wrong, changed := false, false
	for i := range calls {
		wrong = wrong || calls[i].outcome.Invalid
		changed = changed || calls[i].name == tools.ProposeSkill && calls[i].outcome.Result.Success
	}
	if changed { // the model can call its skill at once
		if err := t.loadTools(ctx); err != nil {
			return "", err
		}
	}
	t.wrong++
	if !wrong {
		t.wrong = 0
	}
	reason, err := t.stopped(ctx)
	switch {
	case err != nil:
		return "", err
	case len(t.awaited) > 0:
		return StopApprovalRequired, nil
	case reason != "":
		return reason, nil
	case t.beyond > 0:
		return StopToolCalls, nil
	case t.wrong > t.retries:
		return StopInvalidCalls, nil
	}
	return "", nil
}

// take chooses which calls of an answer are made. Of those that the budget has no room
// for only a few are kept: a model may ask for any number.
func (t *turn) take(reply *llm.Reply, iteration int) []asked {
	n := len(reply.Calls)
	may := t.budget.takeCalls(min(n, maxCalls))
	t.beyond = n - may
	list := make([]asked, min(n, may+shownBeyond))
	room := maxAllArgs
	for i := range list {
		c := reply.Calls[i]
		a := &list[i]
		a.call = llm.Call{ID: t.unique(c.ID, iteration, i), Name: safeName(c.Name), Arguments: strings.ToValidUTF8(c.Arguments, "\uFFFD")}
		a.name, a.iteration = plain(c.Name, maxName), iteration
		long := len(a.call.Arguments) > min(maxArguments, room)
		if long {
			a.call.Arguments = "{}"
		}
		room -= len(a.call.Arguments)
		switch {
		case i >= may:
			a.outcome = t.notExecuted(a, skill.ToolInvocationError, fmt.Sprintf(
				"The call was not made: the limit of calls in a turn is reached. %d calls of this answer were not made.", t.beyond))
		case long:
			a.outcome = t.notExecuted(a, skill.InvalidArgument, fmt.Sprintf(
				"The call was not made: its arguments are longer than %d bytes, or those of all calls of this answer than %d. Send less.", maxArguments, maxAllArgs))
			a.outcome.Invalid = true
		}
	}
	if len(list) > 0 {
		list[0].tokens = reply.Usage.Total()
	}
	return list
}

// maxName is the length in bytes of the longest name that is told to the tools, which
// know what else the model may have meant; no tool has a longer one than 64.
const maxName = 128

// portableName are names of tools and ids of calls that every vendor takes when they are
// shown again, whoever's model wrote them. What one vendor refuses would be in each
// question from then on, and the conversation at its end.
var portableName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// unique gives the id of a call that no other call has which the model is shown: the
// model's own where it can be had.
func (t *turn) unique(id string, iteration, i int) string {
	if t.ids[id] || !portableName.MatchString(id) {
		base := "call_" + strconv.Itoa(iteration) + "_" + strconv.Itoa(i)
		id = base
		for n := 2; t.ids[id]; n++ {
			id = base + "_" + strconv.Itoa(n)
		}
	}
	t.ids[id] = true
	return id
}

// safeName is the name of a tool as it can be shown again. One that had to be changed is
// no tool's: the call is told that there is none.
func safeName(name string) string {
	if portableName.MatchString(name) {
		return name
	}
	return "no_such_tool"
}

// notExecuted is the outcome of a call that the host does not make.
func (t *turn) notExecuted(a *asked, code skill.Code, why string) *tools.Outcome {
	name := skill.CleanText(a.name, 64)
	return &tools.Outcome{
		Call: tools.Call{ID: a.call.ID, Name: a.name}, Skill: name, Arguments: json.RawMessage("{}"), Text: why,
		Result: skill.Failure(skill.ID(name), t.trace, skill.Meta{}, &skill.Error{Op: "chat.call", Code: code, Message: why}),
	}
}

// call makes calls, all at once, and returns when each of them has ended. Their outcomes
// are told as they come.
func (t *turn) call(ctx context.Context, calls []asked) {
	n := 0
	for i := range calls {
		if calls[i].outcome == nil {
			n++
		}
		t.say(Event{Kind: EventToolGo, Tool: toBeCalled(&calls[i])})
	}
	t.made += n
	limits := skill.Limits{Fuel: t.budget.fuelShare(n), Timeout: t.callTime}
	begin := len(t.calls)
	t.calls = append(t.calls, make([]ToolCall, len(calls))...)
	var running sync.WaitGroup
	defer running.Wait() // also where who listens panics
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan int, len(calls))
	for i := range calls {
		c := &calls[i]
		if c.outcome != nil {
			ended <- i
			continue
		}
		running.Go(func() {
			defer func() { ended <- i }()
			c.outcome = t.tools.Call(ctx, tools.Call{
				ID: c.call.ID, Name: c.name, Arguments: c.call.Arguments, Trace: t.trace, Limits: limits,
				Turn: skill.Turn{Session: t.conv.ID, Iteration: c.iteration, Tokens: c.tokens, Workspace: t.room},
			})
		})
	}
	for range calls {
		i := <-ended
		o := calls[i].outcome
		t.budget.burn(o.Result.Meta.FuelUsed)
		t.calls[begin+i] = called(calls[i].call.ID, o)
		t.say(Event{Kind: EventToolEnd, Tool: &t.calls[begin+i], Result: preview(o.Result)})
	}
}

// mostPreview is how much of a result people see who watch a turn, in bytes.
const mostPreview = 500

// preview is the beginning of what a call gave.
func preview(r *skill.Result) string {
	if !r.Success {
		return ""
	}
	return strings.ToValidUTF8(string(r.Data[:min(len(r.Data), mostPreview)]), "")
}

// toBeCalled is a call before its outcome is known, in the model's words.
func toBeCalled(a *asked) *ToolCall {
	args := json.RawMessage(strings.TrimSpace(a.call.Arguments))
	if len(args) == 0 || args[0] != '{' || !json.Valid(args) {
		args = json.RawMessage("{}")
	}
	return &ToolCall{ID: a.call.ID, SkillID: skill.CleanText(a.name, 64), Arguments: args}
}

func called(id string, o *tools.Outcome) ToolCall {
	r := o.Result
	return ToolCall{
		ID: id, SkillID: o.Skill, Arguments: o.Arguments, Success: r.Success, Error: r.Error,
		LatencyMS: o.Took.Milliseconds(), ExecutionID: o.Execution(),
	}
}

// answers are the messages that tell the model of its calls, but for those that wait for
// an approval, which are answered when somebody has decided.
func (t *turn) answers(calls []asked) []llm.Message {
	var list []llm.Message
	for i := range calls {
		if o := calls[i].outcome; o.Approval == "" {
			list = append(list, llm.Message{Role: llm.Tool, CallID: calls[i].call.ID, Text: plain(o.Text, maxText), Failed: !o.Result.Success})
		}
	}
	return list
}

// sentence says to the caller, and to the model in the next turn, why a turn ended before
// its end.
func (t *turn) sentence(reason StopReason) string {
	switch reason {
	case StopIterations:
		return "The host ended this turn: the limit of model requests in one turn is reached. Say \"go on\" to continue."
	case StopToolCalls:
		s := fmt.Sprintf("The host ended this turn: the limit of calls in one turn is reached. %d calls were made", t.made)
		if t.beyond > 0 {
			s += fmt.Sprintf(", and %d more that the model asked for were not", t.beyond)
		}
		return s + ". Say \"go on\" to continue."
	case StopTokens:
		return "The host ended this turn: its token budget is used up. Say \"go on\" to continue, or ask for less."
	case StopCost:
		return "The host ended this turn: the cost limit of one turn is reached."
	case StopFuel:
		return "The host ended this turn: its skills used up the fuel of one turn."
	case StopTime:
		return fmt.Sprintf("The host ended this turn: it has taken longer than %s.", t.o.Chat.Time)
	case StopInvalidCalls:
		return fmt.Sprintf("The host ended this turn: the model has sent wrong calls %d times in a row, and not mended them.", t.wrong)
	case StopLength:
		return "The model's answer was cut off before it said anything: it may have no more tokens."
	case StopRefused:
		return "The model's provider has withheld the answer."
	case StopApprovalRequired:
		return "A call needs approval before it can be made."
	case StopCompleted: // it has words of its own
	}
	return "The turn has ended."
}
