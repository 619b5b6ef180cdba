package api

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/catalogue"
	"openskill/sdk/skill"
)

// Definitions are the operator's own skills, and what can be changed of them. It
// authorizes: the edge only says who asks. Its errors are *skill.Error; it is safe for
// concurrent use.
type Definitions interface {
	// Has reports whether an id is that of one of the operator's skills, deleted ones
	// included. It is quick.
	Has(id skill.ID) bool
	// Create adds a definition: a JSON object in the form of an entry of a skills.yaml.
	Create(ctx context.Context, p skill.Principal, entry []byte) (skill.Descriptor, error)
	// Update changes what the keys of a JSON object say.
	Update(ctx context.Context, p skill.Principal, id skill.ID, change []byte) (skill.Descriptor, error)
	Delete(ctx context.Context, p skill.Principal, id skill.ID) (skill.VersionState, error)

	// Decide enables or disables one.
	Decide(ctx context.Context, d catalogue.Decision) (skill.VersionState, error)
}

// maxDefinition is the size of a definition, or of a change of one, in bytes.
const maxDefinition = 256 << 10

// isJSON reports whether a body says of itself that it is JSON.
func isJSON(h *fasthttp.RequestHeader) bool {
	mediaType, _, _ := strings.Cut(string(h.ContentType()), ";")
	return strings.EqualFold(strings.TrimSpace(mediaType), jsonType)
}

// postSkill answers POST /skills: if the body is JSON it is a definition, or names what is
// pulled; else it is an upload.
func (s *Server) postSkill(c *fiber.Ctx) error {
	ctx := c.Context()
	if !isJSON(&ctx.Request.Header) || s.opt.Definitions == nil && s.opt.Uploads == nil {
		return s.upload(c)
	}
	if err := s.takeDefinition(ctx); err != nil {
		return err
	}
	switch {
	case hasMember(ctx.Request.Body(), "reference"):
		return s.pull(c)
	case s.opt.Definitions == nil:
		return s.upload(c) // which says what it takes
	}
	run, done := s.calling(ctx)
	defer done()
	d, err := s.opt.Definitions.Create(run, principalOf(ctx), ctx.Request.Body())
	if err != nil {
		return err
	}
	return s.writeJSON(ctx, fasthttp.StatusCreated, d)
}

// takeDefinition reads a body that was left on the wire for an upload.
func (s *Server) takeDefinition(ctx *fasthttp.RequestCtx) error {
	if err := checkBodyHeaders(&ctx.Request.Header); err != nil {
		return err
	}
	if ctx.Request.Header.ContentLength() > maxDefinition {
		return errLargeDefinition()
	}
	if err := s.readBody(ctx); err != nil {
		if errors.Is(err, errBodyTooLarge) {
			return errLargeDefinition()
		}
		return s.readError(ctx, err)
	}
	if len(ctx.Request.Body()) > maxDefinition {
		return errLargeDefinition()
	}
	handling(ctx)
	return nil
}

func errLargeDefinition() error {
	return &skill.Error{
		Op: "api.definitions", Code: skill.PayloadTooLarge,
		Message: "the body is too large; the limit is " + strconv.Itoa(maxDefinition) + " bytes",
	}
}

// updateSkill answers PATCH /skills/{id}.
func (s *Server) updateSkill(c *fiber.Ctx) error {
	id, err := skill.ParseID(c.Params("id"))
	if err != nil {
		return err
	}
	body := c.Context().Request.Body()
	if len(body) > maxDefinition {
		return errLargeDefinition()
	}
	d, err := s.opt.Definitions.Update(c.UserContext(), principalOf(c.Context()), id, body)
	return s.json(c, d, err)
}

// deleteSkill answers DELETE /skills/{id}.
func (s *Server) deleteSkill(c *fiber.Ctx) error {
	id, err := skill.ParseID(c.Params("id"))
	if err != nil {
		return err
	}
	now, err := s.opt.Definitions.Delete(c.UserContext(), principalOf(c.Context()), id)
	return s.json(c, now, err)
}

var errDefinitionsOff = &skill.Error{Op: "api.definitions", Code: skill.Forbidden, Message: "changing skills over HTTP is disabled on this host"}
