package api

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"openskill/host/catalogue"
	"openskill/sdk/skill"
)

// maxTenant, maxReason and maxDigest are how long, in characters, a tenant, a reason and a
// digest may be.
const (
	maxTenant = 128
	maxReason = 400
	maxDigest = 71
)

// decide answers POST /skills/{id}:{action}: a decision about one of the operator's own skills, or
// about a version of an upload. Where a tenant is named it is not the operator's.
func (s *Server) decide(action catalogue.Action) fiber.Handler {
	return func(c *fiber.Ctx) error {
		d, err := readDecision(c)
		if err != nil {
			return err
		}
		d.Action = action
		if own := s.opt.Definitions; own != nil && d.Tenant == "" && (action == catalogue.Enable || action == catalogue.Disable) && own.Has(d.ID) {
			now, err := own.Decide(c.UserContext(), d)
			return s.json(c, now, err)
		}
		return s.decideUpload(c, d)
	}
}

func (s *Server) decideUpload(c *fiber.Ctx, d catalogue.Decision) error {
	if s.opt.Uploads == nil {
		return errUploadsOff
	}
	now, err := s.opt.Uploads.Decide(d)
	return s.json(c, now, err)
}

// readDecision reads what a request decides about; a body may be missing.
func readDecision(c *fiber.Ctx) (d catalogue.Decision, err error) {
	d.By = principalOf(c.Context())
	if d.ID, err = skill.ParseID(c.Params("id")); err != nil {
		return d, err
	}
	if body := bytes.TrimSpace(c.Context().Request.Body()); len(body) > 0 {
		err = readMembers(body, "", []member{
			{"version", text(&d.Version, 64)},
			{"tenant", text(&d.Tenant, maxTenant)},
			{"digest", text(&d.Digest, maxDigest)},
			{"reason", text(&d.Reason, maxReason)},
			{"word", text(&d.Reason, maxReason)}, // its former name, for one release
		})
	}
	return d, err
}

// deleteVersion answers DELETE /skills/{id}/versions/{version}.
func (s *Server) deleteVersion(c *fiber.Ctx) error {
	d := catalogue.Decision{Action: catalogue.Delete, By: principalOf(c.Context())}
	var err error
	if d.ID, err = skill.ParseID(c.Params("id")); err != nil {
		return err
	}
	if d.Tenant, err = query(c, "tenant", maxTenant); err != nil {
		return err
	}
	if d.Version, err = versionOf(c); err != nil {
		return err
	}
	return s.decideUpload(c, d)
}

// versionOf reads the version that a path names.
func versionOf(c *fiber.Ctx) (string, error) {
	// A plus in a path has been read as a space, which no version has.
	version := strings.ReplaceAll(c.Params("version"), " ", "+")
	if n := utf8.RuneCountInString(version); n == 0 || n > 64 {
		return "", invalidField("version", "must be 1 to 64 characters long")
	}
	return version, nil
}
