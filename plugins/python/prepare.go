package python

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"openskill/plugins/python/runtimes"
	"openskill/plugins/wasi/sandbox"
	"openskill/sdk/skill"
)

// planner chooses the runtimes of scripts, in the host. It is safe for concurrent use.
type planner struct {
	choose  func(requires, imports []string) (string, error)
	matters func(requires []string, script []byte) bool                  // whether imports can change the choice
	open    func(name string) (*runtimes.Runtime, error)                 // verified
	imports func(context.Context, *skill.Spec, []byte) ([]string, error) // of Options

	mu       sync.Mutex
	runtimes map[string]opened
	scripts  map[scriptKey]imported
	folders  map[string][]string // what the files of a folder import, by its digest
}

// opened is what is known of a runtime.
type opened struct {
	r   *runtimes.Runtime
	err error
	at  time.Time
}

type scriptKey struct {
	folder, entry, digest string
	program               bool // of the command line, of which more is asked
}

// imported is what a script imports, by what its file looked like.
type imported struct {
	stamp   sandbox.Stamp
	settled bool
	names   []string
}

const (
	// maxScript is the size in bytes up to which a script is looked through for imports.
	maxScript = 4 << 20
	// maxScripts bounds the memory of what is known; beyond it all is forgotten.
	maxScripts = 10_000
	// again is how long a runtime that could not be opened is not tried again.
	again = 2 * time.Second
)

// Prepare implements [skill.Runner]. It chooses the runtime by what the skill requires, and by
// what its script imports.
func (r *Runner) Prepare(ctx context.Context, s *skill.Spec) (skill.Plan, error) {
	return r.calls.Prepare(ctx, s, func(ctx context.Context, folder *sandbox.Folder) (plan skill.Plan, err error) {
		p := &r.planner
		switch {
		case s.Session:
			return p.session(s)
		case s.Code != nil:
			plan.Imports = packagesOf(s.Code)
		case folder != nil:
			if plan.Imports, err = p.importsOf(ctx, folder, s); err != nil {
				return skill.Plan{}, err
			}
		}
		if err = p.on(&plan, s.Requires); err != nil {
			return skill.Plan{}, err
		}
		return plan, nil
	})
}

// session plans calls of a session, which all have the same image: it has imported what the first call imports and what
// the session requires. Later calls may import anything, so the runtime is one that has all packages, if it is installed.
func (p *planner) session(s *skill.Spec) (plan skill.Plan, err error) {
	for _, of := range runtimes.Packages() {
		plan.Imports = append(plan.Imports, of.Imports...)
	}
	err = p.on(&plan, s.Requires)
	if plan.Imports = s.Imports; s.Imports == nil {
		plan.Imports = append(append([]string{}, packagesOf(s.Code)...), runtimes.Modules(s.Requires)...)
		slices.Sort(plan.Imports)
		plan.Imports = slices.Compact(plan.Imports)
	}
	return plan, err
}

// importLine is a line of Python that imports, and what.
var importLine = regexp.MustCompile(`(?m)^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([\w., \t]+))`)

