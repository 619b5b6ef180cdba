package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/host/dispatch/allow"
	"openskill/host/store/storetest"
	"openskill/sdk/skill"
)

// scriptGrants has grants in a database, and one skill whose scripts ask for something.
type scriptGrants struct {
	store   *allow.Store
	current allow.Current
}

func newScriptGrants(t *testing.T) *scriptGrants {
	t.Helper()
	key := []byte("0123456789abcdef0123456789abcdef")
	return &scriptGrants{allow.New(storetest.SQLite(t), func(bool) ([]byte, error) { return key, nil }, nil), allow.Current{
		Skill: "unit-converter", Digest: "sha256:1", Files: map[string]string{"SKILL.md": "1"},
		HTTP: []allow.Ask{{Name: "https://api.example.com GET,HEAD", File: "scripts/convert.py", Line: 3}}, Env: []allow.Ask{{Name: "API_KEY", File: "scripts/convert.py", Line: 4}},
	}}
}

func (g *scriptGrants) Review(ctx context.Context, _ skill.Principal, name string) (*allow.Review, error) {
	if name != g.current.Skill {
		return nil, &skill.Error{Code: skill.NotFound, Message: "skill not found"}
	}
	is, err := g.store.Get(ctx, name)
	return allow.Compare(g.current, is), err
}

func (g *scriptGrants) Allow(ctx context.Context, p skill.Principal, name string, w allow.Wish) (*allow.Review, error) {
	r, err := g.Review(ctx, p, name)
	if err != nil {
		return nil, err
	}
	grant, err := w.Grant(r)
	if err != nil {
		return nil, err
	}
	made, err := g.store.Allow(ctx, p, grant)
	if err != nil {
		return nil, err
	}
	return allow.Compare(g.current, made), nil
}

func (g *scriptGrants) Digests(ctx context.Context, p skill.Principal) (allow.Digests, error) {
	if err := allow.Authorize(p); err != nil {
		return nil, err
	}
	return g.store.Digests(ctx)
}

func (g *scriptGrants) Revoke(ctx context.Context, p skill.Principal, name string) error {
	return g.store.Revoke(ctx, p, name)
}

const grantedValue = "sk-never-to-be-seen-0123456789"

