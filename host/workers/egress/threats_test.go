package egress_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/workers/egress"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// spellings are ways to write addresses that are not public, as some parser reads
// them.
var spellings = []string{
	// Loopback.
	"127.0.0.1", "127.0.0.2", "127.255.255.254", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7F.0x0.0x0.0x1", "017700000001",
	"0177.0.0.1", "0177.0.0.01", "0x7f.1", "127.0.0.1.", "127.0.0.01", "127.000.000.001", "00000127.0.0.1", "127.0.0.0x1",
	"%31%32%37.0.0.1", "127%2e0.0.1", "127.0.0.1%00", "127.0.0.1%20", "127。0。0。1", "①②⑦.0.0.1", "127．0．0．1", "１２７.0.0.1",
	"localhost", "LOCALHOST", "localhost.", "localhost.localdomain", "ip6-localhost", "0", "0.0.0.0", "0x0", "00", "0.0", "[::]",
	// IPv6 for them.
	"[::1]", "[0:0:0:0:0:0:0:1]", "[::0001]", "[::1%25lo]", "[::1%lo]", "::1", "[::127.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::FFFF:7F00:0001]",
	"[0:0:0:0:0:ffff:7f00:1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2002:7f00:0001::1]",
	"[2001:0:7f00:1::]", "[2001:0:4136:e378:8000:63bf:80ff:fffe]", "[::ffff:0:127.0.0.1]",
	// Private networks, links, carriers, metadata.
	"10.0.0.1", "10.1", "012.0.0.1", "167772161", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.1", "3232235521", "0xc0a80001",
	"169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "[::ffff:169.254.169.254]", "[fd00:ec2::254]",
	"[fe80::1]", "[fe80::1%25eth0]", "[fc00::1]", "[fd12:3456::1]", "[fec0::1]", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192",
	"metadata.google.internal", "metadata", "224.0.0.1", "255.255.255.255", "240.0.0.1", "198.18.0.1", "192.0.2.1", "[ff02::1]", "[2001:db8::1]",
	"127.0.0.1:80:80", "[127.0.0.1]", "127.0.0.1@a.example", "a.example@127.0.0.1", "a.example:x@127.0.0.1", `127.0.0.1\a.example`, "a.example#@127.0.0.1",
}

// N01: a private address in any spelling is not reached by rules that stand for
// names, even where a resolver would read it as the address. No connection is tried.
func TestN01SpellingsOfPrivateAddresses(t *testing.T) {
	if len(spellings) < 60 {
		t.Fatalf("%d spellings", len(spellings))
	}
	var asked atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	d := &Dialer{To: address(s)}
	for _, to := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254"} {
		c := egress.New(&egress.Options{Resolver: Always(to), Dial: d.Dial})
		names := rules(t, "http://*", "https://*", "http://*.internal", "http://localhost", "http://a.example")
		for _, host := range spellings {
			for _, scheme := range []string{"http://", "https://", "http:\\\\"} {
				_, err := c.Do(t.Context(), names, &egress.Request{URL: scheme + host + "/"}, nil)
				if code := skill.CodeOf(err); code != skill.InvalidArgument && code != skill.NetworkDenied {
					t.Errorf("%s%s: %v", scheme, host, err)
				}
			}
		}
	}
	if n := len(d.Dialed()); n > 0 || asked.Load() > 0 {
		t.Errorf("%d connections: %v", n, d.Dialed())
	}
}

// N01: a rule has one spelling for an address too, so none permits what it does not
// show.
func TestN01RulesHaveOneSpelling(t *testing.T) {
	for _, host := range spellings {
		r, err := skill.ParseHTTPRule("http://" + host)
		if err != nil {
			continue
		}
		want := strings.ToLower(host)
		if _, ok := r.Address(); r.Host != want || ok != (strings.Trim(want, "[]0123456789.:abcdef") == "" && strings.ContainsAny(want, "0123456789:")) {
			t.Errorf("%s was read as %q, an address: %v", host, r.Host, ok)
		}
	}
}

