package react

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"openskill/host/agent/budget"
	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/agent/toolbox"
	"openskill/internal/ordered"
	"openskill/sdk/skill"
)

// run is one task under way. One goroutine has it.
type run struct {
	*Agent
	p      skill.Principal
	task   *Task
	limits budget.Limits

	session conversations.Session
	begun   time.Time
	tools   toolbox.Tools
	names   []string // of the tools, in their order
	model   *llm.Model
	budget  *budget.Budget
	prompt  *prompt
	calls   []SkillCall
}

// ending is how a task ended.
type ending struct {
	status    Status
	code      skill.Code      // "": the model has finished
	message   string          // of code, for the caller
	result    *ordered.Object // of the model that has finished
	failure   bool            // the answer is a failure of its own
	cancelled bool            // the caller has left
	cause     error           // for the log; may be nil
}

// The ends of contexts that are the agent's own.
var (
	errTaskTime  = errors.New("the time of the task is over")
	errRoundTime = errors.New("the time of the round is over")
)

// leastSeen is how many bytes of what a skill gave are shown in any case.
const leastSeen = 512

// storeTime is how long the end of a session may take to be kept.
const storeTime = 5 * time.Second

// begin finds out what the task works with, and keeps that it runs.
func (r *run) begin(ctx context.Context) (err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return &skill.Error{Op: "react.begin", Code: skill.Internal, Message: "there are no random numbers", Err: err}
	}
	r.begun = r.o.Now()
	r.session = conversations.Session{
		ID: id.String(), Owner: conversations.Owner{Tenant: r.p.Tenant, Principal: r.p.ID}, PrincipalType: string(r.p.Type),
		Task: beginning(r.task.Text), Status: running,
		CreatedAt: r.begun.UTC(), EndsBy: r.begun.UTC().Add(r.limits.Time + time.Minute),
	}
	if !skill.ValidTraceID(string(r.task.Trace)) {
		r.task.Trace = skill.TraceID(r.session.ID)
	}
	panicked := r.guarded(ctx, r.task.Trace, r.session.ID, func() {
		if r.tools, err = r.o.Tools(ctx, r.p, r.task.only()); err != nil {
			return
		}
		r.model = r.o.Models.Slot(llm.Reasoning)
		r.prompt = newPrompt(r)
		if err = r.o.Sessions.Begin(ctx, &r.session); err != nil {
			err = unavailable("react.begin", "audit log unavailable: the task cannot be recorded and was not started; retry", err)
		}
	})
	switch {
	case ctx.Err() != nil && (err != nil || panicked):
		return llm.Ended(ctx)
	case panicked:
		return loopError()
	case err != nil:
		return err
	}
	r.o.Log.LogAttrs(ctx, slog.LevelInfo, "a task begins",
		slog.String("trace_id", string(r.task.Trace)), slog.String("session_id", r.session.ID), slog.Int("task_bytes", len(r.task.Text)),
		slog.String("principal", skill.CleanText(r.p.ID, 128)), slog.String("tenant", skill.CleanText(r.p.Tenant, 128)),
		slog.String("provider", r.model.Provider), slog.String("model", r.model.Name))
	return nil
}

// beginning is what of a task is kept; the log has its length alone.
func beginning(text string) string {
	const characters = 200
	text = skill.CleanText(text, len(text))
	n := 0
	for i := range text {
		if n++; n > characters {
			return text[:i]
		}
	}
	return text
}

// work goes round until there is an end.
func (r *run) work(ctx context.Context) (end ending) {
	task, cancel := context.WithTimeoutCause(ctx, r.limits.Time, errTaskTime)
	defer cancel()
	r.budget = budget.New(r.limits, r.o.Now)
	panicked := r.guarded(ctx, r.task.Trace, r.session.ID, func() {
		for over := false; !over; {
			if why := r.budget.Next(); why != "" {
				end = r.reached(why)
				return
			}
			end, over = r.round(task)
		}
	})
	if panicked {
		e := loopError()
		return ending{status: Failed, code: e.Code, message: e.Message, failure: true}
	}
	return end
}

