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
	// Create adds a webhook, and gives it with its secret.
	Create(ctx context.Context, p skill.Principal, name, url string) (*skill.Webhook, error)
	Get(ctx context.Context, p skill.Principal, name string) (*skill.Webhook, error)
	// List returns a page in the order of names, and the cursor of the next page or "".
	List(ctx context.Context, p skill.Principal, cursor string, limit int) ([]*skill.Webhook, string, error)
	Delete(ctx context.Context, p skill.Principal, name string) error
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

// listWebhooks answers GET /webhooks.
func (s *Server) listWebhooks(c *fiber.Ctx) error {
	cursor, limit, err := page(c)
	if err != nil {
		return err
	}
	list, next, err := s.opt.Webhooks.List(c.UserContext(), principalOf(c.Context()), cursor, limit)
	return s.json(c, listOf(list, next), err)
}

// getWebhook answers GET /webhooks/{name}.
func (s *Server) getWebhook(c *fiber.Ctx) error {
	one, err := s.opt.Webhooks.Get(c.UserContext(), principalOf(c.Context()), c.Params("name"))
	return s.json(c, one, err)
}

// deleteWebhook answers DELETE /webhooks/{name}.
func (s *Server) deleteWebhook(c *fiber.Ctx) error {
	ctx := c.Context()
	if err := s.opt.Webhooks.Delete(c.UserContext(), principalOf(ctx), c.Params("name")); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

// webhook reads the name of a webhook.
func webhook(to *string) member { return member{"webhook", text(to, 64)} }