// N01: a name whose owner points it at an address that is not public, alone or
// among public ones.
func TestN01NamesOfPrivateAddresses(t *testing.T) {
	private := []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "100.100.100.200", "127.0.0.1", "127.255.255.255",
		"168.63.129.16", "169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.31.196.1",
		"192.52.193.1", "192.88.99.1", "192.168.0.1", "192.168.255.255", "192.175.48.1", "198.18.0.1", "198.19.255.255", "198.51.100.1",
		"203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1",
		"::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1",
		"2001::1", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::",
		"2620:4f:8000::1", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fdff::1", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "ff02::1", "ff0e::1",
		"2606:4700::1%eth0",
	}
	if len(private) < 60 {
		t.Fatalf("%d addresses", len(private))
	}
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	d := &Dialer{To: address(s)}
	for _, a := range private {
		if egress.Public(netip.MustParseAddr(a)) {
			t.Errorf("%s is taken for public", a)
		}
		for _, answer := range [][]string{{a}, {public, a}, {a, public}} {
			c := egress.New(&egress.Options{Resolver: Always(answer...), Dial: d.Dial})
			_, err := c.Do(t.Context(), rules(t, "http://a.example"), &egress.Request{URL: "http://a.example/"}, nil)
			wantCode(t, err, skill.NetworkDenied, "private or special network")
		}
	}
	if n := len(d.Dialed()); n > 0 {
		t.Errorf("%d connections", n)
	}
	for _, a := range []string{public, "8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.1", "172.15.255.255", "172.32.0.1", "223.255.255.255", "192.0.1.1", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"} {
		if !egress.Public(netip.MustParseAddr(a)) {
			t.Errorf("%s is taken for private", a)
		}
	}
}

// N01: localhost is this machine even where a resolver says otherwise.
func TestN01Localhost(t *testing.T) {
	c, d, _ := world(serve(t, func(http.ResponseWriter, *http.Request) {}), egress.Options{})
	for _, host := range []string{"localhost", "LocalHost", "a.localhost"} {
		_, err := c.Do(t.Context(), rules(t, "http://*", "http://localhost"), &egress.Request{URL: "http://" + host + "/"}, nil)
		wantCode(t, err, skill.NetworkDenied)
	}
	if n := len(d.Dialed()); n > 0 {
		t.Errorf("%d connections", n)
	}
}

