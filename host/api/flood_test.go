package api_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// signIn is a console as callers without a session see it: it reads what it is sent.
var signIn = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.WriteHeader(http.StatusUnauthorized)
})

// heap is the memory that is in use, in bytes.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// Callers that nobody knows stall bodies of 1 MiB: each had a buffer of that size.
func TestUnauthenticatedBodiesTakeLittleMemory(t *testing.T) {
	body := make([]byte, 1<<20-1) // all but the last byte
	for _, path := range []string{"/console/signin", "/nowhere", "/healthz"} {
		t.Run(path, func(t *testing.T) {
			s := start(t, func(o *api.Options) { o.Console = apitest.Console(signIn, nil) })
			before := heap()
			done := make(chan struct{}, 300)
			for range 300 {
				c := s.dial(t)
				go func() {
					_ = c.SetWriteDeadline(time.Now().Add(3 * time.Second))
					_, _ = io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n")
					_, _ = c.Write(body) // it may be refused meanwhile
					done <- struct{}{}
				}()
			}
			for range 300 {
				<-done
			}
			if grown := int64(heap()) - int64(before); grown > 24<<20 {
				t.Errorf("300 connections have %d MiB", grown>>20)
			}
		})
	}
}

// As many connections as a host has stall what a sign-in may send at most: the host counts
// what it holds for them, and has room for known callers beside.
func TestStalledSignInsStayWithinTheirBudget(t *testing.T) {
	keys := apitest.Keys{"good": tenant("a", skill.ScopeInvoke)}
	s := start(t, func(o *api.Options) { o.Authenticate, o.Console = keys.Authenticate, apitest.Console(signIn, nil) })
	head := "POST /console/signin HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16384\r\n\r\n" + strings.Repeat("x", 16000)
	before, open := heap(), 0
	for range 4096 {
		c, err := net.Dial("tcp", s.Addr)
		if err != nil {
			break // there are no more descriptors
		}
		defer c.Close()
		_, _ = io.WriteString(c, head)
		open++
	}
	if open < 500 {
		t.Fatalf("only %d connections: nothing is tried", open)
	}
	if most := api.OpenBodies(s.Server); most > 4<<20 || most == 0 {
		t.Errorf("%d bytes of bodies are held", most)
	}
	if grown := int64(heap()) - int64(before); grown > 96<<20 {
		t.Errorf("%d connections have %d MiB", open, grown>>20)
	}
	body := `{"input":{"text":"x"}}`
	if resp, got := s.do(t, "POST", "/skills/echo:invoke", body, "X-API-Key", "good", "Content-Type", "application/json"); resp.StatusCode != 200 {
		t.Errorf("a known caller: %d %s", resp.StatusCode, got)
	}
}

// Bodies that are small enough share a budget, of which one address gets half.
func TestUnauthenticatedBodiesHaveABudget(t *testing.T) {
	s := start(t, func(o *api.Options) { o.Console = apitest.Console(signIn, nil) })
	const head = "POST /console/signin HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16384\r\n\r\n"
	refused := make(chan int, 400)
	for range 400 { // 6 MiB
		c := s.dial(t)
		c.send(t, head+strings.Repeat("x", 16383))
		go func() {
			resp, err := http.ReadResponse(c.br, nil)
			if err != nil {
				refused <- 0
				return
			}
			refused <- resp.StatusCode
		}()
	}
	count := map[int]int{}
	for range 400 {
		count[<-refused]++
	}
	if count[429] < 200 || count[408] < 100 {
		t.Errorf("answers %v: about 128 fit into 2 MiB, and end by their time", count)
	}
}

