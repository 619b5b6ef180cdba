package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"openskill/host/dispatch/grants"
	"openskill/host/identity"
	"openskill/host/internal/gate"
	"openskill/host/manifest"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// backstop is how long after its limit, and all that it may wait before, a run is still
// waited for before the door ends it itself. Runners end runs within 250 ms; this catches one that does not.
const backstop = time.Second

// HeavyInput is the size, in bytes, from which on an input is checked only on as
// many at once as there are cores; a smaller one only where the check takes long, or where a
// large schema has to be compiled for it. Checking
// comes before admission, so that a wrong call is told what is wrong, and must not
// become a way around it.
const HeavyInput = 16 << 10

// panicError is a panic on the way of a call; the stack is for the log alone.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func (d *Dispatcher) recovered(next handler) handler {
	return func(ctx context.Context, c *call) (err error) {
		defer func() {
			if v := recover(); v != nil {
				c.reply, c.outcome = nil, outcome{}
				err = &panicError{v, debug.Stack()}
			}
		}()
		return next(ctx, c)
	}
}

func (d *Dispatcher) authorized(next handler) handler {
	return func(ctx context.Context, c *call) error {
		switch p := c.principal; {
		case p.ID == "" || p.Type == "":
			return &skill.Error{Op: "dispatch.authorize", Code: skill.Unauthorized, Message: "authentication required: send an API key or a token"}
		case !p.MayInvoke(c.request.SkillID):
			// Whether there is such a skill is not told: it has not been looked for.
			return &skill.Error{
				Op: "dispatch.authorize", Code: skill.Forbidden, Subject: p.ID,
				Message: "missing scope " + skill.ScopeInvoke + " or " + skill.ScopeInvoke + ":" + skill.CleanText(string(c.request.SkillID), 64),
			}
		}
		return next(ctx, c)
	}
}

func (d *Dispatcher) found(next handler) handler {
	return func(ctx context.Context, c *call) error {
		s, err := d.o.Skills.Get(c.principal.Tenant, c.request.SkillID, c.request.Version)
		if err != nil {
			return err
		}
		c.skill, c.target = s, s.Primary
		if !s.Descriptor.Enabled && !(c.draft && s.Descriptor.State == skill.StateDisabled) {
			return disabled(&s.Descriptor)
		}
		if c.of != nil && !c.of.reaches(s) {
			return &skill.Error{
				Op: "dispatch.found", Code: skill.Forbidden, Subject: string(s.Descriptor.ID),
				Message: fmt.Sprintf("%s cannot call %s: an uploaded skill can call only sandboxed skills without requests and variables, of the operator or its own tenant", c.of.call.skill.Descriptor.ID, s.Descriptor.ID),
			}
		}
		if s.Descriptor.Runner == skill.Agentic {
			return &skill.Error{
				Op: "dispatch.found", Code: skill.InvalidArgument, Subject: string(s.Descriptor.ID),
				Message: fmt.Sprintf("%s is an Agent Skill; run one of its scripts with POST /agent-skills/%s/scripts/{script}:run", s.Descriptor.ID, s.Descriptor.ID),
			}
		}
		return next(ctx, c)
	}
}

// disabled says who can enable a skill.
func disabled(d *skill.Descriptor) error {
	message := "the skill is disabled; ask the operator to enable it"
	if d.State == "" && d.Reason != "" {
		message = d.Reason // it has no code on this host
	}
	switch d.State {
	case skill.StateQuarantined:
		message = fmt.Sprintf("version %s of the skill is quarantined (%s); ask the operator to enable it", d.Version, d.Reason)
	case skill.StateDisabled, skill.StateEnabled, skill.StateDeleted, skill.StateDryRun:
		message = fmt.Sprintf("version %s of the skill is disabled; enable it with POST /skills/%s:enable", d.Version, d.ID)
	}
	return &skill.Error{
		Op: "dispatch.found", Code: skill.NotFound, Subject: string(d.ID), Message: skill.CleanText(message, skill.MaxMessage),
	}
}

func (d *Dispatcher) checked(next handler) handler {
	return func(ctx context.Context, c *call) error {
		_, c.admission = d.o.Trace.Start(ctx, "admission")
		if err := d.check(ctx, c); err != nil {
			return err
		}
		return next(ctx, c)
	}
}

