package api

import (
	"bytes"
	"context"

	"github.com/gofiber/fiber/v2"

	"openskill/host/dispatch/approval"
	"openskill/sdk/skill"
)

// Approvals keeps what scripts were allowed; *approval.Store is one. It authorizes: the edge only
// says who asks.
type Approvals interface {
	ListState(ctx context.Context, p skill.Principal, state approval.State, cursor string, limit int) ([]approval.Approval, string, error)
	Get(ctx context.Context, p skill.Principal, id string) (approval.Approval, error)
	Decide(ctx context.Context, p skill.Principal, id string, approve bool) (approval.Approval, error)
	// Wait returns when an ask is pending no more, or with the error of ctx.
	Wait(ctx context.Context, id string) error
}

var errNoApprovals = &skill.Error{Op: "api.approvals", Code: skill.NotFound, Message: "this host asks for no approvals"}

// listApprovals answers GET /approvals.
func (s *Server) listApprovals(c *fiber.Ctx) error {
	cursor, limit, err := page(c)
	if err != nil {
		return err
	}
	given, err := query(c, "state", 16)
	if err != nil {
		return err
	}
	state, err := approval.ParseState(given)
	if given != "" && err != nil {
		return invalidField("state", "must be pending, approved, denied, expired or used")
	}
	if s.opt.Approvals == nil {
		return s.json(c, listOf[approval.Approval](nil, ""), nil)
	}
	list, next, err := s.opt.Approvals.ListState(c.UserContext(), principalOf(c.Context()), state, cursor, limit)
	return s.json(c, listOf(list, next), err)
}

// getApproval answers GET /approvals/{id}.
func (s *Server) getApproval(c *fiber.Ctx) error {
	a, err := s.opt.Approvals.Get(c.UserContext(), principalOf(c.Context()), c.Params("id"))
	return s.json(c, a, err)
}

// decideApproval answers POST /approvals/{id}:approve and :deny.
func (s *Server) decideApproval(approve bool) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if err := noBody(c); err != nil {
			return err
		}
		a, err := s.opt.Approvals.Decide(c.UserContext(), principalOf(c.Context()), c.Params("id"), approve)
		return s.json(c, a, err)
	}
}

// noBody refuses a body that says anything.
func noBody(c *fiber.Ctx) error {
	if b := bytes.TrimSpace(c.Context().Request.Body()); len(b) > 0 && string(b) != "{}" {
		return invalidField("body", "is not allowed here; remove it")
	}
	return nil
}
