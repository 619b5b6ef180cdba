package api

import (
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

// ofSkillVersion reads the skill and the version that a path names, and who looks at them.
func (s *Server) ofSkillVersion(c *fiber.Ctx) (id skill.ID, viewer skill.Principal, version string, err error) {
	if id, viewer, err = s.ofSkill(c); err == nil {
		version, err = versionOf(c)
	}
	return id, viewer, version, err
}
