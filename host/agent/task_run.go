package agent

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

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/internal/ordered"
	"openskill/sdk/skill"
)

// taskRun is one task under way.
type taskRun struct {
	driver
	task   *Task
	kept   conversations.Session
	names  []string // of the tools, in their order
	prompt *taskPrompt
	calls  []SkillCall
}

// taskEnd is how a task ended.
type taskEnd struct {
	status    TaskStatus
	code      skill.Code      // "": the model has finished
	message   string          // of code, for the caller
	result    *ordered.Object // of the model that has finished
	failure   bool            // the answer is a failure of its own
	cancelled bool            // the caller has left
	cause     error           // for the log; may be nil
}

// errRoundTime ends the context of a round.
var errRoundTime = errors.New("the time of the round is over")

// leastSeen is how many bytes of what a skill gave are shown in any case.
const leastSeen = 512

// temperature is that of the questions of tasks.
const temperature = 0.3

// Execute works on a task until the model has finished or a limit is reached, and tells
// what it came to. An error is a *skill.Error, and says that nothing was begun, or that
// the caller has left (CANCELLED): whatever else happens to a task is an [Outcome].
//
// The skills are called as p, who needs the scope agent:run beside the rights to what
// they do.
func (a *Agent) Execute(ctx context.Context, p skill.Principal, t Task) (out *Outcome, err error) {
	defer func() {
		if out != nil {
			a.o.Ended("task", string(out.Status))
		} else {
			a.o.Ended("task", string(skill.CodeOf(err)))
		}
	}()
	if err := authorize(p); err != nil {
		return nil, err
	}
	most, err := a.taskLimits(&t)
	if err != nil {
		return nil, err
	}
	leave, err := a.enter(ctx, p)
	if err != nil {
		return nil, err
	}
	defer leave()
	id, err := newID()
	if err != nil {
		return nil, err
	}
	r := &taskRun{driver: driver{Agent: a, p: p, trace: t.Trace, kind: "session_id", session: id, model: a.o.Models.Slot(llm.Reasoning)}, task: &t}
	if !skill.ValidTraceID(string(r.trace)) {
		r.trace = skill.TraceID(id)
	}
	within, cancel := r.start(ctx, most)
	defer cancel()
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	end := r.work(within)
	out = r.outcome(&end)
	r.close(ctx, &end, out)
	if end.cancelled {
		return nil, &skill.Error{
			Op: "agent.Execute", Code: skill.Cancelled, Subject: id, Err: context.Cause(ctx),
			Message: "the task was cancelled", Details: map[string]any{"session_id": id},
		}
	}
	return out, nil
}

