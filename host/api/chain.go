package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"runtime/debug"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/identity"
	"openskill/host/internal/tracing"
	"openskill/sdk/skill"
)

// chain is the way of a request of a route, from the outside in. What a layer refuses, no
// layer below it sees.
func (s *Server) chain(r *Route) fiber.Handler {
	return s.labelled(r, // the trace id, and the headers of every answer
		s.counted( // memory of the answer, metrics, span
			s.answered( // errors and panics become answers
				s.wellFormed( // 400: an end in two places
					s.sameOrigin( // 403: web pages of other origins
						s.authorized( // 401, 403, 429: requests a minute
							s.leased( // until the caller's credentials are revoked
								s.received( // 408, 413, 415: the body
									s.admitted( // 429: its tenant's turn
										s.followed( // until the client leaves
											r.handle))))))))))
}

// caller is what the layers learn of a request: its route, and who it acts for.
type caller struct {
	*Route
	principal skill.Principal
	ran       bool   // what it calls has begun, and passed the limits of calls
	held      int    // bytes of the body that are counted, see hold
	answer    int    // bytes of the answer that are counted, see reserve
	holder    string // for whom

	credentials shown           // that it was let in by
	asker       context.Context //nolint:containedctx // ends when the caller is no longer let in; from within, with the one who asks; nil before it was let in
}

type callerKey struct{}

// noRoute is the route of a request before one was found.
var noRoute = &Route{kind: kindNone}

// callerOf is what is known of a request; of one that no layer has seen, nothing.
func callerOf(ctx *fasthttp.RequestCtx) *caller {
	if c, ok := ctx.UserValue(callerKey{}).(*caller); ok {
		return c
	}
	return &caller{Route: noRoute}
}

// principalOf is who a request acts for. The zero value, of a request that needs nobody, may
// do nothing.
func principalOf(ctx *fasthttp.RequestCtx) skill.Principal { return callerOf(ctx).principal }

// PrincipalOf is who a request acts for that this edge has handed to Options.MCP, by the
// request's context; without one, nobody.
func PrincipalOf(ctx context.Context) skill.Principal {
	p, _ := ctx.Value(callerKey{}).(skill.Principal)
	return p
}

const (
	headerTrace   = "X-Trace-Id"
	headerRequest = "X-Request-Id" // what proxies and other services call it
	headerParent  = "Traceparent"  // W3C Trace Context
	jsonType      = "application/json"
)

func (s *Server) labelled(r *Route, next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx := c.Context()
		ctx.SetUserValue(callerKey{}, &caller{Route: r}) // whatever the request before has left
		s.commonHeaders(ctx, takeTrace(ctx))
		defer markAnswered(ctx)
		return next(c)
	}
}

func (s *Server) counted(next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx := c.Context()
		if isAsking(ctx) { // it is counted when it has come in
			return next(c)
		}
		defer s.keepAnswer(ctx)
		defer s.measured(ctx)()
		defer s.traced(ctx, traceOf(ctx))()
		return next(c)
	}
}

func (s *Server) answered(next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx := c.Context()
		defer func() {
			if p := recover(); p != nil {
				trace := traceOf(ctx)
				s.log.LogAttrs(spanOf(ctx).In(context.Background()), slog.LevelError, "panic in a handler",
					slog.String("trace_id", string(trace)), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
				ctx.Response.Reset()
				s.commonHeaders(ctx, trace)
				s.fail(ctx, &skill.Error{Op: "api.handle", Code: skill.Internal})
			}
			if s.closing.Load() {
				ctx.SetConnectionClose()
			}
		}()
		defer s.closeIfUnread(ctx)
		defer s.release(ctx)
		var none *fiber.Error
		switch err := next(c); {
		case errors.As(err, &none):
			s.notFound(c, none)
		case err != nil:
			s.fail(ctx, err)
		}
		if s.log.Enabled(context.Background(), slog.LevelDebug) {
			s.log.LogAttrs(spanOf(ctx).In(context.Background()), slog.LevelDebug, "request", slog.String("trace_id", string(traceOf(ctx))),
				slog.String("method", string(ctx.Method())), slog.String("path", skill.CleanText(plainPath(ctx), 200)),
				slog.Int("status", ctx.Response.StatusCode()))
		}
		return nil
	}
}

