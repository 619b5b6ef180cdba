package api

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/access"
	"openskill/sdk/skill"
)

// Credentials are what a request shows of its caller, in memory of their own. The edge
// does not judge them.
type Credentials struct {
	Authorization []string // values of the header Authorization, as they came; nil: there is none
	APIKey        []string // values of the header X-API-Key; nil: there is none
	From          string   // the network of the client
	// Query says that the query has a parameter that is named like a credential. What is
	// in a query is in logs and histories too, so it proves nothing any more.
	Query bool
}

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
func credentials(ctx *fasthttp.RequestCtx) Credentials {
	var c Credentials
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

// caller is who a request acts for, and the route that let it in.
type caller struct {
	principal skill.Principal
	route     *access.Route // nil where nothing was asked for that there is
	subject   string        // first parameter of the path
	ran       bool          // what it calls has begun, and passed the limits of calls
	held      int           // bytes of the body that are counted, see hold
	answer    int           // bytes of the answer that are counted, see reserve
	holder    string        // for whom

	credentials shown           // that it was let in by
	asker       context.Context //nolint:containedctx // ends when the caller is no longer let in; from within, with the one who asks; nil before it was let in
}

type callerKey struct{}

// callerOf is what letIn has found out about a request; of one that it has not seen,
// nobody.
func callerOf(ctx *fasthttp.RequestCtx) *caller {
	if c, ok := ctx.UserValue(callerKey{}).(*caller); ok {
		return c
	}
	return &caller{}
}

// who is the principal of a request. The zero value, of a request that needs none, may
// do nothing.
func who(ctx *fasthttp.RequestCtx) skill.Principal { return callerOf(ctx).principal }

// PrincipalOf is who a request acts for that this edge has handed to Options.MCP, by the
// request's context; without one, nobody.
func PrincipalOf(ctx context.Context) skill.Principal {
	p, _ := ctx.Value(callerKey{}).(skill.Principal)
	return p
}

// letIn finds out who a request acts for and whether that one may do what it asks,
// before anything of its body is read. An error is the answer.
func (s *Server) letIn(ctx *fasthttp.RequestCtx, path string) error {
	c := &caller{}
	ctx.SetUserValue(callerKey{}, c) // whatever the request before has left
	in := insideOf(ctx)
	if in == nil && !s.sameOrigin(ctx) {
		return &skill.Error{
			Op: "httpapi.origin", Code: skill.Forbidden,
			Message: "cross-origin request refused: add the origin to OPENSKILL_HTTP_BASE_URL or OPENSKILL_HTTP_ORIGINS",
		}
	}
	if c.route, c.subject = access.Find(string(ctx.Method()), path); c.route == nil {
		return nil
	}
	if c.route.Open {
		return s.letInOpen(ctx, c)
	}
	if in == nil && (ctx.IsGet() || ctx.IsHead()) && s.rebound(ctx) {
		return errUnknownHost(string(ctx.Host()))
	}
	p, err := s.principal(ctx, c, in)
	switch {
	case err == nil && p.ID == "", skill.CodeOf(err) == skill.Unauthorized:
		return errUnauthorized(err)
	case err != nil:
		return err
	case !c.route.LetsIn(p, c.subject) && p.Type == skill.Anonymous:
		return errUnauthorized(nil) // who has shown nothing may have forgotten it
	case !c.route.LetsIn(p, c.subject):
		return errScope(c.route, c.subject, p.ID)
	}
	c.principal = p
	return s.claim(ctx, &p)
}

// letInOpen finds out whose session of the console a form belongs to. Without one, its
// caller stays unknown, which is enough to sign in.
func (s *Server) letInOpen(ctx *fasthttp.RequestCtx, c *caller) error {
	if !ctx.IsPost() || s.opt.ConsoleCaller == nil {
		return nil
	}
	p := s.opt.ConsoleCaller(s.base, string(ctx.Host()), string(ctx.Request.Header.Peek(fasthttp.HeaderCookie)))
	if p.ID == "" {
		return nil
	}
	c.principal = p
	if conn := connOf(ctx); conn != nil && !isUploadPath(plainPath(ctx)) {
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
func (s *Server) principal(ctx *fasthttp.RequestCtx, c *caller, in *inside) (skill.Principal, error) {
	if in != nil {
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
		Op: "httpapi.authenticate", Code: skill.Unauthorized, Err: cause,
		Message: "invalid or missing credentials: send \"Authorization: Bearer TOKEN\" or \"X-API-Key: KEY\"",
	}
}

// on registers the handler of a row of the table. It answers only what was let in by
// that row: should fiber and the table see two things in one path, there is no answer.
func on(app *fiber.App, method, path string, h fiber.Handler) {
	guarded := func(c *fiber.Ctx) error {
		if r := callerOf(c.Context()).route; r == nil || r.Method != method || r.Path != path {
			return fiber.ErrNotFound
		}
		return h(c)
	}
	if method == fiber.MethodGet {
		app.Get(fiberPath(path), guarded) // and HEAD
		return
	}
	app.Add(method, fiberPath(path), guarded)
}

// fiberPath is a path of the table in fiber's words.
func fiberPath(path string) string {
	var out strings.Builder
	for part := range strings.SplitSeq(path[1:], "/") {
		out.WriteByte('/')
		name, action, isParam := strings.Cut(strings.TrimPrefix(part, "{"), "}")
		switch {
		case !isParam:
			out.WriteString(part)
		case access.TakesRest(name):
			out.WriteByte('+') // its handler reads the path itself, action included
			return out.String()
		default:
			out.WriteString(":" + name + strings.ReplaceAll(action, ":", `\:`))
		}
	}
	return out.String()
}

// refuseAll is Options.Authenticate where nobody said who callers are.
func refuseAll(context.Context, Credentials) (skill.Principal, error) {
	return skill.Principal{}, errUnauthorized(errors.New("no authentication is configured"))
}