// Clients of many networks stall what all bodies of unknown callers may have together. A
// sign-in with an API key is read all the same.
func TestStalledBodiesKeepNoSignInOut(t *testing.T) {
	s := start(t, func(o *api.Options) { o.Console = apitest.Console(signIn, nil) })
	held := 0
	for i := range 271 { // all of 4 MiB: the last ones by the KiB, of which each client has one at once
		size, patience := 16<<10, time.Second
		if i >= 255 {
			size, patience = 1<<10, 20*time.Millisecond
		}
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, byte(i%255), 0, byte(2+i/255))}}
		c, err := from.DialContext(t.Context(), "tcp", s.Addr)
		if err != nil {
			t.Skipf("loopback has no other addresses here: %v", err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "POST /console/signin HTTP/1.1\r\nHost: localhost\r\nContent-Length: "+itoa(size-1)+"\r\n\r\n"+strings.Repeat("x", size-2))
		held += size
		for began := time.Now(); api.OpenBodies(s.Server) < held && time.Since(began) < patience; {
			time.Sleep(100 * time.Microsecond)
		}
	}
	if n := api.OpenBodies(s.Server); n < 3<<20 {
		t.Fatalf("only %d bytes are held: nothing is tried", n)
	}
	form := "credential=" + strings.Repeat("k", 200)
	if resp, body := s.do(t, "POST", "/console/signin", form, "Content-Type", "application/x-www-form-urlencoded"); resp.StatusCode != 401 {
		t.Errorf("a sign-in: %d %s", resp.StatusCode, body)
	}
}

// What the head shows to be wrong is answered before the body has come.
func TestRefusesByTheHead(t *testing.T) {
	keys := apitest.Keys{"good": tenant("a", skill.ScopeInvoke)}
	s := start(t, func(o *api.Options) { o.Authenticate, o.Console = keys.Authenticate, apitest.Console(signIn, nil) })
	for _, tc := range []struct {
		name, method, path, header, begun string
		status                            int
	}{
		{"unknown route", "POST", "/nowhere", "", "{", 404},
		{"unknown route in chunks", "POST", "/nowhere", "Transfer-Encoding: chunked", "1\r\n{\r\n", 404},
		{"wrong method", "PUT", "/skills/echo", "", "{", 405},
		{"method of an open route", "POST", "/healthz", "", "{", 405},
		{"options", "OPTIONS", "/skills", "", "{", 204},
		{"too large", "POST", "/skills/echo:invoke", "X-API-Key: good\r\nContent-Length: 2000000", "", 413},
		{"no credentials", "POST", "/skills/echo:invoke", "", "{", 401},
		{"wrong credentials", "POST", "/skills/echo:invoke", "X-API-Key: bad", "{", 401},
		{"too large to sign in", "POST", "/console/signin", "", "x", 413},
		{"wrong type", "POST", "/skills/echo:invoke", "X-API-Key: good\r\nContent-Type: text/xml", "{", 415},
		{"compressed", "POST", "/skills/echo:invoke", "X-API-Key: good\r\nContent-Encoding: gzip", "{", 415},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := s.dial(t)
			head := tc.method + " " + tc.path + " HTTP/1.1\r\nHost: localhost\r\n"
			if tc.header != "" {
				head += tc.header + "\r\n"
			}
			if !strings.Contains(tc.header, "Content-Length") && !strings.Contains(tc.header, "Transfer-Encoding") {
				head += "Content-Length: 100000\r\n"
			}
			c.send(t, head+"\r\n"+tc.begun)
			resp, err := http.ReadResponse(c.br, &http.Request{Method: tc.method})
			musttest.Do(t, err)
			if resp.StatusCode != tc.status || !resp.Close {
				t.Errorf("%d, close %v", resp.StatusCode, resp.Close)
			}
		})
	}
}

// A form of somebody who has a session may be as long as a call.
func TestConsoleFormsOfSessionsMayBeLong(t *testing.T) {
	got := make(chan int, 1)
	s := start(t, func(o *api.Options) {
		o.Console = apitest.Console(func(_ http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			got <- len(b)
		}, func(host, cookie string) skill.Principal {
			if cookie == "openskill=good" && host != "" {
				return tenant("a")
			}
			return skill.Principal{}
		})
	})
	body := strings.Repeat("x", 500_000)
	if resp, _ := s.do(t, "POST", "/console/skills/echo/try", body, "Cookie", "openskill=good"); resp.StatusCode != 200 || <-got != len(body) {
		t.Errorf("%d", resp.StatusCode)
	}
	if resp, _ := s.do(t, "POST", "/console/skills/echo/try", body, "Cookie", "openskill=bad"); resp.StatusCode != 413 {
		t.Errorf("without a session: %d", resp.StatusCode)
	}
}

