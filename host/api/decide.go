package api

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// Which names the version that something is decided about.
type Which struct {
	Tenant  string // whose skill it is, for the operator; "": the caller's own
	ID      skill.ID
	Version string // "": what the action means without one
	Digest  string // that it must have; "": any
	Word    string // the reason, for the record
}

// maxTenant, maxWord and maxDigest are how long, in characters, a tenant, a reason and a
// digest may be.
const (
	maxTenant = 128
	maxWord   = 400
	maxDigest = 71
)

// deciding answers POST /skills/{id}:{action} for an action on a version.
func (s *Server) deciding(act func(Uploads, skill.Principal, Which) (skill.VersionState, error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx := c.Context()
		id, err := skill.ParseID(c.Params("id"))
		if err != nil {
			return err
		}
		uploads, err := s.uploads()
		if err != nil {
			return err
		}
		which, err := readWhich(ctx, id)
		if err != nil {
			return err
		}
		now, err := act(uploads, who(c.Context()), which)
		if err != nil {
			return err
		}
		s.writeJSON(ctx, fasthttp.StatusOK, now)
		return nil
	}
}

// readWhich reads what a request decides about; a body may be missing.
func readWhich(ctx *fasthttp.RequestCtx, id skill.ID) (Which, error) {
	which := Which{ID: id}
	err := checkBodyHeaders(&ctx.Request.Header)
	if body := bytes.TrimSpace(ctx.Request.Body()); err == nil && len(body) > 0 {
		err = decodeWhich(body, &which)
	}
	return which, err
}

// decodeWhich reads the body of a decision.
func decodeWhich(b []byte, to *Which) error {
	err := strictjson.Object(b, func(key, value []byte) error {
		var most int
		var field *string
		switch string(key) {
		case "version":
			field, most = &to.Version, 64
		case "tenant":
			field, most = &to.Tenant, maxTenant
		case "digest":
			field, most = &to.Digest, maxDigest
		case "word":
			field, most = &to.Word, maxWord
		default:
			return invalidField(string(key), "is not a known key; version, tenant, digest and word are")
		}
		var v string
		if value[0] != '"' || json.Unmarshal(value, &v) != nil {
			return invalidField(string(key), "must be a string")
		}
		if v == "" || utf8.RuneCountInString(v) > most {
			return invalidField(string(key), "must be 1 to "+strconv.Itoa(most)+" characters long")
		}
		*field = v
		return nil
	})
	return syntaxError(err)
}

// deleteVersion answers DELETE /skills/{id}/versions/{version}.
func (s *Server) deleteVersion(c *fiber.Ctx) error {
	id, err := skill.ParseID(c.Params("id"))
	if err != nil {
		return err
	}
	uploads, err := s.uploads()
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
	which := Which{ID: id, Version: version}
	if tenant != nil {
		which.Tenant = *tenant
	}
	now, err := uploads.Delete(who(c.Context()), which)
	if err != nil {
		return err
	}
	s.writeJSON(c.Context(), fasthttp.StatusOK, now)
	return nil
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
