package dispatch

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/host/manifest"
	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// oneSpace is a workspace with the file a.
type oneSpace struct {
	saved *records.WorkspaceChange
	fails error
	in    int
	empty bool
	names []string // of its files; nil: a
}

func (s *oneSpace) Enter(context.Context, skill.Principal, string, time.Duration) (*skill.Workspace, func(), error) {
	s.in++
	if s.empty {
		return &skill.Workspace{ID: "w"}, func() { s.in-- }, nil
	}
	if s.names != nil {
		w := &skill.Workspace{ID: "w", Revision: 3}
		for _, name := range s.names {
			w.Files = append(w.Files, skill.WorkspaceFile{Name: name, ID: strings.Repeat("a", 64), Size: 5})
		}
		return w, func() { s.in-- }, nil
	}
	return &skill.Workspace{ID: "w", Revision: 3, Files: []skill.WorkspaceFile{{Name: "a", ID: strings.Repeat("a", 64), Size: 5}}}, func() { s.in-- }, nil
}

func (s *oneSpace) Save(_ context.Context, _ skill.Principal, _ *skill.Workspace, c *records.WorkspaceChange) error {
	s.saved = c
	return s.fails
}

// TestWorkspaceOfCall: a call gets the workspace files that the request does not replace. Its changes are saved if it
// succeeds or the request says commit: always. If saving fails, the call fails.
func TestWorkspaceOfCall(t *testing.T) {
	left := skill.Reply{Artifacts: []skill.Artifact{{Name: "d/new", Data: []byte("1")}, {Name: `c:\d`}, {Name: "in"}}, Removed: []string{"a"}}
	exits := left
	exits.ExitCode = 1
	for name, c := range map[string]struct {
		more  string
		reply skill.Reply
		fails error
		code  skill.Code
		files string // that the guest gets
		saved string
	}{
		"success":        {``, left, nil, "", "main.py a", "d/new in -a"},
		"failure":        {``, exits, nil, skill.GuestExit, "main.py a", "no"},
		"always":         {`, "commit": "always"`, exits, nil, skill.GuestExit, "main.py a", "d/new in -a"},
		"said":           {`, "commit": "success"`, exits, nil, skill.GuestExit, "main.py a", "no"},
		"brought along":  {`, "files": [{"name": "a", "text": "x"}, {"name": "b", "text": "y"}, {"name": "in", "text": "z"}]`, skill.Reply{Artifacts: left.Artifacts}, nil, "", "main.py a b in", "d/new in a b"},
		"uploaded":       {`, "files": [{"name": "up", "id": "` + strings.Repeat("a", 64) + `"}]`, skill.Reply{}, nil, "", "main.py up a", "=up"},
		"cannot be kept": {``, left, &skill.Error{Code: skill.Conflict, Message: "another call"}, skill.Conflict, "main.py a", "d/new in -a"},
	} {
		space := &oneSpace{fails: c.fails}
		var started *records.Started
		h := codeHouse(t, func(o *Options) {
			o.Workspaces, o.Recorder = space, recorder(func(s *records.Started) { started = s })
		})
		h.python.Answer = runnertest.Always(c.reply)
		r := h.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": "x", "workspace": "w"`+c.more+`}`))
		call := h.python.Calls()[0]
		var files, saved []string
		for _, f := range call.Files {
			files = append(files, f.Name)
		}
		if space.saved == nil {
			saved = []string{"no"}
		} else {
			for _, a := range space.saved.Written {
				saved = append(saved, a.Name)
			}
			for _, f := range space.saved.Kept {
				saved = append(saved, "="+f.Name)
			}
			for _, n := range space.saved.Removed {
				saved = append(saved, "-"+n)
			}
		}
		if codeOfResult(r) != c.code || strings.Join(files, " ") != c.files || strings.Join(saved, " ") != c.saved || !call.ReportRemoved || space.in != 0 {
			t.Errorf("%s: %+v, files %q, saved %q", name, r.Error, files, saved)
		}
		if started.Workspace != "w" || started.WorkspaceRevision != 3 {
			t.Errorf("%s: on record: %+v", name, started)
		}
	}
}

// TestWorkspaceRefused: invalid workspace ids are refused before anything runs.
func TestWorkspaceRefused(t *testing.T) {
	space := &oneSpace{}
	h := codeHouse(t, func(o *Options) { o.Workspaces = space })
	for _, id := range []string{"../w", "a/b", "", strings.Repeat("w", 65), "ä"} {
		r := h.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": "x", "workspace": "`+id+`"}`))
		if codeOfResult(r) != skill.InvalidArgument {
			t.Errorf("%q: %+v", id, r.Error)
		}
	}
	req := ask("stats", `{"numbers": [1]}`)
	req.Workspace.ID = "../w"
	if r := h.Invoke(context.Background(), skill.Local(), req); codeOfResult(r) != skill.InvalidArgument {
		t.Errorf("%+v", r.Error)
	}
	without := codeHouse(t, nil)
	if r := without.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": "x", "workspace": "w"}`)); codeOfResult(r) != skill.NotFound {
		t.Errorf("%+v", r.Error)
	}
	if len(h.python.Calls())+len(without.python.Calls()) != 0 || space.in != 0 {
		t.Error("it ran")
	}
}

