package api

import (
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// getReport answers GET /skills/{id}/versions/{version}: what an upload of the version is
// answered with. The report is made anew, which costs what admission costs, and so it
// waits in the same line: who reads reports takes no more of the host than who uploads.
// That there is no such version is said at once.
func (s *Server) getReport(c *fiber.Ctx) error {
	ctx := c.Context()
	id, err := skill.ParseID(c.Params("id"))
	if err != nil {
		return err
	}
	version, err := versionOf(c)
	if err != nil {
		return err
	}
	viewer, err := s.viewer(c)
	if err != nil {
		return err
	}
	uploads, err := s.uploads()
	if err != nil {
		return err
	}
	if _, err := s.opt.Catalogue.Get(viewer, id, version); err != nil {
		return err
	}
	run, done := s.calling(ctx)
	defer done()
	leave, err := s.admitting.Enter(run, who(ctx).Tenant)
	if err != nil {
		return tooManyUploads(err)
	}
	defer leave()
	result, err := uploads.Report(run, viewer, id, version)
	if err != nil {
		return err
	}
	s.writeJSON(ctx, fasthttp.StatusOK, result)
	return nil
}
