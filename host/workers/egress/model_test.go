package egress_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/workers/egress"
	"openskill/sdk/skill"
)

// What the model is made of. A fuzzer chooses among these, which it would never spell.
var (
	modelRules = []string{
		"https://api.example/v1/ GET,POST", "http://api.example GET", "http://*.api.example/x/ GET", "http://127.0.0.1:8080/ok GET",
		"http://[::1]/ GET,PUT", "https://* HEAD", "http://10.0.0.7 DELETE", "http://inside.example GET",
	}
	modelHosts = []string{
		"api.example", "x.api.example", "api.example.evil.example", "evil.example", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.7",
		"169.254.169.254", "localhost", "inside.example", "api.example:80", "api.example:443", "2130706433", "0x7f.1", "api.example.", "API.example", "evil.example@api.example",
	}
	modelPaths   = []string{"", "/", "/v1/", "/v1", "/v1/../x", "/v1/%2e%2e/x", "/x/y", "/ok", "/ok/../secret", "//evil.example/", "/v1/;@evil.example", "/v1/?u=http://evil.example"}
	modelMethods = []string{"", "GET", "POST", "HEAD", "PUT", "DELETE", "get", "CONNECT", "TRACE"}
)

// modelNames says what names mean in the model.
func modelNames(name string) netip.Addr {
	switch {
	case strings.HasPrefix(name, "inside."):
		return netip.MustParseAddr("10.0.0.9")
	case strings.HasPrefix(name, "evil."):
		return netip.MustParseAddr("93.184.216.35")
	}
	return netip.MustParseAddr("93.184.216.34")
}

// network is what the model sees of what leaves: each connection with its request.
type network struct {
	redirects []string // what the first requests are answered with

	mu   sync.Mutex
	sent []departure
}

type departure struct {
	to     netip.AddrPort
	method string
	host   string
	path   string
	header http.Header
}

func (n *network) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return []netip.Addr{modelNames(strings.TrimSuffix(host, "."))}, nil
}

func (n *network) dial(_ context.Context, _ string, to netip.AddrPort) (net.Conn, error) {
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		_ = there.SetDeadline(time.Now().Add(5 * time.Second))
		r, err := http.ReadRequest(bufio.NewReader(there))
		if err != nil {
			return // a handshake of TLS, perhaps: the destination is all that is seen
		}
		n.mu.Lock()
		n.sent = append(n.sent, departure{to, r.Method, r.Host, r.URL.EscapedPath(), r.Header})
		answer := "HTTP/1.1 204 No Content\r\n\r\n"
		if k := len(n.sent) - 1; k < len(n.redirects) {
			answer = "HTTP/1.1 307 Temporary Redirect\r\nLocation: " + n.redirects[k] + "\r\nContent-Length: 0\r\n\r\n"
		}
		n.mu.Unlock()
		_, _ = there.Write([]byte(answer))
	}()
	n.mu.Lock()
	defer n.mu.Unlock()
	if to.Port() == 443 { // nothing is read of it: it counts as sent
		n.sent = append(n.sent, departure{to: to})
	}
	return here, nil
}

// mayLeave is the model: whether a plain request may be seen on the network under rules. It
// reads rules by itself, and knows addresses by a list of its own.
func mayLeave(granted []string, d departure) error {
	public := !d.to.Addr().IsLoopback() && !d.to.Addr().IsPrivate() && !d.to.Addr().IsLinkLocalUnicast()
	if d.method == "" { // over TLS
		if !public {
			return fmt.Errorf("a connection to %v", d.to)
		}
		return nil
	}
	host, port, err := net.SplitHostPort(d.host)
	if err != nil {
		host, port = strings.Trim(d.host, "[]"), "80"
	}
	for _, text := range granted {
		address, methods, _ := strings.Cut(text, " ")
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "http" || !slices.Contains(strings.Split(methods, ","), d.method) {
			continue
		}
		if want := u.Port(); want != port && (want != "" || port != "80") {
			continue
		}
		name, wild := strings.CutPrefix(u.Hostname(), "*")
		if wild && !strings.HasSuffix(host, name) || !wild && host != name {
			continue
		}
		prefix := strings.TrimSuffix(u.Path, "/")
		if strings.Contains(d.path, "..") || prefix != "" && d.path != u.Path && !strings.HasPrefix(d.path, prefix+"/") {
			continue
		}
		a, err := netip.ParseAddr(host)
		if err == nil && a == d.to.Addr() || err != nil && public && modelNames(host) == d.to.Addr() {
			return nil
		}
	}
	return fmt.Errorf("%s http://%s%s to %v, under %q", d.method, d.host, d.path, d.to, granted)
}

