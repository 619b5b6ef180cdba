package api

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"openskill/sdk/skill"
)

// Which names the version that something is decided about.
type Which struct {
	Tenant  string // whose skill it is, for the operator; "": the caller's own
	ID      skill.ID
	Version string // "": what the action means without one
	Digest  string // that it must have; "": any
	Reason  string // for the record
}

// maxTenant, maxReason and maxDigest are how long, in characters, a tenant, a reason and a
// digest may be.
const (
	maxTenant = 128
	maxReason = 400
	maxDigest = 71
)

// deciding answers POST /skills/{id}:{action} for an action on a version.
func (s *Server) deciding(act func(Uploads, skill.Principal, Which) (skill.VersionState, error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		which, err := readWhich(c)
		if err != nil {
			return err
		}
		now, err := act(s.opt.Uploads, principalOf(c.Context()), which)
		return s.json(c, now, err)
	}
}

// readWhich reads what a request decides about; a body may be missing.
func readWhich(c *fiber.Ctx) (which Which, err error) {
	if which.ID, err = skill.ParseID(c.Params("id")); err != nil {
		return which, err
	}
	if body := bytes.TrimSpace(c.Context().Request.Body()); len(body) > 0 {
		err = readMembers(body, "", []member{
			{"version", text(&which.Version, 64)},
			{"tenant", text(&which.Tenant, maxTenant)},
			{"digest", text(&which.Digest, maxDigest)},
			{"reason", text(&which.Reason, maxReason)},
			{"word", text(&which.Reason, maxReason)}, // its former name, for one release
		})
	}
	return which, err
}

// deleteVersion answers DELETE /skills/{id}/versions/{version}.
func (s *Server) deleteVersion(c *fiber.Ctx) error {
	id, err := skill.ParseID(c.Params("id"))
	if err != nil {
		return err
	}
	tenant, err := query(c, "tenant", maxTenant)
	if err != nil {
		return err
	}
	version, err := versionOf(c)
	if err != nil {
		return err
	}
	now, err := s.opt.Uploads.Delete(principalOf(c.Context()), Which{Tenant: tenant, ID: id, Version: version})
	return s.json(c, now, err)
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
