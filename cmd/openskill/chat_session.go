package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// chatting is one chat: whom it talks to, and what it knows of the conversation.
type chatting struct {
	api    *client.Client
	screen *screen
	local  bool // the host is in this process

	provider, model string // "": the host's choice
	conversation    string // "": the next message begins one
	pending         []client.Awaited
	calls           map[string]client.ToolCall // of the last turn, by id
	total           totals
	listed          []string // ids, as /history has shown them
	onlyRules       bool     // the host in this process has no model
	rulesTold       bool

	interrupts interrupts // nil: what interrupts a turn ends the command
}

// totals are what a chat has taken so far.
type totals struct {
	turns, calls int
	usage        client.Usage
}

// errStopped is why a turn was cancelled by the person who began it.
var errStopped = errors.New("stopped")

// say sends a message, and shows what the turn comes to. The error was shown already.
func (c *chatting) say(ctx context.Context, message string) (*client.ChatAnswer, error) {
	r := client.ChatRequest{Message: message, Conversation: c.conversation, Provider: c.provider, Model: c.model}
	return c.turn(ctx, func(ctx context.Context, hear func(client.Event)) (*client.ChatAnswer, error) {
		return heard(c.api.ChatStream(ctx, r), hear)
	})
}

// decide says whether a call that waits may be made, and goes on with the turn.
func (c *chatting) decide(ctx context.Context, approval string, yes bool) (*client.ChatAnswer, error) {
	d := client.Decision{ApprovalID: approval, Approve: yes, Provider: c.provider, Model: c.model}
	return c.turn(ctx, func(ctx context.Context, hear func(client.Event)) (*client.ChatAnswer, error) {
		return heard(c.api.ApproveStream(ctx, c.conversation, d), hear)
	})
}

func (c *chatting) turn(ctx context.Context, take func(context.Context, func(client.Event)) (*client.ChatAnswer, error)) (*client.ChatAnswer, error) {
	run, done := c.interrupts.stoppable(ctx)
	defer done()
	begun := time.Now()
	c.screen.begin()
	a, err := take(run, func(e client.Event) {
		if e.Conversation != "" {
			c.conversation = e.Conversation // also of a turn that fails later
		}
		c.screen.hear(e)
	})
	c.screen.end()
	if err == nil && a == nil {
		err = errors.New("the host gave no answer")
	}
	if err != nil {
		if run.Err() != nil {
			c.screen.note(askStyle, "  ■ stopped")
			return nil, errStopped
		}
		c.screen.failed(err)
		return nil, err
	}
	c.answered(a)
	c.screen.answered(a, time.Since(begun))
	if a.Provider == "rules" && c.provider == "" {
		c.tellRules()
	}
	c.ask(ctx)
	return a, c.screen.failure
}

// answered keeps what later commands want to know of a turn.
func (c *chatting) answered(a *client.ChatAnswer) {
	if a.Conversation != "" {
		c.conversation = a.Conversation
	}
	c.pending, c.calls = nil, map[string]client.ToolCall{}
	if a.StopReason == client.ApprovalRequired {
		c.pending = a.Approvals
	}
	for _, t := range a.ToolCalls {
		c.calls[t.ID] = t
	}
	t := &c.total
	t.turns++
	t.calls += len(a.ToolCalls)
	t.usage.PromptTokens += a.Usage.PromptTokens
	t.usage.CompletionTokens += a.Usage.CompletionTokens
	t.usage.TotalTokens += a.Usage.TotalTokens
	t.usage.CostUSD += a.Usage.CostUSD
	t.usage.Estimated = t.usage.Estimated || a.Usage.Estimated
}

// tellRules says once that there is no model, where nobody asked for that.
func (c *chatting) tellRules() {
	if c.rulesTold {
		return
	}
	c.rulesTold = true
	who := "the host's operator can set"
	if c.local {
		who = "set"
	}
	c.screen.note(dimStyle, "  no model is configured, so rules choose a skill by the words of a message; %s OPENAI_API_KEY, DASHSCOPE_API_KEY or ANTHROPIC_API_KEY to have one", who)
}

// patience is how long a turn may take to stop before another interrupt ends the program.
const patience = 2 * time.Second

// interrupts are those of the person at the terminal.
type interrupts chan os.Signal

// stoppable gives a context that an interrupt ends, until done is called.
func (in interrupts) stoppable(ctx context.Context) (run context.Context, done func()) {
	run, cancel := context.WithCancelCause(ctx)
	if in == nil {
		return run, func() { cancel(nil) }
	}
	for len(in) > 0 { // pressed before there was something to stop
		<-in
	}
	ended, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		select {
		case <-in:
			cancel(errStopped)
		case <-ended:
			return
		}
		t := time.NewTimer(patience)
		defer t.Stop()
		select {
		case <-t.C:
			signal.Reset(os.Interrupt) // it hangs: the next one is not for us
			<-ended
			signal.Notify(in, os.Interrupt)
		case <-ended:
		}
	}()
	return run, func() {
		close(ended)
		<-left
		cancel(nil)
	}
}

// ask shows what waits for an approval.
func (c *chatting) ask(ctx context.Context) {
	for _, p := range c.pending {
		q := c.question(ctx, p)
		c.screen.note(askStyle, "  ? %s", q.head)
		for _, l := range q.lines {
			c.screen.note(plainStyle, "    %s", l)
		}
	}
}

// question is what a person reads before deciding; all of it is clean.
type question struct {
	head  string
	lines []string
}

