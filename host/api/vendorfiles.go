package api

import (
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// The ids of files of vendors are file_SHA256 for Anthropic and file-SHA256 for OpenAI. Both are understood.
func vendorFileID(ctx *fasthttp.RequestCtx, id string) string {
	if ofAnthropic(ctx) {
		return "file_" + id
	}
	return "file-" + id
}

func fileIDOf(id string) string {
	return strings.TrimPrefix(strings.TrimPrefix(id, "file_"), "file-")
}

// vendorFileOf is a file as the vendor writes it.
func vendorFileOf(ctx *fasthttp.RequestCtx, f *skill.FileInfo) vendorObject {
	o := vendorObject{"id": vendorFileID(ctx, f.ID), "filename": f.Name, "created_at": vendorTime(ctx, f.CreatedAt), "expires_at": vendorTime(ctx, f.ExpiresAt)}
	if ofAnthropic(ctx) {
		o["type"], o["size_bytes"], o["mime_type"], o["downloadable"] = "file", f.Size, "application/octet-stream", true
		return o
	}
	o["object"], o["bytes"], o["purpose"], o["status"] = "file", f.Size, "user_data", "processed"
	return o
}

// vendorFields checks the fields of an upload. What this host would do otherwise than asked is refused.
func vendorFields(name, value string) error {
	switch {
	case name == "purpose" && value != "user_data" && value != "assistants":
		return invalidField(name, "must be user_data or assistants: this host stores files for calls of skills")
	case strings.HasPrefix(name, "expires_"):
		return invalidField(name, "is not supported: the host decides how long after their last use files expire")
	}
	return nil
}

// vendorCreateFile answers POST /v1/files.
func (s *Server) vendorCreateFile(c *fiber.Ctx) error {
	ctx := c.Context()
	if _, err := checkUploadHeaders(&ctx.Request.Header, "a part file"); err != nil {
		return err
	}
	f, err := s.receiveFile(c, "", vendorFields)
	if err != nil {
		return err
	}
	return s.json(c, vendorFileOf(ctx, f), nil)
}

// vendorListFiles answers GET /v1/files.
func (s *Server) vendorListFiles(c *fiber.Ctx) error {
	ctx, p := c.Context(), principalOf(c.Context())
	page, err := vendorPageOf(c, 10_000)
	if err != nil {
		return err
	}
	args := ctx.QueryArgs()
	if purpose := string(args.Peek("purpose")); args.Has("scope_id") || purpose != "" && purpose != "user_data" && purpose != "assistants" {
		return s.vendorList(c, nil, "") // no file matches
	}
	if ids := args.PeekMulti("ids[]"); len(ids) > 0 {
		return s.vendorFilesOf(c, ids)
	}
	cursor := page.after
	if id := fileIDOf(cursor); id != cursor { // OpenAI's clients name the last file
		last, err := s.opt.Files.Get(c.UserContext(), p, id)
		if err != nil {
			return err
		}
		cursor = strconv.FormatInt(last.CreatedAt.UnixMicro(), 10) + "." + last.ID
	}
	list, next, err := s.opt.Files.List(c.UserContext(), p, cursor, page.limit, page.oldest)
	if err != nil {
		return err
	}
	var data []vendorObject
	for i := range list {
		data = append(data, vendorFileOf(ctx, &list[i]))
	}
	return s.vendorList(c, data, next)
}

// vendorFilesOf answers with the files of these ids that there are.
func (s *Server) vendorFilesOf(c *fiber.Ctx, ids [][]byte) error {
	if len(ids) > 100 {
		return invalidField("ids", "must be at most 100")
	}
	var data []vendorObject
	for _, id := range ids {
		f, err := s.opt.Files.Get(c.UserContext(), principalOf(c.Context()), fileIDOf(string(id)))
		switch {
		case err == nil:
			data = append(data, vendorFileOf(c.Context(), f))
		case skill.CodeOf(err) != skill.NotFound:
			return err
		}
	}
	return s.vendorList(c, data, "")
}

// vendorGetFile answers GET /v1/files/{id}.
func (s *Server) vendorGetFile(c *fiber.Ctx) error {
	f, err := s.opt.Files.Get(c.UserContext(), principalOf(c.Context()), fileIDOf(c.Params("id")))
	if err != nil {
		return err
	}
	return s.json(c, vendorFileOf(c.Context(), f), nil)
}

// vendorFileContent answers GET /v1/files/{id}/content.
func (s *Server) vendorFileContent(c *fiber.Ctx) error {
	return s.fileContent(c, fileIDOf(c.Params("id")))
}

// vendorDeleteFile answers DELETE /v1/files/{id}.
func (s *Server) vendorDeleteFile(c *fiber.Ctx) error {
	id := fileIDOf(c.Params("id"))
	err := s.opt.Files.Delete(c.UserContext(), principalOf(c.Context()), id)
	return s.vendorDeleted(c, vendorFileID(c.Context(), id), "file", nil, err)
}
