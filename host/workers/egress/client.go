package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"openskill/host/internal/gate"
	"openskill/internal/outgoing"
	"openskill/sdk/skill"
)

// Resolver tells the addresses of a name; *net.Resolver is one.
type Resolver interface {
	// LookupNetIP gives the addresses of host; network is "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options bound a Client; nil and zero fields mean the defaults.
type Options struct {
	MaxRequests  int           // of one run, redirects included; 0: 16
	MaxRequest   int           // bytes of a request's body; 0: 1 MiB
	MaxResponse  int           // bytes of a response's body, as they come over the network; 0: 4 MiB
	MaxHeader    int           // bytes of the headers of a request, and again of a response; 0: 32 KiB
	MaxRedirects int           // followed for one request; 0: 3; negative: none
	Timeout      time.Duration // of one request with its redirects, within the run's own; 0: 30 s
	Concurrency  int           // requests of all runs at once; more wait, within their time; 0: 64
	Alone        bool          // all runs are of one tenant, which may have all of these

	Log *slog.Logger // gets a line for each request of a guest; nil: none

	// Denied is told of each request that was refused with NETWORK_DENIED, at most
	// MaxRequests of a run; nil: nobody is.
	Denied func(call *skill.Call)

	Resolver Resolver       // nil: the system's
	RootCAs  *x509.CertPool // nil: the system's

	// Dial connects to address, one of those that were checked. nil: a dialer that
	// looks at the address once more when the connection is made.
	Dial func(ctx context.Context, network string, address netip.AddrPort) (net.Conn, error)
}

// maxRequests is the default of [Options].MaxRequests.
const maxRequests = 16

// Client makes requests. It is safe for concurrent use, and keeps nothing of one
// for the next.
type Client struct {
	o     Options
	slots *gate.Gate
}

// mostWaiting is how many requests wait; calls, of which there are fewer, bound them first.
const mostWaiting = 10_000

// New makes a client. It connects to nothing.
func New(opts *Options) *Client {
	c := &Client{}
	if opts != nil {
		c.o = *opts
	}
	for field, def := range map[*int]int{
		&c.o.MaxRequests: maxRequests, &c.o.MaxRequest: 1 << 20, &c.o.MaxResponse: 4 << 20, &c.o.MaxHeader: 32 << 10,
		&c.o.MaxRedirects: 3, &c.o.Concurrency: 64,
	} {
		if *field == 0 || *field < 0 && field != &c.o.MaxRedirects {
			*field = def
		}
	}
	if c.o.Timeout <= 0 {
		c.o.Timeout = 30 * time.Second
	}
	if c.o.Log == nil {
		c.o.Log = slog.New(slog.DiscardHandler)
	}
	if c.o.Resolver == nil {
		// That of the C library cannot be interrupted.
		c.o.Resolver = &net.Resolver{PreferGo: true}
	}
	if c.o.Dial == nil {
		c.o.Dial = dial
	}
	c.slots = gate.New(gate.Options{Places: c.o.Concurrency, Queue: mostWaiting, Alone: c.o.Alone})
	return c
}

// Request is one request of a guest.
type Request struct {
	Method  string            // "" means GET
	URL     string            // in the one spelling that is accepted
	Header  map[string]string // names in any case
	Body    []byte
	Timeout time.Duration // 0: the client's; it is held below that
	Manual  bool          // redirects are responses, not followed
}

// Response is what came back.
type Response struct {
	Status int                 // of the last response, which is no redirect that was followed
	URL    string              // of it
	Header map[string][]string // names in lower case
	Body   []byte
}

// Do makes a request that rules permit, and follows its redirects as far as they
// do. budget is how many requests may still be made, and is counted down; nil: as
// many as one run may. The error is a *skill.Error: INVALID_ARGUMENT,
// NETWORK_DENIED, PAYLOAD_TOO_LARGE, RATE_LIMITED, TIMEOUT, CANCELLED, or
// TOOL_INVOCATION_ERROR where the network or the other side failed.
func (c *Client) Do(ctx context.Context, rules []skill.HTTPRule, r *Request, budget *int) (*Response, error) {
	return c.do(ctx, &skill.Call{Grants: skill.Grants{HTTP: rules}}, r, budget)
}

// do is Do for a call, by its grants.
func (c *Client) do(ctx context.Context, call *skill.Call, r *Request, budget *int) (*Response, error) {
	t, err := parseTarget(r.URL)
	if err != nil {
		return nil, err
	}
	header, err := c.header(r.Header)
	if err != nil {
		return nil, err
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	if !slices.Contains(skill.HTTPMethods[:], method) {
		return nil, invalid("the method must be one of " + strings.Join(skill.HTTPMethods[:], ", "))
	}
	if len(r.Body) > c.o.MaxRequest {
		return nil, tooLarge("the request body is too large: %d bytes, the limit is %d", len(r.Body), c.o.MaxRequest)
	}
	if budget == nil {
		n := c.o.MaxRequests
		budget = &n
	}
	timeout := c.o.Timeout
	if r.Timeout > 0 {
		timeout = min(timeout, r.Timeout)
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	w := walk{c: c, call: call, method: method, header: header, body: r.Body, manual: r.Manual, budget: budget}
	out, err := w.follow(ctx, t)
	if err != nil {
		return nil, told(caller, ctx, err, timeout)
	}
	return out, nil
}

// told gives err as a *skill.Error that says whose end it was.
func told(caller, ctx context.Context, err error, timeout time.Duration) error {
	var known *skill.Error
	var unknown x509.UnknownAuthorityError
	var wrongName x509.HostnameError
	var invalidCert x509.CertificateInvalidError
	failed := func(message string) error {
		return &skill.Error{Op: "egress.Do", Code: skill.ToolInvocationError, Message: message, Err: err}
	}
	switch {
	case caller.Err() != nil:
		return &skill.Error{Op: "egress.Do", Code: skill.Cancelled, Message: "the run ended before the response arrived", Err: err}
	case ctx.Err() != nil:
		return &skill.Error{
			Op: "egress.Do", Code: skill.Timeout, Err: err,
			Message: fmt.Sprintf("the server did not respond within %d ms", timeout.Milliseconds()),
		}
	case errors.As(err, &known):
		return known
	case errors.As(err, &unknown), errors.As(err, &wrongName), errors.As(err, &invalidCert):
		return failed("the server's certificate is not trusted for this name")
	default:
		return failed("the request failed: the server is unreachable or sent invalid HTTP")
	}
}

func (c *Client) exhausted() error {
	return &skill.Error{
		Op: "egress.Do", Code: skill.RateLimited,
		Message: fmt.Sprintf("request limit of %d per call reached", c.o.MaxRequests),
	}
}

func tooLarge(format string, args ...any) error {
	return &skill.Error{Op: "egress.Do", Code: skill.PayloadTooLarge, Message: fmt.Sprintf(format, args...)}
}

func denied(format string, args ...any) error {
	return &skill.Error{Op: "egress.Do", Code: skill.NetworkDenied, Message: skill.CleanText(fmt.Sprintf(format, args...), skill.MaxMessage)}
}

// walk is one request of a guest on its way through redirects.
type walk struct {
	c      *Client
	call   *skill.Call
	method string
	header http.Header
	body   []byte
	manual bool
	budget *int
}

func (w *walk) follow(ctx context.Context, t *target) (*Response, error) {
	leave, err := w.c.slots.Enter(ctx, w.call.Tenant)
	if err != nil {
		return nil, gate.Refusal(err, "egress.Do", "too many requests of skills are queued")
	}
	defer leave()
	for hop := 0; ; hop++ {
		if *w.budget <= 0 {
			return nil, w.c.exhausted()
		}
		*w.budget--
		resp, location, err := w.once(ctx, t)
		if err != nil || location == "" {
			return resp, err
		}
		if hop >= w.c.o.MaxRedirects {
			return nil, &skill.Error{
				Op: "egress.Do", Code: skill.ToolInvocationError,
				Message: fmt.Sprintf("more than %d redirects", max(w.c.o.MaxRedirects, 0)),
			}
		}
		next, err := t.redirected(location)
		if err != nil {
			return nil, err
		}
		w.turn(resp.Status, t.origin != next.origin)
		t = next
	}
}

// turn changes the request as a redirect wants it (RFC 9110, section 15.4).
func (w *walk) turn(status int, elsewhere bool) {
	if status == http.StatusSeeOther && w.method != http.MethodHead || status <= http.StatusFound && w.method == http.MethodPost {
		w.method, w.body = http.MethodGet, nil
		w.header.Del("Content-Type")
	}
	if !elsewhere {
		return
	}
	// Any header may be a secret that was meant for the first origin.
	for name := range w.header {
		if !slices.Contains(harmless[:], name) {
			w.header.Del(name)
		}
	}
}

var harmless = [...]string{"Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "User-Agent"}

// denied says which grant would permit a request.
func (w *walk) denied(t *target) error {
	what := fmt.Sprintf("request not allowed: %s %s%.100s", w.method, t.origin, t.path)
	if w.call.Script {
		return denied("%s: allow it with openskill skills allow %s --http '%s,%s' (or --allow of openskill script)", what, w.call.SkillID, t.origin, w.method)
	}
	return denied("%s: add it to permissions.http in the manifest, and ask the operator to add it to OPENSKILL_HTTP_ALLOW, for example %q",
		what, t.origin.String()+" "+w.method)
}

var redirects = [...]int{
	http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
}

// once makes one request. location is not "" where the response is a redirect.
func (w *walk) once(ctx context.Context, t *target) (resp *Response, location string, err error) {
	rule := slices.IndexFunc(w.call.Grants.HTTP, func(r skill.HTTPRule) bool { return outgoing.Permits(r, w.method, t.origin, t.path) })
	if rule < 0 {
		return nil, "", w.denied(t)
	}
	addresses, err := w.c.resolve(ctx, t.origin)
	if err != nil {
		return nil, "", err
	}
	req, secrets, err := w.request(ctx, t)
	if err != nil {
		return nil, "", err
	}
	transport := w.c.transport(addresses, t.origin.Port)
	defer transport.CloseIdleConnections()
	got, err := transport.RoundTrip(req)
	if err != nil {
		return nil, "", secrets.hideError(err)
	}
	defer got.Body.Close()
	resp = &Response{Status: got.StatusCode, URL: t.String(), Header: make(map[string][]string, len(got.Header))}
	if location = secrets.hide(got.Header.Get("Location")); location != "" && !w.manual && slices.Contains(redirects[:], got.StatusCode) {
		return resp, location, nil
	}
	for name, values := range got.Header {
		for i := range values {
			values[i] = secrets.hide(values[i])
		}
		resp.Header[strings.ToLower(name)] = values
	}
	if got.ContentLength > int64(w.c.o.MaxResponse) && w.method != http.MethodHead {
		return nil, "", tooLarge("the response is too large: %d bytes, the limit is %d", got.ContentLength, w.c.o.MaxResponse)
	}
	resp.Body, err = io.ReadAll(io.LimitReader(got.Body, int64(w.c.o.MaxResponse)+1))
	switch {
	case err != nil:
		return nil, "", secrets.hideError(err)
	case len(resp.Body) > w.c.o.MaxResponse:
		return nil, "", tooLarge("the response is too large; the limit is %d bytes", w.c.o.MaxResponse)
	}
	resp.Body, err = secrets.hideBody(resp.Body, w.c.o.MaxResponse)
	return resp, "", err
}

// request makes the request that goes out, with the values of those secrets that are for its
// target. What the guest is told of it has none.
func (w *walk) request(ctx context.Context, t *target) (*http.Request, *swap, error) {
	secrets := swapFor(w.call.Grants.Secrets, w.method, t)
	to, err := secrets.target(t)
	if err != nil {
		return nil, nil, err
	}
	header := w.header.Clone()
	if err := secrets.header(header, w.c.o.MaxHeader); err != nil {
		return nil, nil, err
	}
	body, err := secrets.body(w.body, header.Get("Content-Type"), w.c.o.MaxRequest)
	if err != nil {
		return nil, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, w.method, "", bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.URL, req.Header = to.url(), header
	req.Host = req.URL.Host
	return req, secrets, nil
}

// transport is that of one request, to addresses that were checked.
func (c *Client) transport(addresses []netip.Addr, port uint16) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		// No Proxy: that of the host's environment is not the guests'.
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var errs []error
			for _, a := range addresses {
				conn, err := c.o.Dial(ctx, network, netip.AddrPortFrom(a, port))
				if err == nil {
					return conn, nil
				}
				errs = append(errs, err)
			}
			return nil, errors.Join(errs...)
		},
		TLSClientConfig:        &tls.Config{RootCAs: c.o.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: int64(c.o.MaxHeader),
		Protocols:              protocols,
	}
}
