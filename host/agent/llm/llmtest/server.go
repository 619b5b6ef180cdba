package llmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"openskill/host/agent/llm"
	"openskill/sdk/skill"
)

// ServerOptions of a [Server]. nil means the defaults.
type ServerOptions struct {
	Key     string   // that clients must show; "": they need none
	Models  []string // that GET /v1/models lists; nil: scripted
	MaxBody int64    // bytes of a request; 0: 32 MiB
	// Answered is told of each request that was understood: whose way to speak it was in,
	// and which rule has it, from 1; 0: none. It is called by many goroutines at once.
	// nil: nobody is.
	Answered func(wire string, rule int)
}

// Server speaks for a model over HTTP: what ends with /chat/completions is OpenAI's,
// /messages Anthropic's, and /api/llm/chat the llm-service's, whatever stands before it.
// It is an http.Handler.
type Server struct {
	model *Model
	o     ServerOptions
}

// NewServer makes one.
func NewServer(m *Model, o *ServerOptions) *Server {
	s := &Server{model: m}
	if o != nil {
		s.o = *o
	}
	if len(s.o.Models) == 0 {
		s.o.Models = []string{"scripted"}
	}
	if s.o.MaxBody <= 0 {
		s.o.MaxBody = 32 << 20
	}
	return s
}

// Requests are those of the model.
func (s *Server) Requests() []Request { return s.model.Requests() }

// TB is what [Server.Start] needs of a test.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Start serves on a port of this machine until the test ends, and gives the address, like
// http://127.0.0.1:40000. Clients of OpenAI want /v1 behind it.
func (s *Server) Start(t TB) string {
	t.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("llmtest: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(ctx, ln) // ended by stop
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return "http://" + ln.Addr().String()
}

// Serve answers on a listener until ctx ends, which ends what is under way too. It
// returns nil then.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := context.AfterFunc(ctx, func() { _ = server.Close() }) // it ends anyway
	defer ended()
	if err := server.Serve(ln); ctx.Err() == nil || !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// wire is a vendor's way to speak.
type wire interface {
	name() string
	key(h http.Header) string // that the client shows
	// read understands a request, or says why the vendor would refuse it.
	read(h http.Header, body []byte) (*asked, error)
	whole(q *asked, a *answer) any
	stream(q *asked, a *answer) iter.Seq[[]byte]
	fail(status int, message string) any
	models(names []string) any
}

// asked is a request that was understood.
type asked struct {
	llm.Request
	stream bool
	usage  bool // in the stream too
}

// refused is a request that a vendor would refuse.
type refused struct {
	status  int
	message string
}

func (r *refused) Error() string { return r.message }

func bad(message string) error { return &refused{http.StatusBadRequest, message} }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, err := s.route(r)
	if to.name() != "llm-service" {
		w.Header().Set("X-Request-Id", "req_"+to.name()) // OpenAI's
		w.Header().Set("Request-Id", "req_"+to.name())   // Anthropic's
	}
	if err != nil {
		fail(w, to, err)
		return
	}
	if r.Method == http.MethodGet {
		writeJSON(w, http.StatusOK, to.models(s.o.Models))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.o.MaxBody))
	switch _, ok := errors.AsType[*http.MaxBytesError](err); {
	case ok:
		fail(w, to, &refused{http.StatusRequestEntityTooLarge, "the request is too large"})
		return
	case err != nil:
		return // it never came
	}
	q, err := to.read(r.Header, body)
	if err != nil {
		fail(w, to, err)
		return
	}
	a, rule := s.model.answer(Request{Wire: to.name(), Header: r.Header.Clone(), Body: body, Stream: q.stream, Ask: q.Request})
	if s.o.Answered != nil {
		s.o.Answered(to.name(), rule+1)
	}
	if a == nil {
		fail(w, to, bad(unscripted(&q.Request)))
		return
	}
	s.deliver(r.Context(), w, to, q, a)
}

