package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"openskill/host/manifest"
	"openskill/internal/digest"
	"openskill/sdk/skill"
)

// Options of a change. The zero value takes any age from the index that pip and npm know.
type Options struct {
	Python        string          // command of the machine's own Python; "": python3
	PythonVersion string          // of the sandbox, such as 3.15.0
	Had           []Had           // Python packages that the runtimes have
	Library       map[string]bool // top-level modules of Python's standard library
	// From is a folder with wheels and tarballs, absolute, which are used in the place of an
	// index; "": the index.
	From string
	// MinAge is how old a release must be at least.
	MinAge time.Duration
	// Allowed are the names that may be added, as in python:requests; nil: all.
	Allowed func(e Ecosystem, name string) bool
	// Compile compiles modules of Python, which have these paths in the sandbox, by the
	// interpreter that imports them, whose files have tag in their names. Where it breaks at
	// a module it gives those before. nil: they are kept as source alone.
	Compile func(ctx context.Context, paths []string, texts [][]byte) (tag string, files [][]byte, err error)

	now func() time.Time // nil: the clock
}

func (o *Options) clock() time.Time {
	if o.now != nil {
		return o.now()
	}
	return time.Now()
}

// Change says what a change of a lock came to.
type Change struct {
	Lock    *Lock     `json:"lock"`
	Added   []Package `json:"added"`   // never nil; a new version is added, and the old one removed
	Removed []Package `json:"removed"` // never nil
}

// Add gives the scripts of a folder packages beside those that they have, whose versions
// stay. The error is a *skill.Error; nothing has changed then.
func (s *Store) Add(ctx context.Context, folder string, more []Requirement, o *Options) (*Change, error) {
	return s.change(ctx, folder, o, func(old *Lock) ([]Requirement, []Package, error) {
		return merged(old.Asked, more), old.Packages, nil
	})
}

// Relock resolves what the scripts of a folder were given, and these packages, anew: to the
// newest versions that may be.
func (s *Store) Relock(ctx context.Context, folder string, more []Requirement, o *Options) (*Change, error) {
	return s.change(ctx, folder, o, func(old *Lock) ([]Requirement, []Package, error) {
		return merged(old.Asked, more), nil, nil
	})
}

