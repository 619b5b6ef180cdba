package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/identity"
	"openskill/sdk/skill"
)

// mounted answers with a handler of net/http: /mcp, and the console. fasthttp's own adaptor would do so
// too, but hands the handler a request that lives in the connection's buffers, and a
// context that does not end when the client leaves; a handler that is still at work
// then reads what the next request writes.
func (s *Server) mounted(h http.Handler) fiber.Handler {
	if h == nil {
		return nil
	}
	return func(c *fiber.Ctx) error { return s.mount(c.Context(), h) }
}

func (s *Server) mount(ctx *fasthttp.RequestCtx, h http.Handler) error {
	if err := s.opt.Origins.Host(string(ctx.Host())); err != nil {
		return err
	}
	if len(ctx.Request.Header.Peek("Content-Encoding")) > 0 {
		return checkBodyHeaders(&ctx.Request.Header)
	}
	if tenant, known := s.readerOf(ctx); known && !s.answers.mayOwe(tenant) {
		return errUnread()
	}
	parent := s.base
	if ctx.IsGet() {
		parent = s.listening // a stream without an end, which a host that stops does not wait for
	}
	coming := s.coming(ctx)
	parent = context.WithValue(context.WithValue(parent, callerKey{}, principalOf(ctx)), outliveKey{}, s.outliving(ctx))
	run, a := s.answering(parent, ctx, coming == nil)
	req, err := standardRequest(run, ctx, coming)
	if err != nil {
		a.end()
		return invalid("malformed request target")
	}
	req.RemoteAddr = netip.AddrPortFrom(s.clientAddress(ctx), 0).String() // the port is the proxy's
	go s.serveMounted(h, a, req)
	<-a.begun
	if coming != nil && coming.end() {
		ctx.Request.SetBodyRaw(nil) // the stream has been read
	}

	status, header, panicked := a.head()
	if panicked != nil {
		a.end()
		ctx.SetConnectionClose()
		return &skill.Error{Op: "api.mounted", Code: skill.Internal, Message: "the handler failed"}
	}
	if a.streams() {
		a.send(ctx)
		return nil
	}
	if err := identity.Refused(callerOf(ctx).asker); err != nil && len(a.buf) == 0 { // the handler has given up
		a.end()
		return err
	}
	ctx.SetStatusCode(status)
	copyHeader(&ctx.Response.Header, header)
	if header.Get("Content-Type") == "" {
		ctx.Response.Header.SetNoDefaultContentType(true)
	}
	ctx.SetBody(a.buf)
	a.end()
	return nil
}

// comingBody is the body of an upload as a handler reads it, while it comes in and as long
// as the handler has not answered.
type comingBody struct {
	mu   sync.Mutex
	in   capped
	over bool
}

// coming is the body of a request that readBody has left to its handler; nil: it has none.
func (s *Server) coming(ctx *fasthttp.RequestCtx) *comingBody {
	if !callerOf(ctx).kind.stream || ctx.RequestBodyStream() == nil {
		return nil
	}
	return &comingBody{in: capped{r: ctx.RequestBodyStream(), left: s.limitOf(ctx), head: inPart}}
}

func (b *comingBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.in.Read(p)
}

func (b *comingBody) Close() error { return nil }

// end keeps the handler from reading on, and reports whether all was read.
func (b *comingBody) end() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	return errors.Is(b.in.err, io.EOF)
}

// answering makes the answer of a request that is written in a goroutine of its own, and
// the context for who writes it, which ends when the client has left or all is sent. One
// whose body is still coming is not watched: its client is heard of by reading on.
func (s *Server) answering(parent context.Context, ctx *fasthttp.RequestCtx, watched bool) (context.Context, *answer) {
	run, cancel := context.WithCancelCause(spanOf(ctx).In(parent))
	conn := connOf(ctx)
	if watched = watched && conn != nil; watched {
		s.watches.add(conn, func() { cancel(errClientLeft) })
	}
	stop := s.endsWith(callerOf(ctx), cancel)
	a := newAnswer(conn, s.opt.WriteTimeout, func() {
		if watched {
			s.watches.remove(conn)
		}
		stop()
		cancel(errClientLeft)
	})
	if tenant, known := s.readerOf(ctx); known {
		a.counted = func(size int) func() {
			s.answers.owe(tenant, size)
			return func() { s.answers.give(tenant, size) }
		}
	}
	return run, a
}

