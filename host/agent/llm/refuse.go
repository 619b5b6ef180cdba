package llm

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"openskill/sdk/skill"
)

// guard makes an error of each answer that is none: an adapter reads those with a status
// of success alone. Redirects are refused here, before a client could follow them with
// the key in its hand.
type guard struct {
	next http.RoundTripper
	key  string
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		most := int64(mostWhole)
		if media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); media == "text/event-stream" {
			most = mostStreamed
		}
		res.Body = &limited{body: res.Body, left: most, most: most}
		return res, nil
	}
	defer res.Body.Close()
	no := &statusError{status: res.StatusCode, after: after(res.Header, time.Now())}
	if no.status >= 300 && no.status < 400 {
		no.said = "it answers with a redirect, which is not followed; the base URL must be the one that it redirects to"
		return nil, no
	}
	no.body, _ = io.ReadAll(io.LimitReader(res.Body, mostRefusal)) // half of it may say enough
	no.said = withoutKey(said(no.body), g.key)
	return nil, no
}

// CloseIdleConnections lets that of http.Client through.
func (g *guard) CloseIdleConnections() {
	if c, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// withoutKey is what a vendor said, or nothing if it repeats the key.
func withoutKey(text, key string) string {
	if key != "" && strings.Contains(text, key) {
		return ""
	}
	return text
}

// statusError is an answer with the status of an error.
type statusError struct {
	status int
	said   string
	body   []byte
	after  time.Duration
}

// Error implements error.
func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.said) }

// names reports whether err is that a vendor takes a request for wrong, and names one of
// these words in saying so.
func names(err error, words ...string) bool {
	var no *statusError
	if !errors.As(err, &no) || no.status != http.StatusBadRequest && no.status != http.StatusUnprocessableEntity {
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(no.body, []byte(w)) })
}

// limited is a body that ends with an error where it is too long.
type limited struct {
	body       io.ReadCloser
	left, most int64
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, &lengthError{l.most}
	}
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.body.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n - 1, &lengthError{l.most}
	}
	return n, err
}

// Close implements io.Closer.
func (l *limited) Close() error { return l.body.Close() }

// lengthError is the error of an answer that is too long.
type lengthError struct{ most int64 }

// Error implements error.
func (e *lengthError) Error() string { return fmt.Sprintf("it is longer than %d MiB", e.most>>20) }

// explain says an error in the words that [llm.Provider] promises.
func (c *client) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return Ended(ctx)
	}
	var known *skill.Error
	var long *lengthError
	switch no, ok := errors.AsType[*statusError](err); {
	case errors.As(err, &known):
		return err
	case ok:
		return Unavailable(c.vendor, no.status, no.said, no.after, nil)
	case errors.As(err, &long):
		return c.unreadable(long.Error(), nil)
	}
	return Unavailable(c.vendor, 0, unreached(err), 0, err)
}

// unreadable is the error of an answer that makes no sense.
func (c *client) unreadable(why string, err error) error { return Unreadable(c.vendor, why, err) }

// failed is the error of an answer that began well, and in which the vendor then said
// that it failed. body is what it said.
func (c *client) failed(status int, body []byte) error {
	return Unavailable(c.vendor, status, withoutKey(said(body), c.key), 0, nil)
}

// unreached says why a vendor was not reached, without addresses: they are in err, for
// the log.
func unreached(err error) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch slow, ok := errors.AsType[net.Error](err); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "its answer was cut off"
	case errors.As(err, &name):
		return "its host name cannot be resolved"
	case errors.As(err, &certificate):
		return "its certificate is not trusted"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF):
		return "the connection broke off"
	case ok && slow.Timeout():
		return "it did not answer in time"
	}
	return ""
}

// said finds what a vendor says in the body of an error. There are as many forms as
// vendors: {"error": {"message"}}, {"error": "…"}, {"message"}, {"detail"}, lists of
// these, and plain text. A page of a proxy says nothing.
func said(body []byte) string {
	if text, ok := messageIn(body, 0); ok {
		return text
	}
	text := strings.TrimSpace(string(body))
	if text == "" || strings.HasPrefix(text, "<") || json.Valid(body) {
		return ""
	}
	return skill.CleanText(text, mostSaid)
}

// mostSaid is longer than what is shown, so that a key in it is found whole.
const mostSaid = 1000

func messageIn(raw json.RawMessage, depth int) (string, bool) {
	if depth > 4 || len(raw) == 0 {
		return "", false
	}
	switch raw = trimmed(raw); {
	case len(raw) == 0:
		return "", false
	case raw[0] == '"' && depth > 0:
		var text string
		err := json.Unmarshal(raw, &text)
		return skill.CleanText(text, mostSaid), err == nil && text != ""
	case raw[0] == '[':
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
			return messageIn(list[0], depth+1)
		}
	case raw[0] == '{':
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return "", false
		}
		for _, name := range []string{"error", "message", "detail", "msg"} {
			if text, ok := messageIn(fields[name], depth+1); ok {
				return text, true
			}
		}
	}
	return "", false
}

func trimmed(raw json.RawMessage) json.RawMessage {
	return json.RawMessage(strings.TrimSpace(string(raw)))
}

// mostAfter is the longest time that a vendor is believed to want to be left alone for.
const mostAfter = time.Hour

// after reads when a vendor wants to be asked again; 0: it does not say.
func after(h http.Header, now time.Time) time.Duration {
	in := func(value string, unit time.Duration) (time.Duration, bool) {
		n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || math.IsNaN(n) || n < 0 {
			return 0, false
		}
		return time.Duration(min(n, float64(mostAfter/unit)) * float64(unit)), true
	}
	if d, ok := in(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	value := h.Get("Retry-After")
	if d, ok := in(value, time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), mostAfter)
	}
	return 0
}
