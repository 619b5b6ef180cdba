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

// Workspaces stores workspaces; *records.Workspaces implements it. Errors are *skill.Error.
type Workspaces interface {
	// Enter waits until no other call of this host uses the workspace, and returns its files; CONFLICT if that takes
	// longer than wait. The caller must call leave.
	Enter(ctx context.Context, p skill.Principal, id string, wait time.Duration) (w *skill.Workspace, leave func(), err error)
	// Save applies the changes of a call to a workspace that Enter returned: all of them or none.
	Save(ctx context.Context, p skill.Principal, w *skill.Workspace, c *records.WorkspaceChange) error
}

// joinConversation makes a call use the workspace of its conversation, if it names none and no files.
func (c *call) joinConversation() {
	if c.workspaceRef.ID == "" && c.again == nil && c.request.Turn.Workspace != "" {
		c.workspaceRef.ID, c.optional = c.request.Turn.Workspace, len(c.fileRefs) == 0
	}
}

// PutFiles adds files to a workspace, which is created if it does not exist.
func (d *Dispatcher) PutFiles(ctx context.Context, p skill.Principal, id string, files []skill.FileRef) error {
	if d.o.Workspaces == nil {
		return &skill.Error{Op: "dispatch.PutFiles", Code: skill.NotFound, Subject: "workspace", Message: "workspaces are not supported by this host"}
	}
	if !p.MayInvokeSome() {
		return &skill.Error{Op: "dispatch.PutFiles", Code: skill.Forbidden, Message: "files need the scope " + skill.ScopeInvoke}
	}
	c := &call{principal: p, fileRefs: files, workspaceRef: skill.WorkspaceRef{ID: id}}
	if err := c.checkFiles(""); err != nil {
		return err
	}
	for i := range files {
		if name := files[i].Name; name != skill.CleanText(name, maxFileName) {
			return invalidFile(fmt.Sprintf("/files/%d", i), "has a name with control characters")
		}
	}
	put := func(ctx context.Context, c *call) error {
		w, leave, err := d.o.Workspaces.Enter(ctx, p, id, maxJoin)
		if err != nil {
			return err
		}
		defer leave()
		return d.o.Workspaces.Save(ctx, p, w, c.change())
	}
	return d.withFiles(put)(ctx, c)
}

// withWorkspace adds the files of the workspace to the call and reserves the workspace until the call has ended.
// Files of the request, and the code, replace workspace files of the same name. Scripts of Agent Skills do not get those
// that could replace their own code.
func (d *Dispatcher) withWorkspace(next handler) handler {
	return func(ctx context.Context, c *call) error {
		if c.workspaceRef.ID == "" {
			return next(ctx, c)
		}
		if d.o.Workspaces == nil || d.o.Files == nil {
			return &skill.Error{Op: "dispatch.workspace", Code: skill.NotFound, Subject: "workspace", Message: "workspaces are not supported by this host"}
		}
		wait := d.limits(c).Timeout
		switch {
		case c.optional:
			wait = maxJoin // the turn of the conversation ends before
		case c.workspaceRef.NoWait:
			wait = 0
		case c.request.ExecutionID != "": // it was queued, and can wait there
			wait = min(wait, queuedWait)
		}
		w, leave, err := d.o.Workspaces.Enter(ctx, c.principal, c.workspaceRef.ID, wait)
		if err != nil {
			return err
		}
		defer leave()
		c.workspace = w
		for _, f := range w.Files {
			if c.script != nil && c.replacesCode(f.Name) || c.code != nil && f.Name == c.code.target.Entry || slices.ContainsFunc(c.files, func(o skill.File) bool { return o.Name == f.Name }) {
				continue
			}
			file, _, err := d.o.Files.File(ctx, c.principal, &skill.FileRef{ID: f.ID})
			if skill.CodeOf(err) == skill.NotFound {
				return &skill.Error{
					Op: "dispatch.workspace", Code: skill.NotFound, Subject: "workspace", Err: err,
					Message: fmt.Sprintf("workspace file %s no longer exists; send a file with this name, or delete the workspace", skill.CleanText(f.Name, 80)),
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

// maxJoin is how long a call of a conversation waits for the calls before it.
const maxJoin = 10 * time.Minute

// saveTimeout is how long a call waits for its workspace to be saved.
const saveTimeout = time.Minute

// saveWorkspace saves the changes of a call to its workspace, if the call succeeded or the request says commit: always.
// If saving fails, the call fails and the workspace is unchanged.
func (d *Dispatcher) saveWorkspace(next handler) handler {
	return func(ctx context.Context, c *call) error {
		err := next(ctx, c)
		if c.workspace == nil || c.reply == nil || err != nil && !c.keepsFiles() {
			return err
		}
		change := c.change()
		if c.session != nil && c.workspace.Revision == 0 && len(change.Written)+len(change.Kept) == 0 {
			return err // a session without files needs no workspace
		}
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
		defer stop()
		if d.o.Executions != nil && !d.o.Executions.Ours(ctx, c.executionID) {
			c.reply.State = nil
			return err // the end is refused, too
		}
		saveErr := d.fits(c)
		if saveErr == nil {
			saveErr = d.o.Workspaces.Save(ctx, c.principal, c.workspace, change)
		}
		if saveErr != nil {
			c.reply.State = nil // variables and files are saved together
		}
		switch {
		case saveErr != nil && err != nil:
			d.o.Log.LogAttrs(ctx, slog.LevelWarn, "the workspace of a failed call could not be saved", slog.String("execution_id", c.executionID), slog.String("reason", saveErr.Error()))
		case saveErr != nil:
			c.outcome = outcome{}
			return saveErr
		}
		return err
	}
}

// change returns what a call changes in its workspace. Files of the request become part of it, also where the guest did
// not change them.
func (c *call) change() *records.WorkspaceChange {
	change := &records.WorkspaceChange{}
	if c.reply != nil {
		change.Removed = c.reply.Removed
		for _, a := range c.reply.Artifacts {
			if c.listed(&a) {
				change.Written = append(change.Written, a)
			}
		}
	}
	for i, info := range c.fileInfos {
		f := &c.files[i]
		switch {
		case slices.Contains(change.Removed, f.Name), slices.ContainsFunc(change.Written, func(a skill.Artifact) bool { return a.Name == f.Name }):
		case f.Path != "":
			change.Kept = append(change.Kept, skill.WorkspaceFile{Name: f.Name, ID: info.SHA256, Size: info.Size})
		default:
			change.Written = append(change.Written, skill.Artifact{Name: f.Name, Data: f.Data})
		}
	}
	return change
}
