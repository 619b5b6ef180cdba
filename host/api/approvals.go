package api

import (
	"bytes"
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/api/internal/wire"
	"openskill/host/dispatch/approval"
	"openskill/sdk/skill"
)

// Approvals is where it is kept what scripts were allowed; *approval.Store is one. It
// authorizes: the edge only says who asks. Its errors are *skill.Error; it is safe for
// concurrent use.
type Approvals interface {
	// ListState gives at most limit (1 to 100) approvals in a state ("" for any) after
	// cursor ("" for the first page), and the cursor of the next page or "".
	ListState(ctx context.Context, p skill.Principal, state approval.State, cursor string, limit int) ([]approval.Approval, string, error)
	Get(ctx context.Context, p skill.Principal, id string) (approval.Approval, error)
	// Decide approves or denies.
	Decide(ctx context.Context, p skill.Principal, id string, approve bool) (approval.Approval, error)
	// Wait returns when an ask is pending no more, or with the error of ctx.
	Wait(ctx context.Context, id string) error
}

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
	var state approval.State
	if given != nil {
		if state, err = approval.ParseState(*given); err != nil {
			return invalidField("state", "must be pending, approved, denied, expired or used")
		}
	}
	l := wire.ApprovalList{Data: []approval.Approval{}}
	if s.opt.Approvals != nil {
		run, done := s.calling(c.Context())
		defer done()
		list, next, err := s.opt.Approvals.ListState(run, who(c.Context()), state, cursor, limit)
		if err != nil {
			return err
		}
		l.Data = append(l.Data, list...)
		if next != "" {
			l.Next = &next
		}
	}
	s.writeJSON(c.Context(), fasthttp.StatusOK, l)
	return nil
}

// approvals gives the store, unless there is none and so nothing is found.
func (s *Server) approvals() (Approvals, error) {
	if s.opt.Approvals == nil {
		return nil, &skill.Error{Op: "httpapi.approvals", Code: skill.NotFound, Message: "this host asks for no approvals"}
	}
	return s.opt.Approvals, nil
}

// getApproval answers GET /approvals/{id}.
func (s *Server) getApproval(c *fiber.Ctx) error {
	store, err := s.approvals()
	if err != nil {
		return err
	}
	run, done := s.calling(c.Context())
	defer done()
	a, err := store.Get(run, who(c.Context()), c.Params("id"))
	if err != nil {
		return err
	}
	s.writeJSON(c.Context(), fasthttp.StatusOK, a)
	return nil
}

// decideApproval answers POST /approvals/{id}:approve and :deny.
func (s *Server) decideApproval(approve bool) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx := c.Context()
		store, err := s.approvals()
		if err != nil {
			return err
		}
		if err := checkBodyHeaders(&ctx.Request.Header); err != nil {
			return err
		}
		if b := bytes.TrimSpace(ctx.Request.Body()); len(b) > 0 && string(b) != "{}" {
			return invalidField("body", "is not read; send none")
		}
		run, done := s.calling(ctx)
		defer done()
		a, err := store.Decide(run, who(c.Context()), c.Params("id"), approve)
		if err != nil {
			return err
		}
		s.writeJSON(ctx, fasthttp.StatusOK, a)
		return nil
	}
}
