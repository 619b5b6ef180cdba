package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/host/agentskills"
	"openskill/host/dispatch/allow"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

const keptValue = "sk-never-to-be-seen-0123456789"

// asker is the Agent Skill "asker", whose scripts ask for something, and what they are allowed. Its
// script "go" says which rules and variables it has.
type asker struct {
	store *allow.Store

	mu      sync.Mutex
	current allow.Current
	reviews int
}

func newAsker(t *testing.T) (*asker, *agentskills.Provider) {
	t.Helper()
	key := []byte("0123456789abcdef0123456789abcdef")
	a := &asker{store: allow.New(storetest.SQLite(t), func(bool) ([]byte, error) { return key, nil }, nil), current: allow.Current{
		Skill: "asker", Digest: "sha256:1", Files: map[string]string{"SKILL.md": "1"},
		HTTP: []allow.Ask{{Name: "https://a.example GET,HEAD"}, {Name: "https://b.example POST"}}, Env: []allow.Ask{{Name: "API_KEY"}},
	}}
	s := agentskills.NewInline(agentskills.Frontmatter{Name: "asker", Description: "Asks."}, "Run go.").AddScript("go", func(in struct {
		Fail bool `json:"fail,omitempty"`
	},
	) (string, error) {
		g, err := a.store.Granted(context.Background(), "asker", a.now().Digest)
		if err == nil && in.Fail {
			err = &skill.Error{Code: skill.GuestExit, Message: "it failed"}
		}
		if g == nil || err != nil {
			return "nothing", err
		}
		out := []string{}
		for _, r := range g.HTTP {
			out = append(out, r.String())
		}
		return strings.Join(append(out, g.Env...), ";"), nil
	}, "Says what it has.")
	p := musttest.Get(agentskills.NewBuilder().UseSkill(s).Build())(t)
	return a, p
}

func (a *asker) now() allow.Current {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current
}

func (a *asker) becomes(digest string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current.Digest, a.current.Files = digest, map[string]string{"SKILL.md": digest, "scripts/new.py": "1"}
}

func (a *asker) Standing(ctx context.Context, _ skill.Principal, args json.RawMessage) (allow.Standing, error) {
	if name, _, err := agentskills.ScriptOf(args); err != nil || name != "asker" {
		return allow.Standing{}, &skill.Error{Code: skill.NotFound, Message: "skill not found"}
	}
	digests, err := a.store.Digests(ctx)
	digest := a.now().Digest
	return allow.Standing{Skill: "asker", Digest: digest, State: digests.State("asker", digest)}, err
}

func (a *asker) Review(ctx context.Context, _ skill.Principal, name string) (*allow.Review, error) {
	is, err := a.store.Get(ctx, name)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reviews++
	return allow.Compare(a.current, is), err
}

func (a *asker) Allow(ctx context.Context, p skill.Principal, name string, w allow.Wish) (*allow.Review, error) {
	r, err := a.Review(ctx, p, name)
	if err != nil {
		return nil, err
	}
	g, err := w.Grant(r)
	if err != nil {
		return nil, err
	}
	_, err = a.store.Allow(ctx, p, g)
	return r, err
}

// holds reports a grant that is not these rules and variables; none: no grant.
func (a *asker) holds(t *testing.T, want ...string) {
	t.Helper()
	g, err := a.store.Get(t.Context(), "asker")
	var got []string
	if g != nil {
		got = append(got, g.HTTP...)
		for _, v := range g.Env {
			got = append(got, v.Name)
		}
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("allowed is %q, want %q; %v", got, want, err)
	}
}

// before allows something to other files.
func (a *asker) before(t *testing.T) {
	t.Helper()
	value := keptValue
	_, err := a.store.Allow(t.Context(), skill.Local(), allow.Grant{
		Skill: "asker", Digest: "sha256:0", Files: map[string]string{"SKILL.md": "0"}, HTTP: []string{"https://old.example GET"},
		Env: []allow.Variable{{Name: "API_KEY", Value: &value, For: []string{"a.example"}}},
	})
	musttest.Do(t, err)
}

// person answers questions, and keeps them.
type person struct {
	mu     sync.Mutex
	asked  []*mcp.ElicitParams
	answer func(p *mcp.ElicitParams) (*mcp.ElicitResult, error)
}

func (p *person) client() *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		p.mu.Lock()
		p.asked = append(p.asked, r.Params)
		p.mu.Unlock()
		return p.answer(r.Params)
	}}
}

func (p *person) times() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

func ticks(keys ...string) func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
	content := map[string]any{}
	for _, k := range keys {
		content[k] = true
	}
	return func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: content}, nil
	}
}

func says(action string) func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return func(*mcp.ElicitParams) (*mcp.ElicitResult, error) { return &mcp.ElicitResult{Action: action}, nil }
}

func runAsker(t *testing.T, cs *mcp.ClientSession, args map[string]any) *mcp.CallToolResult {
	t.Helper()
	return musttest.Get(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_skill_script", Arguments: map[string]any{"skill_name": "asker", "script_file": "go", "args": args}}))(t)
}

// sessions runs a test over both transports, in revisions that ask while a call waits and in those
// that answer with the question.
func sessions(t *testing.T, test func(t *testing.T, open func(t *testing.T, s *Server, url string, o *mcp.ClientOptions) *mcp.ClientSession)) {
	t.Helper()
	revisions(t, func(t *testing.T, handshake bool) {
		test(t, func(t *testing.T, _ *Server, url string, o *mcp.ClientOptions) *mcp.ClientSession {
			t.Helper()
			return surf(t, url, handshake, o)
		})
	})
	t.Run("lines", func(t *testing.T) {
		test(t, func(t *testing.T, s *Server, _ string, o *mcp.ClientOptions) *mcp.ClientSession {
			t.Helper()
			return connect(t, s, skill.Local(), o)
		})
	})
}
