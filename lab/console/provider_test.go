package console

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	mcpauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"

	"openskill/host/app/hosttest"
	"openskill/sdk/skill"
)

const clientID = "console"

// identityProvider starts a real OpenID provider at a host with one client. Where jwt holds, its access
// tokens are JWTs for that client, too; else they mean nothing to others.
func identityProvider(t *testing.T, host, secret, redirect string, jwt bool) (issuer string) {
	t.Helper()
	var listen net.ListenConfig
	ln, err := listen.Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil && host != "127.0.0.1" {
		t.Skipf("this machine has no second address of its own: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	issuer = "http://" + ln.Addr().String()
	client := storage.WebClient(clientID, secret, redirect)
	if secret == "" {
		client = storage.NativeClient(clientID, redirect)
	}
	kept := storage.NewStorageWithClients(storage.NewUserStore(issuer), map[string]*storage.Client{clientID: client})
	server := httptest.NewUnstartedServer(exampleop.SetupServer(issuer, &issuing{kept, jwt}, nil, false))
	_ = server.Listener.Close()
	server.Listener = ln
	server.Start()
	t.Cleanup(server.Close)
	return issuer
}

// issuing is a storage whose client gets other tokens.
type issuing struct {
	*storage.Storage
	jwt bool
}

func (s *issuing) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := s.Storage.GetClientByClientID(ctx, id)
	return issued{c, s.jwt}, err
}

type issued struct {
	op.Client
	jwt bool
}

func (c issued) IDTokenUserinfoClaimsAssertion() bool { return true }

func (c issued) AccessTokenType() op.AccessTokenType {
	if c.jwt {
		return op.AccessTokenTypeJWT
	}
	return op.AccessTokenTypeBearer
}

// visiting is a host, its provider and a browser.
type visiting struct {
	*serving
	issuer  string
	browser *http.Client
	seen    []string // the addresses that the browser went to
}

func visit(t *testing.T, providerHost, secret string, jwt bool, more map[string]string) *visiting {
	t.Helper()
	address := hosttest.FreePort(t)
	base := "http://" + address
	v := &visiting{issuer: identityProvider(t, providerHost, secret, base+"/console/signin/callback", jwt)}
	flags := map[string]string{
		"listen": address, "http-base-url": base, "auth": "required", "oidc-client-id": clientID,
		"jwt-issuer": v.issuer, "jwt-jwks": v.issuer + "/keys", "jwt-audience": clientID,
		"jwt-tenant": "acme", "jwt-roles": "*=skills:read,executions:read",
	}
	for k, text := range more {
		flags[k] = text
	}
	v.serving = prepare(t, flags)
	v.write(t, map[string]string{"echo/skill.yaml": echo("echo"), "echo/m.wasm": string(says(`{"echoed": "x"}`))})
	v.start(t, flags, "OPENSKILL_OIDC_CLIENT_SECRET="+secret)
	v.newBrowser(t)
	return v
}

func (v *visiting) newBrowser(t *testing.T) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v.browser = &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		v.seen = append(v.seen, r.URL.String())
		return nil
	}}
}

func (v *visiting) get(t *testing.T, address string) (*http.Response, string) {
	t.Helper()
	return v.do(t, http.MethodGet, address, nil)
}

func (v *visiting) do(t *testing.T, method, address string, form url.Values) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := v.browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

var (
	signInAt    = regexp.MustCompile(`href="([^"]+/console/signin/provider[^"]*)"`)
	authRequest = regexp.MustCompile(`name="id" value="([^"]+)"`)
)

// begin goes to the page of the provider, and gives the id of what it asks there.
func (v *visiting) begin(t *testing.T, next string) (id string) {
	t.Helper()
	_, page := v.get(t, v.url+"/console/signin?next="+url.QueryEscape(next))
	link := signInAt.FindStringSubmatch(page)
	if link == nil {
		t.Fatalf("the page leads to no provider: %s", page)
	}
	_, page = v.get(t, strings.ReplaceAll(link[1], "&amp;", "&"))
	ask := authRequest.FindStringSubmatch(page)
	if ask == nil {
		t.Fatalf("the provider does not ask: %s", page)
	}
	return ask[1]
}

