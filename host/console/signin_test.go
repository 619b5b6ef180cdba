package console

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"openskill/host/internal/gate"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestSigningIn(t *testing.T) {
	f := open(t, nil)
	v := &visitor{f: f}
	if w := v.get(t, "/console/skills?q=a"); w.Code != 303 || w.Header().Get("Location") != "/console/signin?next=%2Fconsole%2Fskills%3Fq%3Da" {
		t.Errorf("without a session: %d %v", w.Code, w.Header())
	}
	for _, wrong := range []string{"", "wrong", strings.Repeat("x", mostCredential+1), "operator reader", f.shown["operator"] + "x"} {
		if w := v.post(t, "/console/signin", "credential", wrong); w.Code != 401 || v.cookie != nil || !strings.Contains(w.Body.String(), "Invalid API key") {
			t.Errorf("%.20q: %d %v", wrong, w.Code, v.cookie)
		}
	}
	w := v.post(t, "/console/signin", "credential", " "+f.shown["operator"]+" ", "next", "/console/skills?q=a")
	if w.Code != 303 || w.Header().Get("Location") != "/console/skills?q=a" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	c := v.cookie
	if c.Name != "openskill-8000" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/console" || len(c.Value) != 43 {
		t.Errorf("cookie %+v", c)
	}
	if w := v.get(t, "/console/signin"); w.Code != 303 || w.Header().Get("Location") != "/console" {
		t.Errorf("signed in, and asked again: %d", w.Code)
	}
	v.get(t, "/console/x")
	if w := v.post(t, "/console/signout"); w.Code != 303 || v.cookie != nil {
		t.Errorf("signing out: %d %v", w.Code, v.cookie)
	}
	v.cookie = c
	if w := v.get(t, "/console/skills"); w.Code != 303 {
		t.Errorf("the session is over, and its cookie good: %d", w.Code)
	}
}

func TestOverHTTPS(t *testing.T) {
	f := open(t, func(o *Options) { o.Origins = []string{"https://skills.example"} })
	v := &visitor{f: f, host: "skills.example"}
	v.post(t, "/console/signin", "credential", f.shown["operator"])
	if c := v.cookie; c == nil || c.Name != "__Host-openskill" || !c.Secure || c.Path != "/" {
		t.Errorf("cookie %+v", c)
	}
	// A header that anybody can send does not make it so.
	v = &visitor{f: f, host: "localhost:8000", header: http.Header{"X-Forwarded-Proto": {"https"}}}
	v.post(t, "/console/signin", "credential", f.shown["operator"])
	if c := v.cookie; c == nil || c.Secure {
		t.Errorf("cookie %+v", c)
	}
}

// After signing in only pages of the console follow.
func TestLocalPaths(t *testing.T) {
	for to, want := range map[string]string{
		"/console/skills?q=a": "/console/skills?q=a", "/console": "/console", "/console/": "/console/",
		"": "/console", "https://evil.example": "/console", "//evil.example": "/console", "/\\evil.example": "/console", "\\\\evil.example": "/console",
		"/console/../docs": "/console", "/console/%2e%2e/docs": "/console", "/consoles": "/console", "/docs": "/console", "javascript:alert(1)": "/console",
		"/console\r\nX: y": "/console", "http:/console": "/console", "/console//evil": "/console", "///console": "/console",
	} {
		if got := localPath(to); got != want {
			t.Errorf("%q: %q, want %q", to, got, want)
		}
	}
}

func TestTooManyAttempts(t *testing.T) {
	f := open(t, nil)
	f.attempts.late = time.Millisecond
	v := &visitor{f: f}
	for i := range triesEach {
		if w := v.post(t, "/console/signin", "credential", "wrong"); w.Code != 401 {
			t.Fatalf("attempt %d: %d", i, w.Code)
		}
	}
	if w := v.post(t, "/console/signin", "credential", "wrong"); w.Code != 429 || w.Header().Get("Retry-After") == "" || v.cookie != nil {
		t.Errorf("one more: %d", w.Code)
	}
	// A good one is not kept out by those of the same address that fail.
	for range 2 * triesEach {
		if w := (&visitor{f: f}).post(t, "/console/signin", "credential", f.shown["operator"]); w.Code != 303 {
			t.Fatalf("a good key: %d", w.Code)
		}
	}
	f.pass(trySeconds * time.Second)
	for _, want := range []int{401, 429} {
		if w := v.post(t, "/console/signin", "credential", "wrong"); w.Code != want {
			t.Errorf("a little later: %d, want %d", w.Code, want)
		}
	}
}

