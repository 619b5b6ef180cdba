package api

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"openskill/sdk/skill"
)

// Usage gives what a tenant has stored and used, "" being the caller's own. It authorizes;
// its errors are *skill.Error.
type Usage func(ctx context.Context, p skill.Principal, tenant string) (*skill.TenantUsage, error)

// getUsage answers GET /usage.
func (s *Server) getUsage(c *fiber.Ctx) error {
	tenant, err := query(c, "tenant", 128)
	if err != nil {
		return err
	}
	if s.opt.Usage == nil {
		return &skill.Error{Op: "api.usage", Code: skill.NotFound, Message: "usage statistics are disabled on this host"}
	}
	if tenant != skill.CleanText(tenant, 128) {
		return invalidField("tenant", "must be plain text")
	}
	u, err := s.opt.Usage(c.UserContext(), principalOf(c.Context()), tenant)
	return s.json(c, u, err)
}
