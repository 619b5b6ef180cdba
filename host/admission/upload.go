package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// Checker checks and compiles modules where it harms nobody. It is safe for
// concurrent use.
type Checker interface {
	// Check answers with the report of the module that a target of this kind starts with, as
	// `openskill module check` prints it. The error is an *skill.Error: INVALID_MODULE, MODULE_TOO_COMPLEX,
	// IMPORT_DENIED and the like for a module that is refused, INTERNAL, TIMEOUT,
	// CANCELLED or RATE_LIMITED where there is no verdict. A report beside an error
	// is shown too. Spent is what the modules of the upload before this one have cost in
	// processor time; what this one costs is added, and its bound is for all together.
	Check(ctx context.Context, kind skill.Kind, s *skill.Spec, spent *time.Duration) (report json.RawMessage, err error)
}

// Options of an Admission. Zero fields mean the defaults.
type Options struct {
	Registry manifest.Options // Defaults and Caps, which are required, and Packages
	Checker  Checker          // required
	// Agent reads a folder that has a SKILL.md and no skill.yaml; nil: such uploads are refused.
	Agent func(folder string) (*manifest.Skill, []manifest.Problem)
	// Grant says what the operator grants of what a skill asks, for the report. nil:
	// nothing.
	Grant func(s *manifest.Skill) skill.Permissions

	MaxArchive  int64         // bytes of the archive or module as it was sent; 32 MiB
	MaxUnpacked int64         // bytes of all files together; 64 MiB, or twice MaxArchive if that is more
	MaxRatio    int64         // unpacked bytes for each one sent, beyond the first 4 MiB; 250
	MaxFiles    int           // and as many folders; 1,000
	MaxDepth    int           // parts of a path; 16
	MaxName     int           // bytes of one part; 255
	MaxPath     int           // bytes of a path; 1,024
	MaxScript   int64         // bytes of a script that is an entry; 4 MiB
	Timeout     time.Duration // for unpacking and writing, wall time; 30 s
}

// What Pack holds itself to as well.
const (
	defaultUnpacked = 64 << 20
	defaultFiles    = 1000
)

func (o *Options) settle() error {
	if o.Checker == nil {
		return errors.New("upload: Checker is nil; modules of strangers must be checked")
	}
	// Says what is missing of the limits, and reads nothing: there are no roots.
	if _, err := manifest.Open(manifest.Options{Defaults: o.Registry.Defaults, Caps: o.Registry.Caps}); err != nil {
		return err
	}
	if err := settle("MaxArchive", &o.MaxArchive, 32<<20); err != nil {
		return err
	}
	return errors.Join(
		settle("MaxUnpacked", &o.MaxUnpacked, max(defaultUnpacked, 2*o.MaxArchive)),
		settle("MaxRatio", &o.MaxRatio, 250),
		settle("MaxFiles", &o.MaxFiles, defaultFiles),
		settle("MaxDepth", &o.MaxDepth, 16),
		settle("MaxName", &o.MaxName, 255),
		settle("MaxPath", &o.MaxPath, 1024),
		settle("MaxScript", &o.MaxScript, 4<<20),
		settle("Timeout", &o.Timeout, 30*time.Second),
	)
}

func settle[T int | int64 | time.Duration](name string, v *T, byDefault T) error {
	switch {
	case *v < 0:
		return fmt.Errorf("upload: %s is negative", name)
	case *v == 0:
		*v = byDefault
	}
	return nil
}

// Source is what was sent: either Archive, or Module and Manifest. The files are
// read from their beginning, and stay the caller's.
type Source struct {
	Archive  *os.File // zip or tar.gz
	Module   *os.File // a WebAssembly module, which is moved into the folder if it is on the same file system,
	Manifest []byte   // and its skill.yaml
	Owner    string   // the tenant whose upload it is; "" where there are none
	// Trust is that of a skill that somebody vouches for. The zero value is a stranger's,
	// and so is every upload; a trusted one may have what runs outside of the sandbox.
	Trust skill.Trust
	// Accept refuses a skill that passed all checks, because it is not the one that the caller wants; nil: none.
	Accept func(d *skill.Descriptor) error
}

// Admitted is a checked skill on disk.
type Admitted struct {
	// Folder is absolute, directly below the staging folder, and holds nothing but
	// the skill: files of mode 0444 in folders of mode 0555. It itself has 0755, because
	// only a folder that is writable can be moved into another. It is the caller's now,
	// who writes it through to the disk and moves it, or calls [Discard].
	Folder string
	Skill  *manifest.Skill // as the catalogue reads Folder, with the trust of the source
	Digest string
	Report *Report
}

// Admission admits uploads. It is safe for concurrent use.
type Admission struct{ o Options }

// New makes an Admission. The error is non-nil only for incomplete Options.
func New(o Options) (*Admission, error) {
	if err := o.settle(); err != nil {
		return nil, err
	}
	return &Admission{o}, nil
}

