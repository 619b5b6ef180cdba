package manifest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"openskill/internal/digest"
	"openskill/internal/safeyaml"
	"openskill/sdk/skill"
)

// The names that make a folder a skill, or a root a list. Strangers' skills have the first.
const (
	ManifestFile = "skill.yaml"
	ManifestJSON = "skill.json"
	ListFile     = "skills.yaml"
)

// Manifest gives the name of the manifest in a folder, "" where it has none. A skill.json
// beside a SKILL.md is a file of that Agent Skill, as many public ones have.
func Manifest(folder string) string {
	switch {
	case exists(folder, ManifestFile):
		return ManifestFile
	case exists(folder, ManifestJSON) && !exists(folder, "SKILL.md"):
		return ManifestJSON
	}
	return ""
}

// Root is a folder of skills. Its trust is the operator's word; the zero value is
// community.
type Root struct {
	Path  string
	Trust skill.Trust
}

// Options say where skills come from and what they may use.
type Options struct {
	Roots    []Root       // in order of precedence; a root that does not exist is a problem, not an error
	List     string       // a list beside the roots, trusted; "" for none
	CLIDir   string       // folder of {id}.py scripts, trusted; "" or a missing folder for none
	Defaults skill.Limits // for what a manifest leaves out; no field may be zero
	Caps     skill.Limits // that no manifest exceeds; no field may be zero
	// StateDir has the record of what the operator trusts by name; "": nothing.
	StateDir string
	// Code is the absolute path of the empty folder of [skill.RunCode]; "": the skill is not added.
	Code string
	// Packages says what is wrong with the packages that a manifest requires, in words
	// for its author; nil: there are no packages.
	Packages Packages
	Schemas  *Schemas // keeps compiled schemas of skills; nil: each check compiles its own
}

// check names what must be set and is not.
func (o *Options) check() error {
	if err := incomplete("Defaults", o.Defaults); err != nil {
		return err
	}
	return incomplete("Caps", o.Caps)
}

// Packages checks names of packages. The error's message is that of an *skill.Error,
// or its text.
type Packages func(names []string) error

// Registry holds the skills that Open found. It does not change and is safe for
// concurrent use.
type Registry struct {
	skills   map[skill.ID]*Skill
	order    []skill.ID
	places   map[skill.ID]string // where each came from, for the message about a duplicate
	defined  []*Skill            // entries of lists without code
	bare     map[skill.ID]bool   // scripts of the CLI folder that nothing defines
	pulled   map[skill.ID]bool
	problems []Problem
	origins  *Origins
}

// Open reads all skills. Skills with problems are left out; see [Registry.Problems].
// The error is non-nil only for incomplete Options.
func Open(o Options) (*Registry, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	r := &Registry{skills: map[skill.ID]*Skill{}, places: map[skill.ID]string{}, bare: map[skill.ID]bool{}, pulled: map[skill.ID]bool{}, origins: NewOrigins(o.StateDir)}
	r.problems = r.origins.Problems()
	for _, root := range o.Roots {
		r.addRoot(&o, root)
	}
	r.addConfigured(&o)
	r.addScripts(&o)
	r.addCode(&o)
	for id := range r.skills {
		r.order = append(r.order, id)
	}
	slices.Sort(r.order)
	return r, nil
}

// Problems lists what Open skipped and why, for the operator.
func (r *Registry) Problems() []Problem { return slices.Clone(r.problems) }

func (r *Registry) report(file, format string, args ...any) {
	r.problems = append(r.problems, Problem{File: file, Message: fmt.Sprintf(format, args...)})
}

// add adds a skill. Of two with one id the operator's own is served, and else the first.
func (r *Registry) add(s *Skill, place string, pulled bool) {
	id := s.Descriptor.ID
	first, taken := r.places[id]
	switch {
	case taken && r.pulled[id] && !pulled:
		r.report(first, "the id %s belongs to the operator's own %s; this pulled skill is skipped", id, place)
	case taken:
		r.report(place, "the id %s is already taken by %s; this one is skipped", id, first)
		return
	}
	r.skills[id], r.places[id], r.pulled[id] = s, place, pulled
}

