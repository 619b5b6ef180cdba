package api

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// inside is who asks from within the process, and for how long. Only [Server.Do] sets it:
// no request over a connection can have one.
type inside struct {
	ctx       context.Context //nolint:containedctx // of the one who asks
	principal skill.Principal
	sent      func() // gives back what is counted of the answer; nil: nothing is
}

type insideKey struct{}

// insideOf is who asks from within; nil: the request came over a connection.
func insideOf(ctx *fasthttp.RequestCtx) *inside {
	in, _ := ctx.UserValue(insideKey{}).(*inside)
	return in
}

// Do answers a request of another part of this process, as p: by the same routes, the same
// table and the same limits as one that comes over a connection, but that p is
// taken for who calls, whatever credentials the request has. The caller must have made sure
// of p. Of r the method, the path with its query, the headers and the body count.
//
// What runs for it ends when ctx does, or when the answer's body is closed, which the caller
// must do. The error is not nil only where r is no request.
func (s *Server) Do(ctx context.Context, p skill.Principal, r *http.Request) (*http.Response, error) {
	if r.URL == nil || r.URL.Path == "" {
		return nil, invalid("the request has no path")
	}
	var fc fasthttp.RequestCtx
	fc.Init(&fasthttp.Request{}, nil, nil)
	fc.Request.Header.SetMethod(r.Method)
	fc.Request.SetRequestURI(r.URL.RequestURI())
	for name, values := range r.Header {
		for _, v := range values {
			fc.Request.Header.Add(name, v)
		}
	}
	if r.Body != nil && r.Body != http.NoBody {
		size := -1 // unknown
		if r.ContentLength > 0 {
			size = int(r.ContentLength)
		}
		fc.Request.SetBodyStream(r.Body, size)
	}
	in := &inside{ctx: ctx, principal: p}
	fc.SetUserValue(insideKey{}, in)
	s.http.Handler(&fc) // what runs ends with ctx, see endsWith

	out := &http.Response{
		StatusCode: fc.Response.StatusCode(), Status: http.StatusText(fc.Response.StatusCode()),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, ContentLength: -1, Request: r,
	}
	for k, v := range fc.Response.Header.All() {
		out.Header.Add(string(k), string(v))
	}
	if stream := fc.Response.BodyStream(); stream != nil {
		out.Body = &insideBody{stream, &fc.Response}
		return out, nil
	}
	body := fc.Response.Body()
	out.ContentLength, out.Body = int64(len(body)), &madeBody{Reader: bytes.NewReader(body), sent: in.sent}
	return out, nil
}

// madeBody is the body of an answer that is made. It is read in pieces: nobody needs all of
// it at once.
type madeBody struct {
	io.Reader
	sent func()
}

func (b *madeBody) Close() error {
	if b.sent != nil {
		b.sent()
		b.sent = nil
	}
	return nil
}

// insideBody is the body of an answer that is made while it is read.
type insideBody struct {
	io.Reader
	of *fasthttp.Response
}

func (b *insideBody) Close() error { return b.of.CloseBodyStream() }
