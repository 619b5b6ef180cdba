package llm

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"openskill/sdk/skill"
	"openskill/sdk/sse"
)

const (
	mostWhole    = 8 << 20 // of an answer in one piece
	mostStreamed = 32 << 20

	mostRefusal = 64 << 10 // that is read of an answer with an error's status
	mostLeft    = 64 << 10 // that is read after an answer's end
)

// patience is how long the connection of an answer that is over is waited for.
const patience = 50 * time.Millisecond

// client speaks with one vendor. It is safe for concurrent use.
type client struct {
	vendor, key string
	http        *http.Client
	tools       *toolWriter
}

// newClient makes the client of a provider, so that no key, no redirect and no endless
// answer can do harm. Of the client that is given, redirects are not followed.
func newClient(o Vendor) *client {
	c := &client{vendor: o.Name, key: o.Key}
	if o.HTTP == nil {
		c.http = own()
	} else {
		given := *o.HTTP
		c.http = &given
	}
	if c.http.Transport == nil {
		c.http.Transport = http.DefaultTransport
	}
	c.http.Transport = &guard{next: c.http.Transport, key: o.Key}
	return c
}

// own is a client for many conversations at once with one host.
func own() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                  nil, // what is in the environment is not for the host's keys
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           1024,
		MaxIdleConnsPerHost:    1024,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// A connection that died without a word would take every question with it.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}}
}

// post sends body as JSON to url, with the headers in header besides those of JSON. Its
// errors are for [client.ask].
func (c *client) post(ctx context.Context, url string, header http.Header, body any) (*http.Response, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, &text)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "openskill")
	return c.http.Do(req)
}

// ask sends a question and has its answer read, both on the goroutine that calls. The
// error is one that [llm.Provider] promises. When ask returns, nothing of the exchange is
// left but a connection for the next one.
func (c *client) ask(ctx context.Context, send func(context.Context) (*http.Response, error), read func(*answer) error) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	res, err := send(within)
	if err != nil {
		return c.explain(ctx, err)
	}
	defer res.Body.Close()
	a := &answer{response: res, cancel: cancel}
	defer a.stop()
	if err := read(a); err != nil {
		return c.explain(ctx, err)
	}
	a.finish()
	return nil
}

// answer is one that is being read.
type answer struct {
	response *http.Response

	cancel func()
	hurry  *time.Timer
}

// streamed reports whether the answer is a stream of events. A server that does not say
// what it sends is believed to send what it was asked for.
func (a *answer) streamed(asked bool) bool {
	media, _, _ := mime.ParseMediaType(a.response.Header.Get("Content-Type"))
	switch {
	case media == "text/event-stream":
		return true
	case media == "application/json", strings.HasSuffix(media, "+json"):
		return false
	}
	return asked
}

// events reads an answer that is a stream. The body ends with an error before an event is
// longer than the reader allows.
func (a *answer) events() *sse.Reader { return sse.NewReader(a.response.Body, mostStreamed) }

// whole reads an answer that is no stream.
func (a *answer) whole() ([]byte, error) { return io.ReadAll(a.response.Body) }

// reader reads answers in the form of one vendor.
type reader interface {
	whole(body []byte) error
	stream(a *answer) error
}

// read reads an answer, whole or as a stream, for which stream says what was asked for.
func (a *answer) read(r reader, stream bool) error {
	if a.streamed(stream) {
		return r.stream(a)
	}
	body, err := a.whole()
	if err != nil {
		return err
	}
	return r.whole(body)
}

// within ends the reading after a while: what matters of the answer has come.
func (a *answer) within(d time.Duration) {
	if a.hurry == nil {
		a.hurry = time.AfterFunc(d, a.cancel)
	}
}

func (a *answer) stop() {
	if a.hurry != nil {
		a.hurry.Stop()
	}
}

// finish reads the end of an answer, after which the connection can serve again. A stream
// ends for its reader before it ends on the wire.
func (a *answer) finish() {
	a.stop()
	left := time.AfterFunc(patience, a.cancel)
	defer left.Stop()
	_, _ = io.CopyN(io.Discard, a.response.Body, mostLeft)
}

// baseURL reads the address below which a vendor is asked; "" is otherwise. The error is a
// *skill.Error of INVALID_ARGUMENT.
func baseURL(address, otherwise string) (*url.URL, error) {
	if address == "" {
		address = otherwise
	}
	wrong := func(why string) error {
		return &skill.Error{
			Op: "llm.Base", Code: skill.InvalidArgument, Subject: "base_url",
			Message: "the base URL of a model provider " + why + "; want one like https://host/v1",
		}
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, wrong("cannot be read") // without err, which repeats it
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, wrong("must begin with https:// or http:// and name a host")
	case u.User != nil:
		return nil, wrong("must hold no user name or password; keys have settings of their own")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, wrong("must have no query and no fragment")
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	return u, nil
}

// checkKey checks a key, which goes into a header. The error does not repeat it.
func checkKey(key string) error {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return &skill.Error{
				Op: "llm.Key", Code: skill.InvalidArgument, Subject: "key",
				Message: "the key of a model provider holds a space, or another character that no key has",
			}
		}
	}
	return nil
}
