package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Workspaces are working folders that calls of a principal share; *records.Workspaces is one. Its errors are
// *skill.Error.
type Workspaces interface {
	// Enter waits for a workspace's turn, and gives it with what ends the turn.
	Enter(ctx context.Context, p skill.Principal, id string) (s *skill.Workspace, leave func(), err error)
	// Save keeps what a call did to what Enter gave, all of it or nothing.
	Save(ctx context.Context, p skill.Principal, s *skill.Workspace, c *records.WorkspaceChange) error
}

// shared gives a call the files of its workspace, and no other call has them meanwhile. What it names itself,
// and the code, go before those of the workspace.
func (d *Dispatcher) shared(next handler) handler {
	return func(ctx context.Context, c *call) error {
		if c.shares.ID == "" {
			return next(ctx, c)
		}
		if d.o.Workspaces == nil || d.o.Files == nil {
			return &skill.Error{Op: "dispatch.shared", Code: skill.NotFound, Subject: "workspace", Message: "this host has no workspaces"}
		}
		turn, stop := context.WithTimeout(ctx, c.skill.Limits.Lower(c.request.Limits).Timeout)
		space, leave, err := d.o.Workspaces.Enter(turn, c.principal, c.shares.ID)
		stop()
		if err != nil {
			return err
		}
		defer leave()
		c.space = space
		for _, f := range space.Files {
			if c.code != nil && f.Name == c.code.target.Entry || slices.ContainsFunc(c.files, func(o skill.File) bool { return o.Name == f.Name }) {
				continue
			}
			file, _, err := d.o.Files.File(ctx, c.principal, &skill.FileRef{ID: f.ID})
			if skill.CodeOf(err) == skill.NotFound {
				return &skill.Error{
					Op: "dispatch.shared", Code: skill.NotFound, Subject: "workspace", Err: err,
					Message: fmt.Sprintf("the content of %s in the workspace is gone; bring a file of that name along, or delete the workspace", skill.CleanText(f.Name, 80)),
				}
			}
			if err != nil {
				return err
			}
			file.Name = f.Name
			c.files = append(c.files, file)
		}
		return next(ctx, c)
	}
}

// saving bounds how long the answer to a call waits for its workspace.
const saving = time.Minute

// saved has the workspace of a call changed as the call did it: where it succeeded, or its caller wants that
// always. It stays as it was where that cannot be, and the call has failed then.
func (d *Dispatcher) saved(next handler) handler {
	return func(ctx context.Context, c *call) error {
		err := next(ctx, c)
		if c.space == nil || c.reply == nil || err != nil && !c.shares.Always {
			return err
		}
		change := &records.WorkspaceChange{Gone: c.reply.Gone}
		for _, a := range c.reply.Artifacts {
			if c.plain(&a) {
				change.Written = append(change.Written, a)
			}
		}
		// What the call brought along is part of it from now on, where the guest left it as it was.
		for i, info := range c.infos {
			f := &c.files[i]
			switch {
			case slices.Contains(change.Gone, f.Name), slices.ContainsFunc(change.Written, func(a skill.Artifact) bool { return a.Name == f.Name }):
			case f.Path != "":
				change.Kept = append(change.Kept, skill.WorkspaceFile{Name: f.Name, ID: info.SHA256, Size: info.Size})
			default:
				change.Written = append(change.Written, skill.Artifact{Name: f.Name, Data: f.Data})
			}
		}
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), saving)
		defer stop()
		switch unsaved := d.o.Workspaces.Save(ctx, c.principal, c.space, change); {
		case unsaved != nil && err != nil:
			d.o.Log.LogAttrs(ctx, slog.LevelWarn, "the workspace of a failed call could not be saved", slog.String("execution_id", c.executionID), slog.String("reason", unsaved.Error()))
		case unsaved != nil:
			c.outcome = outcome{}
			return unsaved
		}
		return err
	}
}
