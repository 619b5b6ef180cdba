package egress_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"openskill/host/workers/egress"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func rules(t *testing.T, texts ...string) []skill.HTTPRule {
	t.Helper()
	var out []skill.HTTPRule
	for _, s := range texts {
		r := musttest.Get(skill.ParseHTTPRule(s))(t)
		out = append(out, r)
	}
	return out
}

// serve is a server of this machine.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func address(s *httptest.Server) string { return s.Listener.Addr().String() }

const public, public2 = "93.184.216.34", "93.184.216.35"

// world is a client for which every name is a public address, and every connection
// ends at the server.
func world(s *httptest.Server, o egress.Options) (*egress.Client, *Dialer, *Resolver) {
	d := &Dialer{To: address(s)}
	r := Always(public)
	o.Dial, o.Resolver = d.Dial, r
	return egress.New(&o), d, r
}

func wantCode(t *testing.T, err error, code skill.Code, words ...string) {
	t.Helper()
	var e *skill.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error %v, want %s", err, code)
	}
	for _, w := range words {
		if !strings.Contains(e.Message, w) {
			t.Errorf("message %q, want %q in it", e.Message, w)
		}
	}
	if e.Message == "" || len(e.Message) > 512 || skill.CleanText(e.Message, 1024) != e.Message {
		t.Errorf("message %q is not fit for a caller", e.Message)
	}
}

// An address that a rule spells out may be on this machine, and the request arrives
// as it was made.
func TestDo(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Answer", "yes")
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s %s %s %s", r.Method, r.RequestURI, r.Host, r.Header.Get("X-Ask"), r.Header.Get("Accept-Encoding"), body)
	})
	c := egress.New(nil)
	got, err := c.Do(t.Context(), rules(t, "http://"+address(s)+" POST"), &egress.Request{
		Method: "POST", URL: "http://" + address(s) + "/a%20b/c;d?x=%2e%2e&y=[1]", Header: map[string]string{"x-ask": "please"}, Body: []byte("body"),
	}, nil)
	musttest.Do(t, err)
	if want := "POST /a%20b/c;d?x=%2e%2e&y=[1] " + address(s) + " please identity body"; string(got.Body) != want || got.Status != 418 {
		t.Errorf("status %d, body %q, want %q", got.Status, got.Body, want)
	}
	if d := cmp.Diff([]string{"a=1", "b=2"}, got.Header["set-cookie"]); d != "" || got.Header["x-answer"][0] != "yes" {
		t.Errorf("headers %v", got.Header)
	}
}

// Nothing is permitted by no rule.
func TestRulesHold(t *testing.T) {
	var asked atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	c, _, _ := world(s, egress.Options{})
	for name, tc := range map[string]struct {
		rules  []string
		method string
		url    string
		ok     bool
	}{
		"none":                     {nil, "GET", "https://a.example/", false},
		"the host":                 {[]string{"http://a.example"}, "GET", "http://a.example/x", true},
		"upper case is the same":   {[]string{"http://a.example"}, "GET", "HTTP://A.Example/x", true},
		"the port, said":           {[]string{"http://a.example"}, "GET", "http://a.example:80/x", true},
		"another host":             {[]string{"http://a.example"}, "GET", "http://b.example/x", false},
		"a longer host":            {[]string{"http://a.example"}, "GET", "http://a.example.evil.example/x", false},
		"another scheme":           {[]string{"https://a.example"}, "GET", "http://a.example/x", false},
		"another port":             {[]string{"http://a.example"}, "GET", "http://a.example:8080/x", false},
		"another method":           {[]string{"http://a.example"}, "POST", "http://a.example/x", false},
		"below":                    {[]string{"http://*.a.example"}, "GET", "http://x.y.a.example/", true},
		"not the parent":           {[]string{"http://*.a.example"}, "GET", "http://a.example/", false},
		"not a name that ends so":  {[]string{"http://*.a.example"}, "GET", "http://xa.example/", false},
		"any name":                 {[]string{"http://*"}, "GET", "http://x.example/", true},
		"any name is no address":   {[]string{"http://*"}, "GET", "http://" + public + "/", false},
		"path":                     {[]string{"http://a.example/v1"}, "GET", "http://a.example/v1/x?y", true},
		"the path itself":          {[]string{"http://a.example/v1"}, "GET", "http://a.example/v1", true},
		"a path that begins so":    {[]string{"http://a.example/v1"}, "GET", "http://a.example/v10", false},
		"out of the path":          {[]string{"http://a.example/v1"}, "GET", "http://a.example/v1/../x", false},
		"out of the path, hidden":  {[]string{"http://a.example/v1"}, "GET", "http://a.example/v1/%2e%2E/x", false},
		"out of the path, slashes": {[]string{"http://a.example/v1"}, "GET", "http://a.example/v1/..%2fx", false},
		"out of the path, twice":   {[]string{"http://a.example/v1"}, "GET", "http://a.example/v1/%252e%252e/x", false},
		"out of the path, matrix":  {[]string{"http://a.example/v1"}, "GET", "http://a.example/v1/..;a/x", false},
		"one of several":           {[]string{"http://a.example POST", "http://a.example"}, "GET", "http://a.example/x", true},
	} {
		t.Run(name, func(t *testing.T) {
			before := asked.Load()
			_, err := c.Do(t.Context(), rules(t, tc.rules...), &egress.Request{Method: tc.method, URL: tc.url}, nil)
			if tc.ok != (err == nil) || tc.ok != (asked.Load() > before) {
				t.Fatalf("error %v, asked %d times", err, asked.Load()-before)
			}
			if !tc.ok {
				if code := skill.CodeOf(err); code != skill.NetworkDenied && code != skill.InvalidArgument {
					t.Errorf("code %s", code)
				}
			}
		})
	}
	// The refusal says what the operator has to do.
	_, err := c.Do(t.Context(), nil, &egress.Request{Method: "PUT", URL: "https://a.example:444/x"}, nil)
	wantCode(t, err, skill.NetworkDenied, "permissions.http", "OPENSKILL_HTTP_ALLOW", `"https://a.example:444 PUT"`)
}

