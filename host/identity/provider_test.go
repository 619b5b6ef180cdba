package identity_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"openskill/host/identity"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// hostile is an OpenID provider that answers wrongly where a test says so; lab/console/provider_test.go
// has a real one.
type hostile struct {
	*httptest.Server
	discovery map[string]any                                                                 // replaces members
	idToken   func(claims map[string]any)                                                    // changes the id token's
	answer    func(body map[string]any)                                                      // changes what the token endpoint says
	handler   func(w http.ResponseWriter, r *http.Request, normal func(http.ResponseWriter)) // nil: normal
	codes     int
	verifier  string // as the token endpoint got it
	nonce     string // as the page of the provider got it
}

func startHostile(t *testing.T) *hostile {
	t.Helper()
	h := &hostile{}
	mux := http.NewServeMux()
	write := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // the client may have left
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		normal := func(w http.ResponseWriter) {
			says := map[string]any{
				"issuer": h.URL, "authorization_endpoint": h.URL + "/authorize", "token_endpoint": h.URL + "/token", "jwks_uri": h.URL + "/keys",
				"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
			}
			for k, v := range h.discovery {
				says[k] = v
			}
			write(w, says)
		}
		if h.handler != nil {
			h.handler(w, r, normal)
			return
		}
		normal(w)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, jwks(rsaJWK("rsa", &issuerKeys().rsa.PublicKey, `,"alg":"RS256"`)))
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		h.codes++
		h.verifier = r.FormValue("code_verifier")
		now := time.Now().Unix()
		access := "an access token"
		sum := sha256.Sum256([]byte(access))
		claims := map[string]any{"iss": h.URL, "aud": "console", "sub": "ann", "exp": now + 60, "iat": now, "nonce": h.nonce, "at_hash": b64.EncodeToString(sum[:16])}
		if h.idToken != nil {
			h.idToken(claims)
		}
		b, err := json.Marshal(claims)
		if err != nil {
			t.Error(err)
		}
		body := map[string]any{"access_token": access, "token_type": "Bearer", "id_token": token(t, `{"alg":"RS256","kid":"rsa"}`, string(b), issuerKeys().rsa)}
		if h.answer != nil {
			h.answer(body)
		}
		write(w, body)
	})
	h.Server = httptest.NewServer(mux)
	t.Cleanup(h.Close)
	return h
}

func (h *hostile) provider(change func(o *identity.ProviderOptions)) *identity.Provider {
	o := identity.ProviderOptions{Issuer: h.URL, ClientID: "console", Redirect: "http://127.0.0.1/console/signin/callback", Scopes: []string{"openid"}}
	if change != nil {
		change(&o)
	}
	return identity.NewProvider(&o)
}

// begin gives the answer that a good provider sends a browser back with.
func (h *hostile) begin(t *testing.T, p *identity.Provider, attempt string) url.Values {
	t.Helper()
	address := musttest.Get(p.Address(t.Context(), attempt))(t)
	u := musttest.Get(url.Parse(address))(t)
	h.nonce = u.Query().Get("nonce")
	return url.Values{"state": {u.Query().Get("state")}, "code": {"a code"}}
}

const attempt = "a secret of a browser, with 32 bytes at least"

func TestProviderGivesTokens(t *testing.T) {
	h := startHostile(t)
	p := h.provider(nil)
	subject, tokens, err := p.Finish(t.Context(), attempt, h.begin(t, p, attempt))
	if err != nil || subject != "ann" || len(tokens) != 2 || tokens[0] != "an access token" || strings.Count(tokens[1], ".") != 2 {
		t.Error(subject, tokens, err)
	}
	if len(h.verifier) != 43 {
		t.Errorf("the code verifier is %q", h.verifier)
	}
}

