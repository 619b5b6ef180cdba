package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"os"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/admission"
	"openskill/host/catalogue"
	"openskill/host/internal/gate"
	"openskill/sdk/skill"
)

// Uploads takes skills in and keeps what is decided about them. It authorizes: the
// edge only says who asks. Its errors are *skill.Error; it is safe for concurrent use.
type Uploads interface {
	// Begin makes a place for an upload, before a byte of it is read.
	Begin(p skill.Principal) (Upload, error)

	// Decide makes a decision about a version.
	Decide(d catalogue.Decision) (skill.VersionState, error)

	// SetPackages gives a version packages; where the wish is nil it takes them away. It may take
	// minutes.
	SetPackages(ctx context.Context, d catalogue.Decision, w *PackageWish) (*skill.PackagesResult, error)

	// Bill gives the bill of materials of a version that the caller finds.
	Bill(ctx context.Context, p skill.Principal, id skill.ID, version string) (json.RawMessage, error)

	// File returns a file of a version of the caller's tenant, of at most 1 MiB.
	File(ctx context.Context, p skill.Principal, id skill.ID, version, path string) ([]byte, error)

	// Report makes the admission report of a version that the caller finds, anew.
	Report(ctx context.Context, p skill.Principal, id skill.ID, version string) (*skill.UploadResult, error)

	// Uploaded returns the Agent Skills that the caller's tenant uploaded: the one with this id, or all if id is "",
	// in any order and with the description of the default version only. Without any it is empty.
	Uploaded(p skill.Principal, id skill.ID) ([]catalogue.Uploaded, error)

	// Archive writes the files of a version of the caller's tenant as a zip of at most 16 MiB.
	Archive(ctx context.Context, p skill.Principal, id skill.ID, version string, w io.Writer) error
}

// Upload is one upload under way; it is for one goroutine.
type Upload interface {
	// File makes an empty file for a part as it comes in. It is removed with the upload;
	// the edge closes it.
	File() (*os.File, error)
	// Reserve counts bytes against what the caller may have on the disk, instead of what
	// was reserved before. It is asked as soon as all has come in: what waits to be
	// checked is on the disk too.
	Reserve(bytes int64) error
	// Fetch gets an archive from a registry, instead of a request's body, and verifies who
	// vouches for it. It reserves what that takes.
	Fetch(ctx context.Context, reference string) (admission.Source, error)
	// Admit checks what came in and, unless it is a dry run, keeps it. The error's
	// Details have the admission report as "report", as far as it came.
	Admit(ctx context.Context, parts admission.Source, dryRun bool) (*skill.UploadResult, error)
	// Close frees everything; a version that Admit has answered stays.
	Close() error
}

// parts are what was uploaded so far: an archive, or a module and its manifest.
type parts struct {
	admission.Source
	size int64 // bytes of all of them
}

const (
	// maxManifest is the size of an uploaded manifest in bytes; nothing larger is read
	// as one.
	maxManifest = 64 << 10
	// maxHead is what may come before a part, in bytes: its head, which is kept in
	// memory, and a boundary.
	maxHead = 16 << 10
	// uploadFrame is what an upload may have around its file: the manifest, boundaries,
	// the heads of the parts.
	uploadFrame = maxManifest + 64<<10
	// maxParts is how many parts are looked at before an upload is refused.
	maxParts = 4
)

var errUploadsOff = &skill.Error{Op: "api.upload", Code: skill.Forbidden, Message: "uploads are disabled on this host"}

// upload answers POST /skills.
func (s *Server) upload(c *fiber.Ctx) error {
	ctx := c.Context()
	if s.opt.Uploads == nil {
		return errUploadsOff
	}
	boundary, err := checkUploadHeaders(&ctx.Request.Header, "a part archive (zip or tar.gz), or the parts module and manifest")
	if err != nil {
		return err
	}
	dryRun, err := queryFlag(c, "dry_run")
	if err != nil {
		return err
	}
	wants, err := queryFlag(c, "packages")
	if err == nil && wants {
		err = mayHavePackages(principalOf(ctx), dryRun)
	}
	if err != nil {
		return err
	}
	tenant := principalOf(ctx).Tenant
	up, err := s.opt.Uploads.Begin(principalOf(ctx))
	if err != nil {
		return err
	}
	defer up.Close()
	var got parts
	defer closeParts(&got.Source)
	if err := s.receiveInLine(ctx, up, boundary, maxParts, s.takeParts(ctx, up, &got), got.complete); err != nil {
		return err
	}

	handling(ctx)
	run, done := s.calling(ctx)
	defer done()
	result, err := s.admit(run, tenant, up, got.Source, dryRun)
	if err != nil {
		return err
	}
	if wants {
		result.Packages = s.packagesOf(run, principalOf(ctx), result)
	}
	return s.uploaded(ctx, result, dryRun)
}

