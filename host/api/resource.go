package api

import (
	"fmt"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

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
			Op: "api.resource", Code: skill.NotFound,
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
	r := callerOf(ctx).Route
	var params []string
	if status == fasthttp.StatusForbidden {
		params = append(params, `error="insufficient_scope"`, fmt.Sprintf("scope=%q", strings.Join(r.asks(), " ")))
	}
	if s.opt.Resource.URL != "" && r.Path == pathMCP {
		params = append(params, fmt.Sprintf("resource_metadata=%q", s.opt.Resource.URL))
	}
	ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, strings.TrimSuffix("Bearer "+strings.Join(params, ", "), " "))
}

// opScope is where scopes are looked at.
const opScope = "api.access"