func TestMalformedRequests(t *testing.T) {
	c, d, _ := world(serve(t, func(http.ResponseWriter, *http.Request) {}), egress.Options{MaxRequest: 10})
	ok := "http://a.example/"
	all := rules(t, "http://* GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS")
	for name, tc := range map[string]struct {
		r    egress.Request
		code skill.Code
	}{
		"connect":              {egress.Request{URL: ok, Method: "CONNECT"}, skill.InvalidArgument},
		"trace":                {egress.Request{URL: ok, Method: "TRACE"}, skill.InvalidArgument},
		"lower case":           {egress.Request{URL: ok, Method: "get"}, skill.InvalidArgument},
		"a method with a line": {egress.Request{URL: ok, Method: "GET / HTTP/1.1\r\nX: y"}, skill.InvalidArgument},
		"host":                 {egress.Request{URL: ok, Header: map[string]string{"host": "b.example"}}, skill.InvalidArgument},
		"content-length":       {egress.Request{URL: ok, Header: map[string]string{"Content-Length": "1"}}, skill.InvalidArgument},
		"transfer-encoding":    {egress.Request{URL: ok, Header: map[string]string{"tRANSFER-eNCODING": "chunked"}}, skill.InvalidArgument},
		"connection":           {egress.Request{URL: ok, Header: map[string]string{"Connection": "x-secret"}}, skill.InvalidArgument},
		"upgrade":              {egress.Request{URL: ok, Header: map[string]string{"Upgrade": "websocket"}}, skill.InvalidArgument},
		"te":                   {egress.Request{URL: ok, Header: map[string]string{"TE": "trailers"}}, skill.InvalidArgument},
		"proxy":                {egress.Request{URL: ok, Header: map[string]string{"proxy-authorization": "x"}}, skill.InvalidArgument},
		"expect":               {egress.Request{URL: ok, Header: map[string]string{"Expect": "100-continue"}}, skill.InvalidArgument},
		"name with a blank":    {egress.Request{URL: ok, Header: map[string]string{"host ": "b.example"}}, skill.InvalidArgument},
		"empty name":           {egress.Request{URL: ok, Header: map[string]string{"": "x"}}, skill.InvalidArgument},
		"value with a line":    {egress.Request{URL: ok, Header: map[string]string{"X": "a\r\nHost: b"}}, skill.InvalidArgument},
		"value not in ASCII":   {egress.Request{URL: ok, Header: map[string]string{"X": "ü"}}, skill.InvalidArgument},
		"twice":                {egress.Request{URL: ok, Header: map[string]string{"x-a": "1", "X-A": "2"}}, skill.InvalidArgument},
		"long headers":         {egress.Request{URL: ok, Header: map[string]string{"X": strings.Repeat("x", 40_000)}}, skill.PayloadTooLarge},
		"many headers":         {egress.Request{URL: ok, Header: many(65)}, skill.InvalidArgument},
		"long body":            {egress.Request{URL: ok, Method: "POST", Body: []byte("12345678901")}, skill.PayloadTooLarge},
		"user":                 {egress.Request{URL: "http://a.example@b.example/"}, skill.InvalidArgument},
		"user and password":    {egress.Request{URL: "http://u:p@b.example/"}, skill.InvalidArgument},
		"fragment":             {egress.Request{URL: ok + "#x"}, skill.InvalidArgument},
		"no scheme":            {egress.Request{URL: "a.example/"}, skill.InvalidArgument},
		"file":                 {egress.Request{URL: "file:///etc/passwd"}, skill.InvalidArgument},
		"opaque":               {egress.Request{URL: "http:a.example"}, skill.InvalidArgument},
		"no host":              {egress.Request{URL: "http:///x"}, skill.InvalidArgument},
		"empty":                {egress.Request{}, skill.InvalidArgument},
		"a line":               {egress.Request{URL: "http://a.example/\r\nX: y"}, skill.InvalidArgument},
		"a blank":              {egress.Request{URL: "http://a.example/ x"}, skill.InvalidArgument},
		"a backslash":          {egress.Request{URL: `http://a.example\@b.example/`}, skill.InvalidArgument},
		"another script":       {egress.Request{URL: "http://ä.example/"}, skill.InvalidArgument},
		"wrong escape":         {egress.Request{URL: "http://a.example/%zz"}, skill.InvalidArgument},
		"port 0":               {egress.Request{URL: "http://a.example:0/"}, skill.InvalidArgument},
		"port too large":       {egress.Request{URL: "http://a.example:65536/"}, skill.InvalidArgument},
		"port with a zero":     {egress.Request{URL: "http://a.example:080/"}, skill.InvalidArgument},
		"port with a sign":     {egress.Request{URL: "http://a.example:+80/"}, skill.InvalidArgument},
		"empty port":           {egress.Request{URL: "http://a.example:/"}, skill.InvalidArgument},
		"long":                 {egress.Request{URL: ok + strings.Repeat("x", 5000)}, skill.InvalidArgument},
		"long name":            {egress.Request{URL: "http://" + strings.Repeat("a.", 130) + "example/"}, skill.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.Do(t.Context(), all, &tc.r, nil)
			wantCode(t, err, tc.code)
		})
	}
	if n := len(d.Dialed()); n > 0 {
		t.Errorf("%d connections were made", n)
	}
}