// TestWorkspaceOfScripts: scripts and skills with a working folder can use workspaces.
func TestWorkspaceOfScripts(t *testing.T) {
	space := &oneSpace{}
	var names []string
	g := withScripts(t, func(o *Options) { o.Workspaces, o.Files = space, keepsFiles{} })
	script := greet()
	script.Workspace.ID = "w"
	if r := g.RunScript(context.Background(), skill.Local(), script); !r.Success {
		t.Fatalf("%+v", r.Error)
	}
	for _, f := range g.python.Calls()[0].Files {
		names = append(names, f.Name)
	}
	h := open(t, func(o *Options) { o.Workspaces, o.Files = space, keepsFiles{} })
	h.wasm.Answer = runnertest.Always(skill.Reply{Stdout: []byte(`{"mean": 1}`)})
	req := ask("stats", `{"numbers": [1]}`)
	req.Workspace.ID = "w"
	if r := h.Invoke(context.Background(), skill.Local(), req); !r.Success {
		t.Fatalf("%+v", r.Error)
	}
	names = append(names, h.wasm.Calls()[0].Files[0].Name)
	if !slices.Equal(names, []string{"a", "a"}) {
		t.Errorf("%q", names)
	}
}

// TestNativeSkillsGetNoFiles: a skill that runs outside the sandbox gets neither files nor a workspace.
func TestNativeSkillsGetNoFiles(t *testing.T) {
	space := &oneSpace{empty: true}
	h := open(t, func(o *Options) { o.Workspaces, o.Files = space, keepsFiles{} })
	h.wasm.NotReady = &skill.Error{Op: "x", Code: skill.NotFound, Message: "not built"} // so the native fallback runs
	with := ask("stats", `{"numbers": [1]}`)
	with.Workspace.ID = "w"
	text := "x"
	brings := ask("stats", `{"numbers": [1]}`)
	brings.Files = []skill.FileRef{{Name: "a", Text: &text}}
	for name, req := range map[string]skill.Request{"workspace": with, "files": brings} {
		if r := h.Invoke(context.Background(), skill.Local(), req); codeOfResult(r) != skill.InvalidArgument || !strings.Contains(r.Error.Message, "outside the sandbox") {
			t.Errorf("%s: %+v", name, r.Error)
		}
	}
	if len(h.cli.Calls()) != 0 || space.saved != nil {
		t.Error("it ran")
	}
}

// TestWorkspaceOfConversation: calls of an agent's turn use the workspace of the conversation, if their skill can. Skills
// that code calls do not: the code has it.
func TestWorkspaceOfConversation(t *testing.T) {
	space := &oneSpace{}
	h := nesting(t, func(o *Options) { o.Workspaces = space }, func(h *house, c *skill.Call) {
		if r := h.Nested(context.Background(), c.ExecutionID, "stats", oneNumber); !r.Success {
			t.Errorf("the skill that code calls: %+v", r.Error)
		}
	})
	turn := skill.Turn{Session: "s", Workspace: "w"}
	code := run(`{"language": "python", "code": "x"}`)
	code.Turn = turn
	if r := h.Invoke(context.Background(), skill.Local(), code); !r.Success || len(h.python.Calls()[0].Files) != 2 || space.saved == nil {
		t.Errorf("code: %+v, saved %+v", r.Error, space.saved)
	}
	if nested := h.wasm.Calls()[0]; len(nested.Files) != 0 || nested.ReportRemoved {
		t.Errorf("the skill that code calls got %+v", nested.Files)
	}
	named := run(`{"language": "python", "code": "x", "workspace": "../other"}`)
	named.Turn = turn
	if r := h.Invoke(context.Background(), skill.Local(), named); codeOfResult(r) != skill.InvalidArgument {
		t.Errorf("a workspace that the call names: %+v", r.Error)
	}

	space = &oneSpace{}
	other := open(t, func(o *Options) { o.Workspaces, o.Files = space, keepsFiles{} })
	for id, files := range map[skill.ID]int{"stats": 1, "plain": 0} { // which has no working folder
		req := ask(id, `{"numbers": [1]}`)
		req.Turn = turn
		other.wasm.Answer = runnertest.Always(skill.Reply{Stdout: []byte(`{"mean": 1}`)})
		before := len(other.wasm.Calls())
		if r := other.Invoke(context.Background(), skill.Local(), req); !r.Success || len(other.wasm.Calls()[before].Files) != files {
			t.Errorf("%s: %+v, %+v", id, r.Error, other.wasm.Calls()[before:])
		}
	}
	space.saved = nil
	other.wasm.NotReady = &skill.Error{Op: "x", Code: skill.NotFound, Message: "not built"} // so the native fallback runs
	other.cli.Answer = runnertest.Always(skill.Reply{Stdout: []byte(`{"mean": 1}`)})
	req := ask("stats", `{"numbers": [1]}`)
	req.Turn = turn
	if r := other.Invoke(context.Background(), skill.Local(), req); !r.Success || len(other.cli.Calls()[0].Files) != 0 || space.saved != nil {
		t.Errorf("outside the sandbox: %+v, %+v", r.Error, space.saved)
	}
}

