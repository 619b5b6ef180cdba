package api

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// Workspaces stores workspaces; *records.Workspaces implements it. Errors are *skill.Error. It is safe for
// concurrent use.
type Workspaces interface {
	Own[skill.Workspace]
	// Fork creates the workspace to with the files of id.
	Fork(ctx context.Context, p skill.Principal, id, to string) (*skill.Workspace, error)
}

const pathWorkspaces = "/workspaces"

var errNoWorkspaces = &skill.Error{Op: "api.workspaces", Code: skill.NotFound, Message: "workspaces are not supported by this host"}

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

// workspaceID reads the id of a workspace.
func workspaceID(to *string) func(string, []byte) error {
	return func(field string, value []byte) error {
		err := text(to, 64)(field, value)
		if err == nil && !skill.ValidWorkspace(*to) {
			err = invalidField(field, "must be 1 to 64 of a-z A-Z 0-9 _ -")
		}
		return err
	}
}

// workspaceOf reads the members workspace, commit and busy of a call.
func workspaceOf(to *skill.WorkspaceRef) []member {
	return []member{
		{"workspace", workspaceID(&to.ID)},
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
		{"busy", func(field string, value []byte) error {
			switch string(value) {
			case `"wait"`:
			case `"conflict"`:
				to.NoWait = true
			default:
				return invalidField(field, "must be wait or conflict")
			}
			return nil
		}},
	}
}
