package api

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/agent"
)

// listConversations answers GET /agent/conversations.
func (s *Server) listConversations(c *fiber.Ctx) error {
	cursor, limit, err := page(c)
	if err != nil {
		return err
	}
	list, next, err := s.opt.Chat.List(c.UserContext(), principalOf(c.Context()), cursor, limit)
	return s.json(c, listOf(list, next), err)
}

// getConversation answers GET /agent/conversations/{id}.
func (s *Server) getConversation(c *fiber.Ctx) error {
	v, err := s.opt.Chat.Get(c.UserContext(), principalOf(c.Context()), c.Params("id"))
	return s.json(c, v, err)
}

// deleteConversation answers DELETE /agent/conversations/{id}.
func (s *Server) deleteConversation(c *fiber.Ctx) error {
	if err := s.opt.Chat.Delete(c.UserContext(), principalOf(c.Context()), c.Params("id")); err != nil {
		return err
	}
	c.Context().Response.Header.SetNoDefaultContentType(true)
	c.Status(fasthttp.StatusNoContent)
	return nil
}

// approveCall answers POST /agent/conversations/{id}:approve.
func (s *Server) approveCall(c *fiber.Ctx) error {
	ctx := c.Context()
	stream := acceptsEvents(ctx)
	d, err := decodeDecision(ctx.Request.Body(), &stream)
	if err != nil {
		return err
	}
	d.Trace = traceOf(ctx)
	p, id := principalOf(ctx), c.Params("id")
	return s.turn(c, stream, func(run context.Context, hear func(agent.Event)) (*agent.Answer, error) {
		return s.opt.Chat.Approve(run, p, id, d, hear)
	})
}

// maxApproval is the longest id of an approval, in characters.
const maxApproval = 64

// decodeDecision reads what is decided about a call that waits. A body may be missing:
// the path says what is meant.
func decodeDecision(b []byte, stream *bool) (agent.Decision, error) {
	d := agent.Decision{Approve: true}
	if len(b) == 0 {
		return d, nil
	}
	err := readMembers(b, "", append([]member{
		{"approval_id", text(&d.ApprovalID, maxApproval)},
		{"approve", flag(&d.Approve)},
	}, turnMembers(&d.ChatRequest, stream)...))
	return d, err
}
