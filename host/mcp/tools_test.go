package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestTools(t *testing.T) {
	d := newDoor()
	d.add("load_skill", `{"type":"object"}`, func(_ context.Context, r skill.Request) *skill.Result { return success(&r, []byte(`{"own":true}`)) })
	d.add("off", `{"type":"object"}`, nil)
	d.change("off", func(s *skill.Descriptor) { s.Enabled = false })
	d.add("web", `{"type":"object"}`, nil)
	d.change("web", func(s *skill.Descriptor) {
		s.Permissions.HTTP = []skill.HTTPRule{{}}
		s.OutputSchema = json.RawMessage(`{"type":"array"}`)
	})
	agents, _ := folders(t, converter())
	cs := connect(t, newServer(t, Options{Door: d, Catalogue: d, AgentSkills: agents}), skill.Local(), nil)

	want := []string{"load_skill", "read_skill_resource", "run_skill_script", "echo", "forever", "skill-load_skill", "web"}
	if diff := cmp.Diff(want, toolNames(t, cs)); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	list := musttest.Get(cs.ListTools(t.Context(), nil))(t)
	for _, tool := range list.Tools {
		switch tool.Name {
		case "echo":
			schema, _ := json.Marshal(tool.InputSchema)
			if !strings.Contains(string(schema), `"text"`) || tool.OutputSchema == nil || tool.Description == "" {
				t.Errorf("echo is %s, %v, %q", schema, tool.OutputSchema, tool.Description)
			}
			if a := tool.Annotations; a == nil || a.DestructiveHint == nil || *a.DestructiveHint || a.OpenWorldHint == nil || *a.OpenWorldHint {
				t.Errorf("echo has the annotations %+v", a)
			}
		case "web":
			if a := tool.Annotations; a == nil || a.OpenWorldHint == nil || !*a.OpenWorldHint || a.DestructiveHint != nil {
				t.Errorf("web has the annotations %+v", a)
			}
			if tool.OutputSchema != nil {
				t.Errorf("web has the output schema %v, which is no object's", tool.OutputSchema)
			}
		}
	}

	own, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "skill-load_skill"})
	if err != nil || textOf(t, own) != `{"own":true}` {
		t.Errorf("the skill of the tool's name: %+v, %v", own, err)
	}
	loaded, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "load_skill", Arguments: map[string]any{"skill_name": "unit-converter"}})
	if err != nil || loaded.IsError || len(loaded.Content) != 2 || !strings.HasPrefix(loaded.Content[0].(*mcp.TextContent).Text, "---\nname: unit-converter") {
		t.Errorf("the tool: %+v, %v", loaded, err)
	}
}

