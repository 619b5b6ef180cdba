package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// Options say how a host is reached.
type Options struct {
	Key         string        // sent as a bearer token; empty: none
	Connections int           // most connections at once; 0 is 1
	Timeout     time.Duration // of one request; 0 is 30 s
	Remote      bool          // whether the host may be another machine than this one
}

// ErrNotLoopback is a host that is not on this machine, where none was asked for.
var ErrNotLoopback = errors.New("not an address of this machine")

// mostAnswer bounds the body of an answer, in bytes.
const mostAnswer = 64 << 20

// Target is a host that is called. Its methods may be called by many at once.
type Target struct {
	client *fasthttp.HostClient
	base   string
	auth   string

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

// Open makes a target of a host's address, and connects to nothing yet.
func Open(address string, o Options) (*Target, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("not an address such as http://127.0.0.1:8000")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("not an http or https address without user, query and fragment, such as http://127.0.0.1:8000")
	case !o.Remote && !nameOfLoopback(u.Hostname()):
		return nil, ErrNotLoopback
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	t := &Target{base: u.Scheme + "://" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/"), conns: map[net.Conn]struct{}{}}
	if o.Key != "" {
		t.auth = "Bearer " + o.Key
	}
	dialer := &net.Dialer{Timeout: min(o.Timeout, 10*time.Second)}
	t.client = &fasthttp.HostClient{
		Addr: net.JoinHostPort(u.Hostname(), port), IsTLS: u.Scheme == "https", MaxConns: max(o.Connections, 1),
		MaxConnWaitTimeout: o.Timeout, ReadTimeout: o.Timeout, WriteTimeout: o.Timeout, MaxIdleConnDuration: time.Minute,
		MaxResponseBodySize: mostAnswer, NoDefaultUserAgentHeader: true, DisablePathNormalizing: true,
		// A request that is sent again in secret would be one request too many, and
		// the first one's failure would be nobody's.
		RetryIfErr: func(*fasthttp.Request, int, error) (bool, bool) { return false, false },
		Dial: func(addr string) (net.Conn, error) {
			c, err := dialer.Dial("tcp", addr)
			if err != nil {
				return nil, err
			}
			if !o.Remote && !loopback(c.RemoteAddr()) { // a name may lead anywhere
				return nil, errors.Join(ErrNotLoopback, c.Close())
			}
			return t.keep(c)
		},
	}
	return t, nil
}

// nameOfLoopback reports whether a name or address of a host is this machine's.
func nameOfLoopback(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

func loopback(a net.Addr) bool {
	p, err := netip.ParseAddrPort(a.String())
	return err == nil && p.Addr().Unmap().IsLoopback()
}

// kept is a connection that is closed with its target.
type kept struct {
	net.Conn

	t *Target
}

// Close implements net.Conn.
func (k *kept) Close() error {
	k.t.mu.Lock()
	delete(k.t.conns, k.Conn)
	k.t.mu.Unlock()
	return k.Conn.Close()
}

func (t *Target) keep(c net.Conn) (net.Conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	t.conns[c] = struct{}{}
	return &kept{c, t}, nil
}

// Close closes all connections: calls under way end at once. It may be called twice.
func (t *Target) Close() {
	t.mu.Lock()
	t.closed = true
	for c := range t.conns {
		_ = c.Close() // who reads from it gets the error
	}
	t.mu.Unlock()
	t.client.CloseIdleConnections()
}

// Request is what is sent.
type Request struct {
	Method, Path string
	ContentType  string // of Body
	Body         []byte
}

// Answer is what came back. Body is the caller's.
type Answer struct {
	Status  int
	Success bool   // status 2xx, and a result that does not say otherwise
	Code    string // of a failure that the host named
	Body    []byte
}

// Failures that no host named, as codes beside its own.
const (
	NoConnection = "no-connection" // none could be made
	NoAnswer     = "no-answer"     // within the time
	BrokenAnswer = "broken-answer" // the connection was cut, or what came is not HTTP
	OtherStatus  = "other-status"  // a failure without a code that can be read
	NotLoopback  = "not-loopback"  // the name leads to another machine
)

// failureOf names what a client found wrong.
func failureOf(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var timeout net.Error
	switch {
	case errors.Is(err, ErrNotLoopback):
		return NotLoopback
	case errors.As(err, &op) && op.Op == "dial", errors.As(err, &dns), errors.Is(err, fasthttp.ErrDialTimeout), errors.Is(err, fasthttp.ErrNoFreeConns):
		return NoConnection
	case errors.Is(err, fasthttp.ErrTimeout), errors.As(err, &timeout) && timeout.Timeout():
		return NoAnswer
	}
	return BrokenAnswer
}

// Do sends a request once. The error is one of this side; its name is in the answer's code.
func (t *Target) Do(r *Request) (*Answer, error) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(r.Method)
	if r.ContentType != "" {
		req.Header.SetContentType(r.ContentType)
	}
	if t.auth != "" {
		req.Header.Set("Authorization", t.auth)
	}
	req.SetRequestURI(t.base + r.Path)
	req.SetBodyRaw(r.Body)
	if err := t.client.Do(req, resp); err != nil {
		return &Answer{Code: failureOf(err)}, err
	}
	a := &Answer{Status: resp.StatusCode(), Body: append([]byte(nil), resp.Body()...)}
	if a.Status/100 == 2 {
		a.Success = true
	}
	a.read()
	return a, nil
}

// read takes success and code out of the body, where it is the host's.
func (a *Answer) read() {
	var said struct {
		Success *bool `json:"success"`
		Error   *struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	err := json.Unmarshal(a.Body, &said)
	if err == nil && said.Success != nil && !*said.Success {
		a.Success = false
	}
	if a.Success {
		return
	}
	if a.Code = OtherStatus; err == nil && said.Error != nil && plain(said.Error.Code) {
		a.Code = said.Error.Code
	}
}

// plain reports whether a code can be one of a host: who answers may be anything.
func plain(code string) bool {
	if code == "" || len(code) > 40 {
		return false
	}
	for _, c := range []byte(code) {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// Invoke is the request that calls a skill with a body as POST /skills/{id}:invoke takes it.
func Invoke(id string, body []byte) *Request {
	return &Request{Method: fasthttp.MethodPost, Path: "/skills/" + url.PathEscape(id) + ":invoke", ContentType: "application/json", Body: body}
}

// Said is an answer in a few words, for an error.
func (a *Answer) Said() string {
	if a.Status == 0 {
		return a.Code
	}
	return fmt.Sprintf("status %d %s: %.300q", a.Status, a.Code, a.Body)
}
