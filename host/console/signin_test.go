package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"openskill/sdk/skill"
)

func TestSigningIn(t *testing.T) {
	f := open(t, nil)
	v := &visitor{f: f}
	if w := v.get(t, "/console/skills?q=a"); w.Code != 303 || w.Header().Get("Location") != "/console/signin?next=%2Fconsole%2Fskills%3Fq%3Da" {
		t.Errorf("without a session: %d %v", w.Code, w.Header())
	}
	for _, wrong := range []string{"", "wrong", strings.Repeat("x", mostCredential+1), "operator reader"} {
		if w := v.post(t, "/console/signin", "credential", wrong); w.Code != 401 || v.cookie != nil || !strings.Contains(w.Body.String(), "Invalid API key") {
			t.Errorf("%.20q: %d %v", wrong, w.Code, v.cookie)
		}
	}
	w := v.post(t, "/console/signin", "credential", " operator ", "next", "/console/skills?q=a")
	if w.Code != 303 || w.Header().Get("Location") != "/console/skills?q=a" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	c := v.cookie
	if c.Name != "openskill-8000" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/console" || len(c.Value) != 43 {
		t.Errorf("cookie %+v", c)
	}
	if _, kept := fmt.Sprintf("%v", f.sessions.all), c.Value; strings.Contains(fmt.Sprintf("%v", f.sessions.all), kept) {
		t.Error("the name of the session is kept as it is")
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
	v.post(t, "/console/signin", "credential", "operator")
	if c := v.cookie; c == nil || c.Name != "__Host-openskill" || !c.Secure || c.Path != "/" {
		t.Errorf("cookie %+v", c)
	}
	// A header that anybody can send does not make it so.
	v = &visitor{f: f, host: "localhost:8000", header: http.Header{"X-Forwarded-Proto": {"https"}}}
	v.post(t, "/console/signin", "credential", "operator")
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
		if w := (&visitor{f: f}).post(t, "/console/signin", "credential", "operator"); w.Code != 303 {
			t.Fatalf("a good key: %d", w.Code)
		}
	}
	f.now = f.now.Add(trySeconds * time.Second)
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
		f.now = f.now.Add(time.Microsecond)
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
	v := f.signedIn(t, "reader")
	f.now = f.now.Add(59 * time.Minute)
	if w := v.get(t, "/console/x"); w.Code != 404 {
		t.Errorf("within the hour: %d", w.Code)
	}
	f.mu.Lock()
	f.down = true
	f.mu.Unlock()
	if w := v.get(t, "/console/x"); w.Code != 503 {
		t.Errorf("when keys cannot be reached: %d", w.Code)
	}
	f.mu.Lock()
	f.down = false
	f.mu.Unlock()
	if w := v.get(t, "/console/x"); w.Code != 404 {
		t.Errorf("that has ended the session: %d", w.Code)
	}
	f.now = f.now.Add(time.Hour)
	if w := v.get(t, "/console/x"); w.Code != 303 {
		t.Errorf("after an hour of silence: %d", w.Code)
	}
	v = f.signedIn(t, "reader")
	for range 12*2 - 1 {
		f.now = f.now.Add(30 * time.Minute)
		if w := v.get(t, "/console/x"); w.Code != 404 {
			t.Fatalf("while somebody is there: %d", w.Code)
		}
	}
	f.now = f.now.Add(30 * time.Minute)
	if w := v.get(t, "/console/x"); w.Code != 303 {
		t.Errorf("after twelve hours: %d", w.Code)
	}
	v = f.signedIn(t, "reader")
	f.mu.Lock()
	delete(f.keys, "reader")
	f.mu.Unlock()
	if w := v.get(t, "/console/x"); w.Code != 303 || len(f.sessions.all) != 0 {
		t.Errorf("the key is revoked, and the session goes on: %d, %d", w.Code, len(f.sessions.all))
	}
}

func TestMostSessions(t *testing.T) {
	f := open(t, func(o *Options) { o.SessionsEach, o.Sessions = 2, 3 })
	var all []*visitor
	for range 3 {
		all = append(all, f.signedIn(t, "reader"))
		f.now = f.now.Add(time.Second)
	}
	for i, want := range []int{303, 404, 404} {
		if w := all[i].get(t, "/console/x"); w.Code != want {
			t.Errorf("session %d of one key: %d, want %d", i, w.Code, want)
		}
	}
	f.signedIn(t, "operator")
	f.signedIn(t, "other")
	if n := len(f.sessions.all); n != 3 {
		t.Errorf("%d sessions", n)
	}
}

// A person who signs in with ever new JWTs is one person, and ends no session of another.
func TestNewCredentialsAreNoNewPerson(t *testing.T) {
	f := open(t, nil)
	admin := f.signedIn(t, "operator")
	for i := range 1030 {
		credential := fmt.Sprint("jwt", i)
		f.mu.Lock()
		f.keys[credential] = skill.Principal{ID: "jwt:ann", Type: skill.Human, Tenant: "globex"}
		f.now = f.now.Add(time.Millisecond)
		f.mu.Unlock()
		f.signedIn(t, credential)
	}
	if w := admin.get(t, "/console/x"); w.Code != 404 {
		t.Errorf("the session of another is over: %d", w.Code)
	}
	if n := len(f.sessions.all); n != 17 {
		t.Errorf("%d sessions; one principal has 16", n)
	}
}

// Many keys of one tenant end no session of another.
func TestNoTenantEndsSessionsOfAnother(t *testing.T) {
	f := open(t, nil)
	other := f.signedIn(t, "other")
	for i := range 100 {
		key := fmt.Sprint("key", i)
		f.mu.Lock()
		f.keys[key] = skill.Principal{ID: "key:" + key, Type: skill.Agent, Tenant: "acme"}
		f.now = f.now.Add(time.Millisecond)
		f.mu.Unlock()
		for range 12 {
			f.signedIn(t, key)
		}
	}
	if w := other.get(t, "/console/x"); w.Code != 404 {
		t.Errorf("the session of another tenant is over: %d", w.Code)
	}
	if n := len(f.sessions.all); n != 257 {
		t.Errorf("%d sessions; one tenant has a quarter of 1024", n)
	}
}

// Whose session a request has is known before its body is read.
func TestCallerOf(t *testing.T) {
	f := open(t, nil)
	v := f.signedIn(t, "reader")
	cookie := v.cookie.Name + "=" + v.cookie.Value
	for _, tc := range []struct{ host, cookie, want string }{
		{"localhost:8000", cookie, "key:reader"},
		{"localhost:8000", "a=b; " + cookie, "key:reader"},
		{"localhost:8001", cookie, ""},
		{"localhost:8000", "", ""},
		{"localhost:8000", v.cookie.Name + "=x", ""},
		{"", cookie, ""},
	} {
		if p := f.CallerOf(t.Context(), tc.host, tc.cookie); p.ID != tc.want {
			t.Errorf("%q with %q is %q, want %q", tc.host, tc.cookie, p.ID, tc.want)
		}
	}
	open := open(t, func(o *Options) { o.Authenticate, o.Operator = nil, skill.Local() })
	if p := open.CallerOf(t.Context(), "localhost", ""); p.ID != "local" {
		t.Errorf("nobody is asked, and it is %q", p.ID)
	}
}
