package api

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// Own are things that belong to a principal, who alone sees them. Errors are *skill.Error. It is safe for concurrent use.
type Own[T any] interface {
	Get(ctx context.Context, p skill.Principal, id string) (*T, error)
	// List returns a page in the order of ids, and the cursor of the next page or "".
	List(ctx context.Context, p skill.Principal, cursor string, limit int) ([]*T, string, error)
	Delete(ctx context.Context, p skill.Principal, id string) error
}

// listOwn answers with a page of things of the caller.
func listOwn[T any](s *Server, of Own[T]) fiber.Handler {
	return func(c *fiber.Ctx) error {
		cursor, limit, err := page(c)
		if err != nil {
			return err
		}
		list, next, err := of.List(c.UserContext(), principalOf(c.Context()), cursor, limit)
		return s.json(c, listOf(list, next), err)
	}
}

// getOwn answers with the thing that a parameter of the path names.
func getOwn[T any](s *Server, of Own[T], param string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		one, err := of.Get(c.UserContext(), principalOf(c.Context()), c.Params(param))
		return s.json(c, one, err)
	}
}

// deleteOwn deletes it.
func deleteOwn[T any](of Own[T], param string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx := c.Context()
		if err := of.Delete(c.UserContext(), principalOf(ctx), c.Params(param)); err != nil {
			return err
		}
		ctx.SetStatusCode(fasthttp.StatusNoContent)
		return nil
	}
}
