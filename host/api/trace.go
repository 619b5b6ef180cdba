package api

import (
	"github.com/valyala/fasthttp"

	"openskill/host/internal/tracing"
	"openskill/sdk/skill"
)

type spanKey struct{}

// spanOf is the span of a request; nil where there is none.
func spanOf(ctx *fasthttp.RequestCtx) *tracing.Span {
	span, _ := ctx.UserValue(spanKey{}).(*tracing.Span)
	return span
}

// traced begins the span of a request, and gives the function that ends it when the
// answer is made; of a stream, when its head is. What works on the request has its
// context by spanOf.
func (s *Server) traced(ctx *fasthttp.RequestCtx, id skill.TraceID) func() {
	if s.opt.Trace == nil {
		return func() {}
	}
	parent, _ := tracing.ParseParent(ctx.Request.Header.Peek(headerParent)) // else there is none
	_, span := s.opt.Trace.Root(s.base, "http", string(id), parent)
	ctx.SetUserValue(spanKey{}, span)
	return func() {
		if r := callerOf(ctx); r.Path != "" {
			span.Text("http.route", r.Path)
			span.Text("http.request.method", r.Method)
		}
		status := ctx.Response.StatusCode()
		span.Number("http.response.status_code", int64(status))
		if status >= fasthttp.StatusInternalServerError {
			span.Fail(fasthttp.StatusMessage(status))
		}
		span.End()
		ctx.SetUserValue(spanKey{}, nil)
	}
}
