package mcp

import (
	"context"
	"errors"
	"strings"
	"testing"

	"openskill/host/store/storetest"
	"openskill/internal/musttest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/host/agentskills"
	"openskill/host/dispatch/approval"
	"openskill/sdk/skill"
)

// guarded are skills whose script needs an approval, and the record of those.
func guarded(t *testing.T, policy approval.Policy) (*agentskills.Provider, *approval.Store) {
	t.Helper()
	store := musttest.Get(approval.Open(t.Context(), approval.Options{DB: storetest.SQLite(t), Policy: policy}))(t)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	type in struct {
		Text string `json:"text"`
	}
	counter := agentskills.NewInline(agentskills.Frontmatter{Name: "word-counter", Description: "Counts words."}, "Run count.").
		AddScript("count", func(w in) int { return len(strings.Fields(w.Text)) }, "Counts the words of a text.")
	p, err := agentskills.NewBuilder().UseSkill(counter).UseScriptApproval(func(ctx context.Context, a agentskills.Approval) error {
		return store.Check(ctx, approval.Ask{
			Skill: a.Skill, Script: a.Script, Digest: a.Digest, Trust: a.Trust, Tenant: a.Principal.Tenant, Caller: a.Principal.ID, Arguments: a.Arguments,
		})
	}).Build()
	musttest.Do(t, err)
	return p, store
}

func count() *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "run_skill_script", Arguments: map[string]any{"skill_name": "word-counter", "script_file": "count", "args": map[string]any{"text": "one two"}}}
}

// TestApproval has the person at the client asked before a script runs, in revisions
// that ask while a call waits and in those that answer with the question.
func TestApproval(t *testing.T) {
	revisions(t, func(t *testing.T, handshake bool) {
		for _, c := range []struct {
			action string
			runs   bool
			state  approval.State
		}{
			{"accept", true, approval.Approved},
			{"decline", false, approval.Denied},
			{"cancel", false, approval.Pending},
		} {
			t.Run(c.action, func(t *testing.T) {
				agents, store := guarded(t, approval.PerVersion)
				web, _ := listen(t, Options{AgentSkills: agents, Approvals: store})
				var asked []string
				cs := surf(t, web.URL, handshake, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked = append(asked, r.Params.Message)
					return &mcp.ElicitResult{Action: c.action, Content: map[string]any{}}, nil
				}})
				res := musttest.Get(cs.CallTool(t.Context(), count()))(t)
				if res.IsError == c.runs || c.runs && !strings.Contains(textOf(t, res), "2") || !c.runs && !strings.HasPrefix(textOf(t, res), "FORBIDDEN: ") {
					t.Errorf("%v %q", res.IsError, textOf(t, res))
				}
				if len(asked) != 1 || !strings.Contains(asked[0], "word-counter") || !strings.Contains(asked[0], "run count") || !strings.HasSuffix(asked[0], "until the skill changes?") {
					t.Errorf("asked %q", asked)
				}
				list, _, err := store.List(t.Context(), skill.Local(), "", 10)
				if err != nil || len(list) != 1 || list[0].State != c.state || c.state != approval.Pending && list[0].DecidedBy != "local" {
					t.Errorf("on record: %+v, %v", list, err)
				}
				if c.runs {
					if again, err := cs.CallTool(t.Context(), count()); err != nil || again.IsError || len(asked) != 1 {
						t.Errorf("a second run: %+v, %v, asked %d times", again, err, len(asked))
					}
				}
			})
		}
	})
}

// TestNobodyIsAsked holds that only the operator is, by a client that can ask.
func TestNobodyIsAsked(t *testing.T) {
	agents, store := guarded(t, approval.PerCall)
	s := newServer(t, Options{AgentSkills: agents, Approvals: store})
	handler := &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		t.Error("somebody was asked")
		return nil, errors.New("nobody is here")
	}}
	agent := skill.Principal{ID: "a", Type: skill.Agent, Tenant: "t", Scopes: skill.Local().Scopes}
	for name, cs := range map[string]*mcp.ClientSession{
		"an agent":               connect(t, s, agent, handler),
		"a client that does not": connect(t, s, skill.Local(), nil),
	} {
		res, err := cs.CallTool(t.Context(), count())
		if err != nil || !res.IsError || !strings.Contains(textOf(t, res), "approval_id") {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

// TestForgedAnswers holds that a client cannot answer what it was not asked.
func TestForgedAnswers(t *testing.T) {
	agents, store := guarded(t, approval.PerCall)
	web, _ := listen(t, Options{AgentSkills: agents, Approvals: store})
	caps := `"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}`
	call := func(rest string) string {
		body, headers := modern("tools/call", `"name":"run_skill_script","arguments":{"skill_name":"word-counter","script_file":"count","args":{"text":"one"}}`+rest)
		_, text, _ := send(t, web.URL, strings.Replace(body, `"io.modelcontextprotocol/clientCapabilities":{}`, caps, 1), headers...)
		return text
	}
	first := call("")
	if !strings.Contains(first, `"resultType":"input_required"`) || !strings.Contains(first, "Approve this run?") {
		t.Fatalf("%s", first)
	}
	list, _, err := store.List(t.Context(), skill.Local(), "", 10)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, state := range []string{"", list[0].ID, list[0].ID + ".00", "x.y"} {
		if text := call(`,"requestState":"` + state + `","inputResponses":{"approve":{"action":"accept","content":{}}}`); !strings.Contains(text, `"isError":true`) {
			t.Errorf("the state %q: %s", state, text)
		}
	}
	if a, err := store.Get(t.Context(), skill.Local(), list[0].ID); err != nil || a.State != approval.Pending {
		t.Errorf("%+v, %v", a, err)
	}
}
