package mcp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// ear hears what a client is told of.
type ear struct{ tools, prompts, resources chan struct{} }

func newEar() (*ear, *mcp.ClientOptions) {
	e := &ear{make(chan struct{}, 100), make(chan struct{}, 100), make(chan struct{}, 100)}
	return e, &mcp.ClientOptions{
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { e.tools <- struct{}{} },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { e.prompts <- struct{}{} },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { e.resources <- struct{}{} },
	}
}

// TestListChanged holds that sessions are told of what their principal sees change, and
// of nothing else.
func TestListChanged(t *testing.T) {
	d := newDoor()
	agents, root := folders(t, converter())
	s := newServer(t, Options{Door: d, Catalogue: d, AgentSkills: agents, PollEvery: time.Hour})
	heard, o := newEar()
	cs := connect(t, s, skill.Local(), o)
	others, o := newEar()
	connect(t, s, skill.Principal{ID: "b", Tenant: "acme", Scopes: []string{skill.ScopeRead}}, o)
	s.Refresh(t.Context())

	d.add("acme-of-new", `{"type":"object"}`, nil)
	s.Refresh(t.Context())
	<-others.tools
	if len(heard.tools) > 0 {
		t.Error("a session was told of another tenant's skill")
	}
	d.change("echo", func(s *skill.Descriptor) { s.Enabled = false })
	s.Refresh(t.Context())
	<-heard.tools
	<-others.tools
	for _, name := range toolNames(t, cs) {
		if name == "echo" || name == "acme-of-new" {
			t.Errorf("the list has %s", name)
		}
	}

	musttest.Do(t, os.WriteFile(filepath.Join(root, "unit-converter", "new.md"), []byte("x"), 0o600))
	s.Refresh(t.Context())
	<-heard.prompts
	<-heard.resources
	// The SDK tells of one change twice where a machine takes long to make it.
	for c := range s.callers {
		if tools, skills := c.changed(t.Context()); tools || skills {
			t.Errorf("without a change: tools %t, skills %t", tools, skills)
		}
	}
}

// TestDescriptionChanged holds that what the operator changes of a skill, whose files and
// digest stay the same, is told to sessions and shown in the list.
func TestDescriptionChanged(t *testing.T) {
	d := newDoor()
	s := newServer(t, Options{Door: d, Catalogue: d, PollEvery: time.Hour})
	heard, o := newEar()
	cs := connect(t, s, skill.Local(), o)
	shown := func() *mcp.Tool {
		t.Helper()
		list := musttest.Get(cs.ListTools(t.Context(), nil))(t)
		for _, tool := range list.Tools {
			if tool.Name == "echo" {
				return tool
			}
		}
		t.Fatal("the list has no echo")
		return nil
	}
	shown()
	s.Refresh(t.Context())
	for _, change := range []struct {
		what string
		do   func(*skill.Descriptor)
		is   func(*mcp.Tool) bool
	}{
		{"description", func(s *skill.Descriptor) { s.Description = "As the operator says." }, func(t *mcp.Tool) bool { return t.Description == "As the operator says." }},
		{"input schema", func(s *skill.Descriptor) { s.InputSchema = json.RawMessage(`{"type":"object","title":"new"}`) }, func(t *mcp.Tool) bool {
			b, err := json.Marshal(t.InputSchema)
			return err == nil && strings.Contains(string(b), "new")
		}},
		{"output schema", func(s *skill.Descriptor) { s.OutputSchema = json.RawMessage(`{"type":"string"}`) }, func(t *mcp.Tool) bool { return t.OutputSchema == nil }},
		{"runner", func(s *skill.Descriptor) { s.Runner = skill.WasmWASI }, func(t *mcp.Tool) bool { return t.Annotations.ReadOnlyHint }},
		{"idempotence", func(s *skill.Descriptor) { s.Idempotent, s.Digest = true, "sha256:2" }, func(t *mcp.Tool) bool { return t.Annotations.IdempotentHint }},
		{"fallback", func(s *skill.Descriptor) { s.Fallback = skill.CLIPython }, func(t *mcp.Tool) bool { return !t.Annotations.ReadOnlyHint }},
		{"calls of skills", func(s *skill.Descriptor) { s.Permissions.Skills = []skill.ID{"x"} }, func(t *mcp.Tool) bool { return *t.Annotations.OpenWorldHint }},
		{"requests", func(s *skill.Descriptor) { s.Permissions.HTTP = []skill.HTTPRule{{Methods: []string{"GET"}}} }, func(t *mcp.Tool) bool { return *t.Annotations.OpenWorldHint }},
	} {
		d.change("echo", change.do)
		s.Refresh(t.Context())
		select {
		case <-heard.tools:
		case <-time.After(5 * time.Second):
			t.Errorf("%s: nobody was told", change.what)
		}
		if tool := shown(); !change.is(tool) {
			t.Errorf("%s: the list has the tool of before: %+v", change.what, tool)
		}
	}
}

// TestListChangedOverHTTP hears of a change without being asked to look, on the stream
// that each revision has for it.
func TestListChangedOverHTTP(t *testing.T) {
	revisions(t, func(t *testing.T, handshake bool) {
		d := newDoor()
		web, _ := listen(t, Options{Door: d, Catalogue: d, PollEvery: 5 * time.Millisecond})
		heard, o := newEar()
		surf(t, web.URL, handshake, o) // which listens by itself
		for i := range 1000 {
			select {
			case <-heard.tools:
				return
			case <-time.After(20 * time.Millisecond): // the client does not tell when its stream is open
				d.change("echo", func(s *skill.Descriptor) { s.Enabled = i%2 == 0 })
			}
		}
		t.Error("the list changed a thousand times, and the client was not told")
	})
}