func (r *Registry) addRoot(o *Options, root Root) {
	folder, err := realFolder(root.Path)
	if err != nil {
		r.report(root.Path, "cannot read the folder of skills: %s", plain(err))
		return
	}
	if Manifest(folder) != "" {
		r.addFolder(o, folder, root.Path, root.Trust)
		return
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		r.report(root.Path, "cannot be listed: %s", plain(err))
		return
	}
	var flat []string
	for _, e := range entries {
		shown := filepath.Join(root.Path, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.Type()&fs.ModeSymlink != 0:
			r.report(shown, "is a symbolic link and is skipped")
		case isFlat(e):
			flat = append(flat, e.Name())
		case e.IsDir() && Manifest(filepath.Join(folder, e.Name())) != "":
			r.addFolder(o, filepath.Join(folder, e.Name()), shown, root.Trust)
		}
	}
	if err := r.origins.lock(folder).err; err != nil {
		r.report(root.Path, "%s; all skills there are untrusted until it is fixed", err)
	}
	// A folder that was pulled brings no manifests for the operator's scripts.
	trust := r.origins.Of(folder, root.Trust, func() string { return "" }).Trust
	if exists(folder, ListFile) {
		r.addList(o, filepath.Join(folder, ListFile), filepath.Join(root.Path, ListFile), folder, trust)
	}
	r.addFlat(o, folder, root.Path, trust, flat)
}

// addFolder adds the skill of one folder. shown is the folder as the operator
// named it.
func (r *Registry) addFolder(o *Options, folder, shown string, most skill.Trust) {
	var origin Origin
	m, digest, sums, problems := readFolder(folder, shown, o.Packages, false, func(digest string) skill.Trust {
		origin = r.origins.Of(folder, most, func() string { return digest })
		return origin.Trust
	})
	r.problems = append(r.problems, problems...)
	switch {
	case m == nil || len(problems) > 0:
	case origin.Changed:
		r.report(shown, "%s", ChangedProblem)
	default:
		file := filepath.Join(shown, Manifest(folder))
		if name, ok := o.inCLIFolder(m.primary); ok && !exists(folder, m.primary.Entry) {
			m.primary.Entry = name
			r.addListedScript(o, m, file, origin.Trust)
			return
		}
		m.describe(folder, file)
		s := o.build(m, folder, digest, origin.Trust)
		s.keepSums(sums)
		r.add(s, file, origin.Pulled)
	}
}

// ChangedProblem says why a folder is not served that is not as it was pulled.
const ChangedProblem = "changed since it was pulled and is skipped: restore it with openskill skill pull --locked, or remove it from openskill.lock: it stays untrusted"

// readFolder reads and checks everything about one folder. built says that nothing
// of it is still to be built, trust what a folder with a digest is trusted with; the digest
// is "" where there is none, which is a problem. sums are the digests of its files.
func readFolder(folder, shown string, packages Packages, built bool, trust func(digest string) skill.Trust) (m *manifest, is string, sums map[string]string, problems []Problem) {
	name := Manifest(folder)
	if name == "" {
		name = ManifestFile
	}
	file := filepath.Join(shown, name)
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, "", nil, []Problem{{file, 0, plain(err)}}
	}
	defer root.Close()
	src, err := readSmall(root, name, safeyaml.MaxBytes)
	if err != nil {
		return nil, "", nil, []Problem{{file, 0, plain(err)}}
	}
	sums = map[string]string{}
	is, undigested := digestFolder(folder, MaxFiles, MaxFolderBytes, func(path string, sum [sha256.Size]byte) { sums[path] = digest.Text(sum) })
	trusted := trust(is)
	if name == ManifestJSON && trusted < skill.Trusted {
		return nil, "", nil, []Problem{{file, 0, "is read only in trusted folders; an untrusted skill needs a " + ManifestFile}}
	}
	m, problems = parseManifest(file, src, trusted, packages)
	if m != nil {
		problems = append(problems, checkEntries(root, m, file, built)...)
	}
	if undigested != nil {
		problems = append(problems, Problem{shown, 0, plain(undigested)})
	}
	return m, is, sums, problems
}

