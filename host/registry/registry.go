package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"openskill/host/registry/safeyaml"
	"openskill/host/share/lock"
	"openskill/sdk/skill"
)

// The names that make a folder a skill, or a root a list.
const (
	ManifestFile = "skill.yaml"
	ListFile     = "skills.yaml"
)

// Root is a folder of skills. Its trust is the operator's word; the zero value is
// community.
type Root struct {
	Path  string
	Trust skill.Trust
}

// Options say where skills come from and what they may use.
type Options struct {
	Roots    []Root       // in order of precedence; a root that does not exist is a problem, not an error
	CLIDir   string       // folder of {id}.py scripts, trusted; "" or a missing folder for none
	Defaults skill.Limits // for what a manifest leaves out; no field may be zero
	Caps     skill.Limits // that no manifest exceeds; no field may be zero
	// Packages says what is wrong with the packages that a manifest requires, in words
	// for its author; nil: there are no packages.
	Packages Packages
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
	problems []Problem
	locks    locks
}

// Open reads all skills. Skills with problems are left out; see [Registry.Problems].
// The error is non-nil only for incomplete Options.
func Open(o Options) (*Registry, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	r := &Registry{skills: map[skill.ID]*Skill{}, places: map[skill.ID]string{}, bare: map[skill.ID]bool{}, locks: locks{}}
	for _, root := range o.Roots {
		r.addRoot(&o, root)
	}
	r.addScripts(&o)
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

func (r *Registry) add(s *Skill, place string) {
	id := s.Descriptor.ID
	if first, taken := r.places[id]; taken {
		r.report(place, "the id %s is already taken by %s; this one is skipped", id, first)
		return
	}
	r.skills[id], r.places[id] = s, place
}

func (r *Registry) addRoot(o *Options, root Root) {
	folder, err := realFolder(root.Path)
	if err != nil {
		r.report(root.Path, "no folder of skills: %s", plain(err))
		return
	}
	if exists(folder, ManifestFile) {
		r.addFolder(o, folder, root.Path, root.Trust)
		return
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		r.report(root.Path, "cannot be listed: %s", plain(err))
		return
	}
	for _, e := range entries {
		shown := filepath.Join(root.Path, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.Type()&fs.ModeSymlink != 0:
			r.report(shown, "is a symbolic link and is skipped")
		case e.IsDir() && exists(filepath.Join(folder, e.Name()), ManifestFile):
			r.addFolder(o, filepath.Join(folder, e.Name()), shown, root.Trust)
		}
	}
	if err := r.locks.read(folder).err; err != nil {
		r.report(root.Path, "%s; until it is mended all skills there are taken for strangers'", err)
	}
	if exists(folder, ListFile) {
		r.addList(o, folder, root.Path, root.Trust)
	}
}

// addFolder adds the skill of one folder. shown is the folder as the operator
// named it.
func (r *Registry) addFolder(o *Options, folder, shown string, trust skill.Trust) {
	trust, entry := r.pulled(folder, trust)
	m, digest, problems := readFolder(folder, shown, trust, o.Packages, false)
	r.problems = append(r.problems, problems...)
	if m != nil && len(problems) == 0 && entry != nil && digest != entry.Digest {
		r.report(shown, "was changed since it was pulled, and is skipped: take it back with openskill skill pull --locked, or take it out of %s", lock.FileName)
		return
	}
	if m != nil && len(problems) == 0 {
		r.add(o.build(m, folder, digest, trust), filepath.Join(shown, ManifestFile))
	}
}

// readFolder reads and checks everything about one folder. built says that nothing
// of it is still to be built.
func readFolder(folder, shown string, trust skill.Trust, packages Packages, built bool) (*manifest, string, []Problem) {
	file := filepath.Join(shown, ManifestFile)
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, "", []Problem{{file, 0, plain(err)}}
	}
	defer root.Close() //nolint:errcheck // read only
	src, err := readSmall(root, ManifestFile, safeyaml.MaxBytes)
	if err != nil {
		return nil, "", []Problem{{file, 0, plain(err)}}
	}
	m, problems := parseManifest(file, src, trust, packages)
	if m != nil {
		problems = append(problems, checkEntries(root, m, file, built)...)
	}
	digest, err := Digest(folder)
	if err != nil {
		problems = append(problems, Problem{shown, 0, plain(err)})
	}
	return m, digest, problems
}

