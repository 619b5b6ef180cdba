package agent

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"openskill/sdk/skill"
)

// maxListed is the maximum number of files that a model is told of.
const maxListed = 50

// openWorkspace adds the files of the message to the workspace of the turn, and returns what the model is told of its
// files; "" without a workspace.
func (t *turn) openWorkspace(ctx context.Context) (told string, err error) {
	asked := len(t.asks.Files) > 0 || t.asks.Workspace != ""
	switch {
	case t.o.Workspaces == nil && asked:
		return "", &skill.Error{Op: "agent.Turn", Code: skill.NotFound, Subject: "workspace", Message: "files and workspaces are not supported by this host"}
	case t.o.Workspaces == nil:
		return "", nil
	}
	named := t.asks.Workspace
	if t.asks.Message == "" { // a decision: the calls that wait are made where they were asked for
		for _, w := range t.waits(ctx) {
			named = cmp.Or(named, w.Workspace)
		}
		asked = asked || named != ""
	}
	id := cmp.Or(named, "conversation-"+t.conv.ID)
	if !skill.ValidWorkspace(id) {
		return "", invalid("workspace", "must be 1 to 64 of a-z A-Z 0-9 _ -")
	}
	if len(t.asks.Files) > 0 {
		if err := t.o.Workspaces.PutFiles(ctx, t.p, id, t.asks.Files); err != nil {
			return "", err
		}
	}
	w, err := t.o.Workspaces.Get(ctx, t.p, id)
	switch {
	case skill.CodeOf(err) == skill.NotFound && asked:
		w = &skill.Workspace{ID: id} // the first call creates it
	case skill.CodeOf(err) == skill.NotFound:
		return "", nil
	case err != nil:
		return "", err
	}
	t.room = id
	return tellFiles(t.asks.Files, len(w.Files)), nil
}

// tellFiles tells a model of a workspace of so many files. It names those of the message: names of other files are
// chosen by guests, and are no text for a system prompt.
func tellFiles(brought []skill.FileRef, files int) string {
	var b strings.Builder
	b.WriteString("\n\nrun_code, scripts and skills that write files share a working folder, which keeps its files between calls. The user gets the files that are in it at the end. It contains ")
	if files == 0 {
		b.WriteString("no files.")
		return b.String()
	}
	fmt.Fprintf(&b, "%d files.", files)
	for i := range brought {
		if i == maxListed {
			fmt.Fprintf(&b, "\nand %d more files of the user", len(brought)-i)
			break
		}
		fmt.Fprintf(&b, "\nThe user sent %q.", skill.CleanText(brought[i].Name, 255))
	}
	return b.String()
}