// Thousands of idle connections cut off an upload that was being sent.
func TestIdleConnectionsLeaveAnUploadAlone(t *testing.T) {
	keys := apitest.Keys{"good": tenant("a", skill.ScopeUpload)}
	s, _ := startUploads(t, func(o *api.Options) { o.Authenticate, o.MaxConns = keys.Authenticate, 100 })
	body, contentType := form(t, part{name: "archive", content: strings.Repeat("x", 100_000)})
	c := s.dial(t)
	c.send(t, "POST /skills HTTP/1.1\r\nHost: localhost\r\nX-API-Key: good\r\nContent-Type: "+contentType+"\r\nExpect: 100-continue\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n")
	const goOn = "HTTP/1.1 100 Continue\r\n\r\n" // then the server knows the request: before, it is a connection like the idle ones
	said := make([]byte, len(goOn))
	if _, err := io.ReadFull(c.br, said); err != nil || string(said) != goOn {
		t.Fatalf("%q", said)
	}
	c.send(t, body[:50_000])
	var idle []net.Conn
	for range 150 {
		idle = append(idle, s.dial(t))
	}
	if resp, _ := s.do(t, "GET", "/healthz", ""); resp.StatusCode != 200 { // all of them are in
		t.Errorf("/healthz answers %d", resp.StatusCode)
	}
	c.send(t, body[50_000:])
	resp, err := http.ReadResponse(c.br, nil)
	if err != nil {
		t.Fatalf("the upload was cut off: %v", err)
	}
	if resp.StatusCode != 201 {
		t.Errorf("the upload: %d", resp.StatusCode)
	}
	for _, c := range idle {
		_ = c.Close()
	}
}

// One tenant takes half of the connections at most, with requests that never end.
func TestNoTenantTakesAllConnections(t *testing.T) {
	keys := apitest.Keys{"b": tenant("b", skill.ScopeInvoke)}
	for _, key := range []string{"a1", "a2", "a3"} {
		keys[key] = skill.Principal{ID: key, Type: skill.Agent, Tenant: "a", Scopes: []string{skill.ScopeInvoke}}
	}
	s := start(t, func(o *api.Options) { o.Authenticate, o.MaxConns = keys.Authenticate, 64 })
	refused := 0
	for i := range 60 {
		c := s.dial(t)
		c.send(t, "POST /skills/echo:invoke HTTP/1.1\r\nHost: localhost\r\nX-API-Key: "+[]string{"a1", "a2", "a3"}[i%3]+"\r\nContent-Length: 100\r\n\r\n{")
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if b, err := c.br.Peek(12); err == nil && bytes.HasSuffix(b, []byte("429")) {
			refused++
		}
	}
	if refused != 60-32 {
		t.Errorf("%d of 60 are refused; a tenant has 32", refused)
	}
	body := `{"input":{"text":"x"}}`
	if resp, got := s.do(t, "POST", "/skills/echo:invoke", body, "X-API-Key", "b", "Content-Type", "application/json"); resp.StatusCode != 200 {
		t.Errorf("another tenant: %d %s", resp.StatusCode, got)
	}
}

// Two tenants hold what connections they can get, idle. New ones had only each other to make
// room: each was cut off by the next, before its request was there.
func TestNewConnectionsDoNotCutEachOtherOff(t *testing.T) {
	keys := apitest.Keys{"c": tenant("c", skill.ScopeInvoke)}
	for _, key := range []string{"a1", "a2", "b1", "b2"} {
		keys[key] = skill.Principal{ID: key, Type: skill.Agent, Tenant: key[:1], Scopes: []string{skill.ScopeInvoke}}
	}
	s := start(t, func(o *api.Options) { o.Authenticate, o.MaxConns = keys.Authenticate, 64 })
	const body = `{"input":{"text":"x"}}`
	call := func(c *raw, key string) {
		t.Helper()
		c.send(t, "POST /skills/echo:invoke HTTP/1.1\r\nHost: localhost\r\nX-API-Key: "+key+"\r\nContent-Type: application/json\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body)
		resp, err := http.ReadResponse(c.br, nil)
		if err != nil {
			t.Fatalf("%s was cut off: %v", key, err)
		}
		if _, err = io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			t.Errorf("%s: %d, %v", key, resp.StatusCode, err)
		}
	}
	for i := range 64 {
		call(s.dial(t), []string{"a1", "a2", "b1", "b2"}[i%4])
	}
	came := s.dial(t)
	elsewhere := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range 100 {
		c, err := elsewhere.DialContext(t.Context(), "tcp", s.Addr)
		if err != nil {
			t.Skipf("loopback has no second address here: %v", err)
		}
		defer c.Close()
	}
	if resp, _ := s.do(t, "GET", "/healthz", ""); resp.StatusCode != 200 { // all of them are in
		t.Errorf("/healthz answers %d", resp.StatusCode)
	}
	call(came, "c")
}