// merged puts requirements together: a later one of a name replaces an earlier one.
func merged(lists ...[]Requirement) []Requirement {
	all := slices.Concat(lists...)
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b Requirement) int {
		return cmp.Or(cmp.Compare(b.Ecosystem, a.Ecosystem), cmp.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(all, func(a, b Requirement) bool { return a.Ecosystem == b.Ecosystem && a.Name == b.Name })
}

// change resolves, downloads and unpacks, and writes the lock at the end.
func (s *Store) change(ctx context.Context, folder string, o *Options, ask func(old *Lock) ([]Requirement, []Package, error)) (*Change, error) {
	path, file, err := s.locked(folder)
	if err != nil {
		return nil, &skill.Error{Op: "packages.Add", Code: skill.NotFound, Message: "folder not found: " + skill.CleanText(folder, 200), Err: err}
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	old, err := readLock(file)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = &Lock{}, nil
	}
	if err != nil {
		return nil, &skill.Error{Op: "packages.Add", Code: skill.Conflict, Message: "the lock of these packages is damaged: remove it with openskill packages remove FOLDER", Err: err}
	}
	asked, pinned, err := ask(old)
	if err != nil {
		return nil, err
	}
	work, err := s.work()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	l := &Lock{Format: format, Folder: path, Asked: asked}
	all, err := o.download(ctx, work, asked, pinned)
	if err == nil {
		err = o.check(all, old)
	}
	if err == nil {
		err = s.make(ctx, work, l, all, o)
	}
	if err == nil {
		err = s.put(file, l, old)
	}
	var known *skill.Error
	switch {
	case err == nil:
		return changed(l, old), nil
	case ctx.Err() != nil || errors.As(err, &known):
		return nil, err
	}
	return nil, broken(err)
}

// download brings the archives of both kinds.
func (o *Options) download(ctx context.Context, work string, asked []Requirement, pinned []Package) ([]downloaded, error) {
	var all []downloaded
	for _, e := range []struct {
		of  Ecosystem
		get func(context.Context, string, []Requirement, []Package) ([]downloaded, error)
	}{{Python, o.python}, {NPM, o.npm}} {
		wants := slices.DeleteFunc(slices.Clone(asked), func(r Requirement) bool { return r.Ecosystem != e.of })
		if len(wants) == 0 {
			continue
		}
		pins := slices.DeleteFunc(slices.Clone(pinned), func(p Package) bool {
			// A version that is asked for anew wins.
			return p.Ecosystem != e.of || slices.ContainsFunc(wants, func(r Requirement) bool { return r.Name == p.Name && r.Spec != "" })
		})
		got, err := e.get(ctx, work, wants, pins)
		if err != nil {
			return nil, err
		}
		all = append(all, got...)
	}
	return all, nil
}

// check holds what came against the operator's list, and against what was locked before: the
// file of a version does not change.
func (o *Options) check(all []downloaded, old *Lock) error {
	before := map[string]string{}
	for i := range old.Packages {
		before[old.Packages[i].String()] = old.Packages[i].Digest
	}
	for i := range all {
		d := &all[i]
		if o.Allowed != nil && !o.Allowed(d.Ecosystem, d.Name) {
			return refuse(&d.Package, "is not on the list of allowed packages")
		}
		if d.file == "" {
			continue
		}
		info, err := os.Stat(d.file)
		if err != nil {
			return err
		}
		if d.Bytes = info.Size(); d.Bytes > maxArchive {
			return refuse(&d.Package, "has %d bytes, the limit is %d", d.Bytes, maxArchive)
		}
		f, err := os.Open(d.file)
		if err != nil {
			return err
		}
		sum, _, err := digest.Read(f)
		_ = f.Close()
		if err != nil {
			return err
		}
		d.Digest = digest.Text(sum)
		if was := before[d.String()]; was != "" && was != d.Digest {
			return refuse(&d.Package, "has another digest than when it was locked: %s, and not %s; the index changed a released file", d.Digest, was)
		}
	}
	return nil
}

// make unpacks the packages into a set, and keeps it.
func (s *Store) make(ctx context.Context, work string, l *Lock, all []downloaded, o *Options) error {
	m, err := newSet(work, o.Library)
	if err != nil {
		return err
	}
	for i := range all {
		d := &all[i]
		if d.file != "" {
			if err := m.add(ctx, &d.Package, d.file); err != nil {
				return err
			}
			if err := keep(d.file, s.archive(d.Digest)); err != nil {
				return err
			}
		}
		l.Packages = append(l.Packages, d.Package)
	}
	if l.Files, l.Bytes = m.files, m.bytes; m.files == 0 {
		return nil
	}
	if err := m.compile(ctx, o); err != nil {
		return err
	}
	if l.Set, err = manifest.Digest(m.dir); err != nil {
		return err
	}
	if err := s.verify(l.Set); err == nil {
		return nil // the same packages of another folder
	}
	return s.place(m.dir, l.Set)
}

// put writes the lock, and removes what no lock names any more.
func (s *Store) put(file string, l, old *Lock) error {
	if old.Set != "" && old.Set != l.Set {
		now := time.Now()
		_ = os.Chtimes(s.set(old.Set), now, now) // from now on it may be unused
	}
	if err := l.write(file); err != nil {
		return err
	}
	return s.sweep()
}

func changed(l, old *Lock) *Change {
	c := &Change{Lock: l, Added: []Package{}, Removed: []Package{}}
	has := func(list []Package, p Package) bool {
		return slices.ContainsFunc(list, func(o Package) bool { return o.String() == p.String() && o.At == p.At })
	}
	for _, p := range l.Packages {
		if !has(old.Packages, p) {
			c.Added = append(c.Added, p)
		}
	}
	for _, p := range old.Packages {
		if !has(l.Packages, p) {
			c.Removed = append(c.Removed, p)
		}
	}
	return c
}

// Remove takes packages from the scripts of a folder, with those that only they needed;
// without names all. It needs no index. The error is a *skill.Error.
func (s *Store) Remove(ctx context.Context, folder string, gone []Requirement, o *Options) (*Change, error) {
	path, file, err := s.locked(folder)
	if err != nil {
		return nil, &skill.Error{Op: "packages.Remove", Code: skill.NotFound, Message: "folder not found: " + skill.CleanText(folder, 200), Err: err}
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if len(gone) == 0 {
		old, _ := readLock(file) // it may be damaged
		if old == nil {
			old = &Lock{}
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, broken(err)
		}
		if err := s.sweep(); err != nil {
			return nil, broken(err)
		}
		return changed(&Lock{Format: format, Folder: path}, old), nil
	}
	old, err := readLock(file)
	if err != nil {
		return nil, &skill.Error{Op: "packages.Remove", Code: skill.NotFound, Message: "the folder has no packages", Err: err}
	}
	l := &Lock{Format: format, Folder: path, Asked: slices.Clone(old.Asked)}
	for _, r := range gone {
		n := len(l.Asked)
		l.Asked = slices.DeleteFunc(l.Asked, func(a Requirement) bool { return a.Ecosystem == r.Ecosystem && a.Name == r.Name })
		if len(l.Asked) == n {
			return nil, &skill.Error{
				Op: "packages.Remove", Code: skill.NotFound, Subject: r.Name,
				Message: fmt.Sprintf("%s was not added to the folder by name: openskill packages list FOLDER shows what was", r.String()),
			}
		}
	}
	work, err := s.work()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	var all []downloaded
	for _, p := range reached(l.Asked, old.Packages) {
		d := downloaded{Package: p}
		if p.Digest != "" {
			d.file = s.archive(p.Digest)
		}
		all = append(all, d)
	}
	// The archives are those that were locked, or the lock is refused.
	if err := o.check(all, old); err != nil {
		return nil, broken(err)
	}
	if err := s.make(ctx, work, l, all, o); err != nil {
		return nil, broken(err)
	}
	if err := s.put(file, l, old); err != nil {
		return nil, broken(err)
	}
	return changed(l, old), nil
}

// reached are the packages that are asked for, and those that they may need.
func reached(asked []Requirement, all []Package) []Package {
	keep := map[string]bool{}
	var add func(e Ecosystem, name string)
	add = func(e Ecosystem, name string) {
		key := string(e) + ":" + name
		if keep[key] {
			return
		}
		keep[key] = true
		for i := range all {
			if all[i].Ecosystem == e && called(&all[i], name) {
				for _, n := range all[i].Needs {
					add(e, n)
				}
			}
		}
	}
	for _, r := range asked {
		add(r.Ecosystem, r.Name)
	}
	var list []Package
	for i := range all {
		if p := &all[i]; keep[string(p.Ecosystem)+":"+p.Name] || p.At != "" && keep[string(p.Ecosystem)+":"+scoped(p.At)] {
			list = append(list, *p)
		}
	}
	return list
}

// called reports whether a package is found by a name: that of its folder may be another one
// than its own.
func called(p *Package, name string) bool {
	return p.Name == name || p.At != "" && scoped(p.At) == name
}

// scoped is the name under which npm put a package.
func scoped(at string) string {
	name := filepath.Base(at)
	if scope := filepath.Base(filepath.Dir(at)); len(scope) > 1 && scope[0] == '@' {
		return scope + "/" + name
	}
	return name
}
