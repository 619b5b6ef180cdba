package agentskills

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// The defaults of [FileOptions].
const (
	DefaultMaxFiles    = 1000
	DefaultMaxResource = 1 << 20
	DefaultDepth       = 4
	mostFolders        = 20_000 // that are looked at below a root
)

// DefaultScriptExtensions are those of files that are scripts, whether or not
// something here can run them.
func DefaultScriptExtensions() []string {
	return []string{".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".sh", ".bash", ".ps1", ".cs", ".csx"}
}

// Root is a folder of skills, or the folder of one.
type Root struct {
	Path     string
	Trust    skill.Trust // the most that a skill there is trusted; the zero value is community
	Owner    string      // the tenant whose skills they are; required of community skills
	Optional bool        // it is no problem if it does not exist
	// Lenient takes the root for one skill's folder also without a SKILL.md, or with one that
	// cannot be read: for who names a folder to run a script of it.
	Lenient bool
	// Native says that Python scripts of the root's own skills run outside the sandbox.
	Native bool
}

// FileOptions of a [FileSource]; nil and zero fields mean the defaults.
type FileOptions struct {
	ResourceExtensions []string     // such as ".md"; nil: of whatever extension, or none
	ScriptExtensions   []string     // nil: DefaultScriptExtensions; they win over those of resources
	Runner             ScriptRunner // runs these scripts, of whatever extension; nil: the provider's runner
	MaxFiles           int          // resources and scripts of a skill; 0: DefaultMaxFiles
	MaxResource        int64        // bytes of a file that is read; 0: DefaultMaxResource
	Depth              int          // folders below a root in which skills are looked for; 0: DefaultDepth
	StateDir           string       // has what the operator trusts by name; "": nothing
	Log                *slog.Logger // nil: slog.Default()
}

// complete gives o with every default in place.
func (o *FileOptions) complete() (*FileOptions, error) {
	c := FileOptions{}
	if o != nil {
		c = *o
	}
	var err error
	if c.ResourceExtensions, err = extensions(c.ResourceExtensions, nil); err != nil {
		return nil, err
	}
	if c.ScriptExtensions, err = extensions(c.ScriptExtensions, DefaultScriptExtensions()); err != nil {
		return nil, err
	}
	if c.MaxFiles < 0 || c.MaxResource < 0 || c.Depth < 0 {
		return nil, errors.New("agentskills: a limit of FileOptions is negative")
	}
	if c.MaxFiles == 0 {
		c.MaxFiles = DefaultMaxFiles
	}
	if c.MaxResource == 0 {
		c.MaxResource = DefaultMaxResource
	}
	if c.Depth == 0 {
		c.Depth = DefaultDepth
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &c, nil
}

func extensions(given, otherwise []string) ([]string, error) {
	if given == nil {
		return otherwise, nil
	}
	list := make([]string, len(given))
	for i, e := range given {
		if len(e) < 2 || e[0] != '.' || strings.ContainsAny(e[1:], "./\\") {
			return nil, fmt.Errorf("agentskills: %q is no extension; want one such as .md", e)
		}
		list[i] = strings.ToLower(e)
	}
	return list, nil
}

// FileSource finds the skills in folders. A folder that is as it was costs a look at
// its files; one that has changed is read again.
type FileSource struct {
	roots   []Root
	options *FileOptions

	mu       sync.Mutex
	known    map[string]*folder // by absolute path
	problems []manifest.Problem
}

// NewFileSource makes a source of roots, in order of precedence. It reads nothing yet.
func NewFileSource(roots []Root, o *FileOptions) (*FileSource, error) {
	c, err := o.complete()
	if err != nil {
		return nil, err
	}
	for _, r := range roots {
		if r.Path == "" {
			return nil, errors.New("agentskills: a root has no path")
		}
		if r.Trust == skill.Community && r.Owner == "" {
			return nil, fmt.Errorf("agentskills: the folder %s has skills of trust community, and no owner who could see them", r.Path)
		}
	}
	return &FileSource{roots: slices.Clone(roots), options: c, known: map[string]*folder{}}, nil
}

// NewFolders is [NewFileSource] of folders that are the operator's own: trusted, and
// everybody's.
func NewFolders(o *FileOptions, paths ...string) (*FileSource, error) {
	roots := make([]Root, len(paths))
	for i, p := range paths {
		roots[i] = Root{Path: p, Trust: skill.Trusted}
	}
	return NewFileSource(roots, o)
}

// place is a folder that holds a skill, or may.
type place struct {
	dir   string // absolute
	shown string // as the operator would name it
	root  *Root

	uploaded bool // the name of the folder is not that of the skill
}

// Skills looks at all folders and gives their skills, those of the first root first,
// within one in order of path. The error is that of ctx.
func (f *FileSource) Skills(ctx context.Context) ([]Skill, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []Skill
	var problems []manifest.Problem
	seen := make(map[string]*folder, len(f.known))
	origins := manifest.NewOrigins(f.options.StateDir)
	report := func(p manifest.Problem) {
		problems = append(problems, p)
		f.warn(f.problems, p)
	}
	for _, p := range origins.Problems() {
		report(p)
	}
	for i := range f.roots {
		err := find(&f.roots[i], f.options.Depth, origins, func(p place) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if seen[p.dir] != nil {
				return nil // of an earlier root
			}
			found := f.look(p, origins)
			seen[p.dir] = found
			problems = append(append(problems, found.skipped...), found.remarks...)
			if found.skill != nil {
				list = append(list, found.skill)
			}
			return nil
		}, report)
		if err != nil {
			return nil, err
		}
	}
	f.known, f.problems = seen, problems
	return list, nil
}

// Problems lists what the last look skipped, and what authors should know.
func (f *FileSource) Problems() []manifest.Problem {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.problems)
}