// password answers the provider, which sends the browser back.
func (v *visiting) password(t *testing.T, id string) (*http.Response, string) {
	t.Helper()
	return v.do(t, http.MethodPost, v.issuer+"/login/username", url.Values{"id": {id}, "username": {"test-user@127.0.0.1"}, "password": {"verysecure"}})
}

// TestSignsInByOpenIDConnect signs in at a real provider, with and without a client secret,
// by access tokens and by id tokens.
func TestSignsInByOpenIDConnect(t *testing.T) {
	for name, c := range map[string]struct {
		secret string
		jwt    bool
	}{
		"id token":      {"a client secret", false},
		"access token":  {"a client secret", true},
		"public client": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			v := visit(t, "127.0.0.1", c.secret, c.jwt, nil)
			res, page := v.password(t, v.begin(t, "/console/skills?q=x"))
			if res.StatusCode != http.StatusOK || !strings.Contains(page, `content="0; url=/console/skills?q=x"`) {
				t.Fatalf("%d %s", res.StatusCode, page)
			}
			var session *http.Cookie
			for _, cookie := range res.Cookies() {
				if !strings.HasSuffix(cookie.Name, "-signin") {
					session = cookie
				} else if cookie.MaxAge >= 0 {
					t.Errorf("the attempt stays: %v", cookie)
				}
			}
			if session == nil || !session.HttpOnly || session.SameSite != http.SameSiteStrictMode {
				t.Errorf("the session is %v", session)
			}
			if res, page := v.get(t, v.url+"/console/skills"); res.StatusCode != http.StatusOK || !strings.Contains(page, `title="id1"`) || strings.Contains(page, "/console/keys") {
				t.Errorf("%d %s", res.StatusCode, page)
			}
			asked := 0
			for _, address := range v.seen {
				u, err := url.Parse(address)
				if err != nil {
					t.Fatal(err)
				}
				q := u.Query()
				if q.Get("response_type") != "code" {
					continue
				}
				asked++
				if len(q.Get("code_challenge")) != 43 || q.Get("code_challenge_method") != "S256" || len(q.Get("state")) != 43 || len(q.Get("nonce")) != 43 || q.Get("client_id") != clientID || q.Get("state") == q.Get("nonce") {
					t.Errorf("asked by %s", address)
				}
			}
			if asked != 1 {
				t.Errorf("asked %d times: %v", asked, v.seen)
			}
		})
	}
}

// TestRefusesForeignCallbacks: an answer of the provider is good once, and in the browser
// that asked.
func TestRefusesForeignCallbacks(t *testing.T) {
	v := visit(t, "127.0.0.1", "a client secret", false, nil)
	id := v.begin(t, "/console")
	victim := v.browser
	v.newBrowser(t)
	v.seen = nil
	if res, page := v.password(t, id); res.StatusCode != http.StatusUnauthorized || !strings.Contains(page, "began in another browser") {
		t.Errorf("another browser: %d %s", res.StatusCode, page)
	}
	callback := v.seen[len(v.seen)-1]
	if u, err := url.Parse(callback); err != nil || u.Path != "/console/signin/callback" || u.Query().Get("code") == "" {
		t.Fatal(callback, err)
	}
	begun := v.browser
	v.begin(t, "/console")
	if res, page := v.get(t, callback); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the answer to another attempt: %d %s", res.StatusCode, page)
	}
	v.browser = victim
	if res, page := v.get(t, strings.Replace(callback, "code=", "code=x", 1)); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("another code: %d %s", res.StatusCode, page)
	}
	if res, page := v.get(t, callback); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the attempt is used up: %d %s", res.StatusCode, page)
	}
	for _, b := range []*http.Client{victim, begun} {
		v.browser = b
		if res, _ := v.get(t, v.url+"/console/skills"); res.Request.URL.Path != "/console/signin" {
			t.Errorf("a session has begun: %s", res.Request.URL)
		}
	}
}

