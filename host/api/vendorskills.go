package api

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/admission"
	"openskill/host/catalogue"
	"openskill/sdk/skill"
)

// The ids of vendors: skill_NAME for the skill NAME, and for OpenAI skillver_NAME_VERSION for one of its versions.
// Names of Agent Skills and versions have no _.
const vendorPrefix = "skill_"

func vendorSkillID(u *catalogue.Uploaded) string { return vendorPrefix + string(u.ID) }

func vendorVersionID(id skill.ID, version string) string {
	return "skillver_" + string(id) + "_" + version
}

// vendorTime is a time as the vendor writes it.
func vendorTime(ctx *fasthttp.RequestCtx, t time.Time) any {
	if ofAnthropic(ctx) {
		return t.UTC().Format(time.RFC3339)
	}
	return t.Unix()
}

// vendorSkillOf is a skill as the vendor writes it.
func vendorSkillOf(ctx *fasthttp.RequestCtx, u *catalogue.Uploaded) vendorObject {
	first, last := u.Versions[0], u.Versions[len(u.Versions)-1]
	o := vendorObject{"id": vendorSkillID(u), "created_at": vendorTime(ctx, first.At)}
	if ofAnthropic(ctx) {
		o["type"], o["display_name"], o["latest_version_id"], o["source"], o["updated_at"] = "skill", u.ID, last.Version, vendorObject{"type": "custom"}, vendorTime(ctx, last.At)
		return o
	}
	o["object"], o["name"], o["latest_version"], o["default_version"] = "skill", u.ID, last.Version, u.Default
	o["description"] = versionIn(u, u.Default).Description
	return o
}

// vendorVersionOf is a version as the vendor writes it.
func vendorVersionOf(ctx *fasthttp.RequestCtx, u *catalogue.Uploaded, v *catalogue.UploadedVersion) vendorObject {
	o := vendorObject{"id": v.Version, "type": "skill_version", "skill_id": vendorSkillID(u), "name": u.ID, "description": v.Description, "created_at": vendorTime(ctx, v.At)}
	if !ofAnthropic(ctx) {
		delete(o, "type")
		o["id"], o["object"], o["version"] = vendorVersionID(u.ID, v.Version), "skill.version", v.Version
	}
	return o
}

// versionIn returns a version of a skill, or nil. The default version is always there.
func versionIn(u *catalogue.Uploaded, version string) *catalogue.UploadedVersion {
	i := slices.IndexFunc(u.Versions, func(v catalogue.UploadedVersion) bool { return v.Version == version })
	if i < 0 {
		return nil
	}
	return &u.Versions[i]
}

func noVendor(what string) error {
	return &skill.Error{Op: "api.vendors", Code: skill.NotFound, Message: what + " not found"}
}

// vendorSkill returns a skill that the caller's tenant uploaded, and a version of it, or the default one if version
// is "".
func (s *Server) vendorSkill(c *fiber.Ctx, id skill.ID, version string) (*catalogue.Uploaded, *catalogue.UploadedVersion, error) {
	found, err := s.opt.Uploads.Uploaded(principalOf(c.Context()), id)
	switch {
	case err != nil:
		return nil, nil, err
	case len(found) == 0:
		return nil, nil, noVendor("skill")
	}
	v := versionIn(&found[0], cmp.Or(version, found[0].Default))
	if v == nil {
		return nil, nil, noVendor("version of the skill")
	}
	return &found[0], v, nil
}

// ofVendorPath is vendorSkill for a path. What cannot be an id is not found either.
func (s *Server) ofVendorPath(c *fiber.Ctx) (u *catalogue.Uploaded, v *catalogue.UploadedVersion, err error) {
	name, ok := strings.CutPrefix(c.Params("id"), vendorPrefix)
	if !ok || !skill.ValidAgentSkillName(name) {
		return nil, nil, noVendor("skill")
	}
	version := ""
	if c.Params("version") != "" {
		if version, err = versionOf(c); err != nil {
			return nil, nil, err
		}
	}
	return s.vendorSkill(c, skill.ID(name), version)
}

// uploadFolder takes in a form with a folder as a version of the skill into, or of a new skill if into is "". always
// says whether it is enabled without the field default.
func (s *Server) uploadFolder(c *fiber.Ctx, into skill.ID, always bool) (*skill.UploadResult, error) {
	ctx, caller := c.Context(), principalOf(c.Context())
	boundary, err := checkUploadHeaders(&ctx.Request.Header, folderParts)
	if err != nil {
		return nil, err
	}
	up, err := s.opt.Uploads.Begin(caller)
	if err != nil {
		return nil, err
	}
	defer up.Close()
	form := &folderForm{s: s, ctx: ctx, up: up, fields: map[string]string{"default": "", "display_name": "", "display_title": ""}}
	defer form.close()
	if err := s.receiveInLine(ctx, up, boundary, maxFolderParts, form.take, form.complete); err != nil {
		return nil, err
	}
	if given := form.fields["default"]; given != "" && given != "true" && given != "false" {
		return nil, invalidField("default", "must be true or false")
	}
	handling(ctx)
	run, done := s.calling(ctx)
	defer done()
	accept := func(d *skill.Descriptor) error {
		if d.Runner != skill.Agentic {
			return &skill.Error{Op: "api.vendors", Code: skill.InvalidManifest, Message: "the folder has a skill.yaml; send a folder with a SKILL.md and no skill.yaml"}
		}
		if into != "" && d.ID != into {
			return invalidField("files", "the name in SKILL.md is not "+string(into)+"; a skill keeps its name")
		}
		there, err := s.opt.Uploads.Uploaded(caller, d.ID)
		if err == nil && into == "" && len(there) > 0 {
			err = &skill.Error{Op: "api.vendors", Code: skill.Conflict, Subject: string(d.ID), Message: "the skill " + vendorSkillID(&there[0]) + " exists; create a version of it"}
		}
		return err
	}
	result, err := s.admit(run, caller.Tenant, up, admission.Source{Archive: form.file, Accept: accept}, false)
	if err == nil && (always || form.fields["default"] == "true") {
		_, err = s.opt.Uploads.Decide(catalogue.Decision{Action: catalogue.Enable, By: caller, ID: result.ID, Version: result.Version, Digest: result.Digest})
	}
	return result, err
}