// as trusts every folder the same.
func as(trust skill.Trust) func(string) skill.Trust {
	return func(string) skill.Trust { return trust }
}

// checkEntries looks at the files that a manifest starts with. One that is not
// there is no problem unless all is built: the runner says what is missing.
func checkEntries(root *os.Root, m *manifest, file string, built bool) (problems []Problem) {
	check := func(entry string, line int) {
		info, err := root.Lstat(filepath.FromSlash(entry))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if built {
				problems = append(problems, Problem{file, line, fmt.Sprintf("entry %s not found in the folder", entry)})
			}
		case err != nil:
			problems = append(problems, Problem{file, line, fmt.Sprintf("entry %s cannot be used: it leads out of the folder or cannot be read", entry)})
		case !info.Mode().IsRegular():
			problems = append(problems, Problem{file, line, fmt.Sprintf("entry %s is not a regular file", entry)})
		}
	}
	check(m.primary.File(), m.entryLine)
	if m.fallback != nil {
		check(m.fallback.File(), m.backLine)
	}
	return problems
}

// addConfigured adds the skills of the list that is in no folder of skills. Their code is in
// the first trusted one.
func (r *Registry) addConfigured(o *Options) {
	if o.List == "" {
		return
	}
	folder, err := realFolder(filepath.Dir(o.List))
	if err != nil {
		r.report(o.List, "cannot read the list of skills: %s", plain(err))
		return
	}
	code := folder
	for _, root := range slices.Backward(o.Roots) {
		if at, err := realFolder(root.Path); err == nil && root.Trust >= skill.Trusted {
			code = at
		}
	}
	trust := r.origins.Of(folder, skill.Trusted, func() string { return "" }).Trust
	r.addList(o, filepath.Join(folder, filepath.Base(o.List)), o.List, code, trust)
}

// addList adds the skills of a skills.yaml, whose code is in folder.
func (r *Registry) addList(o *Options, list, file, folder string, trust skill.Trust) {
	root, err := os.OpenRoot(filepath.Dir(list))
	if err != nil {
		r.report(file, "%s", plain(err))
		return
	}
	defer root.Close()
	src, err := readSmall(root, filepath.Base(list), safeyaml.MaxBytes)
	if err != nil {
		r.report(file, "%s", plain(err))
		return
	}
	entries, problems := parseList(file, src, trust, o.Packages)
	r.problems = append(r.problems, problems...)
	for _, m := range entries {
		r.addEntry(o, m, folder, file, trust)
	}
}

// addEntry adds a skill whose manifest is not in its own folder: its code is a script of the
// CLI folder, or the folder of its name beside the manifest.
func (r *Registry) addEntry(o *Options, m *manifest, folder, file string, trust skill.Trust) {
	name, inCLI := o.inCLIFolder(m.primary)
	if inCLI {
		m.primary.Entry = name
	}
	if m.primary.Kind == "" || inCLI {
		r.addListedScript(o, m, file, trust)
		return
	}
	own := filepath.Join(folder, string(m.id))
	sub, err := os.OpenRoot(own)
	if err != nil {
		r.problems = append(r.problems, Problem{file, m.line, fmt.Sprintf("%s has no folder of its name among the skills", m.id)})
		r.define(o, m, file)
		return
	}
	entries := checkEntries(sub, m, file, false)
	_ = sub.Close() // opened to look only
	digest, err := Digest(own)
	if err != nil {
		entries = append(entries, Problem{file, m.line, plain(err)})
	} else if r.origins.Of(own, trust, func() string { return digest }).Trust < trust {
		entries = append(entries, Problem{file, m.line, fmt.Sprintf("the folder of %s was pulled and cannot be code of the operator's list; to trust it, run openskill skills trust %s", m.id, m.id)})
	}
	r.problems = append(r.problems, entries...)
	if len(entries) == 0 {
		m.describe(own, file)
		r.add(o.build(m, own, digest, trust), fmt.Sprintf("%s:%d", file, m.line), false)
	}
}

