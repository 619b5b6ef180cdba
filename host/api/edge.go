package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/internal/lease"
	"openskill/host/internal/tracing"
	"openskill/sdk/skill"
)

const (
	headerTrace   = "X-Trace-Id"
	headerRequest = "X-Request-Id" // what proxies and other services call it
	headerParent  = "Traceparent"  // W3C Trace Context
	jsonType      = "application/json"
)

// handle is the outermost handler: what holds for every request, also for those
// that no route takes.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	trace := takeTrace(ctx)
	s.commonHeaders(ctx, trace)
	defer isMade(ctx)
	defer s.keepAnswer(ctx)
	defer s.answered(ctx)()
	defer s.traced(ctx, trace)()
	defer func() {
		if p := recover(); p != nil {
			s.log.LogAttrs(spanOf(ctx).In(context.Background()), slog.LevelError, "panic in a handler",
				slog.String("trace_id", string(trace)), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			ctx.Response.Reset()
			s.commonHeaders(ctx, trace)
			s.fail(ctx, &skill.Error{Op: "httpapi.handle", Code: skill.Internal})
		}
		if s.closing.Load() {
			ctx.SetConnectionClose()
		}
	}()
	defer s.leaveUnread(ctx)
	defer s.release(ctx)
	path := plainPath(ctx)
	if twoLengths(ctx) {
		s.fail(ctx, malformed("the request has both Content-Length and Transfer-Encoding; send only one"))
		return
	}
	err := s.letIn(ctx, path)
	if err == nil || skill.CodeOf(err) == skill.Unauthorized {
		err = cmp.Or(s.pace(ctx), err)
	}
	if err != nil {
		s.fail(ctx, err)
		return
	}
	defer s.lookAfter(callerOf(ctx))()
	defer s.paceRefused(ctx)
	if callerOf(ctx).route == nil {
		s.noRoute(ctx, path)
		return
	}
	if !ctx.IsPost() || !isUploadPath(path) {
		if err := s.receiveBody(ctx); err != nil {
			s.readFailed(ctx, err)
			return
		}
		if conn := connOf(ctx); conn != nil {
			conn.enter(busy)
		}
	}
	leave, err := s.enter(ctx)
	if err != nil {
		s.fail(ctx, err)
		return
	}
	defer leave()
	if err := cmp.Or(lease.Refused(callerOf(ctx).asker), s.mayAnswer(ctx)); err != nil { // refused while the body came in
		s.fail(ctx, err)
		return
	}
	s.fiber(ctx)
	if s.log.Enabled(context.Background(), slog.LevelDebug) {
		s.log.LogAttrs(spanOf(ctx).In(context.Background()), slog.LevelDebug, "request", slog.String("trace_id", string(trace)),
			slog.String("method", string(ctx.Method())), slog.String("path", skill.CleanText(path, 200)),
			slog.Int("status", ctx.Response.StatusCode()))
	}
}

// isMade notes that an answer is made. Of one that is written while it is sent, it knows.
func isMade(ctx *fasthttp.RequestCtx) {
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

// twoLengths finds requests whose end two parties could see in two places.
// fasthttp forgets the Content-Length of a chunked request, so its raw headers
// are searched.
func twoLengths(ctx *fasthttp.RequestCtx) bool {
	return ctx.Request.Header.ContentLength() == -1 &&
		bytes.Contains(bytes.ToLower(ctx.Request.Header.RawHeaders()), []byte("content-length"))
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

// standing are the headers of every answer besides the trace id. Answers are for
// their caller, not for caches, frames or pages of other origins.
var standing = [...][2][]byte{
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
	for i := range standing {
		h.SetCanonical(standing[i][0], standing[i][1])
	}
}

// sameOrigin keeps web pages of other origins from using the authority that
// this edge gives to whoever reaches it. Browsers name the page's origin in
// every request that can do something; other clients do not.
func (s *Server) sameOrigin(ctx *fasthttp.RequestCtx) bool {
	origins := ctx.Request.Header.PeekAll("Origin")
	if len(origins) > 1 {
		return false // no browser sends two, and who forwarded them may have looked at the other
	}
	if len(origins) == 0 || len(origins[0]) == 0 {
		return string(ctx.Request.Header.Peek("Sec-Fetch-Site")) != "cross-site" || ctx.IsGet() || ctx.IsHead() || ctx.IsOptions()
	}
	origin := origins[0]
	if slices.Contains(s.opt.Origins, string(origin)) {
		return true
	}
	u, err := url.Parse(string(origin))
	if err != nil || u.Host == "" || !strings.EqualFold(u.Host, string(ctx.Host())) {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	_, err = netip.ParseAddr(u.Hostname())
	return err == nil
}

// knownHost reports whether a header Host names this host as its operator knows it. A
// page of a stranger's name that points here is of no other origin to its browser, and
// only this tells.
func (s *Server) knownHost(host string) bool {
	u, err := url.Parse("http://" + host)
	if err != nil || u.Host != host || u.Hostname() == "" {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return true
	}
	for _, origin := range s.opt.Origins {
		if o, err := url.Parse(origin); err == nil && strings.EqualFold(o.Host, host) {
			return true
		}
	}
	return false
}

// rebound reports whether a request may come from a page whose own name points here:
// its browser then says nothing of an origin when it only reads.
func (s *Server) rebound(ctx *fasthttp.RequestCtx) bool {
	host := string(ctx.Host())
	return host != "" && len(ctx.Request.Header.Peek("Origin")) == 0 && !s.knownHost(host)
}

func errUnknownHost(host string) error {
	return &skill.Error{
		Op: "httpapi.host", Code: skill.Forbidden,
		Message: fmt.Sprintf("unknown host name %q: use an IP address, localhost, or set OPENSKILL_HTTP_BASE_URL or OPENSKILL_HTTP_ORIGINS", skill.CleanText(host, 80)),
	}
}

// fiberError answers what fiber itself found wrong: no such route or method.
func (s *Server) fiberError(c *fiber.Ctx, err error) error {
	var fe *fiber.Error
	if errors.As(err, &fe) && (fe.Code == fiber.StatusNotFound || fe.Code == fiber.StatusMethodNotAllowed) {
		s.noRoute(c.Context(), c.Path())
		return nil
	}
	s.fail(c.Context(), err)
	return nil
}

// noRoute answers 405 for a path that exists and 404 for one that does not, and OPTIONS of
// a path that exists with its methods.
func (s *Server) noRoute(ctx *fasthttp.RequestCtx, path string) {
	allow := s.allowed(path)
	if allow != "" && ctx.IsOptions() {
		ctx.Response.Header.Set("Allow", allow)
		ctx.Response.Header.SetNoDefaultContentType(true)
		ctx.SetStatusCode(fasthttp.StatusNoContent)
		return
	}
	if allow == "" {
		ctx.Response.Header.Del("Allow") // fiber may have found a route of another form
		s.fail(ctx, &skill.Error{
			Op: "httpapi.route", Code: skill.NotFound,
			Message: "not found; see /openapi.json for all paths",
		})
		return
	}
	s.failAs(ctx, fasthttp.StatusMethodNotAllowed, &skill.Error{
		Op: "httpapi.route", Code: skill.InvalidArgument,
		Message: "method not allowed; use " + allow,
	})
	ctx.Response.Header.Set("Allow", allow)
}