// Failures from many addresses do not make the host forget those of others.
func TestFailuresOfOneNetworkAreForgottenFirst(t *testing.T) {
	f := open(t, nil)
	a := newAttempts(f.o.Now)
	a.late = time.Millisecond
	from := func(address string) *http.Request {
		r := httptest.NewRequest("POST", "/", nil)
		r.RemoteAddr = address
		return r
	}
	for range triesEach {
		a.failed(from("192.0.2.1:1"))
	}
	for i := range 3 * mostTracked {
		f.pass(time.Microsecond)
		a.failed(from(fmt.Sprintf("10.0.%d.%d:1", i/256, i%256)))
	}
	if len(a.each) > mostTracked/4+1 {
		t.Errorf("%d addresses are kept", len(a.each))
	}
	if !a.failed(from("192.0.2.1:2")) {
		t.Error("the failures of another network are forgotten")
	}
	for range triesEach {
		a.failed(from("[2001:db8::1]:1"))
	}
	if !a.failed(from("[2001:db8::2]:1")) {
		t.Error("a neighbour's address of IPv6 counts anew")
	}
}

// The answer to one too many waits, and only so many do.
func TestFailuresWait(t *testing.T) {
	f := open(t, nil)
	a := newAttempts(f.o.Now)
	a.late = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan bool, 2*mostWaiting)
	request := httptest.NewRequest("POST", "/", nil).WithContext(ctx)
	for range triesEach {
		a.failed(request)
	}
	for range 2 * mostWaiting {
		go func() { over <- a.failed(request) }()
	}
	for range 2*mostWaiting - 42 { // an address has 42 of 64 places
		<-over
	}
	if waiting, _, _, _ := a.waiting.Load(); waiting != 42 {
		t.Errorf("%d wait", waiting)
	}
	cancel() // their clients leave
	for range 42 {
		if !<-over {
			t.Error("it is not one too many")
		}
	}
}

// A session ends when its key does, when nobody was there for long, and after a time.
func TestSessionsEnd(t *testing.T) {
	f := open(t, nil)
	down := func(is bool) {
		f.mu.Lock()
		f.down = is
		f.mu.Unlock()
		f.pass(time.Second)
	}
	v := f.signedIn(t, "reader")
	f.pass(59 * time.Minute)
	if w := v.get(t, "/console/x"); w.Code != 404 {
		t.Errorf("within the hour: %d", w.Code)
	}
	down(true)
	if w := v.get(t, "/console/x"); w.Code != 503 {
		t.Errorf("when keys cannot be reached: %d", w.Code)
	}
	down(false)
	if w := v.get(t, "/console/x"); w.Code != 404 {
		t.Errorf("that has ended the session: %d", w.Code)
	}
	f.pass(time.Hour)
	if w := v.get(t, "/console/x"); w.Code != 303 {
		t.Errorf("after an hour of silence: %d", w.Code)
	}
	v = f.signedIn(t, "reader")
	for range 12*2 - 1 {
		f.pass(30 * time.Minute)
		if w := v.get(t, "/console/x"); w.Code != 404 {
			t.Fatalf("while somebody is there: %d", w.Code)
		}
	}
	f.pass(30 * time.Minute)
	if w := v.get(t, "/console/x"); w.Code != 303 {
		t.Errorf("after twelve hours: %d", w.Code)
	}
	v = f.signedIn(t, "reader")
	f.revoke(t, "reader")
	if w := v.get(t, "/console/x"); w.Code != 303 || f.signed(t) != 0 {
		t.Errorf("the key is revoked, and the session goes on: %d, %d", w.Code, f.signed(t))
	}
}

// A session of a rotated key lasts as long as the key's old text is good.
func TestSessionsEndWithTheTextOfTheirKey(t *testing.T) {
	f := open(t, nil)
	f.pass(time.Since(f.now)) // to the clock of the database, by which keys are rotated
	v := f.signedIn(t, "reader")
	if _, _, err := f.keys.Rotate(t.Context(), f.id("reader"), 0); err != nil {
		t.Fatal(err)
	}
	f.pass(time.Second)
	if w := v.get(t, "/console/x"); w.Code != 303 || f.signed(t) != 0 {
		t.Errorf("the key was rotated, and the session goes on: %d, %d", w.Code, f.signed(t))
	}
}

