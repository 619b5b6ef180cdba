package sandbox

import (
	"context"
	"errors"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
)

// Calls is what all runners on the engine share: it begins, runs and ends their calls.
// A runner says how a skill of its kind is started. It is safe for concurrent use.
type Calls struct {
	of      CallsOf
	Gate    Gate
	Folders Folders
	Images  Images
}

// CallsOf says whose calls they are. Outgoing alone may be missing.
type CallsOf struct {
	Engine *wasm.Engine // which stays the caller's
	Op     string       // begins the operations of errors, as in python.Run
	Hint   string       // what to do about an entry that is not there
	// Runtime is the name of the language whose runtime, the host's own, runs scripts:
	// what goes wrong with that is the host's failure. "" where skills are modules
	// themselves.
	Runtime  string
	Outgoing skill.Outgoing // nil: no network
}

// NewCalls makes the calls of a runner.
func NewCalls(of CallsOf) *Calls {
	c := &Calls{of: of}
	c.Images = Images{Engine: of.Engine, Runtime: of.Runtime, Folders: &c.Folders, Outgoing: of.Outgoing}
	return c
}

// Pending is a call whose skill is about to be started.
type Pending struct {
	*skill.Call

	Folder *Folder // of the skill
	began  time.Time
	wait   time.Duration // how long it waits for what it is started from
}

// pending begins the time that a call may wait. A worker only loads what is compiled, in
// the call's own time; where modules are compiled, that is not the call's.
func (c *Calls) pending(call *skill.Call, granted *Granted) *Pending {
	p := &Pending{call, granted.folder, time.Now(), call.Limits.Timeout}
	if c.of.Engine.Compiles() {
		p.wait = skill.Preparing
	}
	return p
}

// Starter says how the skill of a call is started. The error is a *skill.Error, one of
// [Pending.Within], or the engine's.
type Starter func(ctx context.Context, p *Pending) (*Start, error)

var errWaited = errors.New("the call ended before what it waited for was done")

// Within does work that calls may have to wait for, such as compiling, in what is left
// of the time that it waits. The error is work's, or says that the time was over.
func (p *Pending) Within(ctx context.Context, work func(ctx context.Context) error) error {
	ctx, stop := context.WithTimeout(ctx, p.wait-time.Since(p.began))
	defer stop()
	err := work(ctx)
	if err != nil && ctx.Err() != nil {
		return errWaited
	}
	return err
}

// Ready looks for the entry of a skill.
func (c *Calls) Ready(folder, entry string) error {
	if err := c.Gate.Enter(c.of.Op + ".Ready"); err != nil {
		return err
	}
	defer c.Gate.Leave()
	return c.Folders.Ready(folder, entry, c.of.Hint)
}

// Run is [skill.Runner]'s Run.
func (c *Calls) Run(ctx context.Context, call *skill.Call, starter Starter) (*skill.Reply, error) {
	if err := c.Gate.Enter(c.of.Op + ".Run"); err != nil {
		return nil, err
	}
	defer c.Gate.Leave()
	if ctx.Err() != nil {
		return gone(), nil
	}
	granted, err := c.Folders.Grant(call)
	if err != nil {
		return nil, err
	}
	defer granted.Close()
	p := c.pending(call, granted)
	start, err := starter(ctx, p)
	if err == nil {
		if c.of.Engine.Compiles() {
			p.began = time.Now()
		}
		var r *skill.Reply
		if r, err = c.Images.Run(ctx, call, granted, start, p.began); err == nil {
			return r, nil
		}
	}
	var refused *skill.Error
	switch {
	case errors.Is(err, errWaited):
		return waited(ctx, p.wait), nil
	case errors.As(err, &refused):
		return nil, err
	case c.of.Runtime != "":
		return nil, c.Broken(err)
	default:
		return blamed(err)
	}
}

// Broken is a failure of the runtime. A *skill.Error stays what it is.
func (c *Calls) Broken(err error) error {
	var refused *skill.Error
	if errors.As(err, &refused) {
		return err
	}
	return &skill.Error{Op: c.of.Op + ".Run", Code: skill.Internal, Message: "the " + c.of.Runtime + " runtime failed", Err: err}
}

// Start gets the image ready that calls like this one run on; its standard input is
// not looked at. Who wants short first calls does it ahead, in the background. The
// error may be of any kind: a call tells better what is wrong.
func (c *Calls) Start(ctx context.Context, call *skill.Call, starter Starter) error {
	return c.started(ctx, "Start", call, starter, func(g *Granted, s *Start) error { return c.Images.Warm(ctx, call, g, s) })
}

// Program gives what a call runs, for an image of the caller's own on the same engine.
// It serves until the calls are closed. The error is a *skill.Error.
func (c *Calls) Program(ctx context.Context, call *skill.Call, starter Starter) (p *wasm.Program, err error) {
	err = c.started(ctx, "Program", call, starter, func(g *Granted, s *Start) error {
		p = c.Images.Program(call, g, s)
		return nil
	})
	return p, err
}

// started does something with the start of a call that is not run.
func (c *Calls) started(ctx context.Context, what string, call *skill.Call, starter Starter, do func(*Granted, *Start) error) error {
	if err := c.Gate.Enter(c.of.Op + "." + what); err != nil {
		return err
	}
	defer c.Gate.Leave()
	granted, err := c.Folders.Grant(call)
	if err != nil {
		return err
	}
	defer granted.Close()
	start, err := starter(ctx, c.pending(call, granted))
	if err != nil {
		return err
	}
	return do(granted, start)
}

// Close waits for the runs under way, and closes images and folders. It may be called
// twice.
func (c *Calls) Close() error {
	c.Gate.Close()
	c.Images.Close()
	return c.Folders.Close()
}