// checkEntries looks at the files that a manifest starts with. One that is not
// there is no problem unless all is built: the runner says what is missing.
func checkEntries(root *os.Root, m *manifest, file string, built bool) (problems []Problem) {
	check := func(entry string, line int) {
		info, err := root.Lstat(filepath.FromSlash(entry))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if built {
				problems = append(problems, Problem{file, line, fmt.Sprintf("entry %s is not in the folder", entry)})
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

// addList adds the skills of a skills.yaml.
func (r *Registry) addList(o *Options, folder, shown string, trust skill.Trust) {
	file := filepath.Join(shown, ListFile)
	root, err := os.OpenRoot(folder)
	if err != nil {
		r.report(file, "%s", plain(err))
		return
	}
	defer root.Close() //nolint:errcheck // read only
	src, err := readSmall(root, ListFile, safeyaml.MaxBytes)
	if err != nil {
		r.report(file, "%s", plain(err))
		return
	}
	list, problems := parseList(file, src, trust, o.Packages)
	r.problems = append(r.problems, problems...)
	for _, m := range list {
		if m.primary.Kind == "" {
			r.addListedScript(o, m, file, trust)
			continue
		}
		own := filepath.Join(folder, string(m.id))
		sub, err := os.OpenRoot(own)
		if err != nil {
			r.problems = append(r.problems, Problem{file, m.line, fmt.Sprintf("%s has no folder of that name beside the list", m.id)})
			r.define(o, m, file)
			continue
		}
		entries := checkEntries(sub, m, file, false)
		_ = sub.Close() // opened to look only
		digest, err := Digest(own)
		if err != nil {
			entries = append(entries, Problem{file, m.line, plain(err)})
		}
		r.problems = append(r.problems, entries...)
		if len(entries) == 0 {
			r.add(o.build(m, own, digest, trust), fmt.Sprintf("%s:%d", file, m.line))
		}
	}
}

// addListedScript adds a list's entry that is run by the CLI folder's script of
// its name.
func (r *Registry) addListedScript(o *Options, m *manifest, file string, trust skill.Trust) {
	if trust == skill.Community {
		r.problems = append(r.problems, Problem{file, m.line, fmt.Sprintf("%s has no type, and a script of the CLI folder is for trusted skills only", m.id)})
		return
	}
	folder, err := realFolder(o.CLIDir)
	if o.CLIDir == "" || err != nil {
		r.problems = append(r.problems, Problem{file, m.line, fmt.Sprintf("%s has no type, and there is no CLI folder with a script for it", m.id)})
		r.define(o, m, file)
		return
	}
	script(m)
	digest, err := digestScript(folder, m.primary.Entry)
	if err != nil {
		r.problems = append(r.problems, Problem{file, m.line, fmt.Sprintf("%s has no type, and the CLI folder has no usable %s: %s", m.id, m.primary.Entry, plain(err))})
		r.define(o, m, file)
		return
	}
	r.add(o.build(m, folder, digest, trust), fmt.Sprintf("%s:%d", file, m.line))
}

// script completes a manifest by the convention of the CLI folder: the operator
// put the script there, so it gets what such scripts have always had.
func script(m *manifest) {
	m.primary = skill.Target{Kind: skill.CLIPython, Entry: string(m.id) + ".py"}
	if m.permissions == nil {
		m.permissions = &skill.Permissions{Data: true, Scratch: true}
	}
}

func (r *Registry) addScripts(o *Options) {
	if o.CLIDir == "" {
		return
	}
	folder, err := realFolder(o.CLIDir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var entries []os.DirEntry
	if err == nil {
		entries, err = os.ReadDir(folder)
	}
	if err != nil {
		r.report(o.CLIDir, "no folder of scripts: %s", plain(err))
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
			r.report(shown, "the name is no skill id: a-z, 0-9, _ and single -")
			continue
		}
		if r.skills[id] != nil && r.skills[id].Folder == folder {
			continue // the script of an entry in a list
		}
		m := &manifest{
			id: id, version: "0.0.0", enabled: true,
			description: "The script " + e.Name() + " of the CLI folder; it has no manifest.",
		}
		script(m)
		digest, err := digestScript(folder, e.Name())
		if err != nil {
			r.report(shown, "%s", plain(err))
			continue
		}
		r.bare[id] = r.places[id] == ""
		r.add(o.build(m, folder, digest, skill.Trusted), shown)
	}
}

// digestScript is the digest of one script: the CLI folder is many skills.
func digestScript(folder, name string) (string, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // read only
	if info, err := root.Lstat(name); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", errors.New("must be a regular file, not a link, a folder or a device")
	}
	return digestOf(root, []string{name}, MaxFolderBytes)
}

// Validate reads one folder as a trusted skill, or as a list, and reports every
// problem; none means that a host would serve it. A file to be built may be missing.
// packages is that of [Options].
func Validate(folder string, packages Packages) []Problem {
	target, err := realFolder(folder)
	if err != nil {
		return []Problem{{folder, 0, plain(err)}}
	}
	if exists(target, ManifestFile) || !exists(target, ListFile) {
		_, _, problems := readFolder(target, folder, skill.Trusted, packages, false)
		return problems
	}
	file := filepath.Join(folder, ListFile)
	root, err := os.OpenRoot(target)
	if err != nil {
		return []Problem{{file, 0, plain(err)}}
	}
	defer root.Close() //nolint:errcheck // read only
	src, err := readSmall(root, ListFile, safeyaml.MaxBytes)
	if err != nil {
		return []Problem{{file, 0, plain(err)}}
	}
	_, problems := parseList(file, src, skill.Trusted, packages)
	return problems
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
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