// notFound answers 405 for a path that exists and 404 for one that does not, and OPTIONS of
// a path that exists with its methods, which the router has found.
func (s *Server) notFound(c *fiber.Ctx, found *fiber.Error) {
	ctx := c.Context()
	if found.Code != fiber.StatusMethodNotAllowed {
		ctx.Response.Header.Del(fiber.HeaderAllow)
		s.fail(ctx, &skill.Error{Op: opRoute, Code: skill.NotFound, Message: "not found; see /openapi.json for all paths"})
		return
	}
	allow := c.GetRespHeader(fiber.HeaderAllow) + ", OPTIONS"
	if ctx.IsOptions() {
		ctx.Response.Header.SetNoDefaultContentType(true)
		ctx.SetStatusCode(fasthttp.StatusNoContent)
	} else {
		s.failAs(ctx, fasthttp.StatusMethodNotAllowed, &skill.Error{Op: opRoute, Code: skill.InvalidArgument, Message: "method not allowed; use " + allow})
	}
	ctx.Response.Header.Set(fiber.HeaderAllow, allow)
}

// wellFormed refuses requests whose end two parties could see in two places. fasthttp forgets
// the Content-Length of a chunked request, so its raw headers are searched.
func (s *Server) wellFormed(next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		h := &c.Context().Request.Header
		if h.ContentLength() == -1 && bytes.Contains(bytes.ToLower(h.RawHeaders()), []byte("content-length")) {
			return malformed("the request has both Content-Length and Transfer-Encoding; send only one")
		}
		return next(c)
	}
}

func (s *Server) sameOrigin(next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx := c.Context()
		if insideOf(ctx) == nil {
			var origins []string
			for _, v := range ctx.Request.Header.PeekAll(fasthttp.HeaderOrigin) {
				origins = append(origins, string(v))
			}
			host, reads := string(ctx.Host()), ctx.IsGet() || ctx.IsHead() || ctx.IsOptions()
			if err := s.opt.Origins.Page(origins, string(ctx.Request.Header.Peek("Sec-Fetch-Site")), host, reads); err != nil {
				return err
			}
			// A page whose own name points here says nothing of an origin when it only reads.
			if !callerOf(ctx).Open() && len(origins) == 0 && host != "" && (ctx.IsGet() || ctx.IsHead()) {
				if err := s.opt.Origins.Host(host); err != nil {
					return err
				}
			}
		}
		return next(c)
	}
}

// authorized lets a request in by its caller and the scopes of its route. Those who are not
// known have requests a minute too.
func (s *Server) authorized(next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx := c.Context()
		err := s.authorize(c)
		if !isAsking(ctx) && (err == nil || skill.CodeOf(err) == skill.Unauthorized) {
			err = cmp.Or(s.pace(ctx), err)
		}
		if err != nil {
			return err
		}
		if !isAsking(ctx) {
			defer s.paceRefused(ctx)
		}
		return next(c)
	}
}

func (s *Server) leased(next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		defer s.lookAfter(callerOf(c.Context()))()
		return next(c)
	}
}

type askingKey struct{}

// isAsking reports whether a client waits to be told that it may send the body.
func isAsking(ctx *fasthttp.RequestCtx) bool { return ctx.UserValue(askingKey{}) != nil }

func (s *Server) received(next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx := c.Context()
		k := callerOf(ctx).kind
		if k == kindNone { // nothing reads it
			return next(c)
		}
		if k.json {
			if err := checkBodyHeaders(&ctx.Request.Header); err != nil {
				return err
			}
		}
		if int64(ctx.Request.Header.ContentLength()) > s.limitOf(ctx) {
			return s.readError(ctx, errBodyTooLarge)
		}
		if isAsking(ctx) {
			ctx.SetStatusCode(fasthttp.StatusContinue)
			return nil
		}
		if !k.stream {
			if err := s.readBody(ctx); err != nil {
				return s.readError(ctx, err)
			}
			handling(ctx)
		}
		return next(c)
	}
}