func many(n int) map[string]string {
	h := map[string]string{}
	for i := range n {
		h[fmt.Sprint("X-", i)] = "y"
	}
	return h
}

// TLS is verified for the name of the request, whatever address it goes to.
func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto, " for ", r.Host, " as ", r.TLS.ServerName)
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c, d, _ := world(s, egress.Options{RootCAs: roots})
	// example.com is a name of httptest's certificate.
	got, err := c.Do(t.Context(), rules(t, "https://example.com"), &egress.Request{URL: "https://example.com/x"}, nil)
	if err != nil || string(got.Body) != "HTTP/2.0 for example.com as example.com" {
		t.Fatalf("%v %+v", err, got)
	}
	if d := cmp.Diff([]netip.AddrPort{netip.MustParseAddrPort(public + ":443")}, d.Dialed(), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" {
		t.Error(d)
	}
	_, err = c.Do(t.Context(), rules(t, "https://other.example"), &egress.Request{URL: "https://other.example/x"}, nil)
	wantCode(t, err, skill.ToolInvocationError, "certificate")
	stranger, _, _ := world(s, egress.Options{})
	_, err = stranger.Do(t.Context(), rules(t, "https://example.com"), &egress.Request{URL: "https://example.com/x"}, nil)
	wantCode(t, err, skill.ToolInvocationError, "certificate")
}

// A proxy of the host's environment is not asked.
func TestNoProxy(t *testing.T) {
	proxy := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the proxy") })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the server") })
	c, _, _ := world(s, egress.Options{})
	got, err := c.Do(t.Context(), rules(t, "http://a.example"), &egress.Request{URL: "http://a.example"}, nil)
	if err != nil || string(got.Body) != "the server" {
		t.Fatalf("%v %+v", err, got)
	}
}

// Nothing of a request is left for the next one: no connection, no cookie.
func TestNothingIsKept(t *testing.T) {
	var cookies atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		cookies.Add(int32(len(r.Cookies())))
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
	})
	c, d, _ := world(s, egress.Options{})
	for range 3 {
		musttest.Get(c.Do(t.Context(), rules(t, "http://a.example"), &egress.Request{URL: "http://a.example"}, nil))(t)
	}
	if n := len(d.Dialed()); n != 3 || cookies.Load() != 0 {
		t.Errorf("%d connections for 3 requests, %d cookies", n, cookies.Load())
	}
}