func TestCall(t *testing.T) {
	d := newDoor()
	d.add("failing", `{"type":"object"}`, func(_ context.Context, r skill.Request) *skill.Result {
		return skill.Failure(r.SkillID, r.TraceID, skill.Meta{ExecutionID: "e2"}, &skill.Error{Code: skill.NotFound, Message: "no file matches", Details: map[string]any{"looked": "here"}})
	})
	d.add("list", `{"type":"object"}`, func(_ context.Context, r skill.Request) *skill.Result { return success(&r, []byte(`[1,2]`)) })
	d.add("hidden-of-other", `{"type":"object"}`, nil)
	cs := connect(t, newServer(t, Options{Door: d, Catalogue: d}), skill.Local(), nil)

	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{
		Name: "echo", Arguments: map[string]any{"text": "hä<b>"}, Meta: mcp.Meta{"openskill/trace_id": "mine-1"},
	})
	if err != nil || res.IsError {
		t.Fatalf("%+v, %v", res, err)
	}
	if diff := cmp.Diff(map[string]any{"echoed": "hä<b>"}, res.StructuredContent); diff != "" {
		t.Errorf("structured content (-want +got):\n%s", diff)
	}
	var data map[string]string
	if err := json.Unmarshal([]byte(textOf(t, res)), &data); err != nil || data["echoed"] != "hä<b>" {
		t.Errorf("text %q, %v", textOf(t, res), err)
	}
	rest, _ := res.Meta["openskill/result"].(map[string]any)
	if meta, _ := rest["meta"].(map[string]any); rest["trace_id"] != "mine-1" || rest["success"] != true || rest["data"] != nil || meta["execution_id"] != "e1" {
		t.Errorf("_meta %v", res.Meta)
	}

	wrong, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"txt": 1}})
	if err != nil || !wrong.IsError || wrong.StructuredContent != nil || !strings.HasPrefix(textOf(t, wrong), "INVALID_ARGUMENT: ") || !strings.Contains(textOf(t, wrong), "/text") {
		t.Errorf("wrong arguments: %+v, %v", wrong, err)
	}
	failed, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "failing"})
	if err != nil || !failed.IsError || textOf(t, failed) != "NOT_FOUND: no file matches\n"+`{"looked":"here"}` {
		t.Errorf("a skill that says NOT_FOUND: %+v, %v", failed, err)
	}
	listed, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "list"})
	if err != nil || listed.IsError || listed.StructuredContent != nil || textOf(t, listed) != `[1,2]` {
		t.Errorf("data that is no object: %+v, %v", listed, err)
	}
	for _, name := range []string{"nosuch", "No Such", "", "load_skill", "hidden-of-other", strings.Repeat("x", 5000)} {
		_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
		if wire, ok := errors.AsType[*jsonrpc.Error](err); !ok || wire.Code != jsonrpc.CodeInvalidParams || len(wire.Message) > 400 {
			t.Errorf("%.20q: %v, want invalid parameters", name, err)
		}
	}
}

// TestPages lists more skills than one page has, some of them disabled.
func TestPages(t *testing.T) {
	d := newDoor()
	var want []string
	for i := range 250 {
		id := skill.ID(fmt.Sprintf("s%03d", i))
		d.add(id, `{"type":"object"}`, nil)
		if i%3 == 0 {
			d.change(id, func(s *skill.Descriptor) { s.Enabled = false })
		} else {
			want = append(want, string(id))
		}
	}
	cs := connect(t, newServer(t, Options{Door: d, Catalogue: d}), skill.Local(), nil)
	if diff := cmp.Diff(append([]string{"echo", "forever"}, want...), toolNames(t, cs)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, cursor := range []string{"x", "AAAA", encodeCursor("prompts", "a"), encodeCursor("tools", "")} {
		_, err := cs.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: cursor})
		if wire := (*jsonrpc.Error)(nil); cursor != "" && (!errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams) {
			t.Errorf("the cursor %q: %v", cursor, err)
		}
	}
}

func TestPrincipals(t *testing.T) {
	d := newDoor()
	d.add("acme-of-one", `{"type":"object"}`, nil)
	agents, _ := folders(t, converter())
	s := newServer(t, Options{Door: d, Catalogue: d, AgentSkills: agents})
	for _, c := range []struct {
		name   string
		p      skill.Principal
		tools  []string
		skills int
		may    bool
	}{
		{"a tenant", skill.Principal{ID: "a", Tenant: "acme", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke}}, []string{"load_skill", "read_skill_resource", "run_skill_script", "acme-of-one", "echo", "forever"}, 1, true},
		{"another", skill.Principal{ID: "b", Tenant: "b", Scopes: []string{skill.ScopeRead}}, []string{"load_skill", "read_skill_resource", "echo", "forever"}, 1, false},
		{"one who may call alone", skill.Principal{ID: "c", Tenant: "acme", Scopes: []string{skill.ScopeInvoke}}, nil, 0, true},
		{"one who may nothing", skill.Principal{ID: "d"}, nil, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cs := connect(t, s, c.p, nil)
			got := toolNames(t, cs)
			if !c.may { // whether the third tool is listed is the provider's to say
				got, c.tools = without(got, "run_skill_script"), without(c.tools, "run_skill_script")
			}
			if diff := cmp.Diff(c.tools, got); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			prompts, err := cs.ListPrompts(t.Context(), nil)
			if err != nil || len(prompts.Prompts) != c.skills {
				t.Errorf("prompts %+v, %v", prompts, err)
			}
			resources, err := cs.ListResources(t.Context(), nil)
			if err != nil || (len(resources.Resources) > 0) != (c.skills > 0) {
				t.Errorf("resources %+v, %v", resources, err)
			}
			_, err = cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "skill://unit-converter/SKILL.md"})
			if (err == nil) != (c.skills > 0) {
				t.Errorf("reading: %v", err)
			}
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "x"}})
			if err != nil || res.IsError == c.may {
				t.Errorf("calling: %+v, %v", res, err)
			}
			if who := d.who[len(d.who)-1]; who.ID != c.p.ID {
				t.Errorf("the door was asked for %+v", who)
			}
		})
	}
}

