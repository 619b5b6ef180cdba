package api

import (
	"context"
	"errors"

	"github.com/gofiber/fiber/v2"

	"openskill/host/admission"
	"openskill/host/catalogue"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// maxReference is the length of a reference in characters.
const maxReference = 1024

// hasMember reports whether a body is a JSON object with this key.
func hasMember(body []byte, key string) bool {
	found := false
	_ = strictjson.Object(body, func(k, _ []byte) error { // whoever reads it says what is wrong with it
		found = found || string(k) == key
		return nil
	})
	return found
}

// pull answers POST /skills with a reference: an upload that the host gets itself.
func (s *Server) pull(c *fiber.Ctx) error {
	ctx := c.Context()
	var reference string
	var enable, wants bool
	err := readMembers(ctx.Request.Body(), "", []member{{"reference", text(&reference, maxReference)}, {"enable", flag(&enable)}, {"packages", flag(&wants)}})
	if err != nil {
		return err
	}
	if s.opt.Uploads == nil {
		return errUploadsOff
	}
	dryRun, err := queryFlag(c, "dry_run")
	if err != nil {
		return err
	}
	if dryRun && enable {
		return invalidField("enable", "must be false for a dry run: nothing is stored")
	}
	caller := principalOf(ctx)
	if wants {
		if err := mayHavePackages(caller, dryRun); err != nil {
			return err
		}
	}
	up, err := s.opt.Uploads.Begin(caller)
	if err != nil {
		return err
	}
	defer up.Close()
	run, done := s.calling(ctx)
	defer done()
	parts, err := s.fetchInLine(run, caller.Tenant, up, reference)
	if err != nil {
		return err
	}
	defer closeParts(&parts)
	result, err := s.admit(run, caller.Tenant, up, parts, dryRun)
	if err != nil {
		return err
	}
	if wants {
		result.Packages = s.packagesOf(run, caller, result)
	}
	if enable && (result.Packages == nil || result.Packages.Error == nil) {
		now, err := s.opt.Uploads.Decide(catalogue.Decision{Action: catalogue.Enable, By: caller, ID: result.ID, Version: result.Version})
		if err != nil {
			return err
		}
		result.State = now.State
	}
	return s.uploaded(ctx, result, dryRun)
}

// fetchInLine gets what is pulled if there is a place for one more that comes in.
func (s *Server) fetchInLine(run context.Context, tenant string, up Upload, reference string) (parts admission.Source, err error) {
	leave, err := s.receiving.TryEnter(tenant)
	if err != nil {
		return parts, tooManyUploads(err)
	}
	defer leave()
	limited, cancel := context.WithTimeout(run, s.opt.UploadTimeout)
	defer cancel()
	parts, err = up.Fetch(limited, reference)
	if err != nil && run.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		err = &skill.Error{Op: "api.pull", Code: skill.Timeout, Message: "timeout while pulling the skill from the registry; retry", Err: err}
	}
	return parts, err
}
