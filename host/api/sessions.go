package api

import (
	"context"
	"encoding/json"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// Sessions keeps variables of code; *records.Sessions implements it. Errors are *skill.Error. It is safe for
// concurrent use.
type Sessions interface {
	Own[skill.Session]
	Create(ctx context.Context, p skill.Principal, language, workspace string, memoryMB uint64, packages []string) (*skill.Session, error)
	// Fork creates a session with the variables and files of id.
	Fork(ctx context.Context, p skill.Principal, id string) (*skill.Session, error)
	// Freeze writes a session to the database.
	Freeze(ctx context.Context, p skill.Principal, id string) (*skill.Session, error)
}

const pathSessions = "/sessions"

var errNoSessions = &skill.Error{Op: "api.sessions", Code: skill.NotFound, Message: "sessions are not supported by this host"}

// createSession answers POST /sessions.
func (s *Server) createSession(c *fiber.Ctx) error {
	ctx := c.Context()
	var language, workspace string
	var memory uint64
	var packages []string
	err := readMembers(ctx.Request.Body(), "", []member{
		{"language", text(&language, 64)},
		{"workspace", workspaceID(&workspace)},
		{"packages", texts(&packages)},
		{"memory_mb", func(field string, value []byte) error {
			if json.Unmarshal(value, &memory) != nil || memory < 1 || memory > 4096 {
				return invalidField(field, "must be a whole number from 1 to 4096")
			}
			return nil
		}},
	})
	if err != nil {
		return err
	}
	made, err := s.opt.Sessions.Create(c.UserContext(), principalOf(ctx), language, workspace, memory, packages)
	return s.created(ctx, made, err)
}

// created answers with a new session.
func (s *Server) created(ctx *fasthttp.RequestCtx, made *skill.Session, err error) error {
	if err != nil {
		return err
	}
	return s.writeJSON(ctx, fasthttp.StatusCreated, made)
}

// runInSession answers POST /sessions/{id}:run.
func (s *Server) runInSession(c *fiber.Ctx) error {
	found, err := s.opt.Sessions.Get(c.UserContext(), principalOf(c.Context()), c.Params("id"))
	if err != nil {
		return err
	}
	return s.code(c, nil, map[string]string{"language": found.Language, "session": found.ID})
}

// forkSession answers POST /sessions/{id}:fork.
func (s *Server) forkSession(c *fiber.Ctx) error {
	made, err := s.opt.Sessions.Fork(c.UserContext(), principalOf(c.Context()), c.Params("id"))
	return s.created(c.Context(), made, err)
}

// freezeSession answers POST /sessions/{id}:freeze.
func (s *Server) freezeSession(c *fiber.Ctx) error {
	frozen, err := s.opt.Sessions.Freeze(c.UserContext(), principalOf(c.Context()), c.Params("id"))
	return s.json(c, frozen, err)
}