// question finds out what an approval is about: from the record where this caller may
// read it, which no model has written, or from the call that waits.
func (c *chatting) question(ctx context.Context, p client.Awaited) question {
	var q question
	called := c.calls[p.ToolCallID]
	name, script := p.SkillID, p.Script
	var trust string
	var args struct {
		Skill  string          `json:"skill_name"`
		Script string          `json:"script_file"`
		Args   json.RawMessage `json:"args"`
		Input  string          `json:"input"`
	}
	_ = json.Unmarshal(called.Arguments, &args) // what cannot be read is shown as it is
	given := string(compacted(called.Arguments))
	scope := "the host's settings say whether yes is for this call or for all of this version of the skill"
	if a, err := c.api.Approval(ctx, p.ApprovalID); err == nil && a.Version != "" {
		return c.proposal(ctx, a)
	} else if err == nil {
		name, script, trust = a.Skill, a.Script, a.Trust.String()
		given = wordsOf(a.Arguments)
		if a.ArgumentsCut {
			given += " … (and more)"
		}
		given = withInput(given, args.Input)
		scope = "yes allows this one call"
		if a.Policy == "version" {
			scope = "yes allows every run of this version of the skill, " + a.Digest
			if a.PreviousDigest != "" {
				scope += "; it has CHANGED since it was allowed as " + a.PreviousDigest
			}
		}
	} else {
		if args.Skill != "" {
			name = args.Skill
		}
		if script == "" {
			script = args.Script
		}
		if args.Script != "" { // it was read
			given = withInput(string(compacted(args.Args)), args.Input)
		}
		trust = c.trustOf(ctx, name)
	}
	q.head = "may the script " + oneLine(script, 0) + " of the skill " + oneLine(name, 0) + " (" + trust + ") run?"
	if given != "" {
		q.lines = append(q.lines, "arguments: "+oneLine(given, 0))
	}
	q.lines = append(q.lines, oneLine(scope, 0), "approval "+oneLine(p.ApprovalID, 64)+": y or /approve, n or /approve no; a new message continues without it")
	return q
}

// The bounds of a proposed program that is shown: lines, and bytes of a line.
const (
	mostCode    = 200
	longestCode = 1000
)

// proposal asks about a skill that a model proposes. The code is the host's copy, which is what is enabled.
func (c *chatting) proposal(ctx context.Context, a *client.Approval) question {
	q := question{head: "enable the proposed skill " + oneLine(a.Skill, 0) + ", version " + oneLine(a.Version, 0) + "?"}
	code, err := c.api.SkillFile(ctx, skill.ID(a.Skill), a.Version, a.Script, a.Tenant)
	switch lines := strings.Split(strings.TrimRight(string(code), "\n"), "\n"); {
	case err != nil:
		q.lines = append(q.lines, "its code cannot be read: "+oneLine(err.Error(), 0))
	case len(lines) > mostCode || slices.ContainsFunc(lines, func(l string) bool { return len(l) > longestCode }):
		q.lines = append(q.lines, fmt.Sprintf("%s has %d lines and %d bytes, too many to show: read it in the console first", oneLine(a.Script, 0), len(lines), len(code)))
	default:
		for _, l := range lines {
			q.lines = append(q.lines, "| "+codeLine(l))
		}
	}
	q.lines = append(q.lines, oneLine(strings.Join(a.Arguments, " "), 0))
	if a.PreviousDigest != "" {
		q.lines = append(q.lines, "it replaces the version that is enabled now")
	}
	q.lines = append(q.lines, "approval "+oneLine(a.ID, 64)+": y or /approve, n or /approve no; a new message continues without it")
	return q
}

// codeLine shows a line of a program with its indentation. One with characters that cannot be seen is quoted.
func codeLine(s string) string {
	s = strings.ReplaceAll(s, "\t", "    ")
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || skill.Hidden(r) || r == utf8.RuneError }) {
		return strconv.QuoteToASCII(s)
	}
	return s
}

// wordsOf shows arguments so that it can be seen where each begins and ends.
func wordsOf(args []string) string {
	shown := make([]string, len(args))
	for i, a := range args {
		if shown[i] = a; a == "" || strings.ContainsAny(a, " \"'") || strings.ContainsFunc(a, skill.Hidden) {
			shown[i] = strconv.Quote(a)
		}
	}
	return strings.Join(shown, " ")
}

// withInput shows the arguments of a script, and behind them its standard input.
func withInput(args, input string) string {
	if input == "" {
		return args
	}
	return strings.TrimSpace(args + " < " + input)
}

// trustOf is the trust of an Agent Skill, in words.
func (c *chatting) trustOf(ctx context.Context, name string) string {
	if agents, err := atMost(c.api.AgentSkills(ctx), mostSkills); err == nil {
		for _, s := range agents {
			if s.Name == name {
				return s.Trust.String()
			}
		}
	}
	return "trust not known"
}

// failedTurn is a turn without an answer as --json prints it.
type failedTurn struct {
	Error   skill.ResultError `json:"error"`
	TraceID string            `json:"trace_id,omitempty"`
}

func failureOf(err error) failedTurn {
	switch refused, ok := errors.AsType[*client.Error](err); {
	case errors.Is(err, errStopped):
		return failedTurn{Error: skill.ResultError{Code: skill.Cancelled, Status: skill.Cancelled.Status(), Message: "the turn was stopped"}}
	case ok:
		return failedTurn{skill.ResultError{Code: refused.Code, Status: refused.Status, Message: refused.Message, Details: refused.Details}, refused.TraceID}
	}
	return failedTurn{Error: skill.ResultError{Code: skill.Internal, Status: skill.Internal.Status(), Message: skill.CleanText(err.Error(), skill.MaxMessage)}}
}