// begin finds out what the task works with, and keeps that it runs.
func (r *taskRun) begin(ctx context.Context) error {
	begun := r.began.UTC()
	r.kept = conversations.Session{
		ID: r.session, Owner: ownerOf(r.p), PrincipalType: string(r.p.Type), Task: taskPreview(r.task.Text), Status: string(TaskRunning),
		CreatedAt: begun, EndsBy: begun.Add(r.budget.time + time.Minute),
	}
	err := r.guard(ctx, func() (err error) {
		if r.tools, err = r.o.Tools(ctx, r.p, r.task.only(), ""); err != nil {
			return err
		}
		r.prompt = newTaskPrompt(r)
		if err := r.o.Sessions.Begin(ctx, &r.kept); err != nil {
			return storeError(err, "audit log unavailable: the task cannot be recorded and was not started; retry")
		}
		return nil
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return llm.Ended(ctx)
	case err != nil:
		return err
	}
	r.o.Log.LogAttrs(context.WithoutCancel(ctx), slog.LevelInfo, "a task begins", r.attrs(nil, slog.Int("task_bytes", len(r.task.Text)))...)
	return nil
}

// taskPreview is what of a task is kept; the log has its length alone.
func taskPreview(text string) string {
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
func (r *taskRun) work(ctx context.Context) (end taskEnd) {
	err := r.guard(ctx, func() error {
		for over := false; !over; {
			if why := r.budget.next(); why != "" {
				end = r.limitReached(why)
				return nil
			}
			end, over = r.round(ctx)
		}
		return nil
	})
	if err != nil {
		return taskEnd{status: TaskFailed, code: skill.AgentLoopError, message: loopError, failure: true}
	}
	return end
}

// round asks the model once and does what it wants, and reports whether that was the end.
func (r *taskRun) round(task context.Context) (taskEnd, bool) {
	left := r.budget.tokensLeft()
	if left < r.o.Task.MinTokens {
		return r.limitReached(StopTokens), true
	}
	text, tokens, ok := r.prompt.fit(len(r.calls), r.budget.iterations, left)
	if !ok {
		end := r.limitReached(StopTokens)
		end.message = fmt.Sprintf("the next prompt takes about %d tokens, which do not fit into the %d that are left of the task's %d", tokens, left, r.budget.tokens)
		if len(r.calls) == 0 {
			end.message += "; list the needed skills in options.skills, or send less context"
		}
		return end, true
	}
	ctx, cancel := within(task, r.o.Task.IterationTimeout)
	defer cancel()
	warm := temperature
	reply, err := r.ask(ctx, &llm.Request{
		System: r.prompt.system, Messages: []llm.Message{{Role: llm.User, Text: text}},
		MaxTokens: min(r.o.Task.ReplyTokens, left-tokens), Temperature: &warm, JSON: true,
	}, nil)
	if err != nil {
		if end, over := r.checkDeadline(ctx); over {
			return end, true
		}
		return r.modelFailed(err), true
	}
	if reply.Stop == llm.StopRefused {
		return r.modelFailed(&skill.Error{Code: skill.AgentLLMUnavailable, Message: "the model provider " + r.model.Provider + " has withheld the answer"}), true
	}
	d := decide(reply.Text)
	if d.prose {
		if reply.Stop == llm.StopLength {
			if end, over := r.truncated(reply); over {
				return end, true
			}
		}
		r.o.Log.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "the model's reply is not JSON; using it as the result", r.attrs(nil, slog.String("error.code", string(skill.AgentLLMParseError)),
			slog.Int("iteration", len(r.calls)), slog.Int("bytes", len(reply.Text)))...)
	}
	if !d.call {
		return taskEnd{status: TaskCompleted, result: d.result}, true
	}
	r.call(ctx, &d, reply.Usage.Total())
	return r.checkDeadline(ctx)
}

// truncated says how a task ends whose model had too few tokens for its answer; with what is
// there of one, where there is something and tokens are left, it goes on.
func (r *taskRun) truncated(reply *llm.Reply) (taskEnd, bool) {
	end := r.limitReached(StopTokens)
	switch {
	case r.budget.tokensLeft() < r.o.Task.MinTokens:
		return end, true
	case strings.TrimSpace(reply.Text) == "": // it has thought, and come to nothing
		end.message = "the model used all tokens of one reply without an answer"
		return end, true
	}
	return taskEnd{}, false
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
func (r *taskRun) call(ctx context.Context, d *decision, tokens int) {
	index := len(r.calls)
	o := r.tools.Call(ctx, tools.Call{
		ID: fmt.Sprintf("round-%d", index), Name: d.skill, Arguments: d.params, Trace: r.trace,
		Turn:   skill.Turn{Session: r.session, Iteration: index, Tokens: tokens},
		Limits: skill.Limits{Fuel: r.budget.fuelShare(1)},
	})
	r.budget.burn(o.Result.Meta.FuelUsed)
	made := SkillCall{
		Skill: skill.CleanText(cmp.Or(o.Skill, d.skill), 64), Iteration: index, Input: object(o.Arguments), Status: "success",
		DurationMS: o.Took.Milliseconds(), ExecutionID: o.Execution(),
	}
	if e := o.Result.Error; !o.Result.Success {
		made.Status, made.Error = "failed", string(skill.AgentSkillError)
		if end, over := r.checkDeadline(ctx); over && !end.cancelled && e != nil && e.Code == skill.Cancelled {
			made.Error = string(end.code) + ": " + end.message // the host has cancelled it, and not the caller
		} else if e != nil {
			made.Error = skill.CleanText(string(e.Code)+": "+e.Message, skill.MaxMessage)
		}
	}
	r.calls = append(r.calls, made)

	// A token is about four bytes: it takes an eighth of the tokens that are left at most,
	// since the rounds to come pay for it again.
	saw := tools.Shorten(o.Text, max(r.budget.tokensLeft()/2, leastSeen))
	if o.Invalid && !slices.Contains(r.names, d.skill) {
		saw += "\n" + r.available()
	}
	r.prompt.add(index, skill.CleanText(d.skill, 64), d.params, saw)
}

// available tells a model that has named no skill which ones there are.
func (r *taskRun) available() string {
	const most = 40
	switch n := len(r.names); {
	case n == 0:
		return "There are no skills. Finish with what you know."
	case n > most:
		return fmt.Sprintf("Available skills: %s, and %d others.", strings.Join(r.names[:most], ", "), n-most)
	}
	return "Available skills: " + strings.Join(r.names, ", ") + "."
}

// checkDeadline says how a task ends whose context, or that of its round, has ended.
func (r *taskRun) checkDeadline(ctx context.Context) (taskEnd, bool) {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return taskEnd{}, false
	case errors.Is(cause, errRoundTime):
		return taskEnd{
			status: TaskTimedOut, code: skill.AgentExecutionTimeout,
			message: fmt.Sprintf("a round exceeded its time limit of %s, for the model and the skill together", seconds(r.o.Task.IterationTimeout)),
		}, true
	case errors.Is(cause, errTime), errors.Is(ctx.Err(), context.DeadlineExceeded): // the caller's own deadline, too
		return r.limitReached(StopTime), true
	default:
		return taskEnd{status: TaskFailed, code: skill.Cancelled, message: "the task was cancelled", cancelled: true}, true
	}
}

// limitReached is the end of a task by a limit of its budget.
func (r *taskRun) limitReached(why StopReason) taskEnd {
	end := taskEnd{status: TaskTerminated}
	switch why {
	case StopTokens:
		end.code = skill.AgentTokenExhausted
		end.message = fmt.Sprintf("token limit of %d reached: fewer than %d are left", r.budget.tokens, r.o.Task.MinTokens)
	case StopCost:
		end.code = skill.AgentTokenExhausted
		end.message = fmt.Sprintf("cost limit of %s USD reached", strconv.FormatFloat(r.budget.cost.Dollars(), 'f', -1, 64))
	case StopFuel:
		end.code = skill.FuelExhausted
		end.message = fmt.Sprintf("fuel limit of %d units reached", r.budget.fuel)
	case StopTime:
		end.status, end.code, end.failure = TaskTimedOut, skill.AgentExecutionTimeout, true
		end.message = fmt.Sprintf("the task exceeded its time limit of %s", seconds(r.budget.time))
	default:
		end.code = skill.AgentMaxIterations
		end.message = fmt.Sprintf("round limit of %d reached", r.budget.iterations)
	}
	return end
}

// seconds is a time in messages.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s" }

// modelFailed is the end of a task whose model gave no answer. Before any skill was called
// that is all there is to say; afterwards there is something to show.
func (r *taskRun) modelFailed(err error) taskEnd {
	message, code := "the model is unavailable", skill.AgentLLMUnavailable
	if known, ok := errors.AsType[*skill.Error](err); ok && known.Code != skill.Internal && known.Message != "" {
		message = known.Message
		if known.Code == skill.RateLimited || known.Code == skill.AuditUnavailable { // the host's own
			code = known.Code
		}
	}
	return taskEnd{status: TaskFailed, code: code, message: message, failure: len(r.calls) == 0, cause: err}
}

// close keeps how the task ended, and tells the log.
func (r *taskRun) close(ctx context.Context, end *taskEnd, out *Outcome) {
	s := r.kept
	s.Status, s.Iterations, s.Tokens, s.DurationMS = string(out.Status), out.Iterations, out.TotalTokens, out.TotalDuration
	_ = r.guard(ctx, func() error {
		store, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
		defer cancel()
		if err := r.o.Sessions.End(store, &s); err != nil {
			r.o.Log.LogAttrs(context.WithoutCancel(ctx), slog.LevelError, "cannot store the end of a task", r.attrs(nil, slog.String("error", err.Error()))...)
		}
		return nil
	})
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("status", s.Status), slog.Int("iterations", s.Iterations), slog.Int("tokens", s.Tokens),
		slog.Float64("cost_usd", r.budget.used.cost.Dollars()), slog.Int64("latency_ms", s.DurationMS), slog.String("error.code", string(end.code)),
	}
	if end.status == TaskFailed {
		level = slog.LevelWarn
	}
	if end.cause != nil {
		attrs = append(attrs, slog.String("cause", end.cause.Error()))
	}
	r.o.Log.LogAttrs(context.WithoutCancel(ctx), level, "a task ended", r.attrs(nil, attrs...)...)
}
