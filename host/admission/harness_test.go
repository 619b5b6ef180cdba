package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/check"
)

// engine is the real checker, in this process.
type engine struct{}

func (engine) Check(_ context.Context, kind skill.Kind, s *skill.Spec, _ *time.Duration) (json.RawMessage, error) {
	module, err := os.ReadFile(filepath.Join(s.Folder, kind.File(s.Entry)))
	if err != nil {
		return nil, err
	}
	if s.Module != wasm.Digest(module) {
		return nil, errors.New("the file is not what was hashed with its folder")
	}
	report, err := wasm.Check(module, nil)
	b, _ := json.Marshal(report)
	if refused, ok := errors.AsType[*check.Error](err); ok {
		err = &skill.Error{Op: "test", Code: skill.Code(refused.Code), Message: refused.Error()}
	}
	return b, err
}

// checkerFunc is a checker that does what a test wants.
type checkerFunc func(ctx context.Context, s *skill.Spec) (json.RawMessage, error)

func (f checkerFunc) Check(ctx context.Context, _ skill.Kind, s *skill.Spec, _ *time.Duration) (json.RawMessage, error) {
	return f(ctx, s)
}

func limits(n uint64) skill.Limits {
	return skill.Limits{Timeout: time.Duration(n) * time.Second, Memory: n << 20, Fuel: n << 20, Output: n << 10, Scratch: n << 20}
}

func options() Options {
	return Options{
		Registry: manifest.Options{Defaults: limits(10), Caps: limits(20)},
		Checker:  engine{},
		Grant:    func(s *manifest.Skill) skill.Permissions { return s.Permissions },
	}
}

func admission(tb testing.TB, o Options) *Admission {
	tb.Helper()
	return musttest.Get(New(o))(tb)
}

// spool is what the caller of Admit does.
func spool(tb testing.TB, b []byte) *os.File {
	tb.Helper()
	f := musttest.Get(os.CreateTemp(tb.TempDir(), "spool-"))(tb)
	tb.Cleanup(func() { f.Close() })
	musttest.Get(f.Write(b))(tb)
	return f
}

// fill puts other bytes into a spool.
func fill(tb testing.TB, file *os.File, b []byte) {
	tb.Helper()
	musttest.Do(tb, file.Truncate(0))
	musttest.Get(file.WriteAt(b, 0))(tb)
}

// staging is a folder in a folder that must stay as it is.
func staging(tb testing.TB) string {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "staging")
	musttest.Do(tb, os.Mkdir(dir, 0o700))
	return dir
}

// admit admits an archive and checks what holds for all archives.
func admit(tb testing.TB, a *Admission, archive []byte) (*Admitted, error) {
	tb.Helper()
	return admitIn(tb, a, archive, staging(tb), spool(tb, nil))
}

// admitIn is admit with a staging folder and a spool that serve many archives.
func admitIn(tb testing.TB, a *Admission, archive []byte, dir string, file *os.File) (*Admitted, error) {
	tb.Helper()
	fill(tb, file, archive)
	got, err := a.Admit(tb.Context(), Source{Archive: file}, dir)
	holds(tb, a, dir, got, err)
	return got, err
}

// holds checks what is true after every admission, and removes what it admitted.
func holds(tb testing.TB, a *Admission, dir string, got *Admitted, err error) {
	tb.Helper()
	around, readErr := os.ReadDir(filepath.Dir(dir))
	if readErr != nil || len(around) != 1 {
		tb.Fatalf("beside the staging folder: %v, %v", around, readErr)
	}
	in := musttest.Get(os.ReadDir(dir))(tb)
	if (got == nil) == (err == nil) {
		tb.Fatalf("got %v and %v", got, err)
	}
	if err != nil {
		if len(in) != 0 {
			tb.Fatalf("%v is left of an upload that was not admitted (%v)", in, err)
		}
		refusalHolds(tb, dir, err)
		return
	}
	if len(in) != 1 || filepath.Join(dir, in[0].Name()) != got.Folder {
		tb.Fatalf("staging holds %v, want %s alone", in, got.Folder)
	}
	sealed(tb, a, got)
	again := packed(tb, got.Folder)
	musttest.Do(tb, Discard(got.Folder))
	second, err := a.Admit(tb.Context(), Source{Archive: spool(tb, again)}, dir)
	if err != nil {
		tb.Fatalf("what was admitted is refused when it is packed again: %v", err)
	}
	if second.Digest != got.Digest {
		tb.Fatalf("packed again the digest is %s, not %s", second.Digest, got.Digest)
	}
	musttest.Do(tb, Discard(second.Folder))
}