// Admit unpacks and checks an upload into a new folder of staging, which is there.
// The error is an *skill.Error. Where the upload is refused (ARCHIVE_REJECTED,
// INVALID_MANIFEST, the codes of modules, PAYLOAD_TOO_LARGE) its Details hold the
// *[Report] under "report", as far as it came. Nothing stays in staging then, nor
// when ctx ends or the host fails.
func (a *Admission) Admit(ctx context.Context, src Source, staging string) (admitted *Admitted, err error) {
	if err := src.check(); err != nil {
		return nil, err
	}
	w := &work{o: &a.o, report: newReport()}
	defer func() { // also where something panics
		if admitted == nil {
			err = w.told(err, w.discard())
		}
	}()
	if err := w.unpack(ctx, src, staging); err != nil {
		return nil, err
	}
	s, err := w.inspect(ctx, src)
	if err != nil {
		return nil, err
	}
	if src.Accept != nil {
		if err := src.Accept(&s.Descriptor); err != nil {
			return nil, err
		}
	}
	if err := w.tree.seal(); err != nil {
		return nil, err
	}
	w.report.Verdict = Accepted
	return &Admitted{Folder: s.Folder, Skill: s, Digest: s.Descriptor.Digest, Report: w.report}, nil
}

func (s *Source) check() error {
	archive, module := s.Archive != nil, s.Module != nil || s.Manifest != nil
	if archive != module && (archive || s.Module != nil && s.Manifest != nil) {
		return nil
	}
	return &skill.Error{
		Op: "upload.Admit", Code: skill.InvalidArgument,
		Message: "invalid upload: send either an archive, or a module with its manifest",
	}
}

// work is one admission under way.
type work struct {
	o      *Options
	report *Report
	staged string // absolute path of the folder that is made; "" before
	tree   *tree
	spent  time.Duration // of processors, on modules
}

// unpack makes the folder and writes the files.
func (w *work) unpack(ctx context.Context, src Source, staging string) error {
	limited, cancel := context.WithTimeout(ctx, w.o.Timeout)
	defer cancel()
	err := w.open(limited, staging)
	switch {
	case err != nil:
		return err
	case src.Archive != nil:
		err = w.archive(src.Archive)
	default:
		err = w.module(src)
	}
	w.report.Files = w.tree.files
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return &skill.Error{
			Op: "upload.Admit", Code: skill.Timeout,
			Message: fmt.Sprintf("the upload was not unpacked within %s", w.o.Timeout), Err: err,
		}
	}
	return err
}

// open makes the folder.
func (w *work) open(ctx context.Context, staging string) error {
	abs, err := filepath.Abs(staging)
	if err != nil {
		return err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return err
	}
	if w.staged, err = os.MkdirTemp(abs, "upload-"); err != nil {
		return err
	}
	w.tree, err = newTree(ctx, w.o, w.staged)
	return err
}

func (w *work) discard() error {
	if w.tree != nil {
		w.tree.close()
	}
	if w.staged == "" {
		return nil
	}
	return Discard(w.staged)
}