// mostWaiting is how many uploads wait to be checked. Each holds a connection, of which a
// host has 4096, and makes no room for others; most have an upload on the disk besides.
const mostWaiting = 512

func tooManyUploads(err error) error {
	return gate.Refusal(err, "api.upload", "too many uploads are in progress")
}

// admit has an upload checked, in its turn.
func (s *Server) admit(run context.Context, tenant string, up Upload, parts admission.Source, dryRun bool) (*skill.UploadResult, error) {
	leave, err := s.admitting.Enter(run, tenant)
	if err != nil {
		return nil, tooManyUploads(err)
	}
	defer leave()
	return up.Admit(run, parts, dryRun)
}

// uploaded answers an upload that was accepted.
func (s *Server) uploaded(ctx *fasthttp.RequestCtx, result *skill.UploadResult, dryRun bool) error {
	status := fasthttp.StatusCreated
	if dryRun {
		status = fasthttp.StatusOK
	}
	return s.writeJSON(ctx, status, result)
}

func queryFlag(c *fiber.Ctx, name string) (bool, error) {
	given, err := query(c, name, 8)
	if given != "" && given != "true" && given != "false" {
		err = invalidField(name, "must be true or false")
	}
	return given == "true", err
}

// checkUploadHeaders gives the boundary between the parts, which are the ones to send.
func checkUploadHeaders(h *fasthttp.RequestHeader, parts string) (boundary string, err error) {
	if enc := h.Peek("Content-Encoding"); len(enc) > 0 {
		return "", &skill.Error{
			Op: "api.upload", Code: skill.UnsupportedEncoding,
			Message: "compressed bodies are not supported; send the archive without Content-Encoding",
		}
	}
	mediaType, params, err := mime.ParseMediaType(string(h.ContentType()))
	if err != nil || mediaType != "multipart/form-data" || params["boundary"] == "" || len(params["boundary"]) > 70 {
		return "", &skill.Error{
			Op: "api.upload", Code: skill.UnsupportedEncoding,
			Message: "invalid upload: send multipart/form-data with a boundary: " + parts,
		}
	}
	return params["boundary"], nil
}

// receiveInLine receives an upload of at most that many parts if there is a place for one more that comes in. complete
// returns its bytes, or says what is missing.
func (s *Server) receiveInLine(ctx *fasthttp.RequestCtx, up Upload, boundary string, most int, take func(*multipart.Part, *capped) error, complete func() (int64, error)) error {
	leave, err := s.receiving.TryEnter(principalOf(ctx).Tenant)
	if err != nil {
		return tooManyUploads(err)
	}
	defer leave()
	if err := s.receive(ctx, boundary, most, take); err != nil {
		return err
	}
	size, err := complete()
	if err != nil {
		return err
	}
	return up.Reserve(size)
}

// receive hands over the parts of an upload as they come in.
func (s *Server) receive(ctx *fasthttp.RequestCtx, boundary string, most int, take func(*multipart.Part, *capped) error) error {
	body := &capped{r: ctx.RequestBodyStream(), left: s.limitOf(ctx), head: inPart}
	if body.r == nil {
		return invalid("the body is empty; send the parts of the upload")
	}
	reader := multipart.NewReader(body, boundary)
	for n := 0; ; n++ {
		body.head = maxHead
		part, err := reader.NextRawPart()
		body.head = inPart
		switch {
		case errors.Is(body.err, errLongHead):
			return invalid("more than " + strconv.Itoa(maxHead) + " bytes of headers before a part; send Content-Disposition only")
		case body.err != nil && !errors.Is(body.err, io.EOF):
			return s.readError(ctx, body.err)
		case err == io.EOF:
			return s.drain(ctx, body)
		case err != nil:
			return invalid("malformed multipart/form-data body")
		case n == most:
			return invalid("the upload has more than " + strconv.Itoa(most) + " parts")
		}
		if err := take(part, body); err != nil {
			return err
		}
	}
}

func checkPart(part *multipart.Part, seen map[string]bool) error {
	name := part.FormName()
	switch {
	case name != "archive" && name != "module" && name != "manifest":
		return invalidField(name, "is not a known part; send the part archive, or the parts module and manifest")
	case seen[name]:
		return invalidField(name, "appears more than once")
	}
	return checkEncoding(part)
}

