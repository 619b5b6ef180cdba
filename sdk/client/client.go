package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// Options of a [Client]; nil means the defaults.
type Options struct {
	// Key is an API key or a JWT. "": none is shown, which hosts on loopback accept.
	// It goes to the base URL as it is: to another machine use https.
	Key string
	// HTTP makes the requests; it is copied, and the copy follows no redirects. Its
	// Timeout would end streams too. nil: one of the client's own, without a timeout.
	HTTP *http.Client
	// UserAgent is the header of this name. "": openskill-client.
	UserAgent string
	// MaxAnswer is the longest answer that is read, in bytes. 0: 64 MiB.
	MaxAnswer int64
	// MaxEvent is the longest event of a stream that is read, in bytes. 0: 16 MiB.
	MaxEvent int
	// Retries is how often a request is sent again that the host refused before anything
	// began: with 429, or with 503 and a time, or with 503 where it only reads. It waits as
	// long as the host says, a minute at most, or a while. 0: twice; negative: never. What
	// was cut off is not sent again.
	Retries int
}

// Client calls one host. It is safe for concurrent use, and needs no closing.
type Client struct {
	base      string // without a slash at its end
	key       string
	userAgent string
	http      *http.Client
	maxAnswer int64
	maxEvent  int
	retries   int
	sleep     func(ctx context.Context, d time.Duration) error
}

// BaseURLVariable is the environment variable with the address of the host.
const BaseURLVariable = "OPENSKILL_HTTP_BASE_URL"

// New makes a client of the host at baseURL; for "", at the address in BaseURLVariable, or
// else at http://127.0.0.1:8000. It sends nothing.
func New(baseURL string, o *Options) (*Client, error) {
	if o == nil {
		o = &Options{}
	}
	named := baseURL == ""
	if named {
		baseURL = cmp.Or(os.Getenv(BaseURLVariable), "http://127.0.0.1:8000")
	}
	base, err := parseBase(baseURL)
	if err != nil && named {
		return nil, fmt.Errorf("%w (from the environment variable %s)", err, BaseURLVariable)
	} else if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(o.Key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, errors.New("client: invalid characters in the API key; remove a line end at its end")
	}
	c := &Client{
		base: base, key: o.Key, http: &http.Client{}, sleep: sleep, userAgent: cmp.Or(o.UserAgent, "openskill-client"),
		maxAnswer: cmp.Or(max(o.MaxAnswer, 0), 64<<20), maxEvent: cmp.Or(max(o.MaxEvent, 0), 16<<20), retries: max(cmp.Or(o.Retries, 2), 0),
	}
	if o.HTTP != nil {
		*c.http = *o.HTTP
	} else if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t = t.Clone()
		t.DisableCompression = true // a stream must not wait for a block to be full
		c.http.Transport = t
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// parseBase checks the address of a host. An error does not repeat it: it may hold a
// password.
func parseBase(s string) (string, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "", errors.New("client: invalid base URL; use one like http://127.0.0.1:8000")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", errors.New("client: invalid base URL: begin with http:// or https:// and a host, like http://127.0.0.1:8000")
	case u.User != nil:
		return "", errors.New("client: invalid base URL: remove user and password; pass the API key as an option")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return "", errors.New("client: invalid base URL: remove query and fragment")
	}
	return u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/"), nil
}

type traceKey struct{}

// WithTraceID gives a context whose requests have this name in the host's log, records
// and answers: 1 to 64 of 0-9 A-Z a-z . _ -. Otherwise the host makes one up.
func WithTraceID(ctx context.Context, id skill.TraceID) context.Context {
	return context.WithValue(ctx, traceKey{}, id)
}

// Content types.
const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
)

// raw is a body that is sent as it is.
type raw struct {
	kind    string
	content []byte
}

