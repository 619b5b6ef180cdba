package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// mounted answers /mcp with a handler of net/http. fasthttp's own adaptor would do so
// too, but hands the handler a request that lives in the connection's buffers, and a
// context that does not end when the client leaves; a handler that is still at work
// then reads what the next request writes.
func (s *Server) mounted(c *fiber.Ctx) error {
	ctx := c.Context()
	h := s.opt.MCP
	if h == nil {
		return fiber.ErrNotFound
	}
	if !s.knownHost(string(ctx.Host())) {
		return errUnknownHost()
	}
	if len(ctx.Request.Header.Peek("Content-Encoding")) > 0 {
		return checkBodyHeaders(&ctx.Request.Header)
	}
	parent := s.base
	if ctx.IsGet() {
		parent = s.listening // a stream without an end, which a host that stops does not wait for
	}
	run, cancel := context.WithCancelCause(context.WithValue(parent, callerKey{}, who(ctx)))
	req, err := standardRequest(run, ctx)
	if err != nil {
		cancel(nil)
		return invalid("the request's target is not well-formed")
	}
	conn := connOf(ctx)
	if conn != nil {
		s.watches.add(conn, func() { cancel(errClientLeft) })
	}
	a := newAnswer(conn, s.opt.WriteTimeout, func() {
		if conn != nil {
			s.watches.remove(conn)
		}
		cancel(errClientLeft)
	})
	go s.serveMounted(h, a, req)
	<-a.begun

	status, header, panicked := a.head()
	if panicked != nil {
		a.end()
		ctx.SetConnectionClose()
		return &skill.Error{Op: "httpapi.mounted", Code: skill.Internal, Message: "the handler failed"}
	}
	ctx.SetStatusCode(status)
	copyHeader(&ctx.Response.Header, header)
	if a.streams() {
		ctx.Response.ImmediateHeaderFlush = true
		ctx.Response.SetBodyStream(a, -1)
		return nil
	}
	if header.Get("Content-Type") == "" {
		ctx.Response.Header.SetNoDefaultContentType(true)
	}
	ctx.SetBody(a.buf)
	a.end()
	return nil
}

// serveMounted runs the handler and ends its answer.
func (s *Server) serveMounted(h http.Handler, a *answer, req *http.Request) {
	defer func() {
		p := recover()
		if p != nil && p != http.ErrAbortHandler { //nolint:errorlint // it is this very value that is thrown
			s.log.LogAttrs(context.Background(), slog.LevelError, "panic in a mounted handler",
				slog.String("trace_id", req.Header.Get(headerTrace)), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		}
		a.finish(p)
	}()
	h.ServeHTTP(a, req)
}

// standardRequest makes a request of net/http, of which nothing is in the connection's
// buffers.
func standardRequest(run context.Context, ctx *fasthttp.RequestCtx) (*http.Request, error) {
	body := ctx.Request.Body() // in memory of its own, see takeBody
	req, err := http.NewRequestWithContext(run, string(ctx.Method()), string(ctx.RequestURI()), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for k, v := range ctx.Request.Header.All() {
		if name := string(k); name != "Host" && name != "Transfer-Encoding" && name != "Connection" {
			req.Header.Add(name, string(v))
		}
	}
	req.Header.Set(headerTrace, string(traceOf(ctx)))
	req.Host, req.RequestURI, req.RemoteAddr = string(ctx.Host()), string(ctx.RequestURI()), ctx.RemoteAddr().String()
	req.ContentLength = int64(len(body))
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
	release func() // called once, when all is over

	begun chan struct{} // closed when the head is known
	pr    *io.PipeReader
	pw    *io.PipeWriter

	mu       sync.Mutex
	header   http.Header // the handler's
	sent     http.Header // as it was when the status was written
	status   int
	buf      []byte // not sent yet
	stream   bool
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
	return a.pw.Write(p)
}

// Flush implements http.Flusher.
func (a *answer) Flush() {
	a.mu.Lock()
	a.writeHeader(http.StatusOK)
	a.stream = true
	a.mu.Unlock()
	a.start.Do(func() { close(a.begun) })
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
		_ = a.conn.SetWriteDeadline(time.Now().Add(a.timeout)) //nolint:forbidigo // the kernel's clock; failing only means closed
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
		_ = a.pr.CloseWithError(errors.Join(errClientLeft, io.ErrClosedPipe)) // never fails; who still writes is told
		a.release()
	})
}
