package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// form is how a vendor says things. Those who do not stream leave out the stream's.
type form struct {
	Whole func(text string) string

	Begin, End string // of a stream; End is without what marks the end, which is Mark
	Mark       string
	Part       func(text string) string
}

// dialer makes a provider for an address, with a client or, for nil, its own.
type dialer func(base string, c *http.Client) (Provider, error)

// runHostile holds an adapter to what is promised for vendors that are slow, endless, or gone,
// and for callers that leave.
func runHostile(t *testing.T, f form, dial dialer) {
	t.Helper()
	t.Run("NeverAnswers", func(t *testing.T) { neverAnswers(t, dial) })
	t.Run("Gone", func(t *testing.T) { gone(t, dial) })
	t.Run("Endless", func(t *testing.T) { endless(t, f, dial) })
	t.Run("Redirect", func(t *testing.T) { redirect(t, dial) })
	t.Run("Panic", func(t *testing.T) { panics(t, f, dial) })
	t.Run("ManyAtOnce", func(t *testing.T) { manyAtOnce(t, f, dial) })
	if f.Part == nil {
		return
	}
	t.Run("LeavesInTheMiddle", func(t *testing.T) { leaves(t, f, dial) })
	t.Run("FirstPart", func(t *testing.T) { firstPart(t, f, dial) })
	t.Run("SameConnection", func(t *testing.T) { sameConnection(t, f, dial) })
	t.Run("StaysOpen", func(t *testing.T) { staysOpen(t, f, dial) })
}

func question() *Request {
	return &Request{Model: "m", Slot: Fast, MaxTokens: 10, Messages: []Message{{Role: User, Text: "hi"}}}
}

func code(t *testing.T, err error, want skill.Code) {
	t.Helper()
	if got := skill.CodeOf(err); got != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// connecting is a client whose connections are gone at the end of a test, and with them goroutines.
func connecting(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func provider(t *testing.T, dial dialer, base string, c *http.Client) Provider {
	t.Helper()
	return musttest.Get(dial(base, c))(t)
}

func neverAnswers(t *testing.T, dial dialer) {
	t.Helper()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	asked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server would not see that the client leaves
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	p := provider(t, dial, server.URL, &http.Client{Transport: tr})

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err := p.Chat(ctx, question(), nil)
	code(t, err, skill.Cancelled)

	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = p.Chat(ctx, question(), func(string) {})
	code(t, err, skill.AgentExecutionTimeout)

	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	_, err = p.Chat(ctx, question(), nil)
	code(t, err, skill.Cancelled)
}

func gone(t *testing.T, dial dialer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.Do(t, err)
	base := "http://" + l.Addr().String()
	_ = l.Close()
	_, err = provider(t, dial, base, connecting(t)).Chat(t.Context(), question(), nil)
	code(t, err, skill.AgentLLMUnavailable)
	var busy *BusyError
	var failed *skill.Error
	if !errors.As(err, &busy) || busy.Status != 0 {
		t.Errorf("another attempt is not offered: %v", err)
	}
	if errors.As(err, &failed) && strings.Contains(failed.Message, l.Addr().String()) {
		t.Errorf("callers are told the address: %s", failed.Message)
	}
}

func endless(t *testing.T, f form, dial dialer) {
	t.Helper()
	for name, body := range map[string]struct{ kind, begin, again string }{
		"whole":          {"application/json", `{"choices":[{"message":{"content":"`, strings.Repeat("a", 64<<10)},
		"stream":         {"text/event-stream", f.Begin, strings.Repeat(": nothing yet\n\n", 4096)},
		"line":           {"text/event-stream", f.Begin + "data: ", strings.Repeat("a", 64<<10)},
		"without a type": {"", "", strings.Repeat("a\n", 32<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			if f.Part == nil && body.kind == "text/event-stream" {
				t.Skip("it does not stream")
			}
			var sent atomic.Int64
			base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{body.kind}
				_, _ = io.WriteString(w, body.begin)
				for {
					n, err := io.WriteString(w, body.again)
					if sent.Add(int64(n)); err != nil {
						return
					}
				}
			})
			_, err := provider(t, dial, base, connecting(t)).Chat(t.Context(), question(), func(string) {})
			code(t, err, skill.AgentLLMParseError)
			if err == nil || !strings.Contains(err.Error(), "longer than") {
				t.Errorf("the error does not say why: %v", err)
			}
			if n := sent.Load(); n > 48<<20 {
				t.Errorf("%d bytes were taken", n)
			}
		})
	}
}

func redirect(t *testing.T, dial dialer) {
	t.Helper()
	var asked atomic.Int32
	other := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		base := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other+r.URL.Path, status)
		})
		for _, c := range []*http.Client{connecting(t), {CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}} {
			_, err := provider(t, dial, base, c).Chat(t.Context(), question(), nil)
			code(t, err, skill.AgentLLMUnavailable)
		}
	}
	if asked.Load() > 0 {
		t.Error("a redirect was followed")
	}
}