// checkEncoding refuses a part whose content is not sent as it is.
func checkEncoding(part *multipart.Part) error {
	switch strings.ToLower(part.Header.Get("Content-Transfer-Encoding")) {
	case "", "binary", "8bit", "7bit":
		return nil
	}
	return invalidField(part.FormName(), "must be sent without Content-Transfer-Encoding")
}

// takeParts takes in an archive, or a module and its manifest.
func (s *Server) takeParts(ctx *fasthttp.RequestCtx, up Upload, got *parts) func(*multipart.Part, *capped) error {
	seen := map[string]bool{}
	return func(part *multipart.Part, body *capped) error {
		if err := checkPart(part, seen); err != nil {
			return err
		}
		seen[part.FormName()] = true
		return s.part(ctx, up, got, part.FormName(), part, body)
	}
}

// part takes one part in.
func (s *Server) part(ctx *fasthttp.RequestCtx, up Upload, got *parts, name string, part io.Reader, body *capped) error {
	if name == "manifest" {
		b, err := io.ReadAll(io.LimitReader(part, maxManifest+1))
		switch {
		case err != nil:
			return s.partError(ctx, body)
		case len(b) > maxManifest:
			return tooLargePart(name, maxManifest)
		}
		got.Manifest = b
		got.size += int64(len(b))
		return nil
	}
	f, err := up.File()
	if err != nil {
		return err
	}
	if name == "archive" {
		got.Archive = f
	} else {
		got.Module = f
	}
	n, err := io.Copy(f, io.LimitReader(part, s.opt.UploadLimit+1))
	switch _, ok := errors.AsType[*fs.PathError](err); {
	case err != nil && !ok:
		return s.partError(ctx, body)
	case err == nil && n > s.opt.UploadLimit:
		return tooLargePart(name, s.opt.UploadLimit)
	case err == nil:
		got.size += n
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return &skill.Error{Op: "api.upload", Code: skill.Internal, Message: "the upload cannot be written to the disk", Err: err}
	}
	return nil
}

// partError says why a part could not be read to its end.
func (s *Server) partError(ctx *fasthttp.RequestCtx, body *capped) error {
	if body.err != nil {
		return s.readError(ctx, body.err)
	}
	return invalid("malformed multipart/form-data body")
}

func tooLargePart(name string, most int64) error {
	return &skill.Error{
		Op: "api.upload", Code: skill.PayloadTooLarge, Subject: name,
		Message: name + " is too large; the limit is " + strconv.FormatInt(most, 10) + " bytes",
	}
}

// drain reads what follows the last part, so that the connection can go on.
func (s *Server) drain(ctx *fasthttp.RequestCtx, body *capped) error {
	if _, err := io.Copy(io.Discard, body); err != nil {
		return s.readError(ctx, err)
	}
	ctx.Request.SetBodyRaw(nil) // the stream has been read
	return nil
}

// complete returns the bytes of all parts, or says what is missing or too much.
func (p *parts) complete() (size int64, err error) {
	switch archive, module, manifest := p.Archive != nil, p.Module != nil, p.Manifest != nil; {
	case archive && (module || manifest):
		return 0, invalid("the upload has both forms; send the part archive, or the parts module and manifest")
	case archive, module && manifest:
		return p.size, nil
	case module:
		return 0, invalidField("manifest", "is missing: the skill.yaml of the module")
	case manifest:
		return 0, invalidField("module", "is missing: the WebAssembly module of the manifest")
	}
	return 0, invalidField("archive", "is missing: send a zip or tar.gz of the skill's folder, or the parts module and manifest")
}

func closeParts(p *admission.Source) {
	for _, f := range []*os.File{p.Archive, p.Module} {
		if f != nil {
			_ = f.Close() // it is removed unread
		}
	}
}

// capped reads a body up to its limit and keeps the error that ended it.
type capped struct {
	r    io.Reader
	left int64
	head int64 // bytes that may be read before the next part begins; or inPart
	err  error
}

// inPart says that what is read belongs to a part, or comes after all of them.
const inPart = -1

var errLongHead = errors.New("the headers of a part are too long")

func (c *capped) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p)
	if c.left -= int64(n); c.left < 0 {
		err = errBodyTooLarge
	}
	if c.head != inPart {
		if c.head = max(c.head-int64(n), 0); c.head == 0 && err == nil {
			err = errLongHead
		}
	}
	c.err = err
	return n, err
}