// Who reads the rows of sessions can neither take one over nor learn what somebody has shown.
func TestRowsOfSessionsOpenNothing(t *testing.T) {
	f := open(t, nil)
	f.addToken(t, "ann's", "ann", "acme", skill.ScopeRead)
	for _, name := range []string{"operator", "ann's"} {
		v := f.signedIn(t, name)
		secrets := []string{v.cookie.Value, v.csrf, f.shown[name], f.shown[name][len(f.shown[name])-40:]}
		rows, err := store.All(t.Context(), f.db.Read, func(rows *sql.Rows) (row [2][]byte, err error) { return row, rows.Scan(&row[0], &row[1]) },
			"SELECT id, credential FROM console_sessions")
		if err != nil || len(rows) == 0 {
			t.Fatal(rows, err)
		}
		for _, row := range rows {
			for _, secret := range secrets {
				if bytes.Contains(row[0], []byte(secret)) || bytes.Contains(row[1], []byte(secret)) {
					t.Errorf("%s: %.8s… is in the row", name, secret)
				}
			}
			for _, made := range []string{string(row[0]), base64.RawURLEncoding.EncodeToString(row[0])} {
				if s, err := f.sessions.read(t.Context(), made); s != nil || err != nil {
					t.Errorf("%s: the id of a row is the name of a session: %v", name, err)
				}
			}
		}
		// With the name too, a key does not come out of it, and a row is of no use in the place of another.
		s, err := f.sessions.read(t.Context(), v.cookie.Value)
		if err != nil || s == nil || name == "operator" && strings.Contains(s.credential, "osk_") {
			t.Errorf("%s: %v", name, err)
		}
		musttest.Get(f.db.Exec(t.Context(), "UPDATE console_sessions SET credential = $1", rows[0][1]))(t)
	}
	v := f.signedIn(t, "reader")
	musttest.Get(f.db.Exec(t.Context(), "UPDATE console_sessions SET credential = (SELECT credential FROM console_sessions WHERE id <> $1 LIMIT 1) WHERE id = $1", rowOf(v.cookie.Value)))(t)
	if w := v.get(t, "/console/x"); w.Code != 303 {
		t.Errorf("with the credential of another session: %d", w.Code)
	}
}

// A session that began where nobody was asked is nobody's where callers must be known.
func TestSessionsOfAnOpenHost(t *testing.T) {
	f := open(t, func(o *Options) { o.Callers, o.Operator = nil, skill.Local() })
	v := &visitor{f: f}
	v.get(t, "/console/x")
	asks := openOn(t, f.db, nil)
	v.f = asks
	if w := v.get(t, "/console/x"); w.Code != 303 || asks.signed(t) != 0 {
		t.Errorf("%d, %d sessions", w.Code, asks.signed(t))
	}
}

// Two hosts on one database: a session of one is known to the other, and ends on both.
func TestTwoHostsShareSessions(t *testing.T) {
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) (open func() *store.DB)) {
		database := fresh(t)
		one, two := openOn(t, database(), nil), openOn(t, database(), nil)
		two.answers["POST /skills/echo:disable"] = `{"id":"echo","version":"1.0.0","digest":"","state":"disabled"}`
		v := one.signedIn(t, "operator")
		on := func(f *fake) *visitor { v.f = f; return v }
		two.who[one.principal("operator")] = "key:operator"
		if w := on(two).get(t, "/console/x"); w.Code != 404 {
			t.Fatalf("a page of the other host: %d", w.Code)
		}
		if w := v.post(t, "/console/skills/echo/disable"); w.Code != 303 || len(two.asked) != 1 || !strings.HasPrefix(two.asked[0], "key:operator ") {
			t.Errorf("a form with the token of the first: %d %q", w.Code, two.asked)
		}
		if w := on(one).get(t, "/console/x"); !strings.Contains(w.Body.String(), "can no longer be called.") {
			t.Error("the first does not say what came of a form of the other")
		}
		cookie := v.cookie
		if w := on(two).post(t, "/console/signout"); w.Code != 303 || v.cookie != nil {
			t.Errorf("signing out: %d", w.Code)
		}
		for _, f := range []*fake{one, two} {
			v.cookie = cookie
			if w := on(f).get(t, "/console/x"); w.Code != 303 {
				t.Errorf("signed out, and let in: %d", w.Code)
			}
		}
		v = one.signedIn(t, "reader")
		one.revoke(t, "reader")
		two.pass(time.Second)
		if w := on(two).get(t, "/console/x"); w.Code != 303 {
			t.Errorf("the key was revoked on the first: %d", w.Code)
		}
	})
}

