package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"openskill/host/identity"
	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// fake is a host behind a console: answers of its API by method and path, and callers.
type fake struct {
	*Console
	db    *store.DB
	keys  *identity.Keys
	shown map[string]string // what callers show, by their names
	who   map[string]string // their names, by the ids of their principals

	mu      sync.Mutex
	now     time.Time
	answers map[string]string // "GET /skills" to a body, with a status before it if it is not 200
	asked   []string          // requests of the API: who, method, path and query, body
	down    bool              // no key can be looked up
}

func (f *fake) api(_ context.Context, p skill.Principal, r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(b)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, f.who[p.ID]+" "+r.Method+" "+r.URL.RequestURI()+" "+body)
	text, ok := f.answers[r.Method+" "+r.URL.Path]
	status := 200
	if !ok {
		status, text = 404, `{"error":{"code":"NOT_FOUND","status":404,"message":"there is no such thing"}}`
	} else if _, err := fmt.Sscanf(text, "%d ", &status); err == nil {
		_, text, _ = strings.Cut(text, " ")
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, ContentLength: int64(len(text)), Body: io.NopCloser(strings.NewReader(text))}, nil
}

// stalling are keys that cannot be looked up when the test says so.
type stalling struct {
	identity.KeyStore
	f *fake
}

func (s stalling) Changes(ctx context.Context, after uint64, most int) ([]string, uint64, error) {
	s.f.mu.Lock()
	down := s.f.down
	s.f.mu.Unlock()
	if down {
		return nil, 0, errors.New("the database is down")
	}
	return s.KeyStore.Changes(ctx, after, most)
}

const jwtSecret = "a secret of a test, of 32 bytes or more"

// open makes a console whose callers are "operator" with all scopes, "reader" of tenant acme with
// those to read, "other" of tenant globex, and "nothing" without a scope for a page.
func open(t testing.TB, change func(*Options)) *fake {
	t.Helper()
	return openOn(t, storetest.SQLite(t), change)
}

func openOn(t testing.TB, db *store.DB, change func(*Options)) *fake {
	t.Helper()
	f := &fake{
		now: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC), answers: map[string]string{}, db: db,
		shown: map[string]string{}, who: map[string]string{}, keys: identity.NewKeys(identity.NewKeyStore(db)),
	}
	now := func() time.Time { f.mu.Lock(); defer f.mu.Unlock(); return f.now }
	callers, err := identity.New(identity.Options{Keys: stalling{identity.NewKeyStore(db), f}, Secret: jwtSecret, Log: slog.New(slog.DiscardHandler), Now: now})
	musttest.Do(t, err)
	t.Cleanup(func() { _ = callers.Close() }) // it notes when keys were used
	f.addKey(t, "operator", "acme", skill.Scopes()...)
	f.addKey(t, "reader", "acme", skill.ScopeRead, skill.ScopeExecutions)
	f.addKey(t, "other", "globex", skill.ScopeRead, skill.ScopeAllExecutions)
	f.addKey(t, "nothing", "acme", skill.ScopeMetrics)
	o := Options{
		API: f.api, DB: db, Callers: callers, Recent: records.NewWindow(records.WindowOptions{}), Tail: records.NewTail(false), Version: "0.1.0", Now: now,
	}
	if change != nil {
		change(&o)
	}
	if f.Console, err = New(o); err != nil {
		t.Fatal(err)
	}
	return f
}

// addKey makes an API key.
func (f *fake) addKey(t testing.TB, name, tenant string, scopes ...string) {
	t.Helper()
	_, text, err := f.keys.Create(t.Context(), identity.NewKey{Name: name, Tenant: tenant, Scopes: scopes, Life: identity.Never, By: "test"})
	musttest.Do(t, err)
	f.shown[name] = text
	f.who[f.principal(name)] = "key:" + name
}

// tokenLife is less than a session may be idle.
const tokenLife = 30 * time.Minute

// addToken makes a JWT of a person.
func (f *fake) addToken(t testing.TB, name, subject, tenant string, scopes ...string) {
	t.Helper()
	claims := jwt.MapClaims{"sub": subject, "tenant": tenant, "scope": strings.Join(scopes, " "), "exp": f.now.Add(tokenLife).Unix(), "jti": name}
	text := musttest.Get(jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(jwtSecret)))(t)
	f.shown[name], f.who[subject] = text, subject
}

// id is that of a key.
func (f *fake) id(name string) string {
	id, _ := identity.ParseKeyID(f.shown[name])
	return id
}

// principal is the id of a key's principal.
func (f *fake) principal(name string) string { return "key:" + f.id(name) }

// revoke ends a key, as its host learns within a second.
func (f *fake) revoke(t testing.TB, name string) {
	t.Helper()
	musttest.Get(f.keys.Revoke(t.Context(), f.id(name)))(t)
	f.pass(time.Second)
}

// pass has time go by.
func (f *fake) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

// signed is the number of sessions.
func (f *fake) signed(t testing.TB) (n int) {
	t.Helper()
	musttest.Do(t, f.db.Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM console_sessions").Scan(&n))
	return n
}

// visitor is a browser without scripts.
type visitor struct {
	f      *fake
	host   string
	cookie *http.Cookie
	csrf   string
	header http.Header
}

var tokenOf = regexp.MustCompile(`data-csrf="([^"]*)"`)

func (v *visitor) do(t testing.TB, method, path, contentType, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Host = v.host
	if v.host == "" {
		r.Host = "localhost:8000"
	}
	r.Header.Set("Content-Type", contentType)
	for k, values := range v.header {
		r.Header[k] = values
	}
	if v.cookie != nil {
		r.AddCookie(v.cookie)
	}
	w := httptest.NewRecorder()
	v.f.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if v.cookie = c; c.MaxAge < 0 {
			v.cookie = nil
		}
	}
	if m := tokenOf.FindStringSubmatch(w.Body.String()); m != nil && m[1] != "" {
		v.csrf = m[1]
	}
	return w
}

func (v *visitor) get(t testing.TB, path string) *httptest.ResponseRecorder {
	t.Helper()
	return v.do(t, "GET", path, "", "")
}

// post sends a form with the token of the session.
func (v *visitor) post(t testing.TB, path string, pairs ...string) *httptest.ResponseRecorder {
	t.Helper()
	form := url.Values{"csrf": {v.csrf}}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return v.do(t, "POST", path, "application/x-www-form-urlencoded", form.Encode())
}

// signedIn is a visitor who shows what a caller shows, and has seen a page.
func (f *fake) signedIn(t testing.TB, name string) *visitor {
	t.Helper()
	v := &visitor{f: f}
	if w := v.post(t, "/console/signin", "credential", f.shown[name]); w.Code != 303 || v.cookie == nil {
		t.Fatalf("signing in: %d %s", w.Code, w.Body)
	}
	v.get(t, "/console/nothing-here")
	if v.csrf == "" {
		t.Fatal("no page has a token")
	}
	return v
}
