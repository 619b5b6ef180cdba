package api

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// Usage gives what a tenant has stored and used, "" being the caller's own. It authorizes;
// its errors are *skill.Error.
type Usage func(ctx context.Context, p skill.Principal, tenant string) (*skill.TenantUsage, error)

// getUsage answers GET /usage.
func (s *Server) getUsage(c *fiber.Ctx) error {
	given, err := query(c, "tenant", 128)
	if err != nil {
		return err
	}
	if s.opt.Usage == nil {
		return &skill.Error{Op: "httpapi.usage", Code: skill.NotFound, Message: "usage statistics are disabled on this host"}
	}
	tenant := ""
	if given != nil {
		if tenant = *given; tenant != skill.CleanText(tenant, 128) {
			return invalidField("tenant", "must be plain text")
		}
	}
	run, done := s.calling(c.Context())
	defer done()
	u, err := s.opt.Usage(run, who(c.Context()), tenant)
	if err != nil {
		return err
	}
	s.writeJSON(c.Context(), fasthttp.StatusOK, u)
	return nil
}
