package api

import (
	"errors"
	"net"

	"github.com/valyala/fasthttp"

	"openskill/host/internal/origin"
	"openskill/sdk/skill"
)

// The reasons of which [Watcher].Refused is told one.
const (
	refusedUnauthorized = "unauthorized"   // 401
	refusedForbidden    = "forbidden"      // 403: not with these scopes
	refusedOrigin       = "origin"         // 403: a web page of another origin
	refusedHost         = "host"           // 403: a name that is not this host's
	refusedRoute        = "route"          // 404: no such path
	refusedMethod       = "method"         // 405
	refusedTooLarge     = "too_large"      // 413
	refusedHead         = "head_too_large" // 431
	refusedTimeout      = "timeout"        // 408: it did not arrive in full in time
	refusedMalformed    = "malformed"      // 400: no well-formed request
	refusedConnections  = "connections"    // 429: no room for another connection, or the body of a request
	refusedRate         = "rate"           // 429: too many requests a minute
	refusedShed         = "shed"           // closed, since another one needed its room
)

// opRead is where requests are read; what it finds wrong is of no handler.
const opRead = "api.read"

// opRoute is where paths and methods are looked up.
const opRoute = "api.route"

// opRate is where requests a minute are counted.
const opRate = "api.rate"

// reasonOf says why a request was refused before any handler; "": it was not, or it is
// the host that failed.
func reasonOf(err error, status int) string {
	var e *skill.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch {
	case e.Op == opRoute && status == fasthttp.StatusMethodNotAllowed:
		return refusedMethod
	case e.Op != opRead:
		return reasons[e.Op]
	case errors.Is(err, net.ErrClosed): // closed by the host itself; nobody asked for anything
		return ""
	case status == fasthttp.StatusRequestHeaderFieldsTooLarge:
		return refusedHead
	case e.Code == skill.PayloadTooLarge:
		return refusedTooLarge
	case e.Code == skill.Timeout:
		return refusedTimeout
	}
	return refusedMalformed
}

// reasons are those of errors by what refused the request.
var reasons = map[string]string{
	origin.OpPage: refusedOrigin, origin.OpHost: refusedHost, opRoute: refusedRoute, "api.authenticate": refusedUnauthorized,
	opScope: refusedForbidden, opRate: refusedRate, opRoom: refusedConnections,
}

// malformed is invalid for what is no request.
func malformed(message string) *skill.Error {
	e := invalid(message)
	e.Op = opRead
	return e
}

func (s *Server) refused(reason string) {
	if s.opt.Watch != nil && reason != "" {
		s.opt.Watch.Refused(reason)
	}
}

// turned tells of a turn or a task that has ended.
func (s *Server) turned(kind, outcome string, err error) {
	if s.opt.Watch == nil {
		return
	}
	if err != nil || outcome == "" {
		outcome = string(skill.CodeOf(err))
	}
	s.opt.Watch.Turn(kind, outcome)
}

// measured gives the function that tells of a request when its answer is made.
func (s *Server) measured(ctx *fasthttp.RequestCtx) func() {
	if s.opt.Watch == nil {
		return func() {}
	}
	began := s.opt.Now()
	return func() {
		s.opt.Watch.Answered(string(ctx.Method()), callerOf(ctx).Path, ctx.Response.StatusCode(), s.opt.Now().Sub(began))
	}
}
