package api

import (
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"openskill/sdk/skill"
)

// getReport answers GET /skills/{id}/versions/{version}: what an upload of the version is
// answered with. The report is made anew, which costs what admission costs, and so it
// waits in the same line: who reads reports takes no more of the host than who uploads.
// That there is no such version is said at once.
func (s *Server) getReport(c *fiber.Ctx) error {
	id, viewer, version, err := s.ofSkillVersion(c)
	if err != nil {
		return err
	}
	if _, err := s.opt.Catalogue.Get(viewer, id, version); err != nil {
		return err
	}
	leave, err := s.admitting.Enter(c.UserContext(), principalOf(c.Context()).Tenant)
	if err != nil {
		return tooManyUploads(err)
	}
	defer leave()
	result, err := s.opt.Uploads.Report(c.UserContext(), viewer, id, version)
	return s.json(c, result, err)
}

// getSkillFile answers GET /skills/{id}/versions/{version}/file.
func (s *Server) getSkillFile(c *fiber.Ctx) error {
	id, viewer, version, err := s.ofSkillVersion(c)
	if err != nil {
		return err
	}
	path, err := query(c, "path", maxName)
	if err == nil && path == "" {
		err = invalidField("path", "is missing; name a file of the skill")
	}
	if err == nil {
		err = checkFileName("file", path)
	}
	if err != nil {
		return err
	}
	data, err := s.opt.Uploads.File(c.UserContext(), viewer, id, version, path)
	if err != nil {
		return err
	}
	given := ""
	if utf8.Valid(data) {
		given = "text/plain"
	}
	ctx := c.Context()
	mediaType, disposition := shownAs(path, given, data)
	if disposition != "" {
		ctx.Response.Header.Set("Content-Disposition", disposition)
	}
	ctx.SetContentType(mediaType)
	return s.setBody(ctx, data)
}

// ofSkillVersion reads the skill and the version that a path names, and who looks at them.
func (s *Server) ofSkillVersion(c *fiber.Ctx) (id skill.ID, viewer skill.Principal, version string, err error) {
	if id, viewer, err = s.ofSkill(c); err == nil {
		version, err = versionOf(c)
	}
	return id, viewer, version, err
}