func panics(t *testing.T, f form, dial dialer) {
	t.Helper()
	p := provider(t, dial, "http://vendor.invalid", &http.Client{Transport: canned{"application/json", []byte(f.Whole("hello"))}})
	defer func() {
		if r := recover(); r != "of the caller" {
			t.Errorf("recovered %v", r)
		}
	}()
	_, err := p.Chat(t.Context(), question(), func(string) { panic("of the caller") })
	t.Errorf("no panic: %v", err)
}

func leaves(t *testing.T, f form, dial dialer) {
	t.Helper()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	left := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, f.Begin+f.Part("one"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(left)
	}))
	defer server.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	var heard []string
	_, err := provider(t, dial, server.URL, &http.Client{Transport: tr}).Chat(ctx, question(), func(part string) {
		heard = append(heard, part)
		cancel()
	})
	code(t, err, skill.Cancelled)
	if len(heard) != 1 {
		t.Errorf("heard %q", heard)
	}
	<-left // the vendor sees it too, and need not go on
}

// firstPart: the first part is told while the vendor waits to say the second, and on the
// goroutine that asked.
func firstPart(t *testing.T, f form, dial dialer) {
	t.Helper()
	told := make(chan struct{})
	base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, f.Begin+f.Part("one"))
		_ = http.NewResponseController(w).Flush()
		<-told
		_, _ = io.WriteString(w, f.Part(" two")+f.End+f.Mark)
	})
	p := provider(t, dial, base, connecting(t))
	me := goroutine()
	once := sync.OnceFunc(func() { close(told) })
	reply, err := p.Chat(t.Context(), question(), func(string) {
		if it := goroutine(); it != me {
			t.Errorf("told on %s, asked on %s", it, me)
		}
		once()
	})
	if err != nil || reply.Text != "one two" {
		t.Errorf("%+v, %v", reply, err)
	}
}

func goroutine() string {
	b := make([]byte, 64)
	id, _, _ := strings.Cut(string(b[:runtime.Stack(b, false)]), " [")
	return id
}

// sameConnection: streams that were read leave their connection for the next one, though
// their readers stop before the connection is at its end.
func sameConnection(t *testing.T, f form, dial dialer) {
	t.Helper()
	var connections atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, f.Begin+f.Part("one")+f.End+f.Mark+strings.Repeat(": over\n\n", 4096))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	p := provider(t, dial, s.URL, connecting(t))
	for range 20 {
		musttest.Get(p.Chat(t.Context(), question(), func(string) {}))(t)
	}
	if n := connections.Load(); n > 2 {
		t.Errorf("%d connections for 20 questions, one after the other", n)
	}
}

// staysOpen: a vendor that neither marks the end of a stream nor ends it holds nobody up.
func staysOpen(t *testing.T, f form, dial dialer) {
	t.Helper()
	for name, body := range map[string]string{"marked": f.Begin + f.Part("one") + f.End + f.Mark, "not marked": f.Begin + f.Part("one") + f.End} {
		synctest.Test(t, func(t *testing.T) {
			p := provider(t, dial, "http://vendor.invalid", &http.Client{Transport: open(body)})
			begun := time.Now()
			reply, err := p.Chat(t.Context(), question(), func(string) {})
			if err != nil || reply.Text != "one" {
				t.Errorf("%s: %+v, %v", name, reply, err)
			}
			if d := time.Since(begun); d > 5*time.Second {
				t.Errorf("%s: it took %s", name, d)
			}
		})
	}
}

// open is an http.RoundTripper whose answers do not end.
type open string

func (o open) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := canned{"text/event-stream", []byte(o)}.RoundTrip(r)
	if err == nil {
		res.Body = io.NopCloser(io.MultiReader(res.Body, waiting{r.Context()}))
	}
	return res, err
}

type waiting struct{ ctx context.Context }

func (w waiting) Read([]byte) (int, error) {
	<-w.ctx.Done()
	return 0, w.ctx.Err()
}

func manyAtOnce(t *testing.T, f form, dial dialer) {
	t.Helper()
	base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, f.Whole("hello"))
	})
	p := provider(t, dial, base, nil)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			r := question()
			r.Tools = []skill.Tool{{Name: fmt.Sprintf("tool_%d", i%7), Description: "d", InputSchema: []byte(`{"type":"object"}`)}}
			for range 3 {
				if reply, err := p.Chat(t.Context(), r, nil); err != nil || reply.Text != "hello" {
					t.Errorf("%+v, %v", reply, err)
				}
			}
		})
	}
	all.Wait()
}