// TestRefusesAnswersOfProviders: each answer is wrong in one thing.
func TestRefusesAnswersOfProviders(t *testing.T) {
	k := issuerKeys()
	for name, c := range map[string]struct {
		query   func(q url.Values)
		idToken func(claims map[string]any)
		answer  func(body map[string]any)
		codes   int // that may be used up
	}{
		"no state":                 {query: func(q url.Values) { q.Del("state") }},
		"another state":            {query: func(q url.Values) { q.Set("state", strings.ToLower(q.Get("state"))) }},
		"two states":               {query: func(q url.Values) { q.Add("state", "x") }},
		"two codes":                {query: func(q url.Values) { q.Add("code", "x") }},
		"no code":                  {query: func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }},
		"another issuer (RFC9207)": {query: func(q url.Values) { q.Set("iss", "https://evil.example") }},
		"another nonce":            {idToken: func(m map[string]any) { m["nonce"] = "x" }, codes: 1},
		"no nonce":                 {idToken: func(m map[string]any) { delete(m, "nonce") }, codes: 1},
		"another audience":         {idToken: func(m map[string]any) { m["aud"] = "other" }, codes: 1},
		"another party":            {idToken: func(m map[string]any) { m["aud"], m["azp"] = []string{"other", "console"}, "other" }, codes: 1},
		"another issuer":           {idToken: func(m map[string]any) { m["iss"] = "https://evil.example" }, codes: 1},
		"expired":                  {idToken: func(m map[string]any) { m["exp"] = time.Now().Unix() - 60 }, codes: 1},
		"another access token":     {answer: func(m map[string]any) { m["access_token"] = "another" }, codes: 1},
		"no id token":              {answer: func(m map[string]any) { delete(m, "id_token") }, codes: 1},
		"signed by another key":    {answer: func(m map[string]any) { m["id_token"] = token(t, `{"alg":"RS256","kid":"rsa"}`, good(), k.rsa2) }, codes: 1},
		"signed by the secret":     {answer: func(m map[string]any) { m["id_token"] = token(t, hs, good(), []byte(secret)) }, codes: 1},
		"not signed": {answer: func(m map[string]any) {
			m["id_token"] = b64.EncodeToString([]byte(`{"alg":"none"}`)) + "." + b64.EncodeToString([]byte(good())) + "."
		}, codes: 1},
		"an answer of 2 MiB": {answer: func(m map[string]any) { m["x"] = strings.Repeat("x", 2<<20) }, codes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := startHostile(t)
			h.idToken, h.answer = c.idToken, c.answer
			p := h.provider(func(o *identity.ProviderOptions) { o.ClientSecret = secret })
			q := h.begin(t, p, attempt)
			if c.query != nil {
				c.query(q)
			}
			subject, tokens, err := p.Finish(t.Context(), attempt, q)
			if skill.CodeOf(err) != skill.Unauthorized || subject != "" || tokens != nil || h.codes != c.codes {
				t.Error(subject, tokens, err, h.codes)
			}
		})
	}
	h := startHostile(t)
	p := h.provider(nil)
	if _, _, err := p.Finish(t.Context(), attempt+"x", h.begin(t, p, attempt)); skill.CodeOf(err) != skill.Unauthorized || h.codes > 0 {
		t.Errorf("another attempt: %v", err)
	}
	if _, _, err := p.Finish(t.Context(), "", h.begin(t, p, "")); skill.CodeOf(err) != skill.Unauthorized || h.codes > 0 {
		t.Errorf("no attempt: %v", err)
	}
}

// TestRefusesProviders: what a provider says of itself is wrong, too long or elsewhere.
func TestRefusesProviders(t *testing.T) {
	for name, h := range map[string]struct {
		discovery map[string]any
		handler   func(w http.ResponseWriter, r *http.Request, normal func(http.ResponseWriter))
	}{
		"another issuer":       {discovery: map[string]any{"issuer": "https://evil.example"}},
		"a page without TLS":   {discovery: map[string]any{"authorization_endpoint": "http://login.example/authorize"}},
		"a script as the page": {discovery: map[string]any{"authorization_endpoint": "javascript:alert(1)"}},
		"a token without TLS":  {discovery: map[string]any{"token_endpoint": "http://login.example/token"}},
		"keys without TLS":     {discovery: map[string]any{"jwks_uri": "http://login.example/keys"}},
		"no token endpoint":    {discovery: map[string]any{"token_endpoint": nil}},
		"2 MiB":                {discovery: map[string]any{"x": strings.Repeat("x", 2<<20)}},
		"it leads somewhere else": {handler: func(w http.ResponseWriter, r *http.Request, _ func(http.ResponseWriter)) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}},
		"it fails": {handler: func(w http.ResponseWriter, _ *http.Request, _ func(http.ResponseWriter)) { w.WriteHeader(500) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := startHostile(t)
			s.discovery, s.handler = h.discovery, h.handler
			if address, err := s.provider(nil).Address(t.Context(), attempt); skill.CodeOf(err) != skill.Internal || address != "" {
				t.Error(address, err)
			}
		})
	}
}

// TestAsksProvidersAgain: one that was away is asked again, and not for every visitor.
func TestAsksProvidersAgain(t *testing.T) {
	h := startHostile(t)
	asked, away, now := 0, true, time.Now()
	h.handler = func(w http.ResponseWriter, _ *http.Request, normal func(http.ResponseWriter)) {
		if asked++; away {
			w.WriteHeader(503)
			return
		}
		normal(w)
	}
	p := h.provider(func(o *identity.ProviderOptions) { o.Now = func() time.Time { return now } })
	for range 5 {
		if _, err := p.Address(t.Context(), attempt); skill.CodeOf(err) != skill.Internal {
			t.Error(err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times while it is away", asked)
	}
	away, now = false, now.Add(6*time.Second)
	for range 5 {
		if _, err := p.Address(t.Context(), attempt); err != nil {
			t.Error(err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}
