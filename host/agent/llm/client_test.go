package llm

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"openskill/sdk/skill"
)

func TestSaid(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"no such model","type":"x"}}`:              "no such model",
		`{"error":"no such model"}`:                                     "no such model",
		`[{"error":{"message":"in a list"}}]`:                           "in a list",
		`{"message":"plainly"}`:                                         "plainly",
		`{"detail":[{"loc":["body"],"msg":"field required"}]}`:          "field required",
		`{"error":{"code":7},"message":"beside it"}`:                    "beside it",
		`{"error":{"message":"two\nlines\u202e and \u001b[31mcolour"}}`: "two lines and [31mcolour",
		"upstream is away\n":                                            "upstream is away",
		"<html>nginx":                                                   "",
		`{"code":7}`:                                                    "",
		`"text alone"`:                                                  "",
		"12":                                                            "",
		"":                                                              "",
		strings.Repeat(`{"error":`, 5000) + `"deep"` + strings.Repeat("}", 5000): "",
	} {
		if got := said([]byte(body)); got != want {
			t.Errorf("%.80s: %q, want %q", body, got, want)
		}
	}
	if got := said([]byte(`{"error":"` + strings.Repeat("x", 60_000) + `"}`)); len(got) > mostSaid {
		t.Errorf("%d bytes", len(got))
	}
}

func TestAfter(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "20", 20 * time.Second},
		{"Retry-After", " 0.5 ", 500 * time.Millisecond},
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond},
		{"Retry-After", "Sun, 01 Nov 2026 12:00:07 GMT", 7 * time.Second},
		{"Retry-After", "Sun, 01 Nov 2026 11:00:00 GMT", 0},
		{"Retry-After", "Sun, 01 Nov 2099 11:00:00 GMT", time.Hour},
		{"Retry-After", "1e300", time.Hour},
		{"Retry-After-Ms", "1e300", time.Hour},
		{"Retry-After", "-1", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "+Inf", time.Hour},
		{"Retry-After", "soon", 0},
		{"Retry-After", "", 0},
	} {
		h := http.Header{}
		h.Set(c.name, c.value)
		if got := after(h, now); got != c.want {
			t.Errorf("%s: %q: %s, want %s", c.name, c.value, got, c.want)
		}
	}
}

func TestBase(t *testing.T) {
	for address, want := range map[string]string{
		"":                           "https://vendor.example/v1",
		"https://host/v1/":           "https://host/v1",
		"http://[::1]:8080":          "http://[::1]:8080",
		"https://host/a%2Fb/v1///":   "https://host/a%2Fb/v1",
		"HTTPS://host/v1":            "https://host/v1",
		"http://127.0.0.1:11434/v1/": "http://127.0.0.1:11434/v1",
	} {
		u, err := baseURL(address, "https://vendor.example/v1")
		if err != nil || u.String() != want {
			t.Errorf("%q: %v, %v", address, u, err)
		}
	}
}

// A body may be as long as its limit, and no byte longer, however it is read.
func TestLimited(t *testing.T) {
	for _, size := range []int{1, 3, 4, 5, 1000} {
		for long, want := range map[int]bool{3: false, 4: false, 5: true, 4000: true} {
			l := &limited{body: io.NopCloser(strings.NewReader(strings.Repeat("x", long))), left: 4, most: 4}
			var read bytes.Buffer
			_, err := io.CopyBuffer(struct{ io.Writer }{&read}, struct{ io.Reader }{l}, make([]byte, size))
			var tooMuch *lengthError
			if errors.As(err, &tooMuch) != want || read.Len() != min(long, 4) {
				t.Errorf("%d bytes, %d at a time: read %d, %v", long, size, read.Len(), err)
			}
			if _, err := l.Read(make([]byte, size)); want && !errors.As(err, &tooMuch) {
				t.Errorf("read on after the end: %v", err)
			}
		}
	}
}

// What callers are told of a vendor that was not reached, and that it holds no address.
func TestUnreached(t *testing.T) {
	c := newClient(Vendor{Name: "v"})
	timeout := &net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 3)}, Err: context.DeadlineExceeded}
	for want, err := range map[string]error{
		"its answer was cut off":                 io.ErrUnexpectedEOF,
		"its host name cannot be resolved":       &net.DNSError{Name: "vendor.internal", Err: "no such host"},
		"its certificate is not trusted":         fmt.Errorf("x: %w", &tls.CertificateVerificationError{Err: errors.New("10.0.0.3")}),
		"the connection was refused":             &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"the connection broke off":               &net.OpError{Op: "read", Err: syscall.ECONNRESET},
		"it did not answer in time":              timeout,
		"the model provider v cannot be reached": errors.New("http2: 10.0.0.3 went away"),
	} {
		got := c.explain(t.Context(), err)
		var failed *skill.Error
		if _, ok := errors.AsType[*BusyError](got); !errors.As(got, &failed) || !ok {
			t.Fatalf("%v: %v", err, got)
		}
		if !strings.HasSuffix(failed.Message, want) || strings.Contains(failed.Message, "10.0.0.3") || !errors.Is(got, err) {
			t.Errorf("%v: %s", err, failed.Message)
		}
	}
}

func TestOwnClient(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example:1")
	guarded, ok := newClient(Vendor{}).http.Transport.(*guard)
	if !ok {
		t.Fatal("no guard")
	}
	tr, ok := guarded.next.(*http.Transport)
	if !ok || tr.Proxy != nil || tr.MaxIdleConnsPerHost < 1000 || tr.TLSClientConfig.MinVersion != tls.VersionTLS12 || tr.MaxConnsPerHost != 0 {
		t.Errorf("%+v", tr)
	}
}

// The client that is given stays as it is.
func TestGivenClient(t *testing.T) {
	given := &http.Client{Timeout: time.Minute}
	c := newClient(Vendor{HTTP: given})
	if given.Transport != nil || c.http == given || c.http.Timeout != time.Minute {
		t.Errorf("%+v, %+v", given, c.http)
	}
}

func send(c *client, url string) func(context.Context) (*http.Response, error) {
	return func(ctx context.Context) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		return c.http.Do(req)
	}
}

// The key is not repeated, whatever a vendor says with whatever status; and of what says
// that a request is wrong, the words are looked at.
func TestRefusals(t *testing.T) {
	const key = "sk-secret-1234567890"
	for _, status := range []int{199 + 100, 400, 401, 403, 404, 418, 422, 429, 500, 503, 529, 599} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":"stream_options with %s is wrong"}}%s`, key, strings.Repeat(" ", 100<<10))
		}))
		c := newClient(Vendor{Name: "v", Key: key, HTTP: s.Client()})
		var raw error
		err := c.ask(t.Context(), func(ctx context.Context) (*http.Response, error) {
			res, err := send(c, s.URL)(ctx)
			raw = err
			return res, err
		}, func(*answer) error { return nil })
		s.Close()
		if status == 299 {
			if err != nil {
				t.Errorf("299: %v", err)
			}
			continue
		}
		if err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("%d: %v", status, err)
		}
		if got, want := names(raw, "nothing", "stream_options"), status == 400 || status == 422; got != want {
			t.Errorf("%d: names it: %v", status, got)
		}
	}
}

