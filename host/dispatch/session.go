package dispatch

import (
	"context"
	"slices"
	"time"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Sessions keeps the variables of run_code calls; *records.Sessions implements it. Errors are *skill.Error.
type Sessions interface {
	// Create returns a new session.
	Create(ctx context.Context, p skill.Principal, language, workspace string, memoryMB uint64, packages []string) (*skill.Session, error)
	// Enter waits until no other call uses the session, and returns it; CONFLICT if that takes longer than
	// wait. The caller must call leave.
	Enter(ctx context.Context, p skill.Principal, id string, wait time.Duration) (s *records.HeldSession, leave func(), err error)
	// Fits returns an error if a memory of size bytes would exceed a limit.
	Fits(p skill.Principal, s *records.HeldSession, size int) error
	// Save keeps the memory that a call left, and counts its fuel. left is nil if the call failed.
	Save(p skill.Principal, s *records.HeldSession, left *records.SessionMemory, fuel uint64) error
}

// withSession reserves the session of a run_code call until the call has ended, and keeps its variables. A call that
// names no workspace uses that of the session.
func (d *Dispatcher) withSession(next handler) handler {
	return func(ctx context.Context, c *call) error {
		if c.code == nil {
			return next(ctx, c)
		}
		if c.code.session == "" || c.code.session == skill.NewSession || c.again != nil {
			packages := c.code.packages
			if c.session != nil { // of a replay
				packages = slices.Concat(c.session.Packages, packages)
			}
			if err := d.withPackages(ctx, c, packages); err != nil {
				return err
			}
		}
		if c.code.session == "" || c.again != nil {
			return next(ctx, c)
		}
		if d.o.Sessions == nil {
			return &skill.Error{Op: "dispatch.session", Code: skill.NotFound, Subject: "session", Message: "sessions are not supported by this host"}
		}
		memory := c.asked.Lower(c.request.Limits).Memory >> 20
		if memory != 0 { // no more than the host allows
			memory = d.limits(c).Memory >> 20
		}
		if c.asked.Scratch != 0 || c.request.Limits.Scratch != 0 {
			return invalidSession("limits", "scratch_mb of a session cannot be set")
		}
		packages := c.code.packages
		if len(c.code.agents) > 0 { // they may be those of the Agent Skills, which each call names
			packages = nil
		}
		id := c.code.session
		if id == skill.NewSession {
			made, err := d.o.Sessions.Create(ctx, c.principal, c.code.language, c.workspaceRef.ID, memory, packages)
			if err != nil {
				return err
			}
			id = made.ID
		}
		wait := d.limits(c).Timeout
		if c.workspaceRef.NoWait {
			wait = 0
		}
		before, leave, err := d.o.Sessions.Enter(ctx, c.principal, id, wait)
		if err != nil {
			return err
		}
		defer leave()
		held := *before
		s := &held
		if c.code.session != skill.NewSession {
			if err := d.withPackages(ctx, c, slices.Concat(s.Packages, c.code.packages)); err != nil {
				return err
			}
		}
		switch {
		case s.Language != c.code.language:
			return invalidSession("language", "the language of the session is "+s.Language)
		case memory != 0 && memory != s.MemoryMB:
			return invalidSession("limits", "memory_mb of a session is set when it is created")
		}
		c.session, c.before = s, before
		c.asked.Memory, c.request.Limits.Memory = s.MemoryMB<<20, 0
		if c.workspaceRef.ID == "" || c.optional {
			c.workspaceRef.ID, c.optional = s.Workspace, false
		}
		err = next(ctx, c)
		if !c.ran {
			return err
		}
		var left *records.SessionMemory
		used := uint64(0)
		if c.reply != nil {
			used = c.reply.Usage.Fuel
			if c.reply.State != nil && (err == nil || skill.CodeOf(err) == skill.GuestExit) {
				left = &records.SessionMemory{State: c.reply.State, Ahead: s.Ahead, Execution: c.executionID}
			}
		}
		if saveErr := d.o.Sessions.Save(c.principal, before, left, used); saveErr != nil && err == nil {
			c.outcome = outcome{}
			return saveErr
		}
		return err
	}
}

func invalidSession(field, message string) error {
	return &skill.Error{Op: "dispatch.session", Code: skill.InvalidArgument, Subject: field, Message: message}
}

// fits refuses a call whose variables have no room, before its files are saved.
func (d *Dispatcher) fits(c *call) error {
	if c.session == nil || c.reply.State == nil {
		return nil
	}
	return d.o.Sessions.Fits(c.principal, c.session, len(c.reply.State))
}

// keepsFiles reports whether the files of a failed call are saved: an exception in a session leaves variables and files
// as they are then.
func (c *call) keepsFiles() bool {
	return c.workspaceRef.Always || c.session != nil && c.reply.State != nil
}