func without(list []string, name string) (rest []string) {
	for _, s := range list {
		if s != name {
			rest = append(rest, s)
		}
	}
	return rest
}

// TestCancel holds that the context of a call ends when the client says so, and that
// saying so twice changes nothing.
func TestCancel(t *testing.T) {
	d := newDoor()
	began, ended := make(chan struct{}), make(chan error, 1)
	d.add("waits", `{"type":"object"}`, func(ctx context.Context, r skill.Request) *skill.Result {
		close(began)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return skill.Failure(r.SkillID, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.Cancelled, Message: "the caller left"})
	})
	cs := connect(t, newServer(t, Options{Door: d, Catalogue: d}), skill.Local(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	called := make(chan error, 1)
	go func() {
		_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "waits"})
		called <- err
	}()
	<-began
	cancel()
	if err := <-called; !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the call's context did not end")
	}
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "x"}}); err != nil {
		t.Errorf("a call after it: %v", err)
	}
}

func TestProgress(t *testing.T) {
	d := newDoor()
	enough := make(chan struct{})
	d.add("long", `{"type":"object"}`, func(_ context.Context, r skill.Request) *skill.Result {
		<-enough
		return success(&r, []byte(`{}`))
	})
	told := make(chan *mcp.ProgressNotificationParams, 1000)
	cs := connect(t, newServer(t, Options{Door: d, Catalogue: d, ProgressEvery: time.Millisecond}), skill.Local(), &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { told <- r.Params },
	})
	done := make(chan error, 1)
	go func() {
		p := &mcp.CallToolParams{Name: "long"}
		p.SetProgressToken("token-7")
		_, err := cs.CallTool(t.Context(), p)
		done <- err
	}()
	last := 0.0
	for range 3 {
		p := <-told
		if p.ProgressToken != "token-7" || p.Progress <= last || !strings.HasPrefix(p.Message, "running for ") {
			t.Errorf("%+v after %v", p, last)
		}
		last = p.Progress
	}
	close(enough)
	musttest.Do(t, <-done)
}

// TestLargeResult has a result of 4 MiB come through whole.
func TestLargeResult(t *testing.T) {
	d := newDoor()
	large := strings.Repeat("x", 4<<20)
	d.add("large", `{"type":"object"}`, func(_ context.Context, r skill.Request) *skill.Result {
		return success(&r, []byte(`{"text":"`+large+`"}`))
	})
	cs := connect(t, newServer(t, Options{Door: d, Catalogue: d}), skill.Local(), nil)
	res := musttest.Get(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "large"}))(t)
	if got := res.StructuredContent.(map[string]any)["text"]; got != large {
		t.Errorf("%d bytes of structured content", len(fmt.Sprint(got)))
	}
	if got := len(textOf(t, res)); got != len(large)+len(`{"text":""}`) {
		t.Errorf("%d bytes of text", got)
	}
}
