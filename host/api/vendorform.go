package api

import (
	"archive/zip"
	"errors"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"os"
	"strings"

	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

const (
	// maxFolderFiles bounds the files of a form in number, and maxFolderParts its parts.
	maxFolderFiles = 1000
	maxFolderParts = maxFolderFiles + maxParts
	// maxField bounds the value of a field of a form in bytes.
	maxField = 1 << 10
)

const folderParts = "parts files[], which are the files of a folder with a SKILL.md, or one zip of it"

// folderForm takes in the files of a form: a zip as it is, and all others into a zip on the disk. Admission checks their
// names as those of every archive.
type folderForm struct {
	s   *Server
	ctx *fasthttp.RequestCtx
	up  Upload

	fields map[string]string // that are known; "": not sent
	file   *os.File          // nil: nothing came in
	folder *zip.Writer       // nil: file came in as a zip
	files  int
	size   int64
}

// take takes one part in.
func (f *folderForm) take(part *multipart.Part, body *capped) error {
	if err := checkEncoding(part); err != nil {
		return err
	}
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil {
		return invalid("malformed Content-Disposition of a part")
	}
	field, path := params["name"], params["filename"]
	if field != "files" && field != "files[]" {
		if given, known := f.fields[field]; !known || given != "" {
			return invalidField(field, "is not a known part, or appears more than once; send "+folderParts)
		}
		f.fields[field], err = fieldOf(part)
		return err
	}
	isZip := f.files == 0 && !strings.Contains(path, "/") && strings.HasSuffix(strings.ToLower(path), ".zip")
	switch f.files++; {
	case f.files > maxFolderFiles:
		return invalid("the folder has more than 1000 files")
	case f.files > 1 && f.folder == nil:
		return invalid("more than one part with a zip; send " + folderParts)
	case path == "" || strings.HasSuffix(path, "/"):
		return invalidField("files", "a part has no file name")
	case f.file == nil:
		if f.file, err = f.up.File(); err != nil {
			return err
		}
	}
	var to io.Writer = f.file
	if !isZip {
		if f.folder == nil {
			f.folder = zip.NewWriter(f.file)
		}
		if to, err = f.folder.CreateHeader(&zip.FileHeader{Name: path, Method: zip.Store}); err != nil {
			return f.failed(err, body)
		}
	}
	n, err := io.Copy(to, io.LimitReader(part, f.s.opt.UploadLimit-f.size+1))
	if f.size += n; err == nil && f.size > f.s.opt.UploadLimit {
		return tooLargePart("files", f.s.opt.UploadLimit)
	}
	return f.failed(err, body)
}

// complete returns the bytes of the archive, which is ready to be read.
func (f *folderForm) complete() (size int64, err error) {
	if f.file == nil {
		return 0, invalidField("files", "is missing; send "+folderParts)
	}
	if f.folder != nil {
		err = f.folder.Close()
	}
	if err == nil {
		size, err = f.file.Seek(0, io.SeekEnd)
	}
	if err == nil {
		_, err = f.file.Seek(0, io.SeekStart)
	}
	return size, f.failed(err, nil)
}

// failed says whose fault an error of a copy is: of the disk, or of who sends.
func (f *folderForm) failed(err error, body *capped) error {
	switch _, disk := errors.AsType[*fs.PathError](err); {
	case err == nil:
		return nil
	case disk || body == nil:
		return &skill.Error{Op: "api.upload", Code: skill.Internal, Message: "the upload cannot be written to the disk", Err: err}
	}
	return f.s.partError(f.ctx, body)
}

func (f *folderForm) close() {
	if f.file != nil {
		_ = f.file.Close() // it is removed with the upload
	}
}

// fieldOf reads the value of a form field.
func fieldOf(part *multipart.Part) (string, error) {
	b, err := io.ReadAll(io.LimitReader(part, maxField+1))
	if err != nil {
		return "", invalid("malformed multipart/form-data body")
	}
	if len(b) > maxField {
		return "", invalidField(part.FormName(), "must be at most 1024 bytes long")
	}
	return string(b), nil
}