// serveMounted runs the handler and ends its answer.
func (s *Server) serveMounted(h http.Handler, a *answer, req *http.Request) {
	defer func() {
		p := recover()
		if p != nil && p != http.ErrAbortHandler { //nolint:errorlint // it is this very value that is thrown
			s.log.LogAttrs(context.WithoutCancel(req.Context()), slog.LevelError, "panic in a mounted handler",
				slog.String("trace_id", req.Header.Get(headerTrace)), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		}
		a.finish(p)
	}()
	h.ServeHTTP(a, req)
}

// standardRequest makes a request of net/http, of which nothing is in the connection's
// buffers.
func standardRequest(run context.Context, ctx *fasthttp.RequestCtx, coming *comingBody) (*http.Request, error) {
	req, err := http.NewRequestWithContext(run, string(ctx.Method()), string(ctx.RequestURI()), http.NoBody)
	if err != nil {
		return nil, err
	}
	if coming != nil {
		req.Body, req.ContentLength = coming, -1
	} else if body := ctx.Request.Body(); len(body) > 0 { // in memory of its own, see readBody
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	for k, v := range ctx.Request.Header.All() {
		if name := string(k); name != "Host" && name != "Transfer-Encoding" && name != "Connection" {
			req.Header.Add(name, string(v))
		}
	}
	req.Header.Set(headerTrace, string(traceOf(ctx)))
	req.Host, req.RequestURI = string(ctx.Host()), string(ctx.RequestURI())
	return req, nil
}

// copyHeader puts the handler's headers over those that every answer has.
func copyHeader(to *fasthttp.ResponseHeader, from http.Header) {
	for name, values := range from {
		switch name {
		case "Content-Length", "Transfer-Encoding", "Connection", headerTrace:
			continue
		}
		for i, v := range values {
			if i == 0 {
				to.Set(name, v)
			} else {
				to.Add(name, v)
			}
		}
	}
}

// maxHeld is how much of an answer is held back, in bytes, until the handler returns or
// asks for it to be sent.
const maxHeld = 64 << 10

// answer is what a handler of net/http writes to. It is held until the handler returns,
// or streamed as soon as the handler flushes it or it is long.
type answer struct {
	conn    *conn // nil where there is none
	timeout time.Duration
	release func()                       // called once, when all is over
	counted func(size int) (sent func()) // told of what is written at once and long; nil: nobody is

	begun chan struct{} // closed when the head is known
	pr    *io.PipeReader
	pw    *io.PipeWriter

	mu       sync.Mutex
	header   http.Header // the handler's
	sent     http.Header // as it was when the status was written
	status   int
	buf      []byte // not sent yet
	stream   bool
	live     bool     // the handler has had something sent before its end
	isOver   bool     // the connection is not this answer's any more
	held     []func() // give back what Hold counted
	panicked any

	start, over sync.Once
}

func newAnswer(c *conn, timeout time.Duration, release func()) *answer {
	a := &answer{conn: c, timeout: timeout, release: release, begun: make(chan struct{}), header: http.Header{}}
	a.pr, a.pw = io.Pipe()
	return a
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writeHeader(status)
}

func (a *answer) writeHeader(status int) {
	if a.status == 0 && status >= 200 && status <= 999 { // there are no interim answers here
		a.status, a.sent = status, a.header.Clone()
	}
}

// Write implements io.Writer. It waits while the client does not read.
func (a *answer) Write(p []byte) (int, error) {
	a.mu.Lock()
	a.writeHeader(http.StatusOK)
	if !a.stream && len(a.buf)+len(p) <= maxHeld {
		a.buf = append(a.buf, p...)
		a.mu.Unlock()
		return len(p), nil
	}
	a.stream = true
	a.mu.Unlock()
	a.start.Do(func() { close(a.begun) })
	if len(p) > smallAnswer && a.counted != nil {
		defer a.counted(len(p))()
	}
	return a.pw.Write(p)
}

// Hold counts size bytes that the handler keeps in memory until the answer is sent, and
// writes in pieces.
func (a *answer) Hold(size int) {
	if size <= smallAnswer || a.counted == nil {
		return
	}
	sent := a.counted(size)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isOver {
		sent()
		return
	}
	a.held = append(a.held, sent)
}

// Flush implements http.Flusher.
func (a *answer) Flush() {
	a.mu.Lock()
	a.writeHeader(http.StatusOK)
	a.stream = true
	if !a.live && !a.isOver && a.conn != nil {
		a.conn.works()
	}
	a.live = true
	a.mu.Unlock()
	a.start.Do(func() { close(a.begun) })
}

// isMade notes that the answer is on its way. One that is a stream only because it is long
// has its handler wait for nothing but the client.
func (a *answer) isMade() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.live && a.conn != nil {
		a.conn.answered()
	}
}

// finish is called when the handler has returned.
func (a *answer) finish(panicked any) {
	a.mu.Lock()
	a.writeHeader(http.StatusOK)
	a.panicked = panicked
	a.mu.Unlock()
	a.start.Do(func() { close(a.begun) })
	if panicked != nil {
		_ = a.pw.CloseWithError(fmt.Errorf("the handler failed: %v", panicked)) // never fails
		return
	}
	_ = a.pw.Close() // never fails
}

// send has the connection answer with what is written to a, as it is written.
func (a *answer) send(ctx *fasthttp.RequestCtx) {
	status, header, _ := a.head()
	ctx.SetStatusCode(status)
	copyHeader(&ctx.Response.Header, header)
	ctx.Response.ImmediateHeaderFlush = true
	ctx.Response.SetBodyStream(a, -1)
}

// head gives what was written before the answer began.
func (a *answer) head() (status int, header http.Header, panicked any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stream {
		return a.status, a.sent, nil // what comes later ends the stream
	}
	return a.status, a.sent, a.panicked
}

func (a *answer) streams() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stream
}

// Read gives the connection what was written. Each part has the time that a whole
// answer has otherwise: a stream may take longer than that, but not a client that does
// not read.
func (a *answer) Read(p []byte) (int, error) {
	a.mu.Lock()
	n := copy(p, a.buf)
	a.buf = a.buf[n:]
	a.mu.Unlock()
	var err error
	if n == 0 {
		n, err = a.pr.Read(p)
	}
	if a.conn != nil {
		_ = a.conn.SetWriteDeadline(time.Now().Add(a.timeout))
	}
	return n, err
}

// Close is called when the answer was sent, or cannot be.
func (a *answer) Close() error {
	a.end()
	return nil
}

func (a *answer) end() {
	a.over.Do(func() {
		a.mu.Lock()
		a.isOver = true
		for _, sent := range a.held {
			sent()
		}
		a.mu.Unlock()
		_ = a.pr.CloseWithError(errors.Join(errClientLeft, io.ErrClosedPipe)) // never fails; who still writes is told
		a.release()
	})
}
