package api

import (
	"bytes"
	"context"

	"github.com/gofiber/fiber/v2"

	"openskill/host/catalogue"
	"openskill/sdk/skill"
)

// PackageWish says which packages a version is to have.
type PackageWish struct {
	Names  []string // as in python:requests>=2; none: those that its files declare, else import
	Update bool     // to their newest versions, those that it has too
	// Optional is for a version that may need none, which is then no error and changes nothing.
	Optional bool
}

// addPackages answers POST /skills/{id}/versions/{version}/packages.
func (s *Server) addPackages(c *fiber.Ctx) error {
	d, err := ofVersion(c)
	if err != nil {
		return err
	}
	w := &PackageWish{}
	if body := bytes.TrimSpace(c.Context().Request.Body()); len(body) > 0 {
		err = readMembers(body, "", []member{
			{"packages", texts(&w.Names)},
			{"update", flag(&w.Update)},
			{"tenant", text(&d.Tenant, maxTenant)},
			{"digest", text(&d.Digest, maxDigest)},
			{"reason", text(&d.Reason, maxReason)},
		})
		if err != nil {
			return err
		}
	}
	out, err := s.opt.Uploads.SetPackages(c.UserContext(), d, w)
	return s.json(c, out, err)
}

// removePackages answers DELETE /skills/{id}/versions/{version}/packages.
func (s *Server) removePackages(c *fiber.Ctx) error {
	d, err := ofVersion(c)
	if err == nil {
		d.Tenant, err = query(c, "tenant", maxTenant)
	}
	if err != nil {
		return err
	}
	out, err := s.opt.Uploads.SetPackages(c.UserContext(), d, nil)
	return s.json(c, out, err)
}

// mayHavePackages refuses an upload that is to have its packages where its principal may not add
// them, before anything of it is read.
func mayHavePackages(p skill.Principal, dryRun bool) error {
	switch {
	case !p.May(skill.ScopeAdmin):
		return &skill.Error{Op: "api.upload", Code: skill.Forbidden, Subject: "packages", Message: "packages: missing scope " + skill.ScopeAdmin + "; upload without it, and ask the operator to add packages"}
	case dryRun:
		return invalidField("packages", "must be false for a dry run: nothing is stored")
	}
	return nil
}

// packagesOf gives a version that was just stored the packages that it needs. Where that fails the
// version stays, disabled and without packages, and the answer says why.
func (s *Server) packagesOf(ctx context.Context, by skill.Principal, r *skill.UploadResult) *skill.UploadPackages {
	d := catalogue.Decision{By: by, ID: r.ID, Version: r.Version, Digest: r.Digest}
	out, err := s.opt.Uploads.SetPackages(ctx, d, &PackageWish{Optional: true})
	if err != nil {
		failed := skill.Failure(r.ID, "", skill.Meta{}, err).Error
		failed.Message = cleanMessage(failed.Message)
		return &skill.UploadPackages{Added: []string{}, Error: failed}
	}
	return &skill.UploadPackages{Added: out.Added}
}

// ofVersion reads the version that a path names.
func ofVersion(c *fiber.Ctx) (d catalogue.Decision, err error) {
	d.By = principalOf(c.Context())
	if d.ID, err = skill.ParseID(c.Params("id")); err == nil {
		d.Version, err = versionOf(c)
	}
	return d, err
}

// getBill answers GET /skills/{id}/versions/{version}/sbom.
func (s *Server) getBill(c *fiber.Ctx) error {
	id, viewer, version, err := s.ofSkillVersion(c)
	if err != nil {
		return err
	}
	bill, err := s.opt.Uploads.Bill(c.UserContext(), viewer, id, version)
	return s.json(c, bill, err)
}
