package api

import (
	"context"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"openskill/host/identity"
	"openskill/host/records"
	"openskill/sdk/skill"
)

// shown are credentials as the key of a map. The zero value: none.
type shown struct{ authorization, apiKey string }

func shownOf(c identity.Credentials) shown { // no value of a header has ends of lines
	return shown{strings.Join(c.Authorization, "\n"), strings.Join(c.APIKey, "\n")}
}

func (c shown) credentials() (out identity.Credentials) {
	if c.authorization != "" {
		out.Authorization = strings.Split(c.authorization, "\n")
	}
	if c.apiKey != "" {
		out.APIKey = strings.Split(c.apiKey, "\n")
	}
	return out
}

// leases are those of the credentials of requests and calls under way. Requests with the same
// credentials share one: the host checks again for each caller, and not for each request.
type leases struct {
	mu  sync.Mutex
	all map[shown]*shared
}

type shared struct {
	ctx  context.Context //nolint:containedctx // ends when the credentials are refused
	stop func()
	uses int
}

// lease gives a context that ends when credentials are refused. drop must be called.
func (s *Server) lease(c shown) (ctx context.Context, drop func()) {
	if c == (shown{}) {
		return s.base, func() {}
	}
	l := &s.leases
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.all[c]
	if h == nil || h.ctx.Err() != nil {
		h = &shared{}
		h.ctx, h.stop = identity.Start(s.base, func(ctx context.Context) error {
			_, err := s.opt.Authenticate(ctx, c.credentials())
			return err
		})
		l.all[c] = h
	}
	h.uses++
	return h.ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if h.uses--; h.uses > 0 {
			return
		}
		h.stop()
		if l.all[c] == h {
			delete(l.all, c)
		}
	}
}

// lookAfter begins to check, again and again, that the caller of a request is let in. done is
// called when the request is answered; what goes on longer has [Server.endsWith].
func (s *Server) lookAfter(c *caller) (done func()) {
	if c.asker == nil {
		c.asker, done = s.lease(c.credentials)
		return done
	}
	return func() {}
}

// endsWith has cancel called, with the reason, when the caller of a request is no longer let
// in, or has left if it asks from within. stop must be called.
func (s *Server) endsWith(c *caller, cancel context.CancelCauseFunc) (stop func()) {
	asker, drop := c.asker, func() {}
	if c.credentials != (shown{}) {
		asker, drop = s.lease(c.credentials)
	}
	if asker == nil || asker == s.base { // which all that runs here ends with
		return drop
	}
	forget := context.AfterFunc(asker, func() { cancel(context.Cause(asker)) })
	return func() {
		forget()
		drop()
	}
}

type outliveKey struct{}

// Outliving returns a call that outlives the request that a mounted handler answers, whose context is ctx.
func Outliving(ctx context.Context, call records.Run) records.Run {
	if outliving, ok := ctx.Value(outliveKey{}).(func(records.Run) records.Run); ok {
		return outliving(call)
	}
	return call
}

// outliving returns what makes a call outlive a request: it is part of the request's trace, and ends when the caller is
// no longer let in.
func (s *Server) outliving(ctx *fasthttp.RequestCtx) func(records.Run) records.Run {
	span, credentials := spanOf(ctx), callerOf(ctx).credentials
	return func(call records.Run) records.Run {
		return func(run context.Context, started func(string)) *skill.Result {
			run, cancel := context.WithCancelCause(span.In(run))
			defer cancel(nil)
			defer s.endsWith(&caller{credentials: credentials}, cancel)() // that of the credentials is another one
			return call(run, started)
		}
	}
}
