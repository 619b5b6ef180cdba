package app

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"openskill/host/app/hosttest"
	"openskill/host/identity"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// noKeySet is an address that is asked when the first token comes.
const noKeySet = "http://127.0.0.1:1/keys"

// ask sends a request with headers in pairs, Host among them, and gives its answer.
func (v *serving) ask(t *testing.T, method, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	req := musttest.Get(http.NewRequestWithContext(t.Context(), method, v.url+path, http.NoBody))(t)
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	musttest.Do(t, err)
	defer res.Body.Close()
	b := musttest.Get(io.ReadAll(res.Body))(t)
	return res, string(b)
}

func challenges(t *testing.T, res *http.Response) map[string]string {
	t.Helper()
	list, err := oauthex.ParseWWWAuthenticate(res.Header.Values("WWW-Authenticate"))
	if err != nil || len(list) != 1 || list[0].Scheme != "bearer" {
		t.Fatal(list, err)
	}
	return list[0].Params
}

// TestTellsMCPClientsWhereToSignIn follows the addresses as the official client does.
func TestTellsMCPClientsWhereToSignIn(t *testing.T) {
	address := hosttest.FreePort(t)
	v := serve(t, settings(t, map[string]string{
		"listen": address, "http-base-url": "http://" + address, "auth": "required",
		"jwt-jwks": noKeySet, "jwt-issuer": "https://login.example.com/realms/acme", "jwt-audience": "openskill",
	}))
	const wellKnown = "/.well-known/oauth-protected-resource"
	res, _ := v.ask(t, http.MethodPost, "/mcp")
	want := map[string]string{"resource_metadata": v.url + wellKnown + "/mcp"}
	if diff := gocmp.Diff(want, challenges(t, res)); diff != "" || res.StatusCode != http.StatusUnauthorized {
		t.Error(res.StatusCode, diff)
	}
	for path, resource := range map[string]string{"": "", "/mcp": "/mcp"} {
		m := musttest.Get(oauthex.GetProtectedResourceMetadata(t.Context(), v.url+wellKnown+path, v.url+resource, http.DefaultClient))(t)
		want := &oauthex.ProtectedResourceMetadata{
			Resource: v.url + resource, AuthorizationServers: []string{"https://login.example.com/realms/acme"},
			ScopesSupported: []string{"skills:read", "skills:invoke"}, BearerMethodsSupported: []string{"header"}, ResourceName: "openSkill",
		}
		if diff := gocmp.Diff(want, m); diff != "" {
			t.Error(diff)
		}
	}
	if res, _ := v.ask(t, http.MethodGet, wellKnown+"/console"); res.StatusCode != http.StatusNotFound {
		t.Errorf("the metadata of a resource that is none: %d", res.StatusCode)
	}
	if res, _ := v.ask(t, http.MethodGet, "/skills"); challenges(t, res)["resource_metadata"] != "" {
		t.Error("another path leads to the metadata of /mcp")
	}
}

// TestNamesMissingScopes: a caller without a scope is told which one to ask for.
func TestNamesMissingScopes(t *testing.T) {
	s := settings(t, map[string]string{
		"auth": "required", "http-base-url": "https://skills.example.com",
		"jwt-jwks": noKeySet, "jwt-issuer": "https://login.example.com", "jwt-audience": "openskill",
	})
	v := serve(t, s)
	_, key, err := ManageKeys(v.host.kept.db, skill.Local()).Create(t.Context(), identity.NewKey{Name: "n", Tenant: "acme", Scopes: []string{skill.ScopeExecutions}, By: "test"})
	musttest.Do(t, err)
	for path, want := range map[string]map[string]string{
		"/mcp":                   {"error": "insufficient_scope", "scope": "skills:read skills:invoke", "resource_metadata": "https://skills.example.com/.well-known/oauth-protected-resource/mcp"},
		`/skills/x":invoke`:      {"error": "insufficient_scope", "scope": "skills:invoke"},
		"/api/agent/execute":     {"error": "insufficient_scope", "scope": "agent:run"},
		"/skills/echo:rollback/": {"error": "insufficient_scope", "scope": "skills:upload"},
	} {
		res, body := v.ask(t, http.MethodPost, strings.ReplaceAll(path, `"`, "%22"), "Authorization", "Bearer "+key)
		if diff := gocmp.Diff(want, challenges(t, res)); diff != "" || res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d %s%s", path, res.StatusCode, body, diff)
		}
	}
}

// TestHostHeaderChoosesNoAddress: what a client is told is the operator's word.
func TestHostHeaderChoosesNoAddress(t *testing.T) {
	for name, c := range map[string]struct{ base, issuer, roles, metadata string }{
		"a base address":         {"https://skills.example.com", "", "", "https://skills.example.com/.well-known/oauth-protected-resource/mcp"},
		"one with a path":        {"https://example.com/skills/", "", "", "https://example.com/.well-known/oauth-protected-resource/skills/mcp"},
		"with roles":             {"https://skills.example.com", "", "staff=skills:read", "https://skills.example.com/.well-known/oauth-protected-resource/mcp"},
		"no base address":        {"", "", "", ""},
		"an issuer without one":  {"https://skills.example.com", "login.example.com", "", ""},
		"an issuer without TLS":  {"https://skills.example.com", "http://login.example.com", "", ""},
		"an issuer with a query": {"https://skills.example.com", "https://login.example.com/?x=y", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := serve(t, settings(t, map[string]string{
				"auth": "required", "jwt-jwks": noKeySet, "jwt-issuer": cmp.Or(c.issuer, "https://login.example.com"), "jwt-audience": "openskill",
				"http-base-url": c.base, "jwt-roles": c.roles,
			}))
			for _, host := range []string{"evil.example", "192.0.2.1", "localhost", strings.TrimPrefix(v.url, "http://")} {
				res, body := v.ask(t, http.MethodPost, "/mcp", "Host", host, "X-Forwarded-Host", "evil.example", "Forwarded", "host=evil.example")
				if got := challenges(t, res)["resource_metadata"]; got != c.metadata || strings.Contains(body, "evil") {
					t.Errorf("%s is told %q, want %q; %s", host, got, c.metadata, body)
				}
				path := "/.well-known/oauth-protected-resource/mcp"
				if i := strings.Index(c.metadata, "/.well"); i > 0 {
					path = c.metadata[i:]
				}
				res, body = v.ask(t, http.MethodGet, path, "Host", host, "X-Forwarded-Host", "evil.example")
				switch {
				case strings.Contains(body, host) && res.StatusCode == http.StatusOK, strings.Contains(body, "evil"):
					t.Errorf("%s is told %s", host, body)
				case host != "evil.example" && (res.StatusCode == http.StatusOK) != (c.metadata != ""):
					t.Errorf("%s: %d %s", host, res.StatusCode, body)
				case res.StatusCode == http.StatusOK && (strings.Contains(body, "skills:read") != (c.roles == "") || strings.Contains(body, "openid") == (c.roles == "")):
					t.Errorf("where roles give scopes, clients ask the provider for its own: %s", body)
				}
			}
		})
	}
}