// TestPutFiles: files are added to a workspace without a call.
func TestPutFiles(t *testing.T) {
	space := &oneSpace{}
	h := codeHouse(t, func(o *Options) { o.Workspaces = space })
	text, bad := "x", "!"
	if err := h.PutFiles(t.Context(), skill.Local(), "w", []skill.FileRef{{Name: "b", Text: &text}, {Name: "up", ID: strings.Repeat("a", 64)}}); err != nil {
		t.Fatal(err)
	}
	if c := space.saved; len(c.Written) != 1 || c.Written[0].Name != "b" || len(c.Kept) != 1 || c.Kept[0].Name != "up" || space.in != 0 {
		t.Errorf("%+v", c)
	}
	for name, c := range map[string]struct {
		p     skill.Principal
		id    string
		files []skill.FileRef
		want  skill.Code
	}{
		"a name upwards":  {skill.Local(), "w", []skill.FileRef{{Name: "../x", Text: &text}}, skill.InvalidArgument},
		"two of one name": {skill.Local(), "w", []skill.FileRef{{Name: "x", Text: &text}, {Name: "x", Text: &text}}, skill.InvalidArgument},
		"invalid base64":  {skill.Local(), "w", []skill.FileRef{{Name: "x", Base64: &bad}}, skill.InvalidArgument},
		"an invalid id":   {skill.Local(), "../w", nil, skill.InvalidArgument},
		"missing scope":   {skill.Principal{ID: "p", Scopes: []string{skill.ScopeAgent}}, "w", nil, skill.Forbidden},
	} {
		if err := h.PutFiles(t.Context(), c.p, c.id, c.files); skill.CodeOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	without := codeHouse(t, nil)
	if err := without.PutFiles(t.Context(), skill.Local(), "w", nil); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("without workspaces: %v", err)
	}
}

// seen is an observer that counts.
type seen struct{ ended int }

func (s *seen) Ended(*manifest.Skill, skill.Code, bool) { s.ended++ }

// TestFilesReplaceNoCode: scripts of Agent Skills get no files that could replace their code, and runs with files of the
// caller do not count against the skill.
func TestFilesReplaceNoCode(t *testing.T) {
	space := &oneSpace{names: []string{"in.csv", "scripts/new.txt", "x.py", "d/y.JS", "greet.sh", "node_modules/m/package.json", "node_modules/m", "d/Node_Modules/m", "lib", "lib/data.csv"}}
	counts := &seen{}
	folder := t.TempDir()
	musttest.Write(t, filepath.Join(folder, "scripts", "greet.py"), "")
	musttest.Write(t, filepath.Join(folder, "lib.js"), "")
	g := withScripts(t, func(o *Options) {
		o.Workspaces, o.Files, o.Observer = space, keepsFiles{}, counts
		of, _ := o.Scripts.(found)
		of.Skill.Folder, of.Skill.Descriptor.Trust = folder, skill.Community
	})
	script := greet()
	if r := g.RunScript(context.Background(), skill.Local(), script); !r.Success || counts.ended != 1 {
		t.Fatalf("%+v, %d runs count", r.Error, counts.ended)
	}
	script.Workspace.ID = "w"
	if r := g.RunScript(context.Background(), skill.Local(), script); !r.Success || counts.ended != 1 {
		t.Fatalf("%+v, %d runs count", r.Error, counts.ended)
	}
	var names []string
	for _, f := range g.python.Calls()[1].Files {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"in.csv"}) {
		t.Errorf("the script got %q", names)
	}
	text := "x"
	for _, name := range []string{"x.py", "scripts/data.csv", "scripts", "a/b.Mjs", "lib", "node_modules/x"} {
		bad := greet()
		bad.Files = []skill.FileRef{{Name: name, Text: &text}}
		if r := g.RunScript(context.Background(), skill.Local(), bad); codeOfResult(r) != skill.InvalidArgument {
			t.Errorf("%s: %+v", name, r.Error)
		}
	}
}

// A run saves nothing of its workspace while another host goes on with the call.
func TestWorkspaceOfAnotherHost(t *testing.T) {
	for _, lost := range []bool{false, true} {
		space := &oneSpace{}
		h := codeHouse(t, func(o *Options) {
			o.Workspaces, o.Recorder, o.Executions = space, recorder(func(*records.Started) {}), &attic{lost: lost}
		})
		h.python.Answer = runnertest.Always(skill.Reply{Artifacts: []skill.Artifact{{Name: "new", Data: []byte("1")}}})
		h.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": "x", "workspace": "w"}`))
		if (space.saved == nil) != lost || space.in != 0 {
			t.Errorf("%t: %+v", lost, space)
		}
	}
}
