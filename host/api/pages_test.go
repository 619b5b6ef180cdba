package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"openskill/host/api"
	"openskill/sdk/skill"
)

// nextOf is the path of the next page that an answer names; "": there is none.
func nextOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	link := resp.Header.Get("Link")
	if link == "" {
		return ""
	}
	path, ok := strings.CutSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
	if !ok || !strings.HasPrefix(path, "/") {
		t.Errorf("Link: %s", link)
	}
	return path
}

// Lists that are no objects, or have a form of others, name their next page in a header, as long
// as there is one; without a limit a page has a thousand entries.
func TestListsOfToolsHavePages(t *testing.T) {
	var asked []string
	s := start(t, func(o *api.Options) {
		o.Tools = func(_ context.Context, _ skill.Principal, format, cursor string, limit int) (json.RawMessage, string, error) {
			b, err := json.Marshal([]any{format, cursor, limit})
			asked = append(asked, string(b))
			if cursor == "b" {
				return json.RawMessage(`[]`), "", err
			}
			return json.RawMessage(`[]`), "b", err
		}
	})
	for path, want := range map[string]string{
		"/tools":                                 "/tools?cursor=b&format=openai&limit=1000",
		"/tools?format=mcp&limit=7&cursor=%26a":  "/tools?cursor=b&format=mcp&limit=7",
		"/tools?cursor=b&format=mcp&limit=1":     "",
		"/api/agent/skills":                      "",
		"/api/agent/skills?limit=1":              "/api/agent/skills?cursor=echo&limit=1",
		"/api/agent/skills?limit=1&cursor=echo":  "/api/agent/skills?cursor=fail&limit=1",
		"/api/agent/skills?limit=1&cursor=sleep": "",
	} {
		resp, body := s.do(t, "GET", path, "")
		if next := nextOf(t, resp); resp.StatusCode != 200 || next != want {
			t.Errorf("%s: %d, next %q, want %q; %s", path, resp.StatusCode, next, want, body)
		}
	}
	if got := strings.Join(asked, " "); !strings.Contains(got, `["openai","",1000]`) || !strings.Contains(got, `["mcp","\u0026a",7]`) {
		t.Errorf("asked %s", got)
	}
	for _, path := range []string{"/tools", "/api/agent/skills"} {
		for _, query := range []string{"limit=0", "limit=1001", "limit=x", "cursor=", "limit=1&limit=1"} {
			if resp, _ := s.do(t, "GET", path+"?"+query, ""); resp.StatusCode != 400 && resp.StatusCode != 422 {
				t.Errorf("%s?%s: %d", path, query, resp.StatusCode)
			}
		}
	}
}

// A walk over the links has all that one page has.
func TestPagesOfAgentSkillsHaveAll(t *testing.T) {
	s := start(t, nil)
	names := func(path string) (names []string, next string) {
		resp, body := s.do(t, "GET", path, "")
		var list struct{ Data []struct{ Name string } }
		if err := json.Unmarshal(body, &list); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		for _, d := range list.Data {
			names = append(names, d.Name)
		}
		return names, nextOf(t, resp)
	}
	whole, _ := names("/api/agent/skills")
	var got []string
	for path := "/api/agent/skills?limit=1"; path != ""; {
		page, next := names(path)
		if len(page) != 1 {
			t.Fatalf("%s has %v", path, page)
		}
		got, path = append(got, page...), next
	}
	if strings.Join(got, " ") != strings.Join(whole, " ") || len(whole) < 2 {
		t.Errorf("by pages %v, at once %v", got, whole)
	}
}
