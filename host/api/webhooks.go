package api

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// Webhooks stores addresses that are told when calls have ended; *records.Webhooks implements it. Errors are *skill.Error. It
// is safe for concurrent use.
type Webhooks interface {
	Own[skill.Webhook]
	// Create adds a webhook, and gives it with its secret.
	Create(ctx context.Context, p skill.Principal, name, url string) (*skill.Webhook, error)
}

const pathWebhooks = "/webhooks"

var errNoWebhooks = &skill.Error{Op: "api.webhooks", Code: skill.NotFound, Message: "webhooks are off on this host; to permit them, set OPENSKILL_WEBHOOKS"}

// createWebhook answers POST /webhooks.
func (s *Server) createWebhook(c *fiber.Ctx) error {
	ctx := c.Context()
	var name, url string
	if err := readMembers(ctx.Request.Body(), "", []member{{"name", text(&name, 64)}, {"url", text(&url, 2048)}}); err != nil {
		return err
	}
	made, err := s.opt.Webhooks.Create(c.UserContext(), principalOf(ctx), name, url)
	if err != nil {
		return err
	}
	ctx.Response.Header.Set(fasthttp.HeaderLocation, pathWebhooks+"/"+made.Name)
	return s.writeJSON(ctx, fasthttp.StatusCreated, made)
}

// webhook reads the name of a webhook.
func webhook(to *string) member { return member{"webhook", text(to, 64)} }