func (d *Dispatcher) check(ctx context.Context, c *call) error {
	in := c.request.Input
	if len(in) > d.o.MaxInput {
		return &skill.Error{
			Op: "dispatch.check", Code: skill.PayloadTooLarge,
			Message: fmt.Sprintf("the input is too large: %d bytes, the limit is %d", len(in), d.o.MaxInput),
		}
	}
	steps := manifest.FewSteps
	heavy := func() (leave func(), err error) {
		steps = manifest.MaxSteps
		if leave, err = d.checks.Enter(ctx, c.principal.Tenant); err != nil {
			err = gate.Refusal(err, "dispatch.check", "too many large inputs are being validated")
		}
		return leave, err
	}
	if len(in) > HeavyInput || c.skill.SlowToCheck() {
		leave, err := heavy()
		if err != nil {
			return err
		}
		defer leave()
	}
	value, err := c.request.Value, error(nil)
	if value == nil {
		value, err = strictjson.Decode(in, MaxInputDepth, nil)
	}
	if err != nil {
		problem := skill.CleanText(err.Error(), skill.MaxMessage)
		return &skill.Error{
			Op: "dispatch.check", Code: skill.InvalidArgument,
			Message: "the input must be one JSON object: " + problem,
			Details: map[string]any{"fields": []map[string]string{
				{"field": "", "problem": problem, "expected": "one JSON object"},
			}},
			Err: logError("the input is not a valid JSON object"),
		}
	}
	err = c.skill.CheckInput(value, steps)
	if errors.Is(err, manifest.ErrSteps) && steps < manifest.MaxSteps {
		leave, full := heavy()
		if full != nil {
			return full
		}
		defer leave()
		err = c.skill.CheckInput(value, steps)
	}
	c.fileRefs, c.workspaceRef = c.request.Files, c.request.Workspace
	if c.skill.Permissions.Scratch {
		c.joinConversation()
	}
	switch {
	case err != nil:
	case c.skill.Code:
		return c.readCode()
	case (len(c.fileRefs) > 0 || c.workspaceRef.ID != "") && !c.skill.Permissions.Scratch:
		return invalidFile("files", "and workspace require a skill with permissions.scratch")
	default:
		return c.checkFiles("")
	}
	if e, ok := errors.AsType[*skill.Error](err); ok {
		words := logError("the input does not match the skill's input_schema")
		if e.Code == skill.ForbiddenPath {
			words = "the input names a path outside the data folder"
		}
		e.Err = words
	}
	return err
}

func (d *Dispatcher) admitted(next handler) handler {
	return func(ctx context.Context, c *call) error {
		if c.parent != "" { // it runs in the place of its parent
			c.admission.End()
			return next(ctx, c)
		}
		leave, err := d.enter(ctx, c.principal, c.skill, c.request.ExecutionID != "")
		if err != nil {
			return err
		}
		defer leave()
		c.admission.End()
		return next(ctx, c)
	}
}

// perMinute is how often a skill may be called; 0: as often as one likes.
func perMinute(s *manifest.Skill) int {
	if s.Descriptor.Cost == nil {
		return 0
	}
	return s.Descriptor.Cost.RateLimitPerMinute
}

// observed tells the observer how a run of a stranger's skill ended. What the guest
// says of itself counts as neither success nor limit. Scripts with files of the caller do not
// count: the files may be the reason.
func (d *Dispatcher) observed(next handler) handler {
	return func(ctx context.Context, c *call) error {
		err := next(ctx, c)
		bystander := c.reply != nil && c.reply.Bystander
		if d.o.Observer == nil || c.skill.Descriptor.Trust != skill.Community || c.skill.Code || c.script != nil && len(c.files) > 0 || ctx.Err() != nil || bystander || c.again != nil || c.draft {
			return err
		}
		code := skill.CodeOf(err)
		if c.outcome.guest != nil {
			code = skill.ToolInvocationError
		}
		d.o.Observer.Ended(c.skill, code, d.limits(c) != c.skill.Limits)
		return err
	}
}

// run is the innermost layer: choose a runner, run, read what the guest left.
func (d *Dispatcher) run(ctx context.Context, c *call) error {
	s := c.skill
	r, target, plan, err := d.choose(ctx, c)
	if err != nil {
		return err
	}
	c.target = target
	limits := d.limits(c)
	if unset := limits.Unset(); unset != "" {
		return fmt.Errorf("dispatch.run: the limit %s of %s is not set", unset, s.Descriptor.ID)
	}
	if c.again != nil {
		limits.Timeout += replayStart
	}
	if ctx.Err() != nil { // the caller left while waiting
		return cancelled(ctx)
	}
	granted, err := d.Grants(s)
	if err != nil {
		return err
	}
	runCtx, stop := context.WithTimeout(ctx, skill.Preparing+limits.Timeout+backstop)
	defer stop()
	work := &skill.Call{
		SkillID:     s.Descriptor.ID,
		TraceID:     c.request.TraceID,
		ExecutionID: c.executionID,
		Tenant:      c.principal.Tenant,
		Folder:      s.Folder,
		Entry:       target.Entry,
		Digest:      s.Descriptor.Digest,
		Trust:       s.Descriptor.Trust,
		Plan:        plan,
		Limits:      limits,
		Grants:      granted,
	}
	switch {
	case c.script != nil:
		work.Script, work.Args, work.Stdin = true, c.script.Args, c.script.Stdin
	case c.code != nil:
		work.Script, work.Code = true, true
		work.Files = []skill.File{{Name: target.Entry, Data: c.code.text}}
		if c.session != nil {
			work.Session = &c.session.State
		}
		defer d.parent(c, limits)()
	default:
		work.Stdin = stdin(c)
		if len(granted.Skills) > 0 {
			defer d.parent(c, limits)()
		}
	}
	switch {
	case len(c.files) == 0 && c.workspace == nil || !OutsideSandbox(target.Kind):
	case c.optional:
		c.files, c.workspace = nil, nil
	default:
		return invalidFile("files", "and workspace are not supported by skills that run outside the sandbox")
	}
	work.Files, work.Folders, work.ReportRemoved = append(work.Files, c.files...), c.folders, c.workspace != nil
	if err := d.tape(c, work); err != nil {
		return err
	}
	runCtx, span := d.o.Trace.Start(runCtx, "run")
	span.Text("openskill.runner", string(target.Kind))
	work.TraceParent = d.o.Trace.Header(runCtx)
	reply, err := r.Run(runCtx, work)
	if reply != nil {
		span.Fail(string(reply.Code))
	}
	span.End()
	switch {
	case ctx.Err() != nil:
		c.reply = reply
		return cancelled(ctx)
	case err != nil:
		return fmt.Errorf("running %s: %w", target.Kind, err)
	case reply == nil:
		return errors.New("running " + string(target.Kind) + ": neither a reply nor an error")
	}
	c.reply = reply
	if runCtx.Err() != nil && reply.Code == skill.Cancelled {
		return timedOut(limits.Timeout)
	}
	_, span = d.o.Trace.Start(ctx, "output")
	span.Number("openskill.output_bytes", int64(len(reply.Stdout)))
	defer span.End()
	switch {
	case c.script != nil:
		c.outcome, err = d.printed(s, reply, limits)
	case c.code != nil:
		c.outcome, err = d.codeOutcome(c, reply, limits)
	default:
		c.outcome, err = d.read(s, reply, limits)
	}
	return err
}

