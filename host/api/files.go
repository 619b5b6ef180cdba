package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"os"
	"path"
	"strconv"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Files stores files for calls; *records.Files implements it. Errors are *skill.Error. It is safe for concurrent
// use.
type Files interface {
	// Put stores the content of from. It returns an error of from unchanged.
	Put(ctx context.Context, p skill.Principal, name string, from io.Reader) (*skill.FileInfo, error)
	Get(ctx context.Context, p skill.Principal, id string) (*skill.FileInfo, error)
	// List returns a page of the principal's uploads, newest or oldest first, and the cursor of the next page or "".
	List(ctx context.Context, p skill.Principal, cursor string, limit int, oldest bool) ([]skill.FileInfo, string, error)
	// Path returns the path of the content on this host.
	Path(ctx context.Context, p skill.Principal, id string) (string, *skill.FileInfo, error)
	Delete(ctx context.Context, p skill.Principal, id string) error
}

const pathFiles = "/files"

var errNoFiles = &skill.Error{Op: "api.files", Code: skill.NotFound, Message: "files are not supported by this host"}

// postFile answers POST /files. The body is the file, or a form with the part "file".
func (s *Server) postFile(c *fiber.Ctx) error {
	name, err := query(c, "name", 1000)
	if err != nil {
		return err
	}
	info, err := s.receiveFile(c, name, nil)
	if err != nil {
		return err
	}
	return s.writeJSON(c.Context(), fasthttp.StatusCreated, info)
}

// receiveFile stores the body of a request, or the part "file" of a form. field is called for the parts before it; nil:
// they are ignored.
func (s *Server) receiveFile(c *fiber.Ctx, name string, field func(name, value string) error) (*skill.FileInfo, error) {
	ctx := c.Context()
	if enc := ctx.Request.Header.Peek(fasthttp.HeaderContentEncoding); len(enc) > 0 {
		return nil, &skill.Error{Op: "api.files", Code: skill.UnsupportedEncoding, Message: "compressed bodies are not supported; send the file without Content-Encoding"}
	}
	leave, err := s.receiving.TryEnter(principalOf(ctx).Tenant)
	if err != nil {
		return nil, tooManyUploads(err)
	}
	defer leave()
	stream := ctx.RequestBodyStream()
	if stream == nil {
		stream = eof{}
	}
	body := &capped{r: stream, left: s.limitOf(ctx), head: inPart}
	var from io.Reader = body
	if mediaType, params, err := mime.ParseMediaType(string(ctx.Request.Header.ContentType())); err == nil && mediaType == "multipart/form-data" {
		part, err := filePart(body, params["boundary"], field)
		if err != nil {
			return nil, err
		}
		if from = part; name == "" {
			name = part.FileName()
		}
	}
	info, err := s.opt.Files.Put(c.UserContext(), principalOf(ctx), name, from)
	if _, ours := errors.AsType[*skill.Error](err); err != nil && !ours {
		return nil, s.partError(ctx, body)
	}
	if err != nil {
		return nil, err
	}
	return info, s.drain(ctx, body)
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// filePart returns the part "file" of a form. A few other small parts may come before it.
func filePart(body *capped, boundary string, field func(name, value string) error) (*multipart.Part, error) {
	reader := multipart.NewReader(body, boundary)
	for range maxParts {
		body.head = maxHead
		part, err := reader.NextRawPart()
		body.head = inPart
		if err != nil {
			break
		}
		if part.FormName() == "file" {
			return part, nil
		}
		if field != nil {
			value, err := fieldOf(part)
			if err == nil {
				err = field(part.FormName(), value)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return nil, invalidField("file", "is missing: send the file as the body, or as the part file of multipart/form-data")
}

// listFiles answers GET /files.
func (s *Server) listFiles(c *fiber.Ctx) error {
	ctx := c.Context()
	cursor, limit, err := page(c)
	if err != nil {
		return err
	}
	list, next, err := s.opt.Files.List(c.UserContext(), principalOf(ctx), cursor, limit, false)
	return s.json(c, listOf(list, next), err)
}

// getFile answers GET /files/{id}.
func (s *Server) getFile(c *fiber.Ctx) error {
	info, err := s.opt.Files.Get(c.UserContext(), principalOf(c.Context()), c.Params("id"))
	return s.json(c, info, err)
}

// getFileContent answers GET /files/{id}/content.
func (s *Server) getFileContent(c *fiber.Ctx) error { return s.fileContent(c, c.Params("id")) }

func (s *Server) fileContent(c *fiber.Ctx, id string) error {
	ctx := c.Context()
	at, info, err := s.opt.Files.Path(c.UserContext(), principalOf(ctx), id)
	if err != nil {
		return err
	}
	f, err := os.Open(at)
	if err != nil {
		return err
	}
	s.attached(ctx, path.Base(info.Name))
	ctx.Response.SetBodyStream(f, int(info.Size)) // which closes it
	return nil
}

// deleteFile answers DELETE /files/{id}.
func (s *Server) deleteFile(c *fiber.Ctx) error {
	ctx := c.Context()
	if err := s.opt.Files.Delete(c.UserContext(), principalOf(ctx), c.Params("id")); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

// attached makes browsers save a file instead of showing it.
func (s *Server) attached(ctx *fasthttp.RequestCtx, name string) {
	disposition := mime.FormatMediaType("attachment", map[string]string{"filename": name})
	if disposition == "" {
		disposition = "attachment"
	}
	ctx.Response.Header.Set(fasthttp.HeaderContentDisposition, disposition)
	ctx.SetContentType("application/octet-stream")
}

// filesOf reads the member files of a call. The dispatcher validates them.
func filesOf(to *[]skill.FileRef) func(string, []byte) error {
	return func(field string, value []byte) error {
		var list []json.RawMessage
		if value[0] != '[' || json.Unmarshal(value, &list) != nil || len(list) > 100 {
			return invalidField(field, "must be a list of at most 100 files")
		}
		for i, one := range list {
			var f skill.FileRef
			at := field + "." + strconv.Itoa(i)
			if one[0] != '{' {
				return invalidField(at, "must be an object")
			}
			given := func(to **string) func(string, []byte) error {
				*to = new(string)
				return text(*to, 0)
			}
			err := readMembers(one, at+".", []member{
				{"name", text(&f.Name, 255)},
				{"id", text(&f.ID, 0)},
				{"execution_id", text(&f.ExecutionID, 0)},
				{"artifact", text(&f.Artifact, 0)},
				{"text", func(field string, value []byte) error { return given(&f.Text)(field, value) }},
				{"base64", func(field string, value []byte) error { return given(&f.Base64)(field, value) }},
			})
			if err == nil && f.Name == "" {
				err = invalidField(at+".name", "is missing")
			}
			if err != nil {
				return err
			}
			*to = append(*to, f)
		}
		return nil
	}
}

var _ Files = (*records.Files)(nil)
