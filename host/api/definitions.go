package api

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

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

	Enable(ctx context.Context, p skill.Principal, which Which) (skill.VersionState, error)
	Disable(ctx context.Context, p skill.Principal, which Which) (skill.VersionState, error)
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
	case names(ctx.Request.Body(), "reference"):
		return s.pull(c)
	case s.opt.Definitions == nil:
		return s.upload(c) // which says what it takes
	}
	return s.createDefinition(c)
}

// takeDefinition reads a body that was left on the wire for an upload.
func (s *Server) takeDefinition(ctx *fasthttp.RequestCtx) error {
	if err := checkBodyHeaders(&ctx.Request.Header); err != nil {
		return err
	}
	if ctx.Request.Header.ContentLength() > maxDefinition {
		return errLargeDefinition()
	}
	if err := s.takeBody(ctx); err != nil {
		if errors.Is(err, errBodyTooLarge) {
			return errLargeDefinition()
		}
		return s.readError(ctx, err)
	}
	if len(ctx.Request.Body()) > maxDefinition {
		return errLargeDefinition()
	}
	if conn := connOf(ctx); conn != nil {
		conn.enter(busy)
	}
	return nil
}

func (s *Server) createDefinition(c *fiber.Ctx) error {
	ctx := c.Context()
	run, done := s.calling(ctx)
	defer done()
	d, err := s.opt.Definitions.Create(run, who(ctx), ctx.Request.Body())
	if err != nil {
		return err
	}
	s.writeJSON(ctx, fasthttp.StatusCreated, d)
	return nil
}

func errLargeDefinition() error {
	return &skill.Error{
		Op: "httpapi.definitions", Code: skill.PayloadTooLarge,
		Message: "the body is too large; the limit is " + strconv.Itoa(maxDefinition) + " bytes",
	}
}

// updateSkill answers PATCH /skills/{id}.
func (s *Server) updateSkill(c *fiber.Ctx) error {
	ctx := c.Context()
	all, id, err := s.defined(c)
	if err != nil {
		return err
	}
	if err := checkBodyHeaders(&ctx.Request.Header); err != nil {
		return err
	}
	if len(ctx.Request.Body()) > maxDefinition {
		return errLargeDefinition()
	}
	run, done := s.calling(ctx)
	defer done()
	d, err := all.Update(run, who(ctx), id, ctx.Request.Body())
	if err != nil {
		return err
	}
	s.writeJSON(ctx, fasthttp.StatusOK, d)
	return nil
}

// deleteSkill answers DELETE /skills/{id}.
func (s *Server) deleteSkill(c *fiber.Ctx) error {
	ctx := c.Context()
	all, id, err := s.defined(c)
	if err != nil {
		return err
	}
	run, done := s.calling(ctx)
	defer done()
	now, err := all.Delete(run, who(ctx), id)
	if err != nil {
		return err
	}
	s.writeJSON(ctx, fasthttp.StatusOK, now)
	return nil
}

// defined gives the operator's skills and the id that a path names.
func (s *Server) defined(c *fiber.Ctx) (Definitions, skill.ID, error) {
	id, err := skill.ParseID(c.Params("id"))
	if err == nil && s.opt.Definitions == nil {
		err = &skill.Error{Op: "httpapi.definitions", Code: skill.Forbidden, Message: "changing skills over HTTP is disabled on this host"}
	}
	return s.opt.Definitions, id, err
}

// decidingOwn answers a decision about one of the operator's skills by own, and about
// all others by uploaded. Where a tenant is named it is not the operator's.
func (s *Server) decidingOwn(own func(Definitions, context.Context, skill.Principal, Which) (skill.VersionState, error), uploaded fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx := c.Context()
		id, err := skill.ParseID(c.Params("id"))
		if err != nil || s.opt.Definitions == nil || !s.opt.Definitions.Has(id) {
			return uploaded(c)
		}
		which, err := readWhich(ctx, id)
		if err != nil {
			return err
		}
		if which.Tenant != "" {
			return uploaded(c)
		}
		run, done := s.calling(ctx)
		defer done()
		now, err := own(s.opt.Definitions, run, who(ctx), which)
		if err != nil {
			return err
		}
		s.writeJSON(ctx, fasthttp.StatusOK, now)
		return nil
	}
}