// TestRefusesTokensForOthers: who the provider knows is let in by a token for this host alone.
func TestRefusesTokensForOthers(t *testing.T) {
	for name, more := range map[string]map[string]string{
		"another audience": {"jwt-audience": "another"},
		"no tenant":        {"jwt-tenant": ""},
	} {
		v := visit(t, "127.0.0.1", "a client secret", true, more)
		res, page := v.password(t, v.begin(t, "/console"))
		if res.StatusCode != http.StatusForbidden || !strings.Contains(page, "does not accept its tokens") {
			t.Errorf("%s: %d %s", name, res.StatusCode, page)
		}
		if res, _ := v.get(t, v.url+"/console/skills"); res.Request.URL.Path != "/console/signin" {
			t.Errorf("%s: a session has begun", name)
		}
	}
}

// TestKeysSignInWhileTheProviderIsAway: the host starts, and says what is wrong.
func TestKeysSignInWhileTheProviderIsAway(t *testing.T) {
	flags := map[string]string{
		"auth": "required", "oidc-client-id": clientID, "jwt-issuer": "http://127.0.0.1:1", "jwt-jwks": "http://127.0.0.1:1/keys", "jwt-audience": clientID,
		"http-base-url": "http://127.0.0.1:1234",
	}
	v := &visiting{serving: prepare(t, flags)}
	_, made := v.keysOf(t, map[string][]string{"n": {skill.ScopeRead}})
	v.start(t, flags)
	v.newBrowser(t)
	res, page := v.get(t, v.url+"/console/signin/provider")
	if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(page, "identity provider") || !strings.Contains(page, "API key or JWT") {
		t.Errorf("%d %s", res.StatusCode, page)
	}
	if res, page := v.do(t, http.MethodPost, v.url+"/console/signin", url.Values{"credential": {made["n"].text}}); res.StatusCode != http.StatusOK || res.Request.URL.Path != "/console/skills" {
		t.Errorf("%d %s", res.StatusCode, page)
	}
}

// TestSignsInWithABrowser: to a browser the provider is another site, which cookies and the
// policies of pages depend on.
func TestSignsInWithABrowser(t *testing.T) {
	v := visit(t, "127.0.0.2", "a client secret", false, nil)
	b := openBrowser(t, v.url)
	b.open("/console/skills?q=x")
	b.run("go to the provider", chromedp.Click("//main//a[contains(., 'Sign in at')]"), chromedp.WaitVisible(chromedp.CSS("#password")))
	b.fill("#username", "test-user@127.0.0.2")
	b.fill("#password", "verysecure")
	b.run("sign in", chromedp.Click("//button"))
	b.waits(".who .name", "Test User")
	b.waits("h1", "Skills")
	if at, err := chromedp.Run(b.ctx, chromedp.Location()); err != nil || at != v.url+"/console/skills?q=x" {
		t.Error(at, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.seen {
		if !strings.HasPrefix(text, "a request to "+v.issuer+"/") {
			t.Error(text)
		}
	}
}

// TestMCPClientSignsIn connects the official client, which knows the address of /mcp and no
// token: the host tells it where to get one.
func TestMCPClientSignsIn(t *testing.T) {
	v := visit(t, "127.0.0.1", "a client secret", true, nil)
	callback := v.url + "/console/signin/callback" // which is the client's here
	v.browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), callback) {
			return http.ErrUseLastResponse
		}
		return nil
	}
	signIn := func(_ context.Context, args *mcpauth.AuthorizationArgs) (*mcpauth.AuthorizationResult, error) {
		_, page := v.get(t, args.URL)
		ask := authRequest.FindStringSubmatch(page)
		if ask == nil {
			return nil, fmt.Errorf("the provider does not ask: %s", page)
		}
		res, _ := v.password(t, ask[1])
		back, err := res.Location()
		if err != nil {
			return nil, err
		}
		return &mcpauth.AuthorizationResult{Code: back.Query().Get("code"), State: back.Query().Get("state")}, nil
	}
	handler, err := mcpauth.NewAuthorizationCodeHandler(&mcpauth.AuthorizationCodeHandlerConfig{
		PreregisteredClient:      &oauthex.ClientCredentials{ClientID: clientID, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: "a client secret"}},
		RedirectURL:              callback,
		AuthorizationCodeFetcher: signIn,
	})
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: v.url + "/mcp", OAuthHandler: handler}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, err := session.ListTools(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