// packagesOf gives the packages of runtimes that code seems to import, sorted: they choose the
// runtime, and are imported ahead. It is a look at lines, since each call brings other code, and
// reading that in the sandbox would take as long as running it; what is missed is only slower,
// or a ModuleNotFoundError that says which runtime has it.
func packagesOf(code []byte) []string {
	var all []string
	for _, m := range importLine.FindAllSubmatch(code, maxImportLines) {
		for name := range strings.SplitSeq(string(m[1])+string(m[2]), ",") {
			name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
			if top, _, _ := strings.Cut(name, "."); runtimes.Imported(top) {
				all = append(all, top)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// maxImportLines is how many lines of code are looked at that import something.
const maxImportLines = 100

// on chooses the runtime of a plan.
func (p *planner) on(plan *skill.Plan, requires []string) (err error) {
	if plan.Runtime, err = p.choose(requires, plan.Imports); err != nil {
		return err
	}
	run, err := p.runtime(plan.Runtime)
	if err != nil {
		return err
	}
	file := run.Module
	plan.Module = skill.Module{
		Digest: file.Digest, Trusted: true, File: file.Digest,
		Open: func() (io.ReadCloser, error) { return os.Open(file.Path) },
	}
	return nil
}

// processes plans the runtime of the processes that a script starts. What they import is not known before they start, so
// the runtime has the packages that any Python file of the script's folder, or of the folders that code sees, imports.
func (r *Runner) processes(_ context.Context, s *skill.Spec) (plan skill.Plan, err error) {
	folders := s.Folders
	if s.Code == nil {
		folders = []skill.Folder{{Path: s.Folder, Digest: s.Digest}}
	}
	plan.Imports = packagesOf(s.Code)
	for i := range folders {
		plan.Imports = append(plan.Imports, r.planner.importedIn(&folders[i])...)
	}
	err = r.planner.on(&plan, nil)
	plan.Imports = nil
	return plan, err
}

// The bounds of importedIn.
const (
	maxFolders     = 1000
	maxFolderFiles = 1000
	maxFolderBytes = 4 << 20
)

// importedIn returns the packages of runtimes that the Python files of a folder seem to import. They are remembered by
// the digest of the folder.
func (p *planner) importedIn(of *skill.Folder) []string {
	if of.Digest == "" || of.Path == "" {
		return nil
	}
	p.mu.Lock()
	names, known := p.folders[of.Digest]
	p.mu.Unlock()
	if known {
		return names
	}
	root, err := os.OpenRoot(of.Path)
	if err != nil {
		return nil // the run tells what is wrong
	}
	defer root.Close()
	files, left := 0, maxFolderBytes
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if files++; err != nil || files > maxFolderFiles || left <= 0 {
			return fs.SkipAll
		}
		if path.Ext(name) != ".py" || !d.Type().IsRegular() {
			return nil
		}
		f, err := root.Open(name)
		if err != nil {
			return nil //nolint:nilerr // the run tells what is wrong
		}
		defer f.Close()
		text, _ := io.ReadAll(io.LimitReader(f, int64(left)))
		left -= len(text)
		names = append(names, packagesOf(text)...)
		return nil
	})
	slices.Sort(names)
	names = slices.Compact(names)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.folders == nil || len(p.folders) >= maxFolders {
		p.folders = map[string][]string{}
	}
	p.folders[of.Digest] = names
	return names
}

// runtime gives an installed runtime, whose files were verified when it was first asked for.
func (p *planner) runtime(name string) (*runtimes.Runtime, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k, ok := p.runtimes[name]; ok && (k.err == nil || time.Since(k.at) < again) {
		return k.r, k.err
	}
	r, err := p.open(name)
	p.runtimes[name] = opened{r, err, time.Now()}
	return r, err
}

// importsOf gives what a script imports, where that can change which runtime it gets, or
// is imported ahead of its runs, as for programs of the command line.
func (p *planner) importsOf(ctx context.Context, folder *sandbox.Folder, s *skill.Spec) ([]string, error) {
	stamp, err := folder.Entry(s.Entry, hint)
	if err != nil || p.imports == nil {
		return nil, err
	}
	key := scriptKey{s.Folder, s.Entry, s.Digest, s.Script}
	p.mu.Lock()
	k, seen := p.scripts[key]
	p.mu.Unlock()
	if seen && k.settled && k.stamp == stamp {
		return k.names, nil
	}
	now := time.Now()
	script, read, err := folder.Read(s.Entry, hint, maxScript)
	if err != nil {
		return nil, err
	}
	k = imported{stamp: read, settled: read.Settled(now)}
	if s.Script || p.matters(s.Requires, script) {
		// What is no Python, or too much of it, imports nothing: its run tells why.
		if k.names, err = p.imports(ctx, s, script); err != nil && skill.CodeOf(err) != skill.InvalidArgument {
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.scripts) >= maxScripts {
		clear(p.scripts)
	}
	p.scripts[key] = k
	return k.names, nil
}
