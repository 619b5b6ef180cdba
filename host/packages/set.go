package packages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/cases"

	"openskill/host/admission"
	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// What the packages of a folder may have. Variables for tests alone.
var (
	maxArchive  int64 = 64 << 20          // bytes of one archive
	maxSetBytes int64 = 256 << 20         // bytes of all files
	maxSetFiles       = manifest.MaxFiles // files of all packages together
)

// setMaker puts the files of packages together in a folder.
type setMaker struct {
	dir   string
	work  string            // for what is unpacked
	owner map[string]string // package by path, as file systems that ignore case know it

	folders map[string]string // as they were spelled first, likewise

	files int
	bytes int64

	library map[string]bool // top-level modules of Python's standard library
}

func newSet(work string, library map[string]bool) (*setMaker, error) {
	m := &setMaker{dir: filepath.Join(work, "set"), work: work, owner: map[string]string{}, folders: map[string]string{}, library: library}
	return m, os.Mkdir(m.dir, 0o755)
}

// add unpacks an archive, and takes of it what the sandbox can use. What it leaves out is
// noted in p. The error is a *skill.Error, or the host's own.
func (m *setMaker) add(ctx context.Context, p *Package, archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	dir, err := os.MkdirTemp(m.work, "unpacked-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files, err := admission.Unpack(ctx, f, dir, admission.Limits{Archive: maxArchive, Bytes: maxSetBytes - m.bytes, Files: maxSetFiles})
	if err != nil {
		return refused(p, err)
	}
	left := leftOut{}
	for _, file := range files {
		to, err := m.place(p, file.Path, left)
		if err == nil && to != "" {
			err = m.take(p, filepath.Join(dir, filepath.FromSlash(file.Path)), to, file.Size)
		}
		if err != nil {
			return err
		}
	}
	p.Notes = append(p.Notes, left.notes()...)
	slices.Sort(p.Notes)
	p.Notes = slices.Compact(p.Notes) // some are there where it was locked before
	return nil
}

// refused says of which package an archive is that was refused.
func refused(p *Package, err error) error {
	var e *skill.Error
	if !errors.As(err, &e) {
		return err
	}
	return &skill.Error{Op: "packages.Add", Code: e.Code, Subject: p.Name, Err: err, Message: skill.CleanText(p.String()+": "+e.Message, skill.MaxMessage)}
}

func refuse(p *Package, format string, args ...any) error {
	return &skill.Error{Op: "packages.Add", Code: skill.InvalidArgument, Subject: p.Name, Message: skill.CleanText(p.String()+" "+fmt.Sprintf(format, args...), skill.MaxMessage)}
}

// native refuses a package with compiled parts.
func native(p *Package, what string) error {
	language := "Python"
	if p.Ecosystem == NPM {
		language = "JavaScript"
	}
	return refuse(p, "needs native code (%s), which does not run in the sandbox; use a package in pure %s", what, language)
}

// leftOut counts files that a set does not take, by what they are.
type leftOut map[string]int

func (l leftOut) notes() []string {
	var notes []string
	for what, n := range l {
		notes = append(notes, fmt.Sprintf("%d %s left out", n, what))
	}
	return notes
}

// place says where a file of an archive goes in the set; "": it is left out.
func (m *setMaker) place(p *Package, file string, left leftOut) (string, error) {
	if p.Ecosystem == NPM {
		return placeNPM(p, file)
	}
	return m.placeWheel(p, file, left)
}

// placeWheel places a file of a wheel: those of NAME.data/purelib are of the package, and
// what would be installed elsewhere is left out. So is what the interpreter would run by
// itself at its start, and what has the name of a module of the standard library: packages
// are found before that in the sandbox, and after it outside.
func (m *setMaker) placeWheel(p *Package, file string, left leftOut) (string, error) {
	top, rest, below := strings.Cut(file, "/")
	if below && strings.HasSuffix(top, ".data") {
		kind, inner, _ := strings.Cut(rest, "/")
		if kind != "purelib" && kind != "platlib" {
			left["files of "+kind]++
			return "", nil
		}
		if file = inner; inner == "" {
			return "", refuse(p, "has a damaged .data folder")
		}
	}
	base := path.Base(file)
	switch ext := strings.ToLower(path.Ext(base)); {
	case ext == ".so" || ext == ".pyd" || ext == ".dylib" || strings.Contains(base, ".so."):
		return "", native(p, base)
	case ext == ".pth" && !strings.Contains(file, "/"), base == "sitecustomize.py" && base == file, base == "usercustomize.py" && base == file:
		left["start files"]++
		return "", nil
	case ext == ".pyc", strings.Contains("/"+strings.ToLower(file)+"/", "/"+compiledFolder+"/"):
		left["compiled files"]++ // what they do need not be what the sources say
		return "", nil
	}
	if module, _, _ := strings.Cut(file, "/"); m.library[strings.TrimSuffix(module, ".py")] {
		left["modules of the standard library"]++
		return "", nil
	}
	return "python/" + file, nil
}

// placeNPM places a file of a tarball, whose first folder is the package. Types and source maps
// are half of most, and never loaded.
func placeNPM(p *Package, file string) (string, error) {
	_, inner, below := strings.Cut(file, "/")
	if !below {
		return "", refuse(p, "has a file outside of its folder")
	}
	switch base := path.Base(inner); {
	case strings.HasSuffix(base, ".node"), inner == "binding.gyp":
		return "", native(p, inner)
	case strings.HasSuffix(base, ".map"), strings.HasSuffix(base, ".d.ts"), strings.HasSuffix(base, ".d.mts"), strings.HasSuffix(base, ".d.cts"):
		return "", nil
	}
	return p.At + "/" + inner, nil
}

// take moves a file to its place. A place that another package has is refused, unless the
// files are the same, as the __init__.py of a shared namespace is.
func (m *setMaker) take(p *Package, from, to string, size int64) error {
	fold := cases.Fold().String(to)
	if before, taken := m.owner[fold]; taken {
		if same, err := equal(from, filepath.Join(m.dir, filepath.FromSlash(to))); err != nil || same {
			return err
		}
		return refuse(p, "has the file %s, which %s has too", to, before)
	}
	m.owner[fold] = p.Name
	for dir := path.Dir(to); dir != "."; dir = path.Dir(dir) {
		fold := cases.Fold().String(dir)
		if before, known := m.folders[fold]; known && before != dir {
			return refuse(p, "has the folder %s, which would be %s on some systems", dir, before)
		}
		m.folders[fold] = dir
	}
	if m.files++; m.files > maxSetFiles {
		return refuse(p, "is too much: the packages of a folder may have %d files together", maxSetFiles)
	}
	if m.bytes += size; m.bytes > maxSetBytes {
		return refuse(p, "is too much: the packages of a folder may have %d bytes together", maxSetBytes)
	}
	at := filepath.Join(m.dir, filepath.FromSlash(to))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return refuse(p, "has the file %s below a file of another package", to)
	}
	if err := os.Rename(from, at); err != nil {
		return refuse(p, "has the file %s in the place of a folder of another package", to)
	}
	return nil
}

// equal compares two files; where one is missing they differ.
func equal(a, b string) (bool, error) {
	x, err := os.ReadFile(a)
	if err != nil {
		return false, err
	}
	y, err := os.ReadFile(b)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return bytes.Equal(x, y), err
}

// keep puts a file where its digest names it, and leaves the one that is there.
func keep(from, to string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), ".new-")
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Chmod(0o400), out.Sync(), out.Close()); err == nil {
		err = os.Rename(out.Name(), to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return nil
}
