package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/check"
)

// Calls is what all runners on the engine share: it prepares, begins, runs and ends their
// calls. A runner says how a skill of its kind is planned and started. It is safe for concurrent use.
type Calls struct {
	of      CallsOf
	Gate    Gate
	Folders Folders
	Images  Images
}

// CallsOf says whose calls they are. Op alone must be there, and Engine where calls are run.
type CallsOf struct {
	Engine *wasm.Engine // which stays the caller's; nil: calls are only prepared here
	Op     string       // begins the operations of errors, as in python.Run
	// Runtime is the name of the language whose runtime, the host's own, runs scripts:
	// what goes wrong with that is the host's failure. "" where skills are modules
	// themselves.
	Runtime  string
	Outgoing skill.Outgoing // nil: no network
	// Make gives the module that is run of a file and what is called of it; nil: it is what is
	// in the file. What the error refuses is a *check.Error.
	Make func(module []byte, function string) ([]byte, error)

	// Programs are those that scripts of this runner can start; nil: none. Where Command is
	// there the runtime is one of them, by the Names.
	Programs *Programs
	Kind     skill.Kind
	Names    []string
	ForCode  []string // more names, only for Code calls
	Command  Command
	Plan     func(ctx context.Context, s *skill.Spec) (skill.Plan, error) // of the runtime of processes of a script
}

// NewCalls makes the calls of a runner.
func NewCalls(of CallsOf) *Calls {
	c := &Calls{of: of}
	c.Images = Images{Engine: of.Engine, Runtime: of.Runtime, Folders: &c.Folders, Outgoing: of.Outgoing, Programs: of.Programs, Kind: of.Kind}
	of.Programs.add(c)
	return c
}

// Planner makes the plan of a target whose folder is open; nil where the runtime alone is
// asked for. The error is a *skill.Error.
type Planner func(ctx context.Context, folder *Folder) (skill.Plan, error)

// Prepare is [skill.Runner]'s Prepare. Where calls are run here, too, it begins to compile
// a language runtime.
func (c *Calls) Prepare(ctx context.Context, s *skill.Spec, planner Planner) (skill.Plan, error) {
	if err := c.Gate.Enter(c.of.Op + ".Prepare"); err != nil {
		return skill.Plan{}, err
	}
	defer c.Gate.Leave()
	var folder *Folder
	if s.Entry != "" || s.Folder != "" {
		var err error
		// Whose the folder is does not matter yet: a run looks again.
		if folder, err = c.Folders.Skill(s.Folder, skill.Trusted); err != nil {
			return skill.Plan{}, err
		}
		defer folder.Release()
	}
	plan, err := planner(ctx, folder)
	if err == nil && s.Script {
		plan.Programs = c.of.Programs.plans(ctx, s)
	}
	if err != nil || c.of.Engine == nil || plan.Module.Digest == "" {
		return plan, err
	}
	if _, ok := c.of.Engine.Lookup(plan.Module.Digest, options(&plan.Module)); ok {
		return plan, nil
	}
	if s.Wait {
		if _, err = c.load(ctx, &plan.Module); err != nil {
			return plan, c.failed(ctx, err)
		}
		return plan, nil
	}
	if plan.Module.Trusted {
		plan.Missing = skill.Compiling()
		go func() { _, _ = c.load(context.Background(), &plan.Module) }() // a call tells what goes wrong
	}
	return plan, nil
}

// failed is why a module could not be loaded: ctx's end, or a *skill.Error.
func (c *Calls) failed(ctx context.Context, err error) error {
	var refused *check.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &refused):
		return &skill.Error{Op: c.of.Op + ".Prepare", Code: skill.Code(refused.Code), Message: skill.CleanText(refused.Error(), skill.MaxMessage), Err: err}
	}
	return c.Broken(err)
}

func options(of *skill.Module) *wasm.CompileOptions { return &wasm.CompileOptions{Trusted: of.Trusted} }

// load gives the module of a plan, compiled if it is not and this engine may.
func (c *Calls) load(ctx context.Context, of *skill.Module) (*wasm.Module, error) {
	if m, ok := c.of.Engine.Lookup(of.Digest, options(of)); ok {
		return m, nil
	}
	var read func() ([]byte, error)
	if of.Open != nil {
		read = func() ([]byte, error) { return c.read(of) }
	}
	m, err := c.of.Engine.Load(ctx, of.Digest, read, options(of))
	var none *wasm.NotCompiledError
	if errors.As(err, &none) {
		err = fmt.Errorf("%w: %w", skill.ErrUnusable, err)
	}
	return m, err
}