// A redirect is an error, and nobody else is asked, with the key in the request's head.
func TestRefusesRedirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host is asked, with the key %q", r.Header.Get("X-Api-Key"))
	}))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) }))
		c := newClient(Vendor{Name: "v", Key: "sk-secret", HTTP: s.Client()})
		err := c.ask(t.Context(), func(ctx context.Context) (*http.Response, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("{}"))
			if err != nil {
				return nil, err
			}
			req.Header.Set("X-Api-Key", "sk-secret")
			return c.http.Do(req)
		}, func(*answer) error { return nil })
		s.Close()
		if skill.CodeOf(err) != skill.AgentLLMUnavailable {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// An error that says already what happened is kept; an end of the caller's comes first.
func TestExplain(t *testing.T) {
	c := newClient(Vendor{Name: "v"})
	known := c.unreadable("why", nil)
	if got := c.explain(t.Context(), known); !errors.Is(got, known) {
		t.Errorf("%v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range []error{known, io.EOF, &statusError{status: 500}} {
		if got := c.explain(ctx, err); skill.CodeOf(got) != skill.Cancelled {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func FuzzSaid(f *testing.F) {
	f.Add([]byte(`{"error":[{"message":"x"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if got := said(body); len(got) > mostSaid || strings.ContainsAny(got, "\n\x00\x1b") {
			t.Fatalf("%q", got)
		}
	})
}
