package console

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/sdk/skill"
)

// elsewhere is a provider that gives out what a test says.
type elsewhere struct {
	subject string
	tokens  []string
	err     error

	mu       sync.Mutex
	attempts []string
	wait     chan struct{} // nil: it answers at once
}

func (e *elsewhere) Name() string { return "login.example" }

func (e *elsewhere) Address(_ context.Context, attempt string) (string, error) {
	e.mu.Lock()
	e.attempts = append(e.attempts, attempt)
	e.mu.Unlock()
	if e.wait != nil {
		<-e.wait
	}
	return "https://login.example/authorize", e.err
}

func (e *elsewhere) Finish(_ context.Context, attempt string, answer url.Values) (string, []string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if attempt == "" || answer.Get("code") != "good" || !strings.Contains(strings.Join(e.attempts, " "), attempt) {
		return "", nil, &skill.Error{Code: skill.Unauthorized, Message: "sign in again"}
	}
	return e.subject, e.tokens, e.err
}

func openElsewhere(t *testing.T, e *elsewhere) *fake {
	t.Helper()
	f := open(t, func(o *Options) {
		o.Provider, o.PublicURL, o.Origins = e, "https://skills.example", []string{"https://skills.example"}
	})
	f.addToken(t, "ann's", "ann", "acme", skill.ScopeRead)
	f.addToken(t, strings.Repeat("x", mostCredential), "ann", "acme", skill.ScopeRead)
	f.addToken(t, "bob's", "bob", "acme", skill.Scopes()...)
	for i, token := range e.tokens {
		if text := f.shown[token]; text != "" {
			e.tokens[i] = text
		}
	}
	return f
}

func TestSigningInElsewhere(t *testing.T) {
	f := openElsewhere(t, &elsewhere{subject: "ann", tokens: []string{"opaque", "ann's"}})
	v := &visitor{f: f, host: "skills.example"}
	if page := v.get(t, "/console/signin?next=/console/skills").Body.String(); !strings.Contains(page, `href="https://skills.example/console/signin/provider?next=%2Fconsole%2Fskills"`) || !strings.Contains(page, "Sign in at login.example") {
		t.Errorf("no way to the provider: %s", page)
	}
	w := v.get(t, startPath+"?next="+url.QueryEscape("/console/skills?q=a"))
	c := v.cookie
	if w.Code != 303 || w.Header().Get("Location") != "https://login.example/authorize" {
		t.Fatal(w.Code, w.Header())
	}
	if c.Name != "__Host-openskill-signin" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 600 || c.Path != "/" {
		t.Errorf("the cookie of the attempt: %+v", c)
	}
	w = v.get(t, CallbackPath+"?code=good&state=x")
	if w.Code != 200 || !strings.Contains(w.Body.String(), `content="0; url=/console/skills?q=a"`) || v.cookie.Name != "__Host-openskill" || v.cookie.SameSite != http.SameSiteStrictMode {
		t.Fatal(w.Code, w.Body, v.cookie)
	}
	f.answers["GET /skills"] = `{"skills":[]}`
	if w := v.get(t, "/console/skills"); w.Code != 200 || !strings.Contains(w.Body.String(), `title="ann"`) {
		t.Errorf("the session is not ann's: %d %s", w.Code, w.Body)
	}
	// The session is one of the token: it ends with it.
	f.pass(tokenLife)
	if w := v.get(t, "/console/skills"); w.Code != 303 {
		t.Errorf("the token is no longer good: %d", w.Code)
	}
}