// read gives the bytes of a module, which are those that its plan was made of.
func (c *Calls) read(of *skill.Module) ([]byte, error) {
	f, err := of.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	if wasm.Digest(b) != of.File {
		return nil, &skill.Error{Op: c.of.Op + ".Run", Code: skill.Conflict, Message: "the module file changed during the call; retry"}
	}
	if of.Function != "" {
		return c.of.Make(b, of.Function)
	}
	return b, nil
}

// Starter says how the skill of a call is started on its module. The error is a *skill.Error.
type Starter func(call *skill.Call, folder *Folder) (*Start, error)

// Run is [skill.Runner]'s Run. A worker only loads what is compiled, in the call's own time;
// where modules are compiled, that is not the call's.
func (c *Calls) Run(ctx context.Context, call *skill.Call, starter Starter) (*skill.Reply, error) {
	if err := c.Gate.Enter(c.of.Op + ".Run"); err != nil {
		return nil, err
	}
	defer c.Gate.Leave()
	if ctx.Err() != nil {
		return gone(), nil
	}
	began, wait := time.Now(), call.Limits.Timeout
	if c.of.Engine.Compiles() {
		wait = skill.Preparing
	}
	loading, stop := context.WithTimeout(ctx, wait)
	m, err := c.load(loading, &call.Plan.Module)
	late := loading.Err() != nil
	stop()
	switch {
	case err == nil && call.Folder == "":
		return &skill.Reply{}, nil // it was asked for ahead
	case err == nil:
	case late:
		return waited(ctx, wait), nil
	default:
		return c.ended(err)
	}
	if c.of.Engine.Compiles() {
		began = time.Now()
	}
	granted, start, err := c.begin(call, m, starter)
	if err != nil {
		return c.ended(err)
	}
	defer granted.Close()
	if call.Ahead {
		return &skill.Reply{}, c.Images.Warm(ctx, call, granted, start)
	}
	r, err := c.Images.Run(ctx, call, granted, start, began)
	if err != nil {
		return c.ended(err)
	}
	return r, nil
}

// begin opens what a call is granted, and says how it is started.
func (c *Calls) begin(call *skill.Call, m *wasm.Module, starter Starter) (*Granted, *Start, error) {
	granted, err := c.Folders.Grant(call)
	if err != nil {
		return nil, nil, err
	}
	start, err := starter(call, granted.folder)
	if err != nil {
		granted.Close()
		return nil, nil, err
	}
	start.Module = m
	if start.Name == "" {
		start.Name = call.Plan.Module.Digest
	}
	return granted, start, nil
}

// ended says how a call ended that was not run.
func (c *Calls) ended(err error) (*skill.Reply, error) {
	var refused *skill.Error
	switch {
	case errors.As(err, &refused):
		return nil, err
	case errors.Is(err, wasm.ErrState):
		return nil, &skill.Error{
			Op: c.of.Op + ".Run", Code: skill.Conflict, Subject: "session", Err: err,
			Message: "the session was made with another version of the host or its runtime, or with other permissions; create a new one",
		}
	case errors.Is(err, wasm.ErrNoState):
		return nil, &skill.Error{Op: c.of.Op + ".Run", Code: skill.ToolInvocationError, Subject: "session", Message: "this host cannot keep sessions: they need Linux", Err: err}
	case c.of.Runtime != "":
		return nil, c.Broken(err)
	}
	return blamed(err)
}

// Broken is a failure of the runtime. A *skill.Error stays what it is.
func (c *Calls) Broken(err error) error {
	var refused *skill.Error
	if errors.As(err, &refused) {
		return err
	}
	return &skill.Error{Op: c.of.Op + ".Run", Code: skill.Internal, Message: "the " + c.of.Runtime + " runtime failed", Err: err}
}

// Program gives what a call runs, for an image of the caller's own on the same engine.
// It serves until the calls are closed. The error is a *skill.Error.
func (c *Calls) Program(ctx context.Context, call *skill.Call, starter Starter) (*wasm.Program, error) {
	if err := c.Gate.Enter(c.of.Op + ".Program"); err != nil {
		return nil, err
	}
	defer c.Gate.Leave()
	m, err := c.load(ctx, &call.Plan.Module)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	granted, start, err := c.begin(call, m, starter)
	if err != nil {
		return nil, err
	}
	defer granted.Close()
	return c.Images.Program(call, granted, start), nil
}

// Close waits for the runs under way, and closes images and folders. It may be called
// twice.
func (c *Calls) Close() error {
	c.Gate.Close()
	c.Images.Close()
	return c.Folders.Close()
}
