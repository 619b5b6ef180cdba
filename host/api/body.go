package api

import (
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// errBodyTooLarge is a body over its limit.
var errBodyTooLarge = errors.New("the body is too large")

// openBody is the largest body in bytes, and openTime how long it may take to come in, where
// nobody knows the caller: signing in takes an API key or a JWT of 8 KiB, as a form.
const (
	openBody = 16 << 10
	openTime = 5 * time.Second
)

// mostOfFile is the maximum body size of an upload of a file in bytes.
const mostOfFile = records.MostBytesOfFile + uploadFrame

// firstOpen and firstKnown are the first buffers of bodies, in bytes.
const (
	firstOpen  = 1 << 10
	firstKnown = 64 << 10
)

// readBody reads the body of a request that is no upload into memory of its own,
// where it stays when the connection's next request arrives. Buffers grow with what has
// come, twofold, and are counted before they are made.
func (s *Server) readBody(ctx *fasthttp.RequestCtx) error {
	stream := ctx.RequestBodyStream()
	if stream == nil {
		return nil
	}
	declared, limit := ctx.Request.Header.ContentLength(), int(s.limitOf(ctx)) // -1: in chunks
	if declared > limit {
		return errBodyTooLarge
	}
	size := s.firstBuffer(ctx)
	if declared >= 0 {
		size = min(declared+1, size) // one more: the end is seen without growing
	}
	if err := s.hold(ctx, size); err != nil {
		return err
	}
	b := make([]byte, 0, size)
	for {
		n, err := stream.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > limit:
			return errBodyTooLarge
		case err == io.EOF && declared >= 0 && len(b) < declared:
			return io.ErrUnexpectedEOF
		case err == io.EOF:
			ctx.Request.SetBodyRaw(b)
			return nil
		case err != nil:
			return err
		case len(b) == cap(b):
			if size = min(2*len(b), limit+1); declared > 0 {
				size = min(size, declared+1)
			}
			if err := s.hold(ctx, size); err != nil {
				return err
			}
			b = append(make([]byte, 0, size), b...)
		}
	}
}

// firstBuffer is the size of the first buffer of a body, in bytes. Announcing more costs
// nothing before this much has come.
func (s *Server) firstBuffer(ctx *fasthttp.RequestCtx) int {
	if callerOf(ctx).principal.ID == "" {
		return firstOpen
	}
	return firstKnown
}

// headReceived bounds the reading of a body, before any of it is read. One that is announced to
// be too large is answered now, as if the client had asked first; see expect.
func (s *Server) headReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	uri, _, _ := strings.Cut(string(h.RequestURI()), "?")
	path := unescaped([]byte(uri))
	limit, timeout := int64(s.opt.BodyLimit), s.opt.BodyTimeout
	switch {
	case h.IsPost() && isFilePath(path):
		limit, timeout = mostOfFile, s.opt.UploadTimeout
	case h.IsPost() && isUploadPath(path):
		limit, timeout = s.opt.UploadLimit+uploadFrame, s.opt.UploadTimeout
	case strings.HasPrefix(path, pathConsole):
		timeout = min(timeout, openTime) // until the caller is known
	}
	if int64(h.ContentLength()) > limit {
		h.Set("Expect", "100-continue")
	}
	// fasthttp waits for the beginning of a body, up to 8 KiB or this limit, before it
	// calls the handler: one byte has to be enough.
	return fasthttp.RequestConfig{ReadTimeout: timeout, MaxRequestBodySize: 1}
}

// closeIfUnread closes the connection behind an answer whose request was not read to
// its end: what is left of it must not be taken for the next request.
func (s *Server) closeIfUnread(ctx *fasthttp.RequestCtx) {
	if ctx.RequestBodyStream() == nil || ctx.Request.Header.ContentLength() == 0 {
		return
	}
	ctx.SetConnectionClose()
	if conn := connOf(ctx); conn != nil {
		conn.linger.Store(true)
	}
}

// limitOf is the largest body of a request, in bytes.
func (s *Server) limitOf(ctx *fasthttp.RequestCtx) int64 {
	switch c := callerOf(ctx); {
	case c.kind == kindFile:
		return mostOfFile
	case c.kind.stream:
		return s.opt.UploadLimit + uploadFrame
	case c.Open() && c.principal.ID == "":
		return int64(min(s.opt.BodyLimit, openBody))
	}
	return int64(s.opt.BodyLimit)
}

// expect answers Expect: 100-continue before the body is sent, by the layers down to the one
// that would read it.
func (s *Server) expect(ctx *fasthttp.RequestCtx) int {
	ctx.SetUserValue(askingKey{}, true)
	s.http.Handler(ctx)
	ctx.RemoveUserValue(askingKey{})
	status := ctx.Response.StatusCode()
	if status == fasthttp.StatusContinue {
		ctx.Response.Reset()
	} else if conn := connOf(ctx); conn != nil {
		conn.linger.Store(true)
	}
	return status
}

// parseError answers what fasthttp could not read as a request. The connection
// closes afterwards; it lingers, so that a client that is still sending gets to
// read the answer.
func (s *Server) parseError(ctx *fasthttp.RequestCtx, err error) {
	if conn := connOf(ctx); conn != nil {
		conn.linger.Store(true)
	}
	ctx.Request.Reset() // it may have what the request before has left
	s.commonHeaders(ctx, newTrace())
	if _, ok := errors.AsType[*fasthttp.ErrSmallBuffer](err); ok {
		s.failAs(ctx, fasthttp.StatusRequestHeaderFieldsTooLarge, &skill.Error{
			Op: opRead, Code: skill.PayloadTooLarge,
			Message: "the request line and headers are too long; the limit is " + strconv.Itoa(s.opt.HeadLimit) + " bytes",
		})
		return
	}
	s.fail(ctx, s.readError(ctx, err))
}

// readError says what was wrong with a body that could not be read.
func (s *Server) readError(ctx *fasthttp.RequestCtx, err error) error {
	var network net.Error
	switch _, ok := errors.AsType[*skill.Error](err); {
	case ok:
		return err
	case errors.Is(err, errBodyTooLarge), errors.Is(err, fasthttp.ErrBodyTooLarge):
		return &skill.Error{
			Op: opRead, Code: skill.PayloadTooLarge,
			Message: "the body is too large; the limit is " + strconv.FormatInt(s.limitOf(ctx), 10) + " bytes",
		}
	case errors.As(err, &network) && network.Timeout():
		return &skill.Error{Op: opRead, Code: skill.Timeout, Message: "timeout while reading the request; send it faster"}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return malformed("the request ended early; send all of it")
	}
	e := malformed("malformed HTTP/1.1 request")
	e.Err = err
	return e
}