func packed(tb testing.TB, folder string) []byte {
	tb.Helper()
	var b bytes.Buffer
	musttest.Do(tb, Pack(&b, folder))
	return b.Bytes()
}

// sealed checks a folder against what is said of it.
func sealed(tb testing.TB, a *Admission, got *Admitted) {
	tb.Helper()
	digest, err := manifest.Digest(got.Folder)
	if err != nil || digest != got.Digest || got.Report.Digest != digest || got.Skill.Descriptor.Digest != digest {
		tb.Fatalf("the folder has the digest %s, %v; reported is %s", digest, err, got.Digest)
	}
	files, folders, size := 0, 0, int64(0)
	err = filepath.WalkDir(got.Folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o444)
		switch {
		case p == got.Folder:
			want = fs.ModeDir | 0o755
		case d.IsDir():
			folders++
			want = fs.ModeDir | 0o555
		default:
			files++
			size += info.Size()
		}
		if info.Mode() != want {
			tb.Errorf("%s has the mode %v, want %v", p, info.Mode(), want)
		}
		return nil
	})
	musttest.Do(tb, err)
	if r := got.Report; r.Verdict != Accepted || len(r.Files) != files || len(r.Refused) != 0 {
		tb.Errorf("%d files of %d bytes; reported are %+v", files, size, r)
	}
	if size > a.o.MaxUnpacked || files > a.o.MaxFiles || folders > a.o.MaxFiles {
		tb.Errorf("admitted %d bytes in %d files and %d folders", size, files, folders)
	}
	if got.Skill.Descriptor.Trust != skill.Community || got.Skill.Folder != got.Folder {
		tb.Errorf("trust %v, folder %s", got.Skill.Descriptor.Trust, got.Skill.Folder)
	}
}

// refusalHolds checks what every error is: small, clean, and without a path.
func refusalHolds(tb testing.TB, dir string, err error) {
	tb.Helper()
	var e *skill.Error
	if !errors.As(err, &e) || !e.Code.Known() || e.Message == "" {
		tb.Fatalf("%#v is no error for callers", err)
	}
	shown := musttest.Get(json.Marshal(e.Details))(tb)
	told := e.Message + string(shown)
	if len(e.Message) > 512 || strings.Contains(told, dir) || strings.Contains(told, os.TempDir()+"/") ||
		skill.CleanText(told, 1<<20) != told || strings.Contains(told, "runtime error") {
		tb.Fatalf("the refusal is not fit to be shown: %q", told)
	}
	r, ok := e.Details["report"].(*Report)
	if !ok {
		tb.Fatalf("no report beside %v", err)
	}
	if r.Verdict != Refused || len(r.Refused) == 0 || r.Refused[0].Code != e.Code || r.Refused[0].Message == "" {
		tb.Fatalf("the report does not say why: %+v", r)
	}
}

// reportOf is the report of a refused upload.
func reportOf(tb testing.TB, err error) *Report {
	tb.Helper()
	var e *skill.Error
	if !errors.As(err, &e) {
		tb.Fatal(err)
	}
	r, ok := e.Details["report"].(*Report)
	if !ok {
		tb.Fatalf("no report beside %v", err)
	}
	return r
}
