package api

import (
	"fmt"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/access"
	"openskill/sdk/skill"
)

// pathResource is where RFC 9728 has the metadata of a resource without a path; that of
// others has their path behind it.
const pathResource = "/.well-known/oauth-protected-resource"

// Resource tells clients of MCP where they get tokens (RFC 9728). The addresses in it are
// the operator's: none comes from a request.
type Resource struct {
	URL       string            // of the metadata of /mcp, told in WWW-Authenticate; "": not told
	Documents map[string][]byte // the metadata by the path of the resource, "" and "/mcp"; nil: not found
}

// resourceMetadata answers with the metadata of a resource.
func (s *Server) resourceMetadata(c *fiber.Ctx) error {
	path := strings.TrimSuffix(strings.TrimPrefix(plainPath(c.Context()), pathResource), "/")
	doc := s.opt.Resource.Documents[path]
	if doc == nil {
		return &skill.Error{
			Op: "httpapi.resource", Code: skill.NotFound,
			Message: "resource metadata not found; to publish it for /mcp, set OPENSKILL_HTTP_BASE_URL, OPENSKILL_JWT_JWKS and OPENSKILL_JWT_ISSUER",
		}
	}
	c.Context().SetContentType(jsonType)
	c.Context().SetBody(doc)
	return nil
}

// challenge says in WWW-Authenticate how to be let in: what a client of MCP should ask
// whom for. status is 401 or 403. Nothing in it comes from the request.
func (s *Server) challenge(ctx *fasthttp.RequestCtx, status int) {
	r := callerOf(ctx).route
	var params []string
	if status == fasthttp.StatusForbidden && r != nil {
		params = append(params, `error="insufficient_scope"`, fmt.Sprintf("scope=%q", strings.Join(r.Asks(), " ")))
	}
	if s.opt.Resource.URL != "" && r != nil && r.Path == pathMCP {
		params = append(params, fmt.Sprintf("resource_metadata=%q", s.opt.Resource.URL))
	}
	ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, strings.TrimSuffix("Bearer "+strings.Join(params, ", "), " "))
}

// errScope refuses a caller who has none of the scopes of a route.
func errScope(r *access.Route, subject, who string) error {
	return &skill.Error{Op: opScope, Code: skill.Forbidden, Subject: who, Message: r.Needs(subject)}
}

// opScope is where scopes are looked at.
const opScope = "httpapi.access"
