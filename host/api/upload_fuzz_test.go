package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"openskill/host/admission"
	"openskill/host/identity"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// spooled is an upload whose files are kept until they were looked at.
type spooled struct {
	dir   string
	files []*os.File
}

func (s *spooled) Fetch(context.Context, string) (admission.Source, error) {
	return admission.Source{}, nil
}

func (s *spooled) File() (*os.File, error) {
	f, err := os.CreateTemp(s.dir, "part-")
	if err == nil {
		s.files = append(s.files, f)
	}
	return f, err
}

func (s *spooled) Reserve(int64) error { return nil }
func (s *spooled) Close() error        { return nil }

func (s *spooled) Admit(context.Context, admission.Source, bool) (*skill.UploadResult, error) {
	return nil, errors.New("not asked")
}

type noDoor struct{}

func local(context.Context, identity.Credentials) (skill.Principal, error) { return skill.Local(), nil }

func (noDoor) Invoke(context.Context, skill.Principal, skill.Request) *skill.Result { return nil }

type noCatalogue struct{ Catalogue }

// FuzzParts: whatever comes as the body of an upload, it is refused with a published
// code, or is one archive, or one module with its manifest, byte for byte parts of what
// was sent.
func FuzzParts(f *testing.F) {
	const limit = 1 << 10
	part := func(name, content string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + content + "\r\n"
	}
	for _, s := range []string{
		part("archive", "PK") + "--b--\r\n", part("manifest", "id: a") + part("module", "\x00asm") + "--b--", part("archive", "PK") + part("archive", "PK") + "--b--",
		part("archive", "--b\r\n") + "--b--", part("archive", strings.Repeat("x", limit+1)) + "--b--", part("archive", "x"), "--b--", "", "preamble\r\n" + part("archive", "x") + "--b--\r\nepilogue",
		"--b\nContent-Disposition: form-data; name=archive\n\nPK\n--b--\n", "--b \t\r\nContent-Disposition: form-data; name*=utf-8''archive\r\n\r\nPK\r\n--b--",
		"--b\r\nContent-Disposition: form-data; name=archive; name=module\r\n\r\nPK\r\n--b--", "--b\r\nContent-Disposition: attachment; name=archive\r\n\r\nPK\r\n--b--",
		"--b\r\nContent-Disposition: form-data; name=archive\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=50=4B\r\n--b--",
	} {
		f.Add([]byte(s), "multipart/form-data; boundary=b", int64(limit))
	}
	f.Add([]byte("--\"\r\n"), `multipart/form-data; boundary="\""`, int64(8))
	server := musttest.Get(New(Options{Door: noDoor{}, Catalogue: noCatalogue{}, Authenticate: local, UploadLimit: limit}))(f)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, body []byte, contentType string, pieces int64) {
		var head fasthttp.RequestHeader
		head.SetContentType(contentType)
		boundary, err := checkUploadHeaders(&head, "a part archive")
		if err != nil {
			told(t, err)
			return
		}
		var ctx fasthttp.RequestCtx
		ctx.Request.Header.SetMethod("POST")
		ctx.Request.SetRequestURI("/skills")
		ctx.Request.SetBodyStream(&inPieces{b: body, most: max(int(pieces%8192), 1)}, -1)
		up, parts := &spooled{dir: dir}, &parts{}
		defer func() {
			closeParts(&parts.Source)
			for _, file := range up.files {
				_ = os.Remove(file.Name()) // below the test's own folder
			}
		}()
		err = server.receive(&ctx, boundary, maxParts, server.takeParts(&ctx, up, parts))
		if err == nil {
			_, err = parts.complete()
		}
		if err != nil {
			told(t, err)
			return
		}
		if (parts.Archive != nil) == (parts.Module != nil) || (parts.Module != nil) != (parts.Manifest != nil) {
			t.Fatalf("archive %t, module %t, manifest %t", parts.Archive != nil, parts.Module != nil, parts.Manifest != nil)
		}
		all := int64(len(parts.Manifest))
		for _, file := range up.files {
			b := musttest.Get(io.ReadAll(file))(t) // from its beginning
			all += int64(len(b))
			if len(b) > limit || !bytes.Contains(body, b) {
				t.Fatalf("%d bytes: %q", len(b), b)
			}
		}
		if all != parts.size || !bytes.Contains(body, parts.Manifest) {
			t.Fatalf("%d bytes came in, %d are counted; the manifest is %q", all, parts.size, parts.Manifest)
		}
	})
}

func told(t *testing.T, err error) {
	t.Helper()
	if e, ok := errors.AsType[*skill.Error](err); !ok || !e.Code.Known() || e.Code == skill.Internal || e.Message == "" || len(e.Message) > 512 || cleanMessage(e.Message) != e.Message {
		t.Fatalf("%#v is not fit to be told", err)
	}
}

// inPieces gives a few bytes at a time, as networks do.
type inPieces struct {
	b    []byte
	most int
}

func (r *inPieces) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), r.most)], r.b)
	r.b = r.b[n:]
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}
