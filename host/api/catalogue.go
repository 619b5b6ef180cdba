package api

import (
	"strconv"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"openskill/sdk/skill"
)

// viewer is who looks at the catalogue: the caller, or, for the operator, the tenant
// that it names.
func (s *Server) viewer(c *fiber.Ctx) (skill.Principal, error) {
	p := principalOf(c.Context())
	tenant, err := query(c, "tenant", maxTenant)
	if err != nil || tenant == "" || tenant == p.Tenant {
		return p, err
	}
	if !p.May(skill.ScopeAdmin) {
		return p, &skill.Error{Op: "api.catalogue", Code: skill.Forbidden, Message: "only the operator can select another tenant"}
	}
	p.Tenant = tenant
	return p, nil
}

// ofSkill reads the skill that a path names, and who looks at it.
func (s *Server) ofSkill(c *fiber.Ctx) (id skill.ID, viewer skill.Principal, err error) {
	if id, err = skill.ParseID(c.Params("id")); err == nil {
		viewer, err = s.viewer(c)
	}
	return id, viewer, err
}

// listSkills answers GET /skills.
func (s *Server) listSkills(c *fiber.Ctx) error {
	cursor, limit, err := page(c)
	if err != nil {
		return err
	}
	viewer, err := s.viewer(c)
	if err != nil {
		return err
	}
	skills, next, err := s.opt.Catalogue.List(viewer, cursor, limit)
	return s.json(c, listOf(skills, next), err)
}

// page reads which page of a list is asked for.
func page(c *fiber.Ctx) (cursor string, limit int, err error) { return pageOf(c, 50, 100) }

// pageOf is page for a list whose pages usually have limit entries, and at most so many.
func pageOf(c *fiber.Ctx, limit, most int) (string, int, error) {
	given, err := query(c, "limit", 8)
	if err != nil {
		return "", 0, err
	}
	if given != "" {
		if limit, err = strconv.Atoi(given); err != nil || limit < 1 || limit > most {
			return "", 0, invalidField("limit", "must be a whole number from 1 to "+strconv.Itoa(most))
		}
	}
	after, err := query(c, "cursor", 256)
	return after, limit, err
}

// getSkill answers GET /skills/{id}.
func (s *Server) getSkill(c *fiber.Ctx) error {
	version, err := query(c, "version", 64)
	if err != nil {
		return err
	}
	id, viewer, err := s.ofSkill(c)
	if err != nil {
		return err
	}
	d, err := s.opt.Catalogue.Get(viewer, id, version)
	return s.json(c, d, err)
}

// listVersions answers GET /skills/{id}/versions.
func (s *Server) listVersions(c *fiber.Ctx) error {
	id, viewer, err := s.ofSkill(c)
	if err != nil {
		return err
	}
	versions, err := s.opt.Catalogue.Versions(viewer, id)
	return s.json(c, listOf(versions, ""), err)
}

// query gives a parameter of the query, "" if it is not there. It must not come
// twice, be empty or be longer than most characters.
func query(c *fiber.Ctx, name string, most int) (string, error) {
	all := c.Context().QueryArgs().PeekMulti(name)
	if len(all) == 0 {
		return "", nil
	}
	if len(all) > 1 {
		return "", invalidField(name, "appears more than once")
	}
	if n := utf8.RuneCount(all[0]); n == 0 || n > most || !utf8.Valid(all[0]) {
		return "", invalidField(name, "must be 1 to "+strconv.Itoa(most)+" characters long, in UTF-8")
	}
	return string(all[0]), nil
}
