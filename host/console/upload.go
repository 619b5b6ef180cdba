package console

import (
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"strings"

	"openskill/sdk/skill"
)

// uploadData is the page of uploads.
type uploadData struct {
	Result  *skill.UploadResult // of one that was accepted
	Problem *apiError
	found
}

func (v *view) uploadPage() error {
	if err := v.allowed("upload"); err != nil {
		return err
	}
	return v.show(http.StatusOK, uploadView(v.frame("skills", "Upload"), &uploadData{}))
}

// upload hands an upload on to the API while it comes in. Its first part is the token of the
// session, so that nothing of a stranger's form is read further.
func (c *Console) upload(w http.ResponseWriter, r *http.Request) {
	v, leave := c.enter(w, r)
	if v == nil {
		return
	}
	defer leave()
	if err := v.takeUpload(); err != nil {
		v.failed(err)
	}
}

func (v *view) takeUpload() error {
	if err := v.allowed("upload"); err != nil {
		return err
	}
	body := &partsBody{ReadCloser: v.r.Body, head: inPart}
	v.r.Body = body
	parts, err := v.r.MultipartReader()
	if err != nil {
		return v.fail(http.StatusBadRequest, "Choose a file to upload.")
	}
	first, err := body.next(parts)
	if err != nil || first.FormName() != "csrf" {
		return v.fail(http.StatusBadRequest, "The form is incomplete. Reload the page and try again.")
	}
	token, err := io.ReadAll(io.LimitReader(first, 200))
	if err != nil || !v.s.guarded(string(token)) {
		return v.fail(http.StatusForbidden, "Your session has ended. Reload the page and try again.")
	}

	pr, pw := io.Pipe()
	out := multipart.NewWriter(pw)
	enable := false
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		err := handOn(body, parts, out, &enable)
		_ = pw.CloseWithError(errors.Join(err, out.Close())) // it never fails
	}()
	req, err := http.NewRequestWithContext(v.r.Context(), http.MethodPost, "/skills", pr)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", out.FormDataContentType())
	resp, err := v.o.API(v.r.Context(), v.p, req)
	_ = pr.Close() // what was not read is not wanted
	<-copied
	if errors.Is(body.err, errLongHead) { // what the API says of half a form is of no use
		if err == nil {
			_ = resp.Body.Close() // it is not read
		}
		return v.fail(http.StatusBadRequest, "Too much data before a file, or in a field. Reload the page and try again.")
	}
	if err != nil {
		return err
	}
	d := &uploadData{}
	status := http.StatusCreated
	var done skill.UploadResult
	if err := v.read(resp, &done); err != nil {
		if !errors.As(err, &d.Problem) {
			return err
		}
		status = d.Problem.Status
		var details struct {
			Report json.RawMessage `json:"report"`
		}
		_ = json.Unmarshal(d.Problem.Details, &details) // without a report there is none
		d.read(details.Report)
	} else {
		d.Result = &done
		d.read(done.Report)
		if enable {
			var state skill.VersionState
			if err := v.ask("POST", "/skills/"+string(done.ID)+":enable", nil, map[string]string{"version": done.Version}, &state); err != nil {
				v.leave(false, "Uploaded, but not enabled: "+messageOf(err))
			} else {
				done.State = state.State
			}
		}
	}
	return v.show(status, uploadView(v.frame("skills", "Upload"), d))
}

// maxHead is what may come before a part, in bytes: its head, which is kept in memory, a
// boundary, and what is left of a field that is not read.
const maxHead = 16 << 10

// inPart says that what is read belongs to a part.
const inPart = -1

var errLongHead = errors.New("too much data before a part")

// partsBody is the body of a form with files. The API bounds what comes before a part as
// well, but gets to see only the parts.
type partsBody struct {
	io.ReadCloser
	head int   // bytes that may be read before the next part begins; or inPart
	err  error // that ended it
}

func (b *partsBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	if b.head != inPart {
		if b.head = max(b.head-n, 0); b.head == 0 && err == nil {
			err = errLongHead
		}
	}
	b.err = err
	return n, err
}

// next gives the next part of the form that is read from b.
func (b *partsBody) next(form *multipart.Reader) (*multipart.Part, error) {
	b.head = maxHead
	defer func() { b.head = inPart }()
	return form.NextRawPart()
}

// handOn copies the files of an upload. Fields that were left empty are left out.
func handOn(body *partsBody, in *multipart.Reader, out *multipart.Writer, enable *bool) error {
	for {
		part, err := body.next(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := part.FormName()
		if name == "enable" {
			b, err := io.ReadAll(io.LimitReader(part, 8))
			if err != nil {
				return err
			}
			*enable = string(b) == "yes"
			continue
		}
		if part.FileName() == "" {
			continue
		}
		to, err := out.CreateFormFile(name, strings.Map(plainRune, part.FileName()))
		if err != nil {
			return err
		}
		if _, err := io.Copy(to, part); err != nil {
			return err
		}
	}
}

func plainRune(r rune) rune {
	if r < 0x20 || r == 0x7f || r == '"' || r == '\\' {
		return '_'
	}
	return r
}