// N01: an address of this machine is reached where a rule spells it out, and only so.
func TestN01NamedAddress(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") })
	_, port, _ := net.SplitHostPort(address(s))
	c := egress.New(nil)
	only := rules(t, "http://127.0.0.1:"+port)
	got, err := c.Do(t.Context(), only, &egress.Request{URL: "http://127.0.0.1:" + port + "/"}, nil)
	if err != nil || string(got.Body) != "here" {
		t.Fatalf("%v %+v", err, got)
	}
	for _, host := range []string{"127.0.0.2", "localhost", "127.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		_, err := c.Do(t.Context(), only, &egress.Request{URL: "http://" + host + ":" + port + "/"}, nil)
		if code := skill.CodeOf(err); code != skill.NetworkDenied && code != skill.InvalidArgument {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// N02: a redirect is held against the rules as the request was, and takes no
// secrets along.
func TestN02Redirects(t *testing.T) {
	var mu sync.Mutex
	var seen []*http.Request
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r)
		mu.Unlock()
		if to := r.URL.Query().Get("to"); to != "" {
			status := http.StatusFound
			_, _ = fmt.Sscan(r.URL.Query().Get("status"), &status)
			w.Header().Set("Location", to)
			w.WriteHeader(status)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s%s %s", r.Method, r.Host, r.URL.Path, body)
	})
	resolver := &Resolver{Names: map[string][][]netip.Addr{
		"private.example": {Addresses("10.0.0.1")}, "*": {Addresses(public)},
	}}
	d := &Dialer{To: address(s)}
	c := egress.New(&egress.Options{Resolver: resolver, Dial: d.Dial})
	allowed := rules(t, "http://a.example GET,POST,PUT", "http://b.example/open GET,POST,PUT", "http://private.example", "https://only-get.example GET")
	do := func(method, to string, status int) (*egress.Response, error) {
		mu.Lock()
		seen = nil
		mu.Unlock()
		return c.Do(t.Context(), allowed, &egress.Request{
			Method: method, URL: fmt.Sprintf("http://a.example/?status=%d&to=%s", status, url.QueryEscape(to)), Body: []byte("body"),
			Header: map[string]string{"Authorization": "Bearer hush", "X-Api-Key": "hush", "Cookie": "hush=1", "Content-Type": "text/plain", "Accept": "text/plain"},
		}, nil)
	}

	for _, to := range []string{
		"http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://[::1]/", "http://localhost/", "//127.0.0.1/", "http://169.254.169.254/latest/meta-data/",
		"http://private.example/", "http://c.example/", "http://a.example:8080/", "https://a.example/", "http://b.example/closed", "http://b.example/open/../closed",
		"file:///etc/passwd", "ftp://a.example/", "gopher://a.example/", "http://user:hush@a.example/", "http:/\\127.0.0.1/", "http://a.example@127.0.0.1/",
		"javascript:alert(1)", "data:text/plain,x", "http://ä.example/", "http://a.example./",
	} {
		before := len(d.Dialed())
		_, err := do("GET", to, http.StatusFound)
		wantCode(t, err, skill.NetworkDenied)
		if n := len(d.Dialed()) - before; n != 1 {
			t.Errorf("%s: %d connections, want that of the first request alone", to, n)
		}
	}

	// What is permitted is followed, and the request becomes what the standard says.
	for _, tc := range []struct {
		method, to string
		status     int
		want       string
	}{
		{"GET", "/x", 301, "GET a.example/x body"},
		{"GET", "http://b.example/open#part", 302, "GET b.example/open body"},
		{"POST", "/x", 301, "GET a.example/x "},
		{"POST", "/x", 302, "GET a.example/x "},
		{"PUT", "/x", 303, "GET a.example/x "},
		{"PUT", "/x", 301, "PUT a.example/x body"},
		{"POST", "/x", 307, "POST a.example/x body"},
		{"POST", "http://b.example/open/y", 308, "POST b.example/open/y body"},
	} {
		got, err := do(tc.method, tc.to, tc.status)
		if err != nil || string(got.Body) != tc.want {
			t.Errorf("%s %d %s: %v, %q, want %q", tc.method, tc.status, tc.to, err, bodyOf(got), tc.want)
			continue
		}
		mu.Lock()
		last := seen[len(seen)-1]
		mu.Unlock()
		elsewhere := strings.Contains(tc.to, "b.example")
		for _, name := range []string{"Authorization", "X-Api-Key", "Cookie"} {
			if (last.Header.Get(name) == "") != elsewhere {
				t.Errorf("%s: the header %s is %q", tc.to, name, last.Header.Get(name))
			}
		}
		if last.Header.Get("Accept") != "text/plain" {
			t.Errorf("%s: Accept is %q", tc.to, last.Header.Get("Accept"))
		}
	}

	// A method that the rule of the other host does not have.
	if _, err := do("POST", "https://only-get.example/", 307); skill.CodeOf(err) != skill.NetworkDenied {
		t.Errorf("POST after a redirect: %v", err)
	}
	// A redirect without an address is the answer itself.
	got, err := do("GET", "", 302)
	if err != nil || got.Status != 200 {
		t.Errorf("%v %+v", err, got)
	}
}

func bodyOf(r *egress.Response) string {
	if r == nil {
		return ""
	}
	return string(r.Body)
}

// N02: redirects end.
func TestN02EndlessRedirects(t *testing.T) {
	var asked atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, fmt.Sprint("/", asked.Add(1)), http.StatusFound)
	})
	c, _, _ := world(s, egress.Options{})
	_, err := c.Do(t.Context(), rules(t, "http://a.example"), &egress.Request{URL: "http://a.example"}, nil)
	wantCode(t, err, skill.ToolInvocationError, "more than 3 redirects")
	if asked.Load() != 4 {
		t.Errorf("%d requests, want 4", asked.Load())
	}
	asked.Store(0)
	c, _, _ = world(s, egress.Options{MaxRedirects: -1})
	_, err = c.Do(t.Context(), rules(t, "http://a.example"), &egress.Request{URL: "http://a.example"}, nil)
	wantCode(t, err, skill.ToolInvocationError, "more than 0 redirects")
	if asked.Load() != 1 {
		t.Errorf("%d requests, want 1", asked.Load())
	}
}