// handling notes that the request has come in: a client that closes now has left.
func handling(ctx *fasthttp.RequestCtx) {
	if conn := connOf(ctx); conn != nil {
		conn.enter(working)
	}
}

// admitted waits for the turn of the request's tenant.
func (s *Server) admitted(next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx := c.Context()
		leave, err := s.enter(ctx)
		if err != nil {
			return err
		}
		defer leave()
		if err := cmp.Or(identity.Refused(callerOf(ctx).asker), s.mayAnswer(ctx)); err != nil { // refused while the body came in
			return err
		}
		return next(c)
	}
}

// followed has the context of a handler end when the client leaves, or is no longer let in.
func (s *Server) followed(next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if callerOf(c.Context()).kind.own {
			return next(c)
		}
		run, done := s.calling(c.Context())
		defer done()
		c.SetUserContext(run)
		return next(c)
	}
}

// markAnswered notes that an answer is made. Of one that is written while it is sent, it knows.
func markAnswered(ctx *fasthttp.RequestCtx) {
	if a, ok := ctx.Response.BodyStream().(*answer); ok {
		a.isMade()
	} else if conn := connOf(ctx); conn != nil {
		conn.answered()
	}
}

// plainPath is the path as fiber matches it, in memory of its own.
func plainPath(ctx *fasthttp.RequestCtx) string {
	return unescaped(ctx.URI().PathOriginal())
}

func unescaped(p []byte) string {
	if bytes.IndexByte(p, '%') >= 0 || bytes.IndexByte(p, '+') >= 0 {
		p = fasthttp.AppendUnquotedArg(nil, p)
	}
	return string(p)
}

// takeTrace gives the request's trace id: the caller's own word for it, by either name, else
// that of its traceparent, else a new one. What is not well-formed is as if it were not there.
func takeTrace(ctx *fasthttp.RequestCtx) skill.TraceID {
	for _, name := range [...]string{headerTrace, headerRequest} {
		if given := string(ctx.Request.Header.Peek(name)); skill.ValidTraceID(given) {
			return skill.TraceID(given)
		}
	}
	if p, ok := tracing.ParseParent(ctx.Request.Header.Peek(headerParent)); ok {
		return skill.TraceID(p.TraceID())
	}
	return newTrace()
}

func newTrace() skill.TraceID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return skill.TraceID(hex.EncodeToString(b[:]))
}

// traceOf reads back what commonHeaders has set.
func traceOf(ctx *fasthttp.RequestCtx) skill.TraceID {
	return skill.TraceID(ctx.Response.Header.Peek(headerTrace))
}

// securityHeaders are the headers of every answer besides the trace id. Answers are for
// their caller, not for caches, frames or pages of other origins.
var securityHeaders = [...][2][]byte{
	{[]byte("X-Content-Type-Options"), []byte("nosniff")},
	{[]byte("X-Frame-Options"), []byte("DENY")},
	{[]byte("Cache-Control"), []byte("no-store")},
	{[]byte("Content-Security-Policy"), []byte("default-src 'none'; frame-ancestors 'none'")},
	{[]byte("Referrer-Policy"), []byte("no-referrer")},
	{[]byte("Cross-Origin-Resource-Policy"), []byte("same-origin")},
}

func (s *Server) commonHeaders(ctx *fasthttp.RequestCtx, trace skill.TraceID) {
	h := &ctx.Response.Header
	h.Set(headerTrace, string(trace))
	if given := ctx.Request.Header.Peek(headerRequest); skill.ValidTraceID(string(given)) {
		h.SetBytesV(headerRequest, given)
	} else if len(given) > 0 {
		h.Set(headerRequest, string(trace))
	}
	for i := range securityHeaders {
		h.SetCanonical(securityHeaders[i][0], securityHeaders[i][1])
	}
}
