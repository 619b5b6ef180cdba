package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"openskill/host/agentskills"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

var update = flag.Bool("update", false, "write the conversations as they went")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// door runs the skills of tests: functions by id.
type door struct {
	mu     sync.Mutex
	skills map[skill.ID]func(ctx context.Context, r skill.Request) *skill.Result
	list   []skill.Descriptor // in order of id
	calls  []skill.Request
	who    []skill.Principal
}

func newDoor() *door {
	d := &door{skills: map[skill.ID]func(context.Context, skill.Request) *skill.Result{}}
	d.add("echo", `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`, func(_ context.Context, r skill.Request) *skill.Result {
		var in struct {
			Text *string `json:"text"`
		}
		if json.Unmarshal(r.Input, &in) != nil || in.Text == nil {
			return skill.Failure(r.SkillID, r.TraceID, skill.Meta{}, &skill.Error{
				Code: skill.InvalidArgument, Message: "the input does not match the schema",
				Details: map[string]any{"fields": []any{map[string]any{"field": "/text", "message": "is missing"}}},
			})
		}
		out, _ := json.Marshal(map[string]string{"echoed": *in.Text})
		return success(&r, out)
	})
	d.add("forever", `{"type":"object"}`, func(ctx context.Context, r skill.Request) *skill.Result {
		<-ctx.Done()
		return skill.Failure(r.SkillID, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.Cancelled, Message: "the caller left"})
	})
	return d
}

func success(r *skill.Request, data []byte) *skill.Result {
	return &skill.Result{Success: true, SkillID: r.SkillID, TraceID: r.TraceID, Data: data, Meta: skill.Meta{ExecutionID: "e1", Runner: skill.WasmWASI}}
}

func (d *door) add(id skill.ID, schema string, run func(context.Context, skill.Request) *skill.Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.skills[id] = run
	d.list = append(d.list, skill.Descriptor{
		ID: id, Version: "1.0.0", Description: "Skill " + string(id) + ".", Enabled: true, Digest: "sha256:" + string(id),
		InputSchema: json.RawMessage(schema), OutputSchema: json.RawMessage(`{"type":"object","properties":{"echoed":{"type":"string"}}}`),
	})
	slices.SortFunc(d.list, func(a, b skill.Descriptor) int { return strings.Compare(string(a.ID), string(b.ID)) })
}

func (d *door) change(id skill.ID, do func(*skill.Descriptor)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.list {
		if d.list[i].ID == id {
			do(&d.list[i])
		}
	}
}

func (d *door) Invoke(ctx context.Context, p skill.Principal, r skill.Request) *skill.Result {
	d.mu.Lock()
	run := d.skills[r.SkillID]
	d.calls, d.who = append(d.calls, r), append(d.who, p)
	d.mu.Unlock()
	switch {
	case !p.May(skill.ScopeInvoke):
		return skill.Failure(r.SkillID, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.Forbidden, Message: "missing scope skills:invoke"})
	case run == nil:
		return skill.Failure(r.SkillID, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.NotFound, Message: "skill not found; GET /skills lists all"})
	}
	return run(ctx, r)
}

// mine reports whether a skill is p's: those whose ids begin with the name of a tenant
// and a hyphen are that tenant's.
func mine(p skill.Principal, id skill.ID) bool {
	tenant, _, owned := strings.Cut(string(id), "-of-")
	return !owned || tenant == p.Tenant
}

func (d *door) List(p skill.Principal, cursor string, limit int) ([]skill.Descriptor, string, error) {
	if limit < 1 || limit > 100 {
		return nil, "", fmt.Errorf("a page of %d", limit)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var page []skill.Descriptor
	for _, s := range d.list {
		if string(s.ID) <= cursor || !mine(p, s.ID) {
			continue
		}
		if len(page) == limit {
			return page, string(page[limit-1].ID), nil
		}
		page = append(page, s)
	}
	return page, "", nil
}

func (d *door) Get(p skill.Principal, id skill.ID, _ string) (skill.Descriptor, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.list {
		if s.ID == id && mine(p, id) {
			return s, nil
		}
	}
	return skill.Descriptor{}, &skill.Error{Code: skill.NotFound, Message: "skill not found; GET /skills lists all"}
}

// folders writes skills and gives what reads them anew at each request. In names,
// slashes make folders.
func folders(t *testing.T, skills map[string]map[string]string) (*agentskills.Provider, string) {
	t.Helper()
	root := t.TempDir()
	for name, files := range skills {
		for file, text := range files {
			musttest.Write(t, filepath.Join(root, name, filepath.FromSlash(file)), text)
		}
	}
	source := musttest.Get(agentskills.NewFileSource([]agentskills.Root{{Path: root, Trust: skill.Trusted}}, nil))(t)
	p := musttest.Get(agentskills.New(source, &agentskills.Options{DisableCaching: true}))(t)
	return p, root
}

func front(name, description string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\n"
}

// converter is a skill with a file of each kind.
func converter() map[string]map[string]string {
	return map[string]map[string]string{"unit-converter": {
		"SKILL.md":            front("unit-converter", "Converts units.\nlicense: MIT\nallowed-tools: Read Bash(git:*)\nmetadata: {version: \"1.0\"}") + "\n# Units\n\nUse scripts/convert.py.\n",
		"scripts/convert.py":  "print(1)\n",
		"references/table.md": "| mile | km |\n",
		"references/more.csv": "a,b\n",
	}}
}

func newServer(t *testing.T, o Options) *Server {
	t.Helper()
	if o.Door == nil {
		d := newDoor()
		o.Door, o.Catalogue = d, d
	}
	s := musttest.Get(New(o))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// connect is a session of the SDK's own client over pipes, as p.
func connect(t *testing.T, s *Server, p skill.Principal, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	fromClient, toServer := pipe(t)
	fromServer, toClient := pipe(t)
	done := make(chan error, 1)
	go func() { done <- s.ServeStdio(context.Background(), p, fromClient, toClient) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	for _, err := range []error{
		mcp.AddSendingCustomMethod[*listSkillsParams, *listSkillsResult](client, "skills/list"),
		mcp.AddSendingCustomMethod[*getSkillParams, *getSkillResult](client, "skills/get"),
		mcp.AddSendingCustomMethod[*directoryParams, *directoryResult](client, "resources/directory/read"),
	} {
		musttest.Do(t, err)
	}
	listens := make(chan struct{})
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "notifications/subscriptions/acknowledged" {
				close(listens)
			}
			return next(ctx, method, r)
		}
	})
	cs := musttest.Get(client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil))(t)
	if o != nil && o.ToolListChangedHandler != nil {
		<-listens // the client does not wait until it is told of changes
	}
	t.Cleanup(func() {
		_ = cs.Close()
		_ = toServer.Close()
		// The client may be gone while it is being told of something.
		if err := <-done; err != nil && !errors.Is(err, syscall.EPIPE) {
			t.Errorf("the session ended with %v", err)
		}
		_ = toClient.Close()
	})
	return cs
}

// pipe is one that the kernel keeps: writes do not wait for reads.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	musttest.Do(t, err)
	return r, w
}

func toolNames(t *testing.T, cs *mcp.ClientSession) (names []string) {
	t.Helper()
	for tool, err := range cs.Tools(t.Context(), nil) {
		musttest.Do(t, err)
		names = append(names, tool.Name)
	}
	return names
}

func textOf(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	var b bytes.Buffer
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}