func TestGrantsOverHTTP(t *testing.T) {
	g := newScriptGrants(t)
	s := start(t, func(o *api.Options) { o.Grants = g })
	ask := func(status int, method, path, body string) (r allow.Review) {
		t.Helper()
		resp, got := s.do(t, method, "/agent-skills/"+path, body)
		if resp.StatusCode != status || strings.Contains(string(got), grantedValue) {
			t.Fatalf("%s %s %.200s: %d %.600s", method, path, body, resp.StatusCode, got)
		}
		if status == 200 && json.Unmarshal(got, &r) != nil {
			t.Fatalf("%s", got)
		}
		return r
	}
	listed := func(want allow.State) {
		t.Helper()
		if _, got := s.do(t, "GET", "/agent-skills", ""); !strings.Contains(string(got), `"grant":"`+string(want)+`"`) {
			t.Errorf("the list says %s, want %s", got, want)
		}
	}
	listed(allow.Nothing)
	if r := ask(200, "GET", "unit-converter/grant", ""); r.State != allow.Nothing || r.Digest != "sha256:1" || len(r.HTTP) != 1 || len(r.Env) != 1 {
		t.Errorf("%+v", r)
	}
	const variable = `"env":[{"name":"API_KEY","value":"` + grantedValue + `","for":["api.example.com"]}]`
	r := ask(200, "POST", "unit-converter:allow", `{"digest":"sha256:1","http":["https://api.example.com/v1 GET"],`+variable+`}`)
	if r.State != allow.Allowed || len(r.Grant.HTTP) != 1 || r.Grant.Env[0].Name != "API_KEY" || r.Grant.Env[0].Placeholder == "" {
		t.Errorf("%+v", r.Grant)
	}
	// What is named is added; a variable without a value keeps value, hosts and placeholder.
	again := ask(200, "POST", "unit-converter:allow", `{"digest":"sha256:1","http":["https://b.example.com"],"env":[{"name":"API_KEY"}]}`)
	if len(again.Grant.HTTP) != 2 || again.Grant.Env[0].Placeholder != r.Grant.Env[0].Placeholder || len(again.Grant.Env[0].For) != 1 {
		t.Errorf("%+v", again.Grant)
	}

	long := strings.Repeat("x", 1025)
	for name, body := range map[string]string{
		"no body": "", "no digest": `{"http":["https://api.example.com"]}`, "no object": `[]`, "not JSON": `{"digest":`, "another key": `{"digest":"sha256:1","secret":"x"}`,
		"twice a key": `{"digest":"sha256:1","digest":"sha256:1"}`, "a long digest": `{"digest":"` + long + `"}`, "rules that are text": `{"digest":"sha256:1","http":"https://x.example"}`,
		"a rule that is a number": `{"digest":"sha256:1","http":[1]}`, "a rule without a scheme": `{"digest":"sha256:1","http":["x"]}`, "a long rule": `{"digest":"sha256:1","http":["https://` + long + `"]}`,
		"many rules": `{"digest":"sha256:1","http":[` + strings.Repeat(`"https://x.example",`, 256) + `"https://x.example"]}`,
		"a name":     `{"digest":"sha256:1","env":["API_KEY"]}`, "a bad name": `{"digest":"sha256:1","env":[{"name":"A B","value":"1"}]}`, "a reserved name": `{"digest":"sha256:1","env":[{"name":"HOME","value":"/"}]}`,
		"no value before": `{"digest":"sha256:1","env":[{"name":"OTHER"}]}`, "a value that is a list": `{"digest":"sha256:1","env":[{"name":"A","value":["` + grantedValue + `"]}]}`,
		"a value cut off": `{"digest":"sha256:1","env":[{"name":"A","value":"` + grantedValue,
		"a long value":    `{"digest":"sha256:1","env":[{"name":"A","value":"` + strings.Repeat(grantedValue, 200) + `"}]}`,
		"every host":      `{"digest":"sha256:1","env":[{"name":"A","value":"` + grantedValue + `","for":["*"]}]}`,
		"a null":          `{"digest":"sha256:1","env":[{"name":"A","value":null}]}`,
		"twice a name":    `{"digest":"sha256:1","env":[{"name":"A","value":"` + grantedValue + `"},{"name":"A","value":"2"}]}`,
	} {
		t.Run(name, func(t *testing.T) { ask(400, "POST", "unit-converter:allow", body) })
	}
	ask(413, "POST", "unit-converter:allow", `{"digest":"`+strings.Repeat("x", 2<<20)+`"}`)
	ask(404, "POST", "other:allow", `{"digest":"sha256:1"}`)
	ask(400, "POST", "No-Name:allow", `{"digest":"sha256:1"}`)
	ask(404, "GET", "other/grant", "")
	ask(400, "GET", "No-Name/grant", "")
	ask(400, "POST", "unit-converter:revoke", `{"digest":"sha256:1"}`)

	// What was reviewed is not what is there.
	g.current.Digest, g.current.Files = "sha256:2", map[string]string{"SKILL.md": "2", "scripts/more.py": "1"}
	ask(409, "POST", "unit-converter:allow", `{"digest":"sha256:1"}`)
	if r := ask(200, "GET", "unit-converter/grant", ""); r.State != allow.Changed || len(r.Changes.Changed) != 1 || len(r.Changes.Added) != 1 {
		t.Errorf("%+v", r)
	}
	if r := ask(200, "POST", "unit-converter:allow", `{"digest":"sha256:2"}`); r.State != allow.Allowed || r.Grant.Digest != "sha256:2" || len(r.Grant.Env) != 1 {
		t.Errorf("%+v", r)
	}
	ask(200, "POST", "unit-converter:revoke", "")
	ask(404, "POST", "unit-converter:revoke", "")
	if r := ask(200, "GET", "unit-converter/grant", ""); r.State != allow.Nothing || r.Grant != nil {
		t.Errorf("%+v", r)
	}
}

// Those who may not decide do not learn what is allowed.
func TestGrantsInListsAreForAdministrators(t *testing.T) {
	reader := skill.Principal{ID: "x", Scopes: []string{skill.ScopeRead}}
	s := start(t, func(o *api.Options) { o.Grants, o.Authenticate = newScriptGrants(t), apitest.As(reader) })
	if resp, got := s.do(t, "GET", "/agent-skills", ""); resp.StatusCode != 200 || strings.Contains(string(got), `"grant"`) {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
}

// Two who decide at once: one does, and the other is told to look again, or saw what the first did.
func TestTwoAllowAtOnce(t *testing.T) {
	g := newScriptGrants(t)
	s := start(t, func(o *api.Options) { o.Grants = g })
	var wg sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		wg.Go(func() {
			resp, _ := s.do(t, "POST", "/agent-skills/unit-converter:allow", `{"digest":"sha256:1","http":["https://`+itoa(i)+`.example.com"]}`)
			statuses[i] = resp.StatusCode
		})
	}
	wg.Wait()
	done := 0
	for _, status := range statuses {
		switch status {
		case http.StatusOK:
			done++
		case http.StatusConflict:
		default:
			t.Errorf("%v", statuses)
		}
	}
	if is, err := g.store.Get(t.Context(), "unit-converter"); err != nil || done == 0 || len(is.HTTP) != done {
		t.Errorf("%v: %+v, %v", statuses, is, err)
	}
}

// The host has no Agent Skills, or cannot allow them anything.
func TestNoGrants(t *testing.T) {
	s := start(t, nil)
	for _, path := range []string{"unit-converter:allow", "unit-converter:revoke"} {
		if resp, body := s.do(t, "POST", "/agent-skills/"+path, `{"digest":"sha256:1"}`); resp.StatusCode != 404 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
}