// FuzzWhatLeaves makes requests of pieces, with redirects of pieces, under rules of pieces,
// and holds what is seen on the network against a model. A secret goes to no other origin
// than the first.
func FuzzWhatLeaves(f *testing.F) {
	f.Add([]byte{0, 1, 0, 2, 1, 0, 3, 1})
	f.Add([]byte{255, 1, 0, 4, 1, 7, 5, 3, 9, 2})
	f.Add([]byte{8, 1, 0, 5, 7, 0, 5, 8})
	f.Add([]byte{16, 4, 0, 6, 1})
	f.Add([]byte{64 + 2, 1, 0, 0, 1, 0, 9, 0, 0, 11, 0})
	f.Fuzz(whatLeaves)
}

// TestWhatLeaves is the same by chance, as many as take a second.
func TestWhatLeaves(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		choice := make([]byte, 4+r.IntN(12))
		for i := range choice {
			choice[i] = byte(r.Uint32())
		}
		if whatLeaves(t, choice); t.Failed() {
			t.Fatalf("by %v", choice)
		}
	}
}

func whatLeaves(t *testing.T, choice []byte) {
	t.Helper()
	next := func(of int) int {
		if len(choice) == 0 {
			return 0
		}
		n := int(choice[0]) % of
		choice = choice[1:]
		return n
	}
	var granted []string
	var parsed []skill.HTTPRule
	for i, which := 0, next(256); i < len(modelRules); i++ {
		if which&(1<<i) != 0 {
			granted = append(granted, modelRules[i])
			parsed = append(parsed, rules(t, modelRules[i])...)
		}
	}
	method := modelMethods[next(len(modelMethods))]
	address := func() string {
		return []string{"http", "https", "HTTP", "ftp"}[next(4)] + "://" + modelHosts[next(len(modelHosts))] + modelPaths[next(len(modelPaths))]
	}
	first := address()
	n := &network{}
	for len(choice) > 0 && len(n.redirects) < 4 {
		n.redirects = append(n.redirects, address())
	}
	c := egress.New(&egress.Options{Resolver: n, Dial: n.dial, Timeout: 2 * time.Second})
	var denials int
	told := egress.New(&egress.Options{Resolver: n, Dial: n.dial, Timeout: 2 * time.Second, Denied: func(*skill.Call) { denials++ }})
	_, _ = c.Do(t.Context(), parsed, &egress.Request{Method: method, URL: first, Header: map[string]string{"X-Secret": "hidden"}}, nil)
	n.mu.Lock()
	sent := slices.Clone(n.sent)
	n.sent = nil
	n.mu.Unlock()
	for i, d := range sent {
		if err := mayLeave(granted, d); err != nil {
			t.Errorf("%s, redirected to %q: %v left", first, n.redirects, err)
		}
		if d.header.Get("X-Secret") != "" && d.host != sent[0].host {
			t.Errorf("request %d took the secret of http://%s to http://%s", i, sent[0].host, d.host)
		}
	}
	head, _ := json.Marshal(map[string]string{"method": method, "url": first})
	answer := told.For(&skill.Call{Grants: skill.Grants{HTTP: parsed}})(t.Context(), head)
	if is := strings.Contains(string(answer), string(skill.NetworkDenied)); is != (denials == 1) {
		t.Errorf("%d denials are told of %s", denials, answer)
	}
}
