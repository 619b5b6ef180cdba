package agentskills

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// FileSkill is a skill that is a folder, as one look at it found it.
type FileSkill struct {
	front     Frontmatter
	content   string
	path      string
	digest    string
	whole     func() string // manifest.Digest of the folder, "" where it has none
	trust     skill.Trust
	pulled    bool
	owner     string
	upload    *Upload // nil: it was not uploaded
	resources []Resource
	scripts   []Script
	refused   map[string]string // files that are there and must not be read, and why

	stamps []stamp
	young  bool
	source *FileSource
	place  place
}

// Frontmatter is the head of its SKILL.md.
func (s *FileSkill) Frontmatter() Frontmatter { return s.front }

// Content is its SKILL.md, without a byte order mark.
func (s *FileSkill) Content() string { return s.content }

// Path is the absolute path of its folder on the host; callers are never told.
func (s *FileSkill) Path() string { return s.path }

// Digest is [manifest.Digest] of the folder; where it holds symbolic links or files of
// more than 64 MiB, one that counts where they lead, and their size and time.
func (s *FileSkill) Digest() string { return s.digest }

// Trust is what [manifest.Origins] say of the folder.
func (s *FileSkill) Trust() skill.Trust { return s.trust }

// Pulled reports whether the folder came from elsewhere, whatever its trust.
func (s *FileSkill) Pulled() bool { return s.pulled }

// Native reports whether its Python scripts run outside the sandbox: the operator says so of
// its root, and it is the operator's own. What came from elsewhere never is, whatever its
// trust.
func (s *FileSkill) Native() bool {
	return s.place.root != nil && s.place.root.Native && s.trust >= skill.Trusted && !s.pulled && s.owner == ""
}

// Owner is the tenant that uploaded it, or that of the folder's root.
func (s *FileSkill) Owner() string { return s.owner }

// Travels reports whether a file or folder of the skill belongs to a copy of it: hidden ones do not, nor links.
func (s *FileSkill) Travels(name string) bool {
	base := name[strings.LastIndexByte(name, '/')+1:]
	return !strings.HasPrefix(base, ".") && !slices.Contains(foreign, base) && s.refused[name] == ""
}

// Resources are its files of the source's extensions, in order of path.
func (s *FileSkill) Resources() []Resource { return s.resources }

// Scripts are the same of the extensions for scripts.
func (s *FileSkill) Scripts() []Script { return s.scripts }

// current gives the skill as its folder is now: itself where nothing has changed. The
// error is for the caller.
func (s *FileSkill) current() (*FileSkill, error) {
	if s.source == nil || !s.young && unchanged(s.stamps) {
		return s, nil
	}
	now, problem := s.source.again(s)
	if now == nil {
		return nil, &skill.Error{
			Op: "agentskills.current", Code: skill.NotFound, Subject: s.front.Name,
			Message: fmt.Sprintf("the skill %s has changed and cannot be used as it is now: %s", s.front.Name, problem),
		}
	}
	return now, nil
}

// file is one that a skill has listed.
type file struct {
	info   skill.AgentFile
	folder string
	most   int64
}

// Info names the file by its path in the folder.
func (f *file) Info() skill.AgentFile { return f.info }

// read gives all of it, or says why not in words for a model.
func (f *file) read(ctx context.Context) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, cancelled(err)
	}
	fail := func(code skill.Code, format string, args ...any) ([]byte, error) {
		return nil, &skill.Error{Op: "agentskills.read", Code: code, Subject: f.info.Name, Message: fmt.Sprintf(format, args...)}
	}
	r, err := os.OpenRoot(f.folder)
	if err != nil {
		return fail(skill.NotFound, "the skill's folder is gone")
	}
	defer r.Close()
	in, size, err := open(r, f.info.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(skill.NotFound, "%s is gone from the skill's folder", f.info.Name)
	case err != nil:
		return fail(skill.ForbiddenPath, "%s cannot be read: it %s", f.info.Name, reason(err))
	}
	defer in.Close()
	if size > f.most {
		return fail(skill.PayloadTooLarge, "%s is too large: %s, the limit is %s. Let a script of the skill work on it instead", f.info.Name, sized(size), sized(f.most))
	}
	b, err := io.ReadAll(io.LimitReader(in, f.most+1)) // it may grow meanwhile
	switch {
	case err != nil:
		return nil, &skill.Error{Op: "agentskills.read", Code: skill.Internal, Subject: f.info.Name, Err: err}
	case int64(len(b)) > f.most:
		return fail(skill.PayloadTooLarge, "%s is too large: the limit is %s. Let a script of the skill work on it instead", f.info.Name, sized(f.most))
	}
	return b, nil
}

// reason says why a file was not opened, without a path of the host.
func reason(err error) string {
	if errors.Is(err, errNotRegular) || errors.Is(err, errHardLink) {
		return err.Error()
	}
	return "leads out of the skill's folder, or its permissions forbid it"
}

func cancelled(err error) error {
	return &skill.Error{Op: "agentskills", Code: skill.Cancelled, Message: "the client disconnected", Err: err}
}

// sized gives a number of bytes for a person.
func sized(n int64) string {
	for _, u := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.bytes {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(u.bytes)), ".0") + " " + u.name
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

type fileResource struct{ file }

// Read gives the file, of at most the source's MaxResource bytes.
func (f *fileResource) Read(ctx context.Context) ([]byte, error) { return f.read(ctx) }

// FileScript is a script that is a file.
type FileScript struct {
	file
	runner ScriptRunner // of its source; nil: the provider's
	ending string       // of its name, or what its first line stands for
}

// Path is its path in the folder, with /.
func (f *FileScript) Path() string { return f.info.Name }

// Ending says what runs it: the ending of its name in lower case, such as .sh, or that of scripts
// for the program that its first line names.
func (f *FileScript) Ending() string { return f.ending }

// Read gives its source text: models learn from it what to give it, and do by other
// means what a script says that nothing here runs.
func (f *FileScript) Read(ctx context.Context) ([]byte, error) { return f.read(ctx) }

// Run hands the script to the runner of its source, or to the provider's. A runner
// that takes other files is refused those that it does not take, with what to do.
func (f *FileScript) Run(ctx context.Context, s Skill, c *Call) (any, error) {
	in, ok := s.(*FileSkill)
	if !ok {
		return nil, &skill.Error{Op: "agentskills.FileScript", Code: skill.Internal, Subject: f.info.Name}
	}
	runner := f.runner
	if runner == nil {
		runner = c.runner
		if runner != nil && !slices.Contains(c.runs, f.ending) {
			return nil, &skill.Error{
				Op: "agentskills.FileScript", Code: skill.InvalidArgument, Subject: f.info.Name,
				Message: fmt.Sprintf("%s is not run here: this host runs %s. Read it with %s, and do the same with scripts of those kinds or with other tools",
					f.info.Name, strings.Join(c.runs, ", "), ToolRead),
				Details: map[string]any{"runs": c.runs},
			}
		}
	}
	if runner == nil {
		return nil, &skill.Error{
			Op: "agentskills.FileScript", Code: skill.InvalidArgument, Subject: f.info.Name,
			Message: "this host runs no scripts of skills that are files; read the script, and do what it does with other tools",
		}
	}
	return runner(ctx, in, f, c)
}