// Whoever comes through a trusted proxy is the last address that is not a proxy's.
func TestClientAddress(t *testing.T) {
	seen := make(chan string, 1)
	serve := func(trusted ...string) *server {
		return start(t, func(o *api.Options) {
			for _, p := range trusted {
				o.TrustedProxies = append(o.TrustedProxies, netip.MustParsePrefix(p))
			}
			o.Console = apitest.Console(func(_ http.ResponseWriter, r *http.Request) {
				host, _, _ := net.SplitHostPort(r.RemoteAddr)
				seen <- host
			}, nil)
		})
	}
	behind, direct := serve("127.0.0.1/32", "10.0.0.0/8", "2001:db8:1::/48"), serve()
	for _, tc := range []struct {
		header []string
		want   string
	}{
		{nil, "127.0.0.1"},
		{[]string{"X-Forwarded-For: 192.0.2.7"}, "192.0.2.7"},
		{[]string{"X-Forwarded-For: 198.51.100.1, 192.0.2.7"}, "192.0.2.7"},
		{[]string{"X-Forwarded-For: 192.0.2.7, 10.1.2.3"}, "192.0.2.7"},
		{[]string{"X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 192.0.2.7"}, "192.0.2.7"},
		{[]string{"X-Forwarded-For: 192.0.2.7:4711"}, "192.0.2.7"},
		{[]string{"X-Forwarded-For: [2001:db8:2::1]:4711"}, "2001:db8:2::1"},
		{[]string{"X-Forwarded-For: ::ffff:192.0.2.7"}, "192.0.2.7"},
		{[]string{"X-Forwarded-For: 10.0.0.1, 10.0.0.2"}, "10.0.0.1"},
		{[]string{"X-Forwarded-For: x, 192.0.2.7"}, "192.0.2.7"},
		{[]string{"X-Forwarded-For: 192.0.2.7, x"}, "127.0.0.1"},
		{[]string{"X-Forwarded-For: 192.0.2.7,"}, "127.0.0.1"},
		{[]string{"X-Forwarded-For: unknown"}, "127.0.0.1"},
		{[]string{"Forwarded: for=192.0.2.7;proto=https"}, "192.0.2.7"},
		{[]string{`Forwarded: for="[2001:db8:2::1]:47", For=10.0.0.1`}, "2001:db8:2::1"},
		{[]string{"Forwarded: for=192.0.2.7;for=192.0.2.8"}, "127.0.0.1"},
		{[]string{"Forwarded: proto=https"}, "127.0.0.1"},
		{[]string{"Forwarded: for=_hidden"}, "127.0.0.1"},
		{[]string{"Forwarded: for=192.0.2.7", "X-Forwarded-For: 192.0.2.7"}, "192.0.2.7"},
		{[]string{"Forwarded: for=198.51.100.1", "X-Forwarded-For: 192.0.2.7"}, "127.0.0.1"},
	} {
		t.Run(strings.Join(tc.header, " and "), func(t *testing.T) {
			for s, want := range map[*server]string{behind: tc.want, direct: "127.0.0.1"} {
				c := s.dial(t)
				c.send(t, strings.Join(slices.Concat([]string{"GET /console HTTP/1.1", "Host: localhost"}, tc.header), "\r\n")+"\r\n\r\n")
				if got := <-seen; got != want {
					t.Errorf("from %s, want %s", got, want)
				}
				_ = c.Close()
			}
		})
	}
}