// The requests of one run are counted, redirects too.
func TestBudget(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/turn" {
			http.Redirect(w, r, "/", http.StatusFound)
		}
	})
	c, _, _ := world(s, egress.Options{MaxRequests: 3})
	fetch := c.For(&skill.Call{Grants: skill.Grants{HTTP: rules(t, "http://a.example")}})
	for i, want := range []string{`"status":200`, `"status":200`, "RATE_LIMITED", "RATE_LIMITED"} {
		path := map[bool]string{true: "turn", false: ""}[i == 0]
		if got := fetch(t.Context(), []byte(`{"url": "http://a.example/`+path+`"}`)); !strings.Contains(string(got), want) {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
	}
	// What is refused counts too, and does not fill the log.
	var out bytes.Buffer
	c, _, _ = world(s, egress.Options{MaxRequests: 3, Log: slog.New(slog.NewTextHandler(&out, nil))})
	fetch = c.For(&skill.Call{})
	for range 100 {
		fetch(t.Context(), []byte("nonsense"))
	}
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("%d lines for a run with 3 requests", n)
	}
	// Another run has its own.
	fetch = c.For(&skill.Call{Grants: skill.Grants{HTTP: rules(t, "http://a.example")}})
	if got := fetch(t.Context(), []byte(`{"url": "http://a.example/"}`)); !strings.Contains(string(got), `"status":200`) {
		t.Errorf("%s", got)
	}
	// Where the host says nothing of it, there are 16.
	c, _, _ = world(s, egress.Options{})
	fetch = c.For(&skill.Call{Grants: skill.Grants{HTTP: rules(t, "http://a.example")}})
	for i := range 17 {
		want := map[bool]string{true: `"status":200`, false: "RATE_LIMITED"}[i < 16]
		if got := fetch(t.Context(), []byte(`{"url": "http://a.example/"}`)); !strings.Contains(string(got), want) {
			t.Errorf("request %d: %s, want %s", i+1, got, want)
		}
	}
}

// What a guest writes and reads: a line of JSON, and the body behind it.
func TestSession(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header()["Date"] = nil
		w.Header().Set("Content-Type", "application/x")
		_, _ = w.Write(append([]byte(r.Method+" "), body...))
	})
	c, _, _ := world(s, egress.Options{})
	fetch := c.For(&skill.Call{Grants: skill.Grants{HTTP: rules(t, "http://a.example GET,POST")}})
	for _, tc := range []struct{ ask, want string }{
		{`{"url": "http://a.example/x"}`, `{"status":200,"url":"http://a.example/x","headers":{"content-length":["4"],"content-type":["application/x"]},"error":null}` + "\nGET "},
		{`{"url": "http://a.example/x", "method": "POST", "headers": {"a": "b"}, "timeout_ms": 5000}` + "\n\x00\n\xff", `{"status":200,"url":"http://a.example/x","headers":{"content-length":["8"],"content-type":["application/x"]},"error":null}` + "\nPOST \x00\n\xff"},
		{`{"url": "http://b.example/x"}`, `NETWORK_DENIED`},
		{``, `INVALID_ARGUMENT`},
		{"\n", `INVALID_ARGUMENT`},
		{`[]`, `INVALID_ARGUMENT`},
		{`null`, `INVALID_ARGUMENT`},
		{`{"url": "http://a.example/x"} {}`, `INVALID_ARGUMENT`},
		{`{"url": "http://a.example/x", "proxy": "http://b.example"}`, `INVALID_ARGUMENT`},
		{`{"url": "http://a.example/x", "timeout_ms": -1}`, `INVALID_ARGUMENT`},
		{`{"url": "http://a.example/x", "headers": {"a": 1}}`, `INVALID_ARGUMENT`},
		{"{\"url\":\n\"http://a.example/x\"}", `INVALID_ARGUMENT`},
		{strings.Repeat(" ", 1<<20), `PAYLOAD_TOO_LARGE`},
	} {
		got := fetch(t.Context(), []byte(tc.ask))
		if strings.HasPrefix(tc.want, "{") {
			if string(got) != tc.want {
				t.Errorf("%.80q: %q, want %q", tc.ask, got, tc.want)
			}
			continue
		}
		head, rest, ok := bytes.Cut(got, []byte("\n"))
		if !ok || len(rest) > 0 || !bytes.Contains(head, []byte(`"error":{"code":"`+tc.want+`"`)) || len(head) > 600 {
			t.Errorf("%.80q: %s, want %s", tc.ask, got, tc.want)
		}
	}
}