// send makes a request, and gives the response if its status is 200 to 299. in is the
// body's value for JSON, or a raw; nil for no body.
func (c *Client) send(ctx context.Context, method, path string, in any, accept string) (*http.Response, error) {
	body, ok := in.(raw)
	if !ok && in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("client: cannot encode the request as JSON: %w", err)
		}
		body = raw{typeJSON, b}
	}
	return c.patiently(ctx, method, func() (*http.Response, error) { return c.once(ctx, method, path, body, accept) })
}

func (c *Client) once(ctx context.Context, method, path string, body raw, accept string) (*http.Response, error) {
	var content io.Reader
	if body.content != nil {
		content = bytes.NewReader(body.content)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	h := r.Header
	if body.content != nil {
		h.Set("Content-Type", body.kind)
	}
	if prefer, ok := ctx.Value(preferKey{}).(string); ok {
		h.Set("Prefer", prefer)
	}
	if c.key != "" {
		h.Set("Authorization", "Bearer "+c.key)
	}
	if id, ok := ctx.Value(traceKey{}).(skill.TraceID); ok {
		if !skill.ValidTraceID(string(id)) {
			return nil, errors.New("client: invalid trace id: use 1 to 64 of 0-9 A-Z a-z . _ -")
		}
		h.Set("X-Trace-Id", string(id))
	}
	h.Set("Accept", accept)
	h.Set("User-Agent", c.userAgent)
	res, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		defer res.Body.Close()
		return nil, c.refused(res)
	}
	return res, nil
}

// call makes a request and reads its answer into out, unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	res, err := c.send(ctx, method, path, in, typeJSON)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if out == nil {
		return nil
	}
	b, err := c.body(res)
	if err != nil {
		return err
	}
	return unmarshal(res, b, out)
}

// get is call with an answer of its own.
func get[T any](ctx context.Context, c *Client, method, path string, in any) (*T, error) {
	out := new(T)
	if err := c.call(ctx, method, path, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// one reads what the API has of this id or name below a path.
func one[T any](ctx context.Context, c *Client, path, what, id string) (*T, error) {
	part, err := segment(what, id)
	if err != nil {
		return nil, err
	}
	return get[T](ctx, c, http.MethodGet, path+part, nil)
}

// body reads an answer up to the most that is read.
func (c *Client) body(res *http.Response) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(res.Body, c.maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("client: the response was cut off: %w", err)
	case int64(len(b)) > c.maxAnswer:
		return nil, fmt.Errorf("client: the response exceeds %d bytes", c.maxAnswer)
	}
	return b, nil
}

func unmarshal(res *http.Response, b []byte, out any) error {
	if err := json.Unmarshal(b, out); err != nil {
		kind := skill.CleanText(res.Header.Get("Content-Type"), 60)
		return fmt.Errorf("client: cannot read the response (%s); check that the base URL is an openSkill server: %w", kind, err)
	}
	return nil
}

var errEndless = errors.New("client: the list does not end: the server repeated a cursor")

// all goes through the pages of a list, which are asked for as they are needed. After an
// error there is nothing more.
func all[T any](ctx context.Context, c *Client, path string, query url.Values) iter.Seq2[*T, error] {
	path += "?limit=100"
	if len(query) > 0 {
		path += "&" + query.Encode()
	}
	return func(yield func(*T, error) bool) {
		for cursor := ""; ; {
			ask := path
			if cursor != "" {
				ask += "&cursor=" + url.QueryEscape(cursor)
			}
			var p skill.List[T]
			if err := c.call(ctx, http.MethodGet, ask, nil, &p); err != nil {
				yield(nil, err)
				return
			}
			for i := range p.Data {
				if !yield(&p.Data[i], nil) {
					return
				}
			}
			if p.Next == nil || *p.Next == "" {
				return
			}
			if *p.Next == cursor {
				yield(nil, errEndless)
				return
			}
			cursor = *p.Next
		}
	}
}

// segment writes an id or a name as one part of a path.
func segment(what, s string) (string, error) {
	if s == "" || len(s) > 1024 || s == "." || s == ".." {
		return "", fmt.Errorf("client: %q is not a valid %s", skill.CleanText(s, 80), what)
	}
	return url.PathEscape(s), nil
}