// round asks the model once and does what it wants, and reports whether that was the end.
func (r *run) round(task context.Context) (ending, bool) {
	left := r.budget.TokensLeft()
	if left < r.o.MinTokens {
		return r.reached(budget.Tokens), true
	}
	text, tokens, ok := r.prompt.fit(len(r.calls), r.limits.Iterations, left)
	if !ok {
		end := r.reached(budget.Tokens)
		end.message = fmt.Sprintf("the next prompt takes about %d tokens, which do not fit into the %d that are left of the task's %d", tokens, left, r.limits.Tokens)
		if len(r.calls) == 0 {
			end.message += "; list the needed skills in options.skills, or send less context"
		}
		return end, true
	}
	ctx, cancel := within(task, r.o.IterationTimeout)
	defer cancel()
	reply, err := r.model.Chat(ctx, &llm.Request{
		System: r.prompt.system, Messages: []llm.Message{{Role: llm.User, Text: text}}, Trace: r.task.Trace, Tenant: r.p.Tenant,
		MaxTokens: min(r.o.ReplyTokens, left-tokens), Temperature: r.o.Temperature, JSON: true,
	}, nil)
	if err != nil {
		if end, over := r.overtime(ctx); over {
			return end, true
		}
		return r.noModel(err), true
	}
	r.budget.Spend(reply.Usage, r.model.Price.Of(reply.Usage))
	if reply.Stop == llm.StopRefused {
		return r.noModel(&skill.Error{Code: skill.AgentLLMUnavailable, Message: "the model provider " + r.model.Provider + " has withheld the answer"}), true
	}
	d := decide(reply.Text)
	if d.prose {
		if reply.Stop == llm.StopLength {
			if end, over := r.cutOff(reply); over {
				return end, true
			}
		}
		r.o.Log.LogAttrs(ctx, slog.LevelWarn, "the model's reply is not JSON; using it as the result",
			slog.String("trace_id", string(r.task.Trace)), slog.String("session_id", r.session.ID), slog.String("error.code", string(skill.AgentLLMParseError)),
			slog.Int("iteration", len(r.calls)), slog.Int("bytes", len(reply.Text)))
	}
	if !d.call {
		return ending{status: Completed, result: d.result}, true
	}
	r.call(ctx, &d, reply.Usage.Total())
	return r.overtime(ctx)
}

// cutOff says how a task ends whose model had too few tokens for its answer; with what is
// there of one, where there is something and tokens are left, it goes on.
func (r *run) cutOff(reply *llm.Reply) (ending, bool) {
	end := r.reached(budget.Tokens)
	switch {
	case r.budget.TokensLeft() < r.o.MinTokens:
		return end, true
	case strings.TrimSpace(reply.Text) == "": // it has thought, and come to nothing
		end.message = "the model used all tokens of one reply without an answer"
		return end, true
	}
	return ending{}, false
}

// within is a context of one round. One that the task's own end comes before has no end
// of its own, so that there is no doubt which of them it was.
func within(task context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := task.Deadline(); ok && time.Until(end) <= limit {
		return context.WithCancel(task)
	}
	return context.WithTimeoutCause(task, limit, errRoundTime)
}

// call calls a skill, and notes what it gave for the next rounds and for the answer.
func (r *run) call(ctx context.Context, d *decision, tokens int) {
	index := len(r.calls)
	o := r.tools.Call(ctx, toolbox.Call{
		ID: fmt.Sprintf("round-%d", index), Name: d.skill, Arguments: d.params, Trace: r.task.Trace,
		Turn:   skill.Turn{Session: r.session.ID, Iteration: index, Tokens: tokens},
		Limits: skill.Limits{Fuel: r.budget.FuelShare(1)},
	})
	r.budget.Burn(o.Result.Meta.FuelUsed)
	made := SkillCall{
		Skill: skill.CleanText(cmp.Or(o.Skill, d.skill), 64), Iteration: index, Input: object(o.Arguments), Status: "success",
		DurationMS: o.Took.Milliseconds(), ExecutionID: o.Execution(),
	}
	if e := o.Result.Error; !o.Result.Success {
		made.Status, made.Error = "failed", string(skill.AgentSkillError)
		if end, over := r.overtime(ctx); over && !end.cancelled && e != nil && e.Code == skill.Cancelled {
			made.Error = string(end.code) + ": " + end.message // the host has cancelled it, and not the caller
		} else if e != nil {
			made.Error = skill.CleanText(string(e.Code)+": "+e.Message, skill.MaxMessage)
		}
	}
	r.calls = append(r.calls, made)

	// A token is about four bytes: it takes an eighth of the tokens that are left at most,
	// since the rounds to come pay for it again.
	saw := toolbox.Shorten(o.Text, max(r.budget.TokensLeft()/2, leastSeen))
	if o.Invalid && !slices.Contains(r.names, d.skill) {
		saw += "\n" + r.available()
	}
	r.prompt.add(index, skill.CleanText(d.skill, 64), d.params, saw)
}

