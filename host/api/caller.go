package api

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/identity"
	"openskill/sdk/skill"
)

// queryNames are the parameters that are taken for credentials, as plainName writes them.
var queryNames = map[string]bool{
	"accesstoken": true, "apikey": true, "xapikey": true, "authorization": true, "bearer": true, "token": true, "jwt": true,
}

// plainName is the name of a parameter without what people write it differently by.
func plainName(name []byte) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(string(name)))
}

// credentials copies them out of the request's buffers, which belong to the next request
// of the connection as soon as this one is answered.
func credentials(ctx *fasthttp.RequestCtx) identity.Credentials {
	var c identity.Credentials
	for _, v := range ctx.Request.Header.PeekAll(fasthttp.HeaderAuthorization) {
		c.Authorization = append(c.Authorization, string(v))
	}
	for _, v := range ctx.Request.Header.PeekAll("X-API-Key") {
		c.APIKey = append(c.APIKey, string(v))
	}
	if len(ctx.URI().QueryString()) > 0 {
		for name := range ctx.QueryArgs().All() {
			c.Query = c.Query || queryNames[plainName(name)]
		}
	}
	return c
}

// authorize finds out who a request acts for and whether that one may do what it asks. An
// error is the answer.
func (s *Server) authorize(c *fiber.Ctx) error {
	ctx := c.Context()
	from := callerOf(ctx)
	if from.Open() {
		return s.authorizeForm(ctx, from)
	}
	p, err := s.principal(ctx, from)
	subject := from.subject(c)
	switch {
	case err == nil && p.ID == "", skill.CodeOf(err) == skill.Unauthorized:
		return errUnauthorized(err)
	case err != nil:
		return err
	case !from.LetsIn(p, subject) && p.Type == skill.Anonymous:
		return errUnauthorized(nil) // who has shown nothing may have forgotten it
	case !from.LetsIn(p, subject):
		return &skill.Error{Op: opScope, Code: skill.Forbidden, Subject: p.ID, Message: from.needs(subject)}
	}
	from.principal = p
	return s.claim(ctx, &p)
}

// authorizeForm finds out whose session of the console a form belongs to. Without one, its
// caller stays unknown, which is enough to sign in.
func (s *Server) authorizeForm(ctx *fasthttp.RequestCtx, from *caller) error {
	if !ctx.IsPost() || s.console == nil || !strings.HasPrefix(from.Path, pathConsole) {
		return nil
	}
	p := s.console.CallerOf(s.base, network(s.clientAddress(ctx)), string(ctx.Host()), string(ctx.Request.Header.Peek(fasthttp.HeaderCookie)))
	if p.ID == "" {
		return nil
	}
	from.principal = p
	if conn := connOf(ctx); conn != nil && !from.kind.stream {
		_ = conn.SetReadDeadline(time.Now().Add(s.opt.BodyTimeout))
	}
	return s.claim(ctx, &p)
}

// claim has the connection count for its caller.
func (s *Server) claim(ctx *fasthttp.RequestCtx, p *skill.Principal) error {
	if conn := connOf(ctx); conn == nil || p.Type == skill.Anonymous || s.conns.claim(conn, p) {
		return nil
	}
	return errNoRoom("too many open connections of this caller or tenant; close some")
}

// principal is who asks, from within or by credentials.
func (s *Server) principal(ctx *fasthttp.RequestCtx, c *caller) (skill.Principal, error) {
	if in := insideOf(ctx); in != nil {
		c.asker = in.ctx
		return in.principal, nil
	}
	given := credentials(ctx)
	given.From = network(s.clientAddress(ctx))
	c.credentials = shownOf(given)
	return s.opt.Authenticate(s.base, given)
}

// errUnauthorized is the answer to whoever is not known. It is the same whatever was
// wrong, so that it tells nothing to those who try.
func errUnauthorized(cause error) error {
	return &skill.Error{
		Op: "api.authenticate", Code: skill.Unauthorized, Err: cause,
		Message: "invalid or missing credentials: send \"Authorization: Bearer TOKEN\" or \"X-API-Key: KEY\"",
	}
}

// refuseAll is Options.Authenticate where nobody said who callers are.
func refuseAll(context.Context, identity.Credentials) (skill.Principal, error) {
	return skill.Principal{}, errUnauthorized(errors.New("no authentication is configured"))
}