// Discard removes an admitted folder, in which nothing is writable. One that is not
// there is no error.
func Discard(folder string) error {
	err := filepath.WalkDir(folder, func(p string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(p, 0o700)
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(folder)
}

// inspect reads the folder as the catalogue will, and looks at what it starts with.
func (w *work) inspect(ctx context.Context, src Source) (*manifest.Skill, error) {
	read := func(folder string) (*manifest.Skill, []manifest.Problem) {
		return manifest.ReadFolderAs(src.Trust, folder, w.o.Registry)
	}
	if !w.tree.has(manifest.ManifestFile) { // and so it has a SKILL.md
		read = w.o.Agent
	}
	s, problems := read(w.staged)
	if s == nil {
		return nil, w.problems(problems)
	}
	s.Owner, s.Descriptor.Trust = src.Owner, src.Trust
	w.report.read(s, w.o.Grant)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s, w.entries(ctx, s)
}

// entries looks at what a skill starts with.
func (w *work) entries(ctx context.Context, s *manifest.Skill) error {
	if s.Fallback != nil {
		if err := w.entry(ctx, s, *s.Fallback); err != nil {
			return err
		}
	}
	return w.entry(ctx, s, s.Primary)
}

// problems takes over what the registry found.
func (w *work) problems(problems []manifest.Problem) error {
	for _, p := range problems {
		w.report.refuse(&Refusal{File: filepath.ToSlash(p.File), Line: p.Line, Code: skill.InvalidManifest, Message: p.Message})
	}
	return errRefused
}

// archive unpacks.
func (w *work) archive(f *os.File) error {
	if _, err := w.sent(f, "the archive"); err != nil {
		return err
	}
	if err := w.tree.unpack(f); err != nil {
		return err
	}
	if n := w.tree.special; n > 0 {
		w.report.warn(fmt.Sprintf("%d entries have set-uid, set-gid or sticky bits, which are dropped", n))
	}
	if n := w.tree.leftOut; n > 0 {
		w.report.warn(fmt.Sprintf("%d files of macOS's Finder (.DS_Store, ._*, __MACOSX) are left out", n))
	}
	return w.strip()
}

// strip leaves out the folder that all files are in, if there is one.
func (w *work) strip() error {
	top, only := w.tree.top()
	if w.tree.has(manifest.ManifestFile) || w.agent() || !only {
		return w.manifested()
	}
	w.tree.close()
	outer, inner := w.staged, w.staged+"-skill" // as much ours as the name before it
	if err := os.Rename(filepath.Join(outer, top), inner); err != nil {
		return err
	}
	w.staged = inner // which is discarded if anything fails from here on
	if err := os.Remove(outer); err != nil {
		return errors.Join(err, Discard(outer))
	}
	if err := w.tree.moved(inner, top); err != nil {
		return err
	}
	return w.manifested()
}

func (w *work) manifested() error {
	if w.tree.has(manifest.ManifestFile) || w.agent() {
		return nil
	}
	return &refusalError{
		File: manifest.ManifestFile, Code: skill.InvalidManifest,
		Message: "skill.yaml not found, nor SKILL.md, at the top of the archive or in its single folder",
	}
}

// agentFile makes a folder an Agent Skill.
const agentFile = "SKILL.md"

// agent reports whether an Agent Skill is admitted, and the folder is one.
func (w *work) agent() bool { return w.o.Agent != nil && w.tree.has(agentFile) }

// module makes the folder of a module and its manifest.
func (w *work) module(src Source) error {
	size, err := w.sent(src.Module, "the module")
	if err != nil {
		return err
	}
	w.tree.sent = size + int64(len(src.Manifest))
	target, problems := manifest.ReadTarget(src.Manifest, w.o.Registry)
	if len(problems) > 0 {
		return w.problems(problems)
	}
	if !target.Kind.OwnModule() {
		return &refusalError{
			File: manifest.ManifestFile, Code: skill.InvalidManifest,
			Message: fmt.Sprintf("a module needs a manifest of type wasm and runtime wasi or extism, not %s: send the skill as an archive", target.Kind),
		}
	}
	if err := w.put(manifest.ManifestFile, strings.NewReader(string(src.Manifest)), int64(len(src.Manifest))); err != nil {
		return err
	}
	name, _, err := w.tree.clean(target.File())
	if err == nil {
		err = w.tree.claim(name, false)
	}
	if err == nil {
		err = w.tree.move(name, src.Module, size)
	}
	return err
}

// put claims and writes one file.
func (w *work) put(raw string, from io.Reader, size int64) error {
	name, _, err := w.tree.clean(raw)
	if err == nil {
		err = w.tree.claim(name, false)
	}
	if err == nil {
		err = w.tree.write(name, from, size)
	}
	return err
}

// sent gives the size of a file that was sent.
func (w *work) sent(f *os.File, what string) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() > w.o.MaxArchive {
		return 0, &refusalError{Code: skill.PayloadTooLarge, Message: fmt.Sprintf("%s is too large: %d bytes, the limit is %d", what, info.Size(), w.o.MaxArchive)}
	}
	return info.Size(), nil
}

// entry looks at a file that the skill starts with.
func (w *work) entry(ctx context.Context, s *manifest.Skill, of skill.Target) error {
	name := of.File()
	if of.Kind == skill.CLIExec { // a program of any kind, of a skill that is trusted
		return nil
	}
	if of.Kind.OwnModule() {
		report, err := w.o.Checker.Check(ctx, of.Kind, s.Spec(of, s.Owner), &w.spent)
		if json.Valid(report) {
			w.report.Module = report
		}
		return verdict(name, err)
	}
	b, err := w.tree.read(name, w.o.MaxScript)
	switch {
	case err != nil:
		return err
	case int64(len(b)) > w.o.MaxScript:
		return &refusalError{File: name, Code: skill.InvalidManifest, Message: fmt.Sprintf("the script has more than %d bytes", w.o.MaxScript)}
	case !utf8.Valid(b):
		return &refusalError{File: name, Code: skill.InvalidManifest, Message: "the script is not valid UTF-8"}
	}
	return nil
}

// verdict tells a module that is refused from a check that failed.
func verdict(name string, err error) error {
	var e *skill.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case skill.Internal, skill.Timeout, skill.Cancelled, skill.RateLimited, skill.AuditUnavailable:
		return err
	default:
		return &refusalError{File: name, Code: e.Code, Message: e.Message}
	}
}

// told makes the error of a failed admission one for callers. left is why something
// of it could not be removed.
func (w *work) told(err, left error) error {
	var r *refusalError
	switch _, ok := errors.AsType[*skill.Error](err); {
	case err == nil: // something panics, and goes on to do so
		return nil
	case errors.As(err, &r):
		w.report.refuse((*Refusal)(r))
		return w.report.err(left)
	case errors.Is(err, errRefused):
		return w.report.err(left)
	case ok:
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &skill.Error{Op: "upload.Admit", Code: skill.Timeout, Message: "the check of the upload timed out", Err: err}
	case errors.Is(err, context.Canceled):
		return &skill.Error{Op: "upload.Admit", Code: skill.Cancelled, Message: "the client disconnected during the upload", Err: err}
	}
	return &skill.Error{Op: "upload.Admit", Code: skill.Internal, Message: "the host cannot store the upload", Err: errors.Join(err, left)}
}
