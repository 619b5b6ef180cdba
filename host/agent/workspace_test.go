package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"openskill/sdk/skill"
)

// rooms are workspaces in memory.
type rooms map[string]*skill.Workspace

func (r rooms) PutFiles(_ context.Context, p skill.Principal, id string, files []skill.FileRef) error {
	w := r[id]
	if w == nil {
		w = &skill.Workspace{ID: id}
		r[id] = w
	}
	for _, f := range files {
		if f.Name == "bad" {
			return &skill.Error{Code: skill.InvalidArgument, Message: "bad " + p.ID}
		}
		w.Files = append(w.Files, skill.WorkspaceFile{Name: f.Name, Size: int64(len(*f.Text))})
	}
	return nil
}

func (r rooms) Get(_ context.Context, _ skill.Principal, id string) (*skill.Workspace, error) {
	if w := r[id]; w != nil {
		return w, nil
	}
	return nil, &skill.Error{Code: skill.NotFound, Message: "no such workspace"}
}

// TestFilesOfAConversation: files of a message are in a workspace, which the model is told of and all calls of the
// conversation use, also in later turns. A conversation without files has none.
func TestFilesOfAConversation(t *testing.T) {
	text := "hello"
	file := func(name string) []skill.FileRef { return []skill.FileRef{{Name: name, Text: &text}} }
	s := scripted(calls("echo", `{"a":1}`), says("done"), calls("echo", `{"a":2}`), says("done"), calls("echo", `{"a":3}`), says("done"), says("done"))
	kept := rooms{}
	b := newBench(t, s, func(o *Options) { o.Workspaces = kept })
	first := b.turn(t, ChatRequest{Message: "Look at it.", Files: file("in\u202e.csv")}, nil)
	id := "conversation-" + first.Conversation
	if first.Workspace != id || !slices.ContainsFunc(kept[id].Files, func(f skill.WorkspaceFile) bool { return f.Name == "in\u202e.csv" }) {
		t.Errorf("%+v, %+v", first, kept)
	}
	second := b.turn(t, ChatRequest{Message: "And again.", Conversation: first.Conversation}, nil)
	if second.Workspace != id {
		t.Errorf("the next turn: %+v", second)
	}
	third := b.turn(t, ChatRequest{Message: "Elsewhere.", Workspace: "mine"}, nil)
	fourth := b.turn(t, ChatRequest{Message: "Without."}, nil)
	if third.Workspace != "mine" || fourth.Workspace != "" {
		t.Errorf("%+v, %+v", third, fourth)
	}
	var used []string
	for _, c := range b.box.calls {
		used = append(used, c.Turn.Workspace)
	}
	if want := []string{id, id, "mine"}; !slices.Equal(used, want) {
		t.Errorf("the calls used %q, want %q", used, want)
	}
	for i, want := range map[int]string{0: "It contains 1 files.\nThe user sent \"in.csv\".", 2: "It contains 1 files.", 4: "It contains no files.", 6: ""} {
		system := s.asked[i].System
		if want == "" && strings.Contains(system, "working folder") || i == 2 && strings.Contains(system, "in.csv") || !strings.Contains(system, want) {
			t.Errorf("the model is told: %s", system)
		}
	}
	for name, r := range map[string]ChatRequest{
		"an invalid workspace": {Message: "x", Workspace: "../w"}, "an invalid file": {Message: "x", Files: file("bad")},
	} {
		if _, err := b.Turn(t.Context(), someone, r, nil); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	without := newBench(t, scripted(says("done")))
	if _, err := without.Turn(t.Context(), someone, ChatRequest{Message: "x", Files: file("a")}, nil); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("a host without workspaces: %v", err)
	}
}

// TestManyFilesAreNotAllTold: a model is told of fifty files of the user, and of no names that guests chose.
func TestManyFilesAreNotAllTold(t *testing.T) {
	var brought []skill.FileRef
	for i := range 1000 {
		brought = append(brought, skill.FileRef{Name: fmt.Sprintf("f%04d\n", i)})
	}
	if told := tellFiles(brought, 1000); strings.Count(told, "\n") != 2+maxListed+1 || !strings.HasSuffix(told, "\nand 950 more files of the user") {
		t.Errorf("%s", told)
	}
}
