package dispatch

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"openskill/host/records/replay"
	"openskill/sdk/skill"
)

// Recordings keeps what it takes to make runs again; *replay.Recordings is one.
type Recordings interface {
	// Most is how many bytes the draws of one run may have.
	Most() uint64
	// Keep is called for each run that is on record, when it has ended and before its
	// caller is answered. Its error is for the log: a run without a recording is a run.
	Keep(ctx context.Context, r *replay.Ran) error
}

var _ replay.Door = (*Dispatcher)(nil)

// again is the call that a replay makes.
func (d *Dispatcher) again(p skill.Principal, a *replay.Again) *call {
	c := &call{principal: p, request: a.Request, script: a.Script, begun: d.o.Now(), executionID: d.o.NewID(), again: a}
	if a.Session != nil {
		s := *a.Session
		c.session = &s
	}
	return c
}

// replayStart is what a replay has of time beside the limit of its run: it begins with a
// start-up of its own, where the run may have found one that waited for it.
const replayStart = 20 * time.Second

// Plan says as what a run would be made again, and makes none.
func (d *Dispatcher) Plan(ctx context.Context, p skill.Principal, a *replay.Again) (*replay.Plan, error) {
	c := d.again(p, a)
	find := d.found
	if a.Script != nil {
		find = d.scriptFound
	}
	var plan *replay.Plan
	err := d.authorized(find(func(ctx context.Context, c *call) error {
		s := c.skill
		_, target, _, err := d.choose(ctx, c)
		if err != nil {
			return err
		}
		granted, err := d.Grants(s)
		if err == nil {
			err = d.withAgentSkills(ctx, c)
		}
		plan = &replay.Plan{Digest: s.Descriptor.Digest, Target: target, Limits: d.limits(c), Grants: granted, Folders: c.folders}
		return err
	}))(ctx, c)
	return plan, err
}

// Replay makes a run again, through all of the door. There is no reply where it was
// refused on its way.
func (d *Dispatcher) Replay(ctx context.Context, p skill.Principal, a *replay.Again) (*skill.Result, *skill.Reply) {
	c := d.again(p, a)
	handle := d.handle
	if a.Script != nil {
		handle = d.handleScript
	}
	_ = handle(ctx, c) // the outermost layer has put it into the result
	return c.result, c.reply
}

// tape says to the runner of a call that it is recorded, or a replay. What has changed
// since that was planned is refused: nothing else would be a replay.
func (d *Dispatcher) tape(c *call, work *skill.Call) error {
	switch {
	case c.again != nil:
		limits := work.Limits
		limits.Timeout -= replayStart
		if c.skill.Descriptor.Digest != c.again.Digest || c.target != c.again.Target || limits != c.again.Request.Limits || !c.again.SameFolders(c.folders) {
			return &skill.Error{
				Op: "dispatch.replay", Code: skill.Conflict, Subject: c.again.Of,
				Message: "the skill, its runner, its limits or an Agent Skill changed during the replay; retry",
			}
		}
		work.Replay = c.again.Draws
	case d.o.Recordings != nil && c.started != nil:
		work.Record = d.o.Recordings.Most()
	}
	c.work = work
	return nil
}

// replayFiles returns the files that a replay of the call needs in addition to those of the input: the files of the
// workspace before the call.
func (c *call) replayFiles() []skill.FileRef {
	refs := c.request.Files
	if c.script != nil {
		refs = c.script.Files
	}
	if c.workspace == nil {
		return refs
	}
	refs = slices.Clone(refs)
	for _, f := range c.workspace.Files {
		if slices.ContainsFunc(c.files, func(o skill.File) bool { return o.Name == f.Name && strings.HasSuffix(o.Path, f.ID) }) {
			refs = append(refs, skill.FileRef{Name: f.Name, ID: f.ID})
		}
	}
	return refs
}

// keeping bounds how long the answer to a call waits for its recording.
const keeping = 5 * time.Second

// kept has every run kept, so that it can be made again; replays are not.
func (d *Dispatcher) kept(next handler) handler {
	return func(ctx context.Context, c *call) error {
		err := next(ctx, c)
		if c.work == nil || c.work.Record == 0 {
			return err
		}
		ran := &replay.Ran{
			Started: c.started, Input: c.request.Input, Files: c.replayFiles(), Script: c.script, Session: c.before, Call: c.work, Runner: c.target.Kind,
			Reply: c.reply, Result: d.result(c, err),
		}
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), keeping)
		defer stop()
		if d.o.Executions != nil && !d.o.Executions.Ours(ctx, c.executionID) {
			return err
		}
		if unkept := d.o.Recordings.Keep(ctx, ran); unkept != nil {
			d.o.Log.LogAttrs(ctx, slog.LevelWarn, "a run could not be recorded", slog.String("execution_id", c.executionID), slog.String("reason", unkept.Error()))
		}
		return err
	}
}
