package app

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"openskill/internal/musttest"
)

// TestOriginsOfTheHost: where nobody must show who they are, pages of other programs on this
// machine may not act as its operator, also not those at the address of the default.
func TestOriginsOfTheHost(t *testing.T) {
	for name, c := range map[string]struct {
		flags  map[string]string
		origin string // "": the host's own
		want   int
	}{
		"its own":                  {nil, "", 200},
		"the default of settings":  {nil, "http://127.0.0.1:8000", 403},
		"what the operator names":  {map[string]string{"http-base-url": "https://skills.example"}, "https://skills.example", 200},
		"the default, if named":    {map[string]string{"http-base-url": "http://127.0.0.1:8000"}, "http://127.0.0.1:8000", 200},
		"another, if one is named": {map[string]string{"http-base-url": "https://skills.example"}, "http://127.0.0.1:8000", 403},
	} {
		t.Run(name, func(t *testing.T) {
			v := serve(t, settings(t, c.flags))
			if c.origin == "" {
				c.origin = v.url
			}
			req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, v.url+"/skills/quick:disable", strings.NewReader("")))(t)
			req.Close = true
			req.Header.Set("Origin", c.origin)
			req.Header.Set("Sec-Fetch-Site", "same-site")
			res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req)
			musttest.Do(t, err)
			if err := res.Body.Close(); err != nil || res.StatusCode != c.want {
				t.Errorf("%d, want %d (%v)", res.StatusCode, c.want, err)
			}
		})
	}
}

// Several origins may be named, and all edges take the same ones: as the page of a request and
// as the name by which the server is called.
func TestSeveralOrigins(t *testing.T) {
	v := serve(t, settings(t, map[string]string{
		"http-base-url": "https://skills.example/host",
		"http-origins":  "https://intern.example:8443, HTTPS://[2001:db8::1]:443,http://localhost:3000",
	}))
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, strings.TrimPrefix(v.url, "http://"))
	}
	ask := func(method, path, host, origin string) int {
		t.Helper()
		req := musttest.Get(http.NewRequestWithContext(t.Context(), method, v.url+path, strings.NewReader("")))(t)
		req.Close = true
		if host != "" {
			req.Host = host
		}
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		res, err := transport.RoundTrip(req)
		musttest.Do(t, err)
		musttest.Do(t, res.Body.Close())
		return res.StatusCode
	}
	for _, c := range []struct {
		origin, host string
		known        bool
	}{
		{"https://skills.example", "skills.example", true},
		{"https://intern.example:8443", "intern.example:8443", true},
		{"https://[2001:db8::1]", "[2001:db8::1]", true},
		{"http://localhost:3000", "", true},
		{"https://intern.example", "intern.example", false}, // another port
		{"http://intern.example:8443", "", false},           // another scheme
		{"https://a.intern.example:8443", "a.intern.example:8443", false},
		{"https://other.example", "other.example", false},
		{"null", "", false},
		{"https://skills.example, https://intern.example:8443", "", false},
	} {
		t.Run(c.origin, func(t *testing.T) {
			for _, edge := range [][2]string{{"POST", "/skills/quick:disable"}, {"POST", "/mcp"}, {"POST", "/console/signin"}} {
				if got := ask(edge[0], edge[1], c.host, c.origin); (got != http.StatusForbidden) != c.known {
					t.Errorf("%s %s of its page: %d", edge[0], edge[1], got)
				}
			}
			if c.host == "" {
				return
			}
			for _, path := range []string{"/skills", "/mcp", "/console/signin"} {
				if got := ask("GET", path, c.host, ""); (got != http.StatusForbidden) != c.known {
					t.Errorf("GET %s by the name %s: %d", path, c.host, got)
				}
			}
		})
	}
}
