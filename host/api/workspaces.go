package api

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// Workspaces are the working folders that calls of a caller share; *records.Workspaces is one. Its errors
// are *skill.Error; it is safe for concurrent use.
type Workspaces interface {
	Get(ctx context.Context, p skill.Principal, id string) (*skill.Workspace, error)
	// List gives a page in the order of ids, and the cursor of the next one or "".
	List(ctx context.Context, p skill.Principal, cursor string, limit int) ([]*skill.Workspace, string, error)
	// Fork makes the workspace to, which begins as id.
	Fork(ctx context.Context, p skill.Principal, id, to string) (*skill.Workspace, error)
	Delete(ctx context.Context, p skill.Principal, id string) error
}

const pathWorkspaces = "/workspaces"

var errNoWorkspaces = &skill.Error{Op: "api.workspaces", Code: skill.NotFound, Message: "this host has no workspaces"}

// listWorkspaces answers GET /workspaces.
func (s *Server) listWorkspaces(c *fiber.Ctx) error {
	ctx := c.Context()
	cursor, limit, err := page(c)
	if err != nil {
		return err
	}
	list, next, err := s.opt.Workspaces.List(c.UserContext(), principalOf(ctx), cursor, limit)
	return s.json(c, listOf(list, next), err)
}

// getWorkspace answers GET /workspaces/{id}.
func (s *Server) getWorkspace(c *fiber.Ctx) error {
	w, err := s.opt.Workspaces.Get(c.UserContext(), principalOf(c.Context()), c.Params("id"))
	return s.json(c, w, err)
}

// forkWorkspace answers POST /workspaces/{id}:fork.
func (s *Server) forkWorkspace(c *fiber.Ctx) error {
	ctx := c.Context()
	var to string
	if err := readMembers(ctx.Request.Body(), "", []member{{"id", text(&to, 64)}}); err != nil {
		return err
	}
	w, err := s.opt.Workspaces.Fork(c.UserContext(), principalOf(ctx), c.Params("id"), to)
	if err != nil {
		return err
	}
	return s.writeJSON(ctx, fasthttp.StatusCreated, w)
}

// deleteWorkspace answers DELETE /workspaces/{id}.
func (s *Server) deleteWorkspace(c *fiber.Ctx) error {
	ctx := c.Context()
	if err := s.opt.Workspaces.Delete(c.UserContext(), principalOf(ctx), c.Params("id")); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

// workspaceOf reads what a call says of its workspace, whose id is the dispatcher's to check.
func workspaceOf(to *skill.WorkspaceRef) []member {
	return []member{
		{"workspace", text(&to.ID, 64)},
		{"commit", func(field string, value []byte) error {
			switch string(value) {
			case `"success"`:
			case `"always"`:
				to.Always = true
			default:
				return invalidField(field, "must be success or always")
			}
			return nil
		}},
	}
}