// choose has the skill of a call prepared.
func (d *Dispatcher) choose(ctx context.Context, c *call) (skill.Runner, skill.Target, skill.Plan, error) {
	s := c.skill
	target, fallback := s.Primary, s.Fallback
	if s.Code {
		if err := c.readCode(); err != nil {
			return nil, skill.Target{}, skill.Plan{}, err
		}
		target, fallback = c.code.target, nil
	}
	spec := s.Spec(target, c.principal.Tenant)
	spec.Script = c.script != nil || s.Code
	if s.Code {
		spec.Code, spec.Folders = c.code.text, c.folders
	}
	if c.session != nil {
		spec.Session, spec.Imports = true, c.session.Ahead
	}
	r, chosen, plan, err := d.o.Runners.Choose(ctx, spec, target, fallback)
	if c.session != nil && err == nil {
		c.session.Ahead = plan.Imports
	}
	return r, chosen, plan, err
}

// cancelled says why the caller's context ended: in the words of the host, if that has ended it.
func cancelled(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &skill.Error{Op: "dispatch.run", Code: skill.Timeout, Message: "the caller's deadline expired"}
	}
	if err := identity.Refused(ctx); err != nil {
		return err
	}
	return &skill.Error{Op: "dispatch.run", Code: skill.Cancelled, Message: "the call was cancelled before it finished"}
}

func timedOut(after time.Duration) error {
	return &skill.Error{
		Op: "dispatch.run", Code: skill.Timeout,
		Message: fmt.Sprintf("the skill did not finish within its limit of %d ms", after.Milliseconds()),
	}
}

// Grants is what a skill asks and the operator allows: the smaller of both, and what these files
// alone were granted. The error is a *skill.Error.
func (d *Dispatcher) Grants(s *manifest.Skill) (skill.Grants, error) {
	g, err := d.allowed.Load().Grants(d.o.DataRoot, grants.Skill{ID: s.Descriptor.ID, Trust: s.Descriptor.Trust, Owner: s.Owner}, s.Permissions)
	g.Packages = s.Packages
	return grants.With(g, s.Granted), err
}

// stdin is the guest's standard input. The input goes in as it was written: it was
// checked byte by byte.
func stdin(c *call) []byte {
	var b bytes.Buffer
	b.Grow(len(c.request.Input) + 160)
	b.WriteString(`{"input":`)
	b.Write(bytes.TrimSpace(c.request.Input))
	b.WriteString(`,"skill_id":`)
	id, _ := json.Marshal(c.skill.Descriptor.ID) // a string of a-z, 0-9, _ and -
	b.Write(id)
	b.WriteString(`,"trace_id":`)
	trace, _ := json.Marshal(c.request.TraceID) // a string of [0-9A-Za-z._-]
	b.Write(trace)
	b.WriteString("}")
	return b.Bytes()
}

// logError is a cause whose text replaces the message in the log, where the
// message may repeat what a caller or a guest wrote.
type logError string

func (l logError) Error() string { return string(l) }

// scrub takes paths of the host out of text that a guest wrote: a native skill
// sees them, its callers must not.
func (d *Dispatcher) scrub(text, folder string) string {
	if folder != "" {
		text = strings.ReplaceAll(text, folder, "/skill")
	}
	if d.o.DataRoot != "" {
		text = strings.ReplaceAll(text, d.o.DataRoot, "/data")
	}
	return hostPath.ReplaceAllString(text, "${1}…/${3}")
}