// TestRefusesTokensOfOthers: a provider says who somebody is, and can hand out neither keys nor
// what is another's.
func TestRefusesTokensOfOthers(t *testing.T) {
	for name, tokens := range map[string][]string{
		"a key":            {"operator"},
		"a key of hers":    {"operator"},
		"another's":        {"bob's"},
		"none":             {"", "  ", "opaque"},
		"one too long":     {strings.Repeat("x", mostCredential)},
		"nothing whatever": nil,
	} {
		e := &elsewhere{subject: "ann", tokens: tokens}
		f := openElsewhere(t, e)
		if name == "a key of hers" {
			e.subject = f.principal("operator")
		}
		v := &visitor{f: f}
		v.get(t, startPath)
		if w := v.get(t, CallbackPath+"?code=good"); w.Code != 403 || f.signed(t) > 0 || !strings.Contains(w.Body.String(), "does not accept its tokens") {
			t.Errorf("%s: %d, %d sessions", name, w.Code, f.signed(t))
		}
	}
}

func TestRefusesAnswersWithoutAnAttempt(t *testing.T) {
	f := openElsewhere(t, &elsewhere{subject: "ann", tokens: []string{"ann's"}})
	f.attempts.late = 0
	v := &visitor{f: f}
	for i := range triesEach + 1 {
		want := http.StatusUnauthorized
		if i == triesEach {
			want = http.StatusTooManyRequests
		}
		v.cookie = &http.Cookie{Name: "openskill-8000-signin", Value: random() + ".x"}
		if i == 0 {
			v.cookie = nil
		}
		if w := v.get(t, CallbackPath+"?code=good"); w.Code != want || f.signed(t) > 0 {
			t.Errorf("%d: %d, want %d", i, w.Code, want)
		}
	}
}

// TestFollowsOwnPagesOnly: a cookie that somebody has made leads nowhere else.
func TestFollowsOwnPagesOnly(t *testing.T) {
	e := &elsewhere{subject: "ann", tokens: []string{"ann's"}}
	f := openElsewhere(t, e)
	for _, next := range []string{"https://evil.example", "//evil.example", "/console/../docs", "javascript:alert(1)", "/console/" + strings.Repeat("x", longestNext)} {
		v := &visitor{f: f}
		v.get(t, startPath+"?next="+url.QueryEscape(next))
		if w := v.get(t, CallbackPath+"?code=good"); w.Code != 200 || !strings.Contains(w.Body.String(), `content="0; url=/console"`) {
			t.Errorf("%.40s: %d %s", next, w.Code, w.Body)
		}
		v.get(t, startPath)
		v.cookie.Value, _, _ = strings.Cut(v.cookie.Value, ".")
		v.cookie.Value += "." + base64.RawURLEncoding.EncodeToString([]byte(next))
		if len(next) > longestNext {
			continue // a page of the console
		}
		if w := v.get(t, CallbackPath+"?code=good"); w.Code != 200 || !strings.Contains(w.Body.String(), `content="0; url=/console"`) {
			t.Errorf("%.40s in the cookie: %d %s", next, w.Code, w.Body)
		}
	}
}

func TestWithoutAProvider(t *testing.T) {
	v := &visitor{f: open(t, nil)}
	for _, path := range []string{startPath, CallbackPath} {
		if w := v.get(t, path); w.Code != 404 || v.cookie != nil {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if page := v.get(t, "/console/signin").Body.String(); strings.Contains(page, "/signin/provider") {
		t.Error("the page leads to a provider that is none")
	}
}

// Only so many ask the provider at once, and one network has only a part of that.
func TestFewAskTheProviderAtOnce(t *testing.T) {
	e := &elsewhere{wait: make(chan struct{})}
	f := openElsewhere(t, e)
	over := make(chan int, 2*mostAsking)
	for range 2 * mostAsking {
		go func() { over <- (&visitor{f: f}).get(t, startPath).Code }()
	}
	for range 2*mostAsking - 10 {
		select {
		case code := <-over:
			if code != http.StatusTooManyRequests {
				t.Fatalf("%d before the provider has answered", code)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("nobody is turned away")
		}
	}
	close(e.wait)
	for range 10 { // two thirds of the places
		if code := <-over; code != http.StatusSeeOther {
			t.Errorf("%d", code)
		}
	}
}