// An operator sees where requests went, and how they ended, without what they held.
func TestLog(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hush answer") })
	var out bytes.Buffer
	c, _, _ := world(s, egress.Options{Log: slog.New(slog.NewTextHandler(&out, nil))})
	fetch := c.For(&skill.Call{SkillID: "asker", TraceID: "t-1", Tenant: "acme", Grants: skill.Grants{HTTP: rules(t, "http://a.example POST")}})
	for _, tc := range []struct{ ask, want string }{
		{`{"url": "http://A.example/hush?hush", "method": "POST", "headers": {"x": "hush"}}` + "\nhush", "skill_id=asker trace_id=t-1 tenant=acme ms= method=POST sent=4 to=http://a.example status=200 received=11 from=http://a.example"},
		{`{"url": "http://b.example/hush", "method": "POST"}`, "method=POST sent=0 to=http://b.example code=NETWORK_DENIED"},
		{`{"url": "hush\n\u001b[31m", "method": "\u001bPOST"}`, "method=POST sent=0 code=INVALID_ARGUMENT"},
		{`hush`, "tenant=acme ms= code=INVALID_ARGUMENT"},
	} {
		out.Reset()
		fetch(t.Context(), []byte(tc.ask))
		line := regexp.MustCompile(`ms=\d+`).ReplaceAllString(out.String(), "ms=")
		if strings.Count(line, "\n") != 1 || !strings.Contains(line, tc.want) || strings.Contains(line, "hush") || strings.Contains(line, "\x1b") {
			t.Errorf("%s\nwant %s", line, tc.want)
		}
	}
}

// A server that nobody answers at, and names that are nobody's, are the other
// side's failures.
func TestFailures(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.Do(t, err)
	to := l.Addr().String()
	musttest.Do(t, l.Close())
	_, err = egress.New(nil).Do(t.Context(), rules(t, "http://"+to), &egress.Request{URL: "http://" + to}, nil)
	wantCode(t, err, skill.ToolInvocationError, "unreachable")
	c := egress.New(&egress.Options{Resolver: &Resolver{}})
	_, err = c.Do(t.Context(), rules(t, "http://a.example"), &egress.Request{URL: "http://a.example"}, nil)
	wantCode(t, err, skill.ToolInvocationError, "a.example", "cannot be resolved")
}

// The end of the run ends its request, whatever the other side does.
func TestEndOfTheRun(t *testing.T) {
	entered, gone := make(chan struct{}), make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	c, _, _ := world(s, egress.Options{})
	_, err := c.Do(ctx, rules(t, "http://a.example"), &egress.Request{URL: "http://a.example"}, nil)
	wantCode(t, err, skill.Cancelled)
	<-gone // the connection is closed
}

// Requests of one tenant that are never answered leave room for those of another.
func TestSlowRequestsOfOneTenantLeaveRoomForOthers(t *testing.T) {
	leave, came := make(chan struct{}), make(chan struct{}, 20)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			came <- struct{}{}
			<-leave
		}
		_, _ = io.WriteString(w, "ok")
	})
	c, _, _ := world(s, egress.Options{Concurrency: 6})
	ask := func(tenant, path, ms string) string {
		fetch := c.For(&skill.Call{SkillID: "asker", Tenant: tenant, Grants: skill.Grants{HTTP: rules(t, "http://a.example")}})
		return string(fetch(t.Context(), []byte(`{"url":"http://a.example`+path+`","timeout_ms":`+ms+`}`)))
	}
	var slow sync.WaitGroup
	for range 20 {
		slow.Go(func() { ask("many", "/slow", "30000") })
	}
	for more := true; more; { // until it has its share
		select {
		case <-came:
		case <-time.After(300 * time.Millisecond):
			more = false
		}
	}
	for range 3 {
		if got := ask("other", "/", "2000"); !strings.Contains(got, "ok") {
			t.Errorf("another tenant is told %s", got)
		}
	}
	close(leave)
	slow.Wait()
}

// Requests wait for each other where there are many, and no longer than they may.
func TestConcurrency(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-leave })
	c, _, _ := world(s, egress.Options{Concurrency: 1})
	done := make(chan error)
	go func() {
		_, err := c.Do(t.Context(), rules(t, "http://a.example"), &egress.Request{URL: "http://a.example"}, nil)
		done <- err
	}()
	<-entered
	_, err := c.Do(t.Context(), rules(t, "http://a.example"), &egress.Request{URL: "http://a.example", Timeout: 10 * time.Millisecond}, nil)
	wantCode(t, err, skill.Timeout)
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