// N03: a name that is public when it is checked and private right after. It is
// asked once, and the connection goes to what was checked.
func TestN03Rebinding(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	d := &Dialer{To: address(s)}
	r := &Resolver{Names: map[string][][]netip.Addr{
		"a.example": {Addresses(public), Addresses("127.0.0.1")},
	}}
	c := egress.New(&egress.Options{Resolver: r, Dial: d.Dial})
	allowed := rules(t, "http://a.example")
	musttest.Get(c.Do(t.Context(), allowed, &egress.Request{URL: "http://a.example/"}, nil))(t)
	if got := d.Dialed(); len(got) != 1 || got[0] != netip.MustParseAddrPort(public+":80") || r.Asked("a.example") != 1 {
		t.Errorf("connected to %v, asked %d times", got, r.Asked("a.example"))
	}
	_, err := c.Do(t.Context(), allowed, &egress.Request{URL: "http://a.example/"}, nil)
	wantCode(t, err, skill.NetworkDenied)
	if len(d.Dialed()) != 1 {
		t.Errorf("connected to %v", d.Dialed())
	}
}

// N03: a name that turns private between a redirect and the request that follows.
func TestN03RebindingByRedirect(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) })
	d := &Dialer{To: address(s)}
	r := &Resolver{Names: map[string][][]netip.Addr{
		"a.example": {Addresses(public), Addresses("169.254.169.254")},
	}}
	c := egress.New(&egress.Options{Resolver: r, Dial: d.Dial})
	_, err := c.Do(t.Context(), rules(t, "http://a.example"), &egress.Request{URL: "http://a.example/"}, nil)
	wantCode(t, err, skill.NetworkDenied)
	if len(d.Dialed()) != 1 {
		t.Errorf("connected to %v", d.Dialed())
	}
}

// N03: where one address does not answer, another one of those that were checked is
// taken, and no others.
func TestN03OnlyCheckedAddresses(t *testing.T) {
	var dialed []netip.AddrPort
	fail := func(_ context.Context, _ string, a netip.AddrPort) (net.Conn, error) {
		dialed = append(dialed, a)
		return nil, net.ErrClosed
	}
	c := egress.New(&egress.Options{Resolver: Always(public, public2, "2606:4700::1", "1.1.1.1", "8.8.8.8"), Dial: fail})
	_, err := c.Do(t.Context(), rules(t, "https://a.example:8443"), &egress.Request{URL: "https://a.example:8443/"}, nil)
	wantCode(t, err, skill.ToolInvocationError)
	want := fmt.Sprint([]string{public + ":8443", public2 + ":8443", "[2606:4700::1]:8443", "1.1.1.1:8443"})
	if fmt.Sprint(dialed) != want {
		t.Errorf("connected to %v, want %v", dialed, want)
	}
}

