package httpapi

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"openskill/sdk/skill"
)

// Tools gives what a model can call, in a dialect of toolFormats, as JSON that nobody
// changes. It is safe for concurrent use; its errors are *skill.Error.
type Tools func(ctx context.Context, p skill.Principal, format string) (json.RawMessage, error)

// toolFormats are the dialects; the first one is the default.
var toolFormats = []string{"openai", "anthropic", "mcp"}

// listTools answers GET /tools.
func (s *Server) listTools(c *fiber.Ctx) error {
	if s.opt.Tools == nil {
		return &skill.Error{Op: "httpapi.tools", Code: skill.NotFound, Message: "this host gives no tool definitions"}
	}
	format := toolFormats[0]
	given, err := query(c, "format", 16)
	if err != nil {
		return err
	}
	if given != nil {
		if format = *given; !slices.Contains(toolFormats, format) {
			return invalidField("format", "must be one of "+strings.Join(toolFormats, ", "))
		}
	}
	run, done := s.calling(c.Context())
	defer done()
	list, err := s.opt.Tools(run, who(c.Context()), format)
	if err != nil {
		return err
	}
	ctx := c.Context()
	ctx.SetContentType(jsonType)
	return s.setBody(ctx, list)
}