// look reads a folder, unless it is as it was, and then asks whose it is: a record may have
// come, or have gone, that is not in the folder.
func (f *FileSource) look(p place, origins *manifest.Origins) *folder {
	before := f.known[p.dir]
	k := before
	if k == nil || k.young || !unchanged(k.stamps) {
		if k = readFolder(p, f.options); k.read != nil {
			k.read.source, k.read.place = f, p
		}
	}
	if k.read != nil {
		k = k.of(origins.Of(p.dir, p.root.Trust, k.read.whole), p)
	}
	f.log(before, k)
	f.known[p.dir] = k
	return k
}

// of is what is given of a folder of this origin.
func (k *folder) of(origin manifest.Origin, p place) *folder {
	if k.asked && k.origin == origin {
		return k
	}
	now := *k
	now.asked, now.origin, now.skill, now.skipped = true, origin, nil, nil
	if origin.Changed {
		now.skip(p.shown, 0, "%s", manifest.ChangedProblem)
		return &now
	}
	s := *k.read // callers may have the one before
	s.trust, s.pulled = origin.Trust, origin.Pulled
	now.skill = &s
	return &now
}

// log tells the operator what is new since the folder was read before.
func (f *FileSource) log(before, now *folder) {
	var told []manifest.Problem
	if before != nil {
		told = append(slices.Clone(before.skipped), before.remarks...)
	}
	for _, p := range now.skipped {
		f.warn(told, p)
	}
	for _, p := range now.remarks {
		if !slices.Contains(told, p) {
			f.options.Log.Warn("Agent Skill has a problem, and is served", slog.String("problem", skill.CleanText(p.String(), 1000)))
		}
	}
}

// warn tells the operator what is skipped, unless that was told.
func (f *FileSource) warn(told []manifest.Problem, p manifest.Problem) {
	if !slices.Contains(told, p) {
		f.options.Log.Warn("Agent Skill skipped", slog.String("problem", skill.CleanText(p.String(), 1000)))
	}
}

// again gives a skill of this source as its folder is now, or what is wrong with it.
func (f *FileSource) again(s *FileSkill) (now *FileSkill, problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.look(s.place, manifest.NewOrigins(f.options.StateDir))
	if k.skill != nil {
		return k.skill, ""
	}
	if len(k.skipped) == 0 {
		return nil, "cannot be read"
	}
	p := k.skipped[0]
	p.File = filepath.Base(p.File) // callers are told no path of the host
	return nil, skill.CleanText(p.String(), 300)
}