// N04: responses without an end, in every part, end at a limit.
func TestN04EndlessResponses(t *testing.T) {
	raw := func(write func(conn net.Conn)) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			write(conn)
		}
	}
	forever := func(first, each string) http.HandlerFunc {
		return raw(func(conn net.Conn) {
			if _, err := io.WriteString(conn, first); err != nil {
				return
			}
			for {
				if _, err := io.WriteString(conn, each); err != nil {
					return // the client has had enough
				}
			}
		})
	}
	kilo := strings.Repeat("x", 1024)
	for name, tc := range map[string]struct {
		handle http.HandlerFunc
		code   skill.Code
	}{
		"body to the end of the connection": {forever("HTTP/1.1 200 OK\r\n\r\n", kilo), skill.PayloadTooLarge},
		"chunked body":                      {forever("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "400\r\n"+kilo+"\r\n"), skill.PayloadTooLarge},
		"tiny chunks":                       {forever("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"), skill.PayloadTooLarge},
		"a body that says how long it is":   {forever("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", kilo), skill.PayloadTooLarge},
		"status line":                       {forever("HTTP/1.1 200 ", kilo), skill.ToolInvocationError},
		"one header":                        {forever("HTTP/1.1 200 OK\r\nX: ", kilo), skill.ToolInvocationError},
		"headers":                           {forever("HTTP/1.1 200 OK\r\n", "X-"+kilo+": y\r\n"), skill.ToolInvocationError},
		"answers before the answer":         {forever("", "HTTP/1.1 103 Early Hints\r\n\r\n"), skill.ToolInvocationError},
		"another protocol":                  {forever("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", kilo), skill.PayloadTooLarge},
		"no HTTP at all":                    {forever("", kilo), skill.ToolInvocationError},
		"a header that is none":             {raw(func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nbad header\r\n\r\n") }), skill.ToolInvocationError},
		"a length that is none":             {raw(func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n") }), skill.ToolInvocationError},
		"a body that breaks off":            {raw(func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort") }), skill.ToolInvocationError},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tc.handle)
			c, _, _ := world(s, egress.Options{MaxResponse: 64 << 10, Timeout: 20 * time.Second})
			_, err := c.Do(t.Context(), rules(t, "http://a.example"), &egress.Request{URL: "http://a.example"}, nil)
			wantCode(t, err, tc.code)
		})
	}
}

// N04: the same over HTTP/2, whose frames and headers are counted elsewhere.
func TestN04EndlessOverHTTP2(t *testing.T) {
	kilo := strings.Repeat("x", 1024)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/headers" {
			for i := range 100 {
				w.Header().Set(fmt.Sprint("X-", i), kilo)
			}
			return
		}
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, kilo); err != nil {
				return
			}
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c, _, _ := world(s, egress.Options{RootCAs: roots, MaxResponse: 64 << 10, Timeout: 20 * time.Second})
	for path, code := range map[string]skill.Code{"body": skill.PayloadTooLarge, "headers": skill.ToolInvocationError} {
		_, err := c.Do(t.Context(), rules(t, "https://example.com"), &egress.Request{URL: "https://example.com/" + path}, nil)
		wantCode(t, err, code)
	}
}

// N04: the limit is reached to the byte.
func TestN04ResponseLimit(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := 0
		_, _ = fmt.Sscan(r.URL.RawQuery, &n)
		_, _ = w.Write(bytes.Repeat([]byte("x"), n))
	})
	c, _, _ := world(s, egress.Options{MaxResponse: 100_000})
	for n, want := range map[int]skill.Code{0: "", 99_999: "", 100_000: "", 100_001: skill.PayloadTooLarge} {
		got, err := c.Do(t.Context(), rules(t, "http://a.example"), &egress.Request{URL: fmt.Sprint("http://a.example/?", n)}, nil)
		if skill.CodeOf(err) != want || err == nil && len(got.Body) != n {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// N04: what is compressed stays so: a bomb is as large as what came over the network.
func TestN04CompressedResponse(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 100 {
		_, _ = z.Write(zeros)
	}
	_ = z.Close()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("Accept-Encoding is %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	c, _, _ := world(s, egress.Options{})
	got, err := c.Do(t.Context(), rules(t, "http://a.example"), &egress.Request{URL: "http://a.example"}, nil)
	if err != nil || !bytes.Equal(got.Body, bomb.Bytes()) || got.Header["content-encoding"][0] != "gzip" {
		t.Errorf("%v, %d bytes of %d", err, len(got.Body), bomb.Len())
	}
}

// N04: slowness in every part ends with the request's own time.
func TestN04SlowResponses(t *testing.T) {
	drip := func(first, each string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			_, err = io.WriteString(conn, first)
			for err == nil {
				<-tick.C
				_, err = io.WriteString(conn, each)
			}
		}
	}
	for name, handle := range map[string]http.HandlerFunc{
		"body":    drip("HTTP/1.1 200 OK\r\n\r\n", "x"),
		"headers": drip("HTTP/1.1 200 OK\r\nX: ", "x"),
		"status":  drip("HTTP/1.1 200 ", "x"),
		"silence": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			c, _, _ := world(serve(t, handle), egress.Options{Timeout: 100 * time.Millisecond})
			began := time.Now()
			_, err := c.Do(t.Context(), rules(t, "http://a.example"), &egress.Request{URL: "http://a.example", Timeout: time.Hour}, nil)
			wantCode(t, err, skill.Timeout, "100 ms")
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			// The request may lower the time, and the run's own end comes first.
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err = c.Do(ctx, rules(t, "http://a.example"), &egress.Request{URL: "http://a.example"}, nil)
			wantCode(t, err, skill.Cancelled)
		})
	}
}