// available tells a model that has named no skill which ones there are.
func (r *run) available() string {
	const most = 40
	switch n := len(r.names); {
	case n == 0:
		return "There are no skills. Finish with what you know."
	case n > most:
		return fmt.Sprintf("Skills that there are: %s, and %d others.", strings.Join(r.names[:most], ", "), n-most)
	}
	return "Skills that there are: " + strings.Join(r.names, ", ") + "."
}

// overtime says how a task ends whose context, or that of its round, has ended.
func (r *run) overtime(ctx context.Context) (ending, bool) {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return ending{}, false
	case errors.Is(cause, errRoundTime):
		return ending{
			status: TimedOut, code: skill.AgentExecutionTimeout,
			message: fmt.Sprintf("a round exceeded its time limit of %s, for the model and the skill together", seconds(r.o.IterationTimeout)),
		}, true
	case errors.Is(cause, errTaskTime), errors.Is(ctx.Err(), context.DeadlineExceeded): // the caller's own deadline, too
		return r.reached(budget.Time), true
	default:
		return ending{status: Failed, code: skill.Cancelled, message: "the task was cancelled", cancelled: true}, true
	}
}

// reached is the end of a task by a limit of its budget.
func (r *run) reached(why budget.Reason) ending {
	end := ending{status: Terminated}
	switch why {
	case budget.Tokens:
		end.code = skill.AgentTokenExhausted
		end.message = fmt.Sprintf("token limit of %d reached: fewer than %d are left", r.limits.Tokens, r.o.MinTokens)
	case budget.Cost:
		end.code = skill.AgentTokenExhausted
		end.message = fmt.Sprintf("cost limit of %s USD reached", strconv.FormatFloat(r.limits.Cost.Dollars(), 'f', -1, 64))
	case budget.Fuel:
		end.code = skill.FuelExhausted
		end.message = fmt.Sprintf("fuel limit of %d units reached", r.limits.Fuel)
	case budget.Time:
		end.status, end.code, end.failure = TimedOut, skill.AgentExecutionTimeout, true
		end.message = fmt.Sprintf("the task exceeded its time limit of %s", seconds(r.limits.Time))
	case budget.Iterations, budget.ToolCalls:
		fallthrough
	default:
		end.code = skill.AgentMaxIterations
		end.message = fmt.Sprintf("round limit of %d reached", r.limits.Iterations)
	}
	return end
}

// seconds is a time in messages.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s" }

// noModel is the end of a task whose model gave no answer. Before any skill was called
// that is all there is to say; afterwards there is something to show.
func (r *run) noModel(err error) ending {
	message, code := "the model is unavailable", skill.AgentLLMUnavailable
	var known *skill.Error
	if errors.As(err, &known) && known.Code != skill.Internal && known.Message != "" {
		message = known.Message
		if known.Code == skill.RateLimited || known.Code == skill.AuditUnavailable { // the host's own
			code = known.Code
		}
	}
	return ending{status: Failed, code: code, message: message, failure: len(r.calls) == 0, cause: err}
}

// close keeps how the task ended, and tells the log.
func (r *run) close(ctx context.Context, end *ending, out *Outcome) {
	s := r.session
	s.Status, s.Iterations, s.Tokens, s.DurationMS = string(out.Status), out.Iterations, out.TotalTokens, out.TotalDuration
	r.guarded(ctx, r.task.Trace, s.ID, func() {
		// The caller may be gone, and the time of the task over: its end is kept all the same.
		store, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
		defer cancel()
		if err := r.o.Sessions.End(store, &s); err != nil {
			r.o.Log.LogAttrs(store, slog.LevelError, "cannot store the end of a task",
				slog.String("trace_id", string(r.task.Trace)), slog.String("session_id", s.ID), slog.String("error", err.Error()))
		}
	})
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("trace_id", string(r.task.Trace)), slog.String("session_id", s.ID), slog.String("status", s.Status),
		slog.Int("iterations", s.Iterations), slog.Int("tokens", s.Tokens), slog.Float64("cost_usd", r.budget.Used().Cost.Dollars()),
		slog.Int64("latency_ms", s.DurationMS), slog.String("error.code", string(end.code)),
	}
	if end.status == Failed {
		level = slog.LevelWarn
	}
	if end.cause != nil {
		attrs = append(attrs, slog.String("cause", end.cause.Error()))
	}
	r.o.Log.LogAttrs(context.WithoutCancel(ctx), level, "a task ended", attrs...)
}
