package httpapi

import (
	"errors"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// errBodyTooLarge is a body over its limit.
var errBodyTooLarge = errors.New("the body is too large")

// takeBody reads the body of a request that is no upload into memory of its own,
// where it stays when the connection's next request arrives.
func (s *Server) takeBody(ctx *fasthttp.RequestCtx) error {
	stream := ctx.RequestBodyStream()
	if stream == nil {
		return nil
	}
	declared := ctx.Request.Header.ContentLength() // -1: in chunks
	if declared > s.opt.BodyLimit {
		return errBodyTooLarge
	}
	const first = 64 << 10 // announcing more costs nothing before this much has come
	size := first
	if declared >= 0 {
		size = min(declared+1, first) // one more: the end is seen without growing
	}
	b := make([]byte, 0, size)
	for {
		n, err := stream.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > s.opt.BodyLimit:
			return errBodyTooLarge
		case err == io.EOF && declared >= 0 && len(b) < declared:
			return io.ErrUnexpectedEOF
		case err == io.EOF:
			ctx.Request.SetBodyRaw(b)
			return nil
		case err != nil:
			return err
		case len(b) == cap(b) && declared > len(b):
			b = append(make([]byte, 0, declared+1), b...)
		case len(b) == cap(b):
			b = append(b, 0)[:len(b)]
		}
	}
}

// headReceived bounds the reading of a body, before any of it is read.
func (s *Server) headReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	limit, timeout := int64(s.opt.BodyLimit), s.opt.BodyTimeout
	if path, _, _ := strings.Cut(string(h.RequestURI()), "?"); h.IsPost() && isUploadPath(path) {
		limit, timeout = s.opt.UploadLimit+uploadFrame, s.opt.UploadTimeout
	}
	if int64(h.ContentLength()) > limit {
		// fasthttp would wait for the beginning of the body. As if the client had asked
		// first, it is answered now; see expect.
		h.Set("Expect", "100-continue")
	}
	return fasthttp.RequestConfig{ReadTimeout: timeout}
}

// leaveUnread closes the connection behind an answer whose request was not read to
// its end: what is left of it must not be taken for the next request.
func (s *Server) leaveUnread(ctx *fasthttp.RequestCtx) {
	if ctx.RequestBodyStream() == nil {
		return
	}
	ctx.SetConnectionClose()
	if conn := connOf(ctx); conn != nil {
		conn.linger.Store(true)
	}
}

// limitOf is the largest body of a request, in bytes.
func (s *Server) limitOf(ctx *fasthttp.RequestCtx) int64 {
	if ctx.IsPost() && isUploadPath(plainPath(ctx)) {
		return s.opt.UploadLimit + uploadFrame
	}
	return int64(s.opt.BodyLimit)
}

// expect answers Expect: 100-continue before the body is sent: as the request would be
// answered without it if it is not let in, with 413 if it would be too large.
func (s *Server) expect(ctx *fasthttp.RequestCtx) int {
	s.commonHeaders(ctx, takeTrace(ctx))
	if err := s.letIn(ctx, plainPath(ctx)); err != nil {
		s.fail(ctx, err)
	} else if int64(ctx.Request.Header.ContentLength()) <= s.limitOf(ctx) {
		ctx.Response.Reset()
		return fasthttp.StatusContinue
	} else {
		s.readFailed(ctx, errBodyTooLarge)
	}
	if conn := connOf(ctx); conn != nil {
		conn.linger.Store(true)
	}
	return ctx.Response.StatusCode()
}

// parseError answers what fasthttp could not read as a request. The connection
// closes afterwards; it lingers, so that a client that is still sending gets to
// read the answer.
func (s *Server) parseError(ctx *fasthttp.RequestCtx, err error) {
	if conn := connOf(ctx); conn != nil {
		conn.linger.Store(true)
		// fasthttp has forgotten, or never understood, whose failure this is.
		method, uri, trace := conn.firstWords()
		ctx.Request.Header.SetMethodBytes(method)
		ctx.Request.SetRequestURIBytes(uri)
		ctx.Request.Header.SetBytesV(headerTrace, trace)
	}
	s.commonHeaders(ctx, takeTrace(ctx))
	ctx.Response.SkipBody = ctx.IsHead()
	s.readFailed(ctx, err)
}

// readFailed answers a request that could not be read to its end.
func (s *Server) readFailed(ctx *fasthttp.RequestCtx, err error) {
	var tooLong *fasthttp.ErrSmallBuffer
	if errors.As(err, &tooLong) {
		s.failAs(ctx, fasthttp.StatusRequestHeaderFieldsTooLarge, &skill.Error{
			Op: "httpapi.read", Code: skill.PayloadTooLarge,
			Message: "request line and headers are too long; up to " + strconv.Itoa(s.opt.HeadLimit) + " bytes are accepted",
		})
		return
	}
	s.fail(ctx, s.readError(ctx, err))
}

// readError says what was wrong with a body that could not be read.
func (s *Server) readError(ctx *fasthttp.RequestCtx, err error) error {
	var network net.Error
	switch {
	case errors.Is(err, errBodyTooLarge), errors.Is(err, fasthttp.ErrBodyTooLarge):
		return &skill.Error{
			Op: "httpapi.read", Code: skill.PayloadTooLarge,
			Message: "the body is too large; up to " + strconv.FormatInt(s.limitOf(ctx), 10) + " bytes are accepted",
		}
	case errors.As(err, &network) && network.Timeout():
		return &skill.Error{Op: "httpapi.read", Code: skill.Timeout, Message: "the request did not arrive in full in time"}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return malformed("the request ended before it was complete")
	}
	e := malformed("this is not a well-formed HTTP/1.1 request")
	e.Err = err
	return e
}