// Names that were made up take few connections to the database, and requests under way are not held up.
func TestMadeUpCookiesWaitForTheirTurn(t *testing.T) {
	f := open(t, nil)
	v := f.signedIn(t, "reader")
	if _, _, places, queue := f.sessions.looks.Load(); places != mostLookups || queue != lookupsQueued {
		t.Errorf("%d look at once, and %d wait", places, queue)
	}
	f.sessions.looks = gate.New(gate.Options{Places: 1})
	leave := musttest.Get(f.sessions.looks.TryEnter("somebody else"))(t)
	if w := v.get(t, "/console/x"); w.Code != 503 || !strings.Contains(w.Body.String(), "too many concurrent requests") {
		t.Errorf("without a place: %d %s", w.Code, w.Body)
	}
	s, err := f.sessions.read(t.Context(), v.cookie.Value)
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	p, _, err := f.whose(t.Context(), s)
	musttest.Do(t, err)
	under := &view{Console: f.Console, s: s, p: p}
	if err := under.stillGood(t.Context()); err != nil {
		t.Errorf("work under way: %v", err)
	}
	leave()
	v.cookie.Value = random()
	if w := v.get(t, "/console/x"); w.Code != 303 {
		t.Errorf("a made-up name: %d", w.Code)
	}
}

func TestMostSessions(t *testing.T) {
	f := open(t, nil)
	f.sessions.limits.Principal, f.sessions.limits.Total = 2, 3
	var all []*visitor
	for range 3 {
		all = append(all, f.signedIn(t, "reader"))
		f.pass(time.Second)
	}
	for i, want := range []int{303, 404, 404} {
		if w := all[i].get(t, "/console/x"); w.Code != want {
			t.Errorf("session %d of one key: %d, want %d", i, w.Code, want)
		}
	}
	f.signedIn(t, "operator")
	f.signedIn(t, "other")
	if n := f.signed(t); n != 3 {
		t.Errorf("%d sessions", n)
	}
}

// A person who signs in with ever new JWTs is one person, and ends no session of another.
func TestNewCredentialsAreNoNewPerson(t *testing.T) {
	f := open(t, nil)
	admin := f.signedIn(t, "operator")
	for i := range 50 {
		f.addToken(t, fmt.Sprint("jwt", i), "ann", "globex")
		f.pass(time.Millisecond)
		f.signedIn(t, fmt.Sprint("jwt", i))
	}
	if w := admin.get(t, "/console/x"); w.Code != 404 {
		t.Errorf("the session of another is over: %d", w.Code)
	}
	if n := f.signed(t); n != 17 {
		t.Errorf("%d sessions; one principal has 16", n)
	}
}

// Many keys of one tenant end no session of another.
func TestNoTenantEndsSessionsOfAnother(t *testing.T) {
	f := open(t, nil)
	other := f.signedIn(t, "other")
	for i := range 30 {
		key := fmt.Sprint("key", i)
		f.addKey(t, key, "acme", skill.ScopeRead)
		f.pass(time.Millisecond)
		for range 12 {
			f.signedIn(t, key)
		}
	}
	if w := other.get(t, "/console/x"); w.Code != 404 {
		t.Errorf("the session of another tenant is over: %d", w.Code)
	}
	if n := f.signed(t); n != 257 {
		t.Errorf("%d sessions; one tenant has a quarter of 1024", n)
	}
}

// Whose session a request has is known before its body is read.
func TestCallerOf(t *testing.T) {
	f := open(t, nil)
	v := f.signedIn(t, "reader")
	cookie := v.cookie.Name + "=" + v.cookie.Value
	for _, tc := range []struct{ host, cookie, want string }{
		{"localhost:8000", cookie, f.principal("reader")},
		{"localhost:8000", "a=b; " + cookie, f.principal("reader")},
		{"localhost:8001", cookie, ""},
		{"localhost:8000", "", ""},
		{"localhost:8000", v.cookie.Name + "=x", ""},
		{"", cookie, ""},
	} {
		if p := f.CallerOf(t.Context(), "192.0.2.1", tc.host, tc.cookie); p.ID != tc.want {
			t.Errorf("%q with %q is %q, want %q", tc.host, tc.cookie, p.ID, tc.want)
		}
	}
	open := open(t, func(o *Options) { o.Callers, o.Operator = nil, skill.Local() })
	if p := open.CallerOf(t.Context(), "192.0.2.1", "localhost", ""); p.ID != "local" {
		t.Errorf("nobody is asked, and it is %q", p.ID)
	}
}