// addListedScript adds a skill that is run by a script of the CLI folder: that which its
// manifest names, or that of its own name.
func (r *Registry) addListedScript(o *Options, m *manifest, file string, trust skill.Trust) {
	none := func(format string, args ...any) {
		what := " has no type, and "
		if m.primary.Kind != "" {
			what = " has its entry in the CLI folder, and "
		}
		r.problems = append(r.problems, Problem{file, m.line, string(m.id) + what + fmt.Sprintf(format, args...)})
	}
	if trust == skill.Community {
		none("scripts of the CLI folder are only for trusted skills")
		return
	}
	folder, err := o.cliFolder(r.origins)
	if o.CLIDir == "" || err != nil {
		none("there is no CLI folder with a script for it")
		r.define(o, m, file)
		return
	}
	script(m)
	digest, err := digestScript(folder, m.primary.Entry)
	if err != nil {
		none("the CLI folder has no usable %s: %s", m.primary.Entry, plain(err))
		r.define(o, m, file)
		return
	}
	m.describe(folder, file)
	r.add(o.build(m, folder, digest, trust), fmt.Sprintf("%s:%d", file, m.line), false)
}

// script completes a manifest by the convention of the CLI folder: the operator
// put the script there, so it gets what such scripts have always had.
func script(m *manifest) {
	if m.primary.Kind == "" {
		m.primary = skill.Target{Kind: skill.CLIPython, Entry: string(m.id) + ".py"}
	}
	if m.permissions == nil {
		m.permissions = &skill.Permissions{Data: true, Scratch: true}
	}
}

// cliFolder gives the CLI folder, all of whose scripts are trusted. One that was pulled is
// none.
func (o *Options) cliFolder(origins *Origins) (string, error) {
	folder, err := realFolder(o.CLIDir)
	if err == nil && origins.Of(folder, skill.Trusted, func() string { return "" }).Trust != skill.Trusted {
		err = errors.New("it was pulled, but scripts there would be trusted")
	}
	return folder, err
}

func (r *Registry) addScripts(o *Options) {
	if o.CLIDir == "" {
		return
	}
	folder, err := o.cliFolder(r.origins)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var entries []os.DirEntry
	if err == nil {
		entries, err = os.ReadDir(folder)
	}
	if err != nil {
		r.report(o.CLIDir, "cannot read the folder of scripts: %s", plain(err))
		return
	}
	for _, e := range entries {
		name, isScript := strings.CutSuffix(e.Name(), ".py")
		if !isScript || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "__") {
			continue
		}
		shown := filepath.Join(o.CLIDir, e.Name())
		id, err := skill.ParseID(name)
		if err != nil {
			r.report(shown, "invalid skill id in the file name: use a-z, 0-9, _ and single -")
			continue
		}
		if r.skills[id] != nil && r.skills[id].Folder == folder {
			continue // the script of an entry in a list
		}
		m := &manifest{
			id: id, version: noVersion, enabled: true,
			description: "The script " + e.Name() + " of the CLI folder; it has no manifest.",
		}
		script(m)
		digest, err := digestScript(folder, e.Name())
		if err != nil {
			r.report(shown, "%s", plain(err))
			continue
		}
		r.bare[id] = r.places[id] == "" || r.pulled[id]
		r.add(o.build(m, folder, digest, skill.Trusted), shown, false)
	}
}

// digestScript is the digest of one script: the CLI folder is many skills.
func digestScript(folder, name string) (string, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if info, err := root.Lstat(name); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", errors.New("must be a regular file, not a link, folder or device")
	}
	return digestOf(root, []string{name}, MaxFolderBytes, func(string, [sha256.Size]byte) {})
}

// realFolder gives the absolute path of a folder that the operator named, behind
// any symbolic links: later steps follow none.
func realFolder(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	target, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(target)
	if err == nil && !info.IsDir() {
		err = errors.New("is not a folder")
	}
	return target, err
}

func exists(folder, name string) bool {
	_, err := os.Lstat(filepath.Join(folder, name))
	return err == nil
}

// plain takes the path out of a file error: the problem names the file already.
func plain(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