// find calls visit with every folder of a root that has a SKILL.md, in order of path,
// and report with what is wrong beside them. It follows no links below the root. What is in
// the folder of another skill is none.
func find(root *Root, depth int, origins *manifest.Origins, visit func(place) error, report func(manifest.Problem)) error {
	abs, err := filepath.Abs(root.Path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		if !root.Optional || !errors.Is(err, fs.ErrNotExist) {
			report(manifest.Problem{File: root.Path, Message: "no folder of skills: " + plain(err)})
		}
		return nil
	}
	if has(abs, FileName) || root.Lenient {
		return visit(place{dir: abs, shown: root.Path, root: root})
	}
	in := place{dir: abs, shown: root.Path, root: root}
	if origins.IsSkill(abs) {
		visit = nested(in, report)
	}
	left := mostFolders
	return descend(in, depth, &left, origins, visit, report)
}

// nested tells of a folder that it is no skill.
func nested(in place, report func(manifest.Problem)) func(place) error {
	return func(p place) error {
		report(manifest.Problem{File: p.shown, Message: "is in the folder of the skill " + in.shown + ", and is not a separate skill"})
		return nil
	}
}

func descend(in place, depth int, left *int, origins *manifest.Origins, visit func(place) error, report func(manifest.Problem)) error {
	if *left--; *left < 0 {
		if *left == -1 {
			report(manifest.Problem{File: in.root.Path, Message: fmt.Sprintf("has more than %d folders; name the folders that have skills", mostFolders)})
		}
		return nil
	}
	children, err := os.ReadDir(in.dir)
	if err != nil {
		report(manifest.Problem{File: in.shown, Message: "cannot be listed: " + plain(err)})
		return nil
	}
	for _, c := range children {
		name := c.Name()
		p := place{dir: filepath.Join(in.dir, name), shown: filepath.Join(in.shown, name), root: in.root}
		if strings.HasPrefix(name, ".") || slices.Contains(foreign, name) {
			continue
		}
		if c.Type()&fs.ModeSymlink != 0 {
			if has(p.dir, FileName) {
				report(manifest.Problem{File: p.shown, Message: "is a symbolic link and is skipped; name the folder that it leads to as a folder of skills"})
			}
			continue
		}
		if !c.IsDir() {
			if name != FileName && strings.EqualFold(name, FileName) {
				report(manifest.Problem{File: p.shown, Message: "must be written " + FileName})
			}
			continue
		}
		switch {
		case has(p.dir, FileName):
			err = visit(p)
		case depth > 1 && origins.IsSkill(p.dir):
			err = descend(p, depth-1, left, origins, nested(p, report), report)
		case depth > 1:
			err = descend(p, depth-1, left, origins, visit, report)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func has(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// Folders lists the folders of skills at or below a folder, as a [FileSource] of the
// default depth finds them, and what is wrong beside them.
func Folders(path string) (list []string, problems []manifest.Problem) {
	root := &Root{Path: path, Trust: skill.Trusted}
	_ = find(root, DefaultDepth, manifest.NewOrigins(""), func(p place) error { // visit gives no error
		list = append(list, p.shown)
		return nil
	}, func(p manifest.Problem) { problems = append(problems, p) })
	return list, problems
}

// Validate reads one folder with a SKILL.md and reports every problem with it, those
// included with which it would be served all the same; none means that it keeps to the
// specification.
func Validate(path string) []manifest.Problem {
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return []manifest.Problem{{File: path, Message: plain(err)}}
	}
	o, err := (*FileOptions)(nil).complete()
	if err != nil {
		return []manifest.Problem{{File: path, Message: err.Error()}}
	}
	f := readFolder(place{dir: abs, shown: path, root: &Root{Path: path, Trust: skill.Trusted}}, o)
	list := append(slices.Clone(f.skipped), f.remarks...)
	slices.SortStableFunc(list, func(a, b manifest.Problem) int {
		if a.File != b.File {
			return strings.Compare(a.File, b.File)
		}
		return a.Line - b.Line
	})
	return list
}