// route tells whose way to speak a request is in, and whether it may be made: a GET is for
// the models, a POST for an answer.
func (s *Server) route(r *http.Request) (wire, error) {
	to, method := wire(openAI{}), http.MethodPost
	if r.Header.Get("Anthropic-Version") != "" {
		to = anthropic{}
	}
	switch path := strings.TrimSuffix(r.URL.Path, "/"); {
	case strings.HasSuffix(path, "/api/llm/chat"):
		to = service{}
	case strings.HasSuffix(path, "/chat/completions"):
		to = openAI{}
	case strings.HasSuffix(path, "/messages"):
		to = anthropic{}
	case strings.HasSuffix(path, "/models"):
		method = http.MethodGet
	default:
		return to, &refused{http.StatusNotFound, "there is no " + skill.CleanText(r.Method+" "+r.URL.Path, 80) + " here; there are /v1/chat/completions, /v1/messages, /v1/models and /api/llm/chat"}
	}
	switch {
	case r.Method != method:
		return to, &refused{http.StatusMethodNotAllowed, "the method is " + method}
	case s.o.Key != "" && to.key(r.Header) != s.o.Key:
		return to, &refused{http.StatusUnauthorized, "the key is not that of this server"}
	}
	return to, nil
}

// fail answers a request that the vendor would refuse.
func fail(w http.ResponseWriter, to wire, err error) {
	status := http.StatusBadRequest
	if no, ok := errors.AsType[*refused](err); ok {
		status = no.status
	}
	writeJSON(w, status, to.fail(status, err.Error()))
}

// deliver writes an answer as its rule wants it.
func (s *Server) deliver(ctx context.Context, w http.ResponseWriter, to wire, q *asked, a *answer) {
	if !wait(ctx, a.rule.DelayMS) || a.rule.CutAfter < 0 {
		panic(http.ErrAbortHandler) // which ends the connection
	}
	if a.rule.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(a.rule.RetryAfter))
	}
	status := max(a.rule.Status, http.StatusOK)
	var parts iter.Seq[[]byte]
	switch {
	case a.rule.Raw != "":
		parts = a.slowly([]byte(a.rule.Raw))
	case status >= http.StatusBadRequest:
		parts = a.slowly(encoded(to.fail(status, a.reply.Text)))
	case q.stream:
		parts = to.stream(q, a)
	default:
		parts = a.slowly(encoded(to.whole(q, a)))
	}
	w.Header().Set("Content-Type", a.kind(q.stream, status))
	w.WriteHeader(status)
	out, first := http.NewResponseController(w), true
	left := a.rule.CutAfter
	for part := range parts {
		if !first && !wait(ctx, a.rule.PauseMS) {
			panic(http.ErrAbortHandler)
		}
		first = false
		if a.rule.CutAfter > 0 && len(part) >= left {
			_, _ = w.Write(part[:left])
			_ = out.Flush()
			panic(http.ErrAbortHandler)
		}
		left -= len(part)
		if _, err := w.Write(part); err != nil {
			return // nobody reads it
		}
		if q.stream || a.rule.PauseMS > 0 {
			if out.Flush() != nil {
				return
			}
		}
	}
}

// kind is the type of a body's content: a raw one has what others would serve it as.
func (a *answer) kind(stream bool, status int) string {
	const events = "text/event-stream; charset=utf-8"
	switch raw := strings.TrimSpace(a.rule.Raw); {
	case strings.HasPrefix(raw, "data:"), strings.HasPrefix(raw, "event:"), raw == "" && stream && status < http.StatusBadRequest:
		return events
	case strings.HasPrefix(raw, "<"):
		return "text/html; charset=utf-8"
	}
	return "application/json"
}

// slowly gives a body at once, or in pieces if there are pauses between them.
func (a *answer) slowly(body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		size := len(body)
		if a.rule.PauseMS > 0 {
			size = a.chunk()
		}
		for len(body) > 0 {
			n := min(size, len(body))
			if !yield(body[:n]) {
				return
			}
			body = body[n:]
		}
	}
}

// created is when all answers were made: they are the same each time.
const created = 1767225600

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encoded(v)) // nobody is left to tell
}

// encoded is v as JSON: values of this package, and texts that were read as JSON.
func encoded(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
