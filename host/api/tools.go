package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/agent/tools"
	"openskill/sdk/skill"
)

// Tools gives a page of what a model can call, in a dialect of toolFormats, as JSON that nobody
// changes, and the cursor of the next page or "". limit counts skills. It is safe for
// concurrent use; its errors are *skill.Error.
type Tools func(ctx context.Context, p skill.Principal, format, cursor string, limit int) (list json.RawMessage, next string, err error)

// mostTools is how many tools, or skills of the agent service, a page has. These lists were
// without pages once, and few have more.
const mostTools = 1000

// toolFormats are the dialects; the first one is the default.
var toolFormats = []string{"openai", "anthropic", "mcp"}

// listTools answers GET /tools.
func (s *Server) listTools(c *fiber.Ctx) error {
	if s.opt.Tools == nil {
		return &skill.Error{Op: "api.tools", Code: skill.NotFound, Message: "tool definitions are disabled on this host"}
	}
	given, err := query(c, "format", 16)
	if err != nil {
		return err
	}
	format := cmp.Or(given, toolFormats[0])
	if !slices.Contains(toolFormats, format) {
		return invalidField("format", "must be one of "+strings.Join(toolFormats, ", "))
	}
	cursor, limit, err := pageOf(c, mostTools, mostTools)
	if err != nil {
		return err
	}
	ctx := c.Context()
	list, next, err := s.opt.Tools(c.UserContext(), principalOf(ctx), format, cursor, limit)
	if err != nil {
		return err
	}
	linkNext(ctx, next, limit, "format", format)
	return s.setJSON(ctx, fasthttp.StatusOK, list)
}

var errNoSearch = &skill.Error{Op: "api.search", Code: skill.NotFound, Message: "skills cannot be searched on this host"}

// search answers GET /search.
func (s *Server) search(c *fiber.Ctx) error {
	words, err := query(c, "q", tools.MaxQuery)
	if err != nil {
		return err
	}
	if words == "" {
		return invalidField("q", "is missing; send words to search for")
	}
	_, limit, err := pageOf(c, tools.DefaultFound, tools.MaxFound)
	if err != nil {
		return err
	}
	found, err := s.opt.Search(c.UserContext(), principalOf(c.Context()), words, limit)
	return s.json(c, map[string]any{"data": found}, err)
}

// linkNext names the next page of a list in a header, where the body has no place for it.
func linkNext(ctx *fasthttp.RequestCtx, next string, limit int, more ...string) {
	if next == "" {
		return
	}
	q := url.Values{"cursor": {next}, "limit": {strconv.Itoa(limit)}}
	for i := 0; i+1 < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	ctx.Response.Header.Set("Link", "<"+plainPath(ctx)+"?"+q.Encode()+`>; rel="next"`)
}