// vendorUpload answers POST /v1/skills and POST /v1/skills/{id}/versions. The first version is enabled, and each one of
// Anthropic's clients, which use the newest.
func (s *Server) vendorUpload(c *fiber.Ctx) error {
	ctx, into := c.Context(), skill.ID("")
	if c.Params("id") != "" {
		u, _, err := s.ofVendorPath(c)
		if err != nil {
			return err
		}
		into = u.ID
	}
	result, err := s.uploadFolder(c, into, into == "" || ofAnthropic(ctx))
	if err != nil {
		return err
	}
	u, v, err := s.vendorSkill(c, result.ID, result.Version)
	switch {
	case err != nil:
		return err
	case into == "":
		return s.json(c, vendorSkillOf(ctx, u), nil)
	}
	return s.json(c, vendorVersionOf(ctx, u, v), nil)
}

// vendorListSkills answers GET /v1/skills.
func (s *Server) vendorListSkills(c *fiber.Ctx) error {
	ctx := c.Context()
	source, err := query(c, "source", 64)
	if err != nil {
		return err
	}
	var all []catalogue.Uploaded
	if source == "" || source == "custom" { // this host has no others
		if all, err = s.opt.Uploads.Uploaded(principalOf(ctx), ""); err != nil {
			return err
		}
	}
	slices.SortFunc(all, func(a, b catalogue.Uploaded) int {
		return cmp.Or(a.Versions[0].At.Compare(b.Versions[0].At), strings.Compare(string(a.ID), string(b.ID)))
	})
	return vendorListOf(s, c, all, vendorSkillID, func(u *catalogue.Uploaded) vendorObject { return vendorSkillOf(ctx, u) })
}

// vendorListVersions answers GET /v1/skills/{id}/versions.
func (s *Server) vendorListVersions(c *fiber.Ctx) error {
	u, _, err := s.ofVendorPath(c)
	if err != nil {
		return err
	}
	return vendorListOf(s, c, u.Versions, func(v *catalogue.UploadedVersion) string { return vendorVersionID(u.ID, v.Version) },
		func(v *catalogue.UploadedVersion) vendorObject { return vendorVersionOf(c.Context(), u, v) })
}

// vendorGet answers GET /v1/skills/{id} and GET /v1/skills/{id}/versions/{version}.
func (s *Server) vendorGet(c *fiber.Ctx) error {
	u, v, err := s.ofVendorPath(c)
	switch {
	case err != nil:
		return err
	case c.Params("version") == "":
		return s.json(c, vendorSkillOf(c.Context(), u), nil)
	}
	return s.json(c, vendorVersionOf(c.Context(), u, v), nil)
}

// vendorUpdate answers POST /v1/skills/{id}: it makes a version the default one.
func (s *Server) vendorUpdate(c *fiber.Ctx) error {
	u, _, err := s.ofVendorPath(c)
	if err != nil {
		return err
	}
	var version string
	if err := readMembers(c.Context().Request.Body(), "", []member{{"default_version", text(&version, 64)}}); err != nil {
		return err
	}
	if version == "" {
		return invalidField("default_version", "is missing")
	}
	if err := s.decideOwn(c, catalogue.Enable, u.ID, version); err != nil {
		return err
	}
	return s.vendorGet(c)
}

// vendorDelete answers DELETE /v1/skills/{id}, which deletes all versions, and DELETE /v1/skills/{id}/versions/{version}.
func (s *Server) vendorDelete(c *fiber.Ctx) error {
	u, v, err := s.ofVendorPath(c)
	if err != nil {
		return err
	}
	if c.Params("version") != "" {
		id := vendorVersionOf(c.Context(), u, v)["id"]
		return s.vendorDeleted(c, id, "skill.version", vendorObject{"version": v.Version}, s.decideOwn(c, catalogue.Delete, u.ID, v.Version))
	}
	for _, v := range slices.Backward(u.Versions) { // the newest first
		if err := s.decideOwn(c, catalogue.Delete, u.ID, v.Version); err != nil {
			return err
		}
	}
	return s.vendorDeleted(c, vendorSkillID(u), "skill", nil, nil)
}

// decideOwn decides about a version of the caller's tenant.
func (s *Server) decideOwn(c *fiber.Ctx, action catalogue.Action, id skill.ID, version string) error {
	p := principalOf(c.Context())
	_, err := s.opt.Uploads.Decide(catalogue.Decision{Action: action, By: p, Tenant: p.Tenant, ID: id, Version: version})
	return err
}

// vendorContent answers GET /v1/skills/{id}/content and GET /v1/skills/{id}/versions/{version}/content.
func (s *Server) vendorContent(c *fiber.Ctx) error {
	u, v, err := s.ofVendorPath(c)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := s.opt.Uploads.Archive(c.UserContext(), principalOf(c.Context()), u.ID, v.Version, &b); err != nil {
		return err
	}
	s.attached(c.Context(), string(u.ID)+".zip")
	return s.setBody(c.Context(), b.Bytes())
}
