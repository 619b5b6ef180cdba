package mcp

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/host/agent/tools"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func search(_ context.Context, p skill.Principal, query string, _ int) ([]skill.Found, error) {
	return []skill.Found{{Type: "skill", Name: query, Description: "Of " + p.Tenant + "."}}, nil
}

// TestForms: the URL chooses the tools of a client, who can call any skill whatever it lists.
func TestForms(t *testing.T) {
	d := newDoor()
	d.add(skill.RunCode, `{"type":"object"}`, nil)
	agents, _ := folders(t, converter())
	web, _ := listen(t, Options{Door: d, Catalogue: d, AgentSkills: agents, Search: search})
	revisions(t, func(t *testing.T, handshake bool) {
		for query, want := range map[string]string{
			"":            "load_skill read_skill_resource run_skill_script echo forever run_code",
			"?tools=all":  "load_skill read_skill_resource run_skill_script echo forever run_code",
			"?tools=both": "load_skill read_skill_resource run_skill_script search_skills echo forever run_code",
			"?tools=code": "load_skill read_skill_resource run_skill_script search_skills run_code",
		} {
			cs := surf(t, web.URL+query, handshake, nil)
			if diff := cmp.Diff(strings.Fields(want), toolNames(t, cs)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", query, diff)
			}
			res := musttest.Get(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tools.SearchSkills, Arguments: map[string]any{"query": "echo"}}))(t)
			if text := textOf(t, res); res.IsError || !strings.Contains(text, `{"skills":[{"type":"skill","name":"echo"`) {
				t.Errorf("%s: %s", query, text)
			}
			res = musttest.Get(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "x"}}))(t)
			if res.IsError {
				t.Errorf("%s: %s", query, textOf(t, res))
			}
			res = musttest.Get(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tools.SearchSkills, Arguments: map[string]any{"words": "echo"}}))(t)
			if text := textOf(t, res); !res.IsError || !strings.HasPrefix(text, "INVALID_ARGUMENT: words is unknown") {
				t.Errorf("%s: %s", query, text)
			}
		}
	})
	for _, query := range []string{"?tools=none", "?tools=", "?tools=all&tools=all"} {
		res := musttest.Get(post(t, t.Context(), web.URL+query, `{"jsonrpc":"2.0","id":1,"method":"ping"}`))(t)
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", query, res.StatusCode)
		}
		_ = res.Body.Close()
	}
}

// TestFormsAreForWhomTheyAreAllowed: the form code needs the right to run code.
func TestFormsAreForWhomTheyAreAllowed(t *testing.T) {
	d := newDoor()
	d.add(skill.RunCode, `{"type":"object"}`, nil)
	s := newServer(t, Options{Door: d, Catalogue: d, Search: search, Tools: tools.FormCode})
	p := skill.Principal{ID: "ada", Tenant: "acme", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke}}
	if _, err := connect(t, s, p, nil).ListTools(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "skills:invoke:run_code") {
		t.Errorf("%v", err)
	}
	p.Scopes = append(p.Scopes, skill.ScopeInvoke+":"+skill.RunCode)
	if diff := cmp.Diff([]string{tools.SearchSkills, skill.RunCode}, toolNames(t, connect(t, s, p, nil))); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	none := newServer(t, Options{Door: d, Catalogue: d, Tools: tools.FormCode})
	cs := connect(t, none, skill.Local(), nil)
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tools.SearchSkills}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("a host without a search: %v", err)
	}
}
