package packages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"openskill/internal/digest"
	"openskill/sdk/skill"
)

// Ecosystem is where a package comes from.
type Ecosystem string

// The ecosystems.
const (
	Python Ecosystem = "python"
	NPM    Ecosystem = "npm"
)

// What a lock may hold.
const (
	maxLock     = 4 << 20 // bytes
	maxPackages = 500
)

// format is that of locks.
const format = 1

// Lock says which packages the scripts of a folder have.
type Lock struct {
	Format   int           `json:"lock"`
	Folder   string        `json:"folder,omitempty"` // absolute, without symbolic links
	Asked    []Requirement `json:"asked"`            // in order of ecosystem and name
	Packages []Package     `json:"packages"`
	Set      string        `json:"set"` // digest of the files; "": all packages are those of a runtime
	Files    int           `json:"files"`
	Bytes    int64         `json:"bytes"`
	Digest   string        `json:"digest,omitempty"` // of [Lock.Portable]
}

// Requirement is a package that was asked for.
type Requirement struct {
	Ecosystem Ecosystem `json:"ecosystem"`
	Name      string    `json:"name"`           // as the index calls it; of Python in its normal form
	Spec      string    `json:"spec,omitempty"` // extras and versions, as in [socks]>=2,<3 or ^5.0.0; "": any
	From      string    `json:"from,omitempty"` // the file that declares it; "": the command line
}

// String writes it as on the command line.
func (r *Requirement) String() string {
	if r.Ecosystem == NPM && r.Spec != "" {
		return string(r.Ecosystem) + ":" + r.Name + "@" + r.Spec
	}
	return string(r.Ecosystem) + ":" + r.Name + r.Spec
}

// Package is one package of a lock.
type Package struct {
	Ecosystem Ecosystem `json:"ecosystem"`
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	Digest    string    `json:"digest,omitempty"` // of the archive; "": a runtime has it
	Bytes     int64     `json:"bytes,omitempty"`  // of the archive
	At        string    `json:"at,omitempty"`     // of npm: where it is, such as node_modules/a/node_modules/b
	Needs     []string  `json:"needs,omitempty"`  // names of packages that it may need
	Notes     []string  `json:"notes,omitempty"`  // what was left out
}

// String is ecosystem, name and version.
func (p *Package) String() string { return string(p.Ecosystem) + ":" + p.Name + " " + p.Version }

// Runtimes are the Python packages of a lock that a runtime has.
func (l *Lock) Runtimes() []string {
	var names []string
	for i := range l.Packages {
		if p := &l.Packages[i]; p.Digest == "" {
			names = append(names, p.Name)
		}
	}
	return names
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// locked gives the path of a folder and of its lock. A folder is known by where it is: the
// lock stays when its files change.
func (s *Store) locked(folder string) (path, file string, err error) {
	if path, err = filepath.Abs(folder); err != nil {
		return "", "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", "", err
	}
	sum := sha256.Sum256([]byte(path))
	return path, filepath.Join(s.dir, "locks", hex.EncodeToString(sum[:16])+".json"), nil
}

// Of gives the lock of a skill's folder; nil: it has none. A damaged lock is an error,
// whose text is for the operator.
func (s *Store) Of(folder string) (*Lock, error) {
	path, file, err := s.locked(folder)
	if err != nil {
		return nil, err
	}
	l, err := readLock(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case l.Folder != path:
		return nil, fmt.Errorf("the lock %s is of another folder", filepath.Base(file))
	}
	return l, nil
}

// List gives all locks, in order of folder.
func (s *Store) List() ([]*Lock, error) {
	dir := filepath.Join(s.dir, "locks")
	files, err := fs.Glob(os.DirFS(dir), "*.json")
	if err != nil {
		return nil, err
	}
	var list []*Lock
	for _, file := range files {
		l, err := readLock(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b *Lock) int { return strings.Compare(a.Folder, b.Folder) })
	return list, nil
}

func readLock(file string) (*Lock, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxLock+1))
	if err != nil {
		return nil, err
	}
	l, err := parseLock(b)
	if err != nil {
		return nil, fmt.Errorf("cannot read the lock %s of packages: %w", filepath.Base(file), err)
	}
	return l, nil
}

// parseLock reads the lock of a folder of this host.
func parseLock(b []byte) (*Lock, error) {
	l, err := parsePortable(b)
	if err == nil && !filepath.IsAbs(l.Folder) {
		return nil, errors.New("invalid folder")
	}
	return l, err
}

// parsePortable reads the lock of any folder.
func parsePortable(b []byte) (*Lock, error) {
	if len(b) > maxLock {
		return nil, fmt.Errorf("it has more than %d bytes", maxLock)
	}
	l := &Lock{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(l); err != nil {
		return nil, err
	}
	switch {
	case d.More():
		return nil, errors.New("unexpected data after its end")
	case l.Format != format:
		return nil, fmt.Errorf("it has the format %d; this version of openskill reads %d", l.Format, format)
	case l.Set != "" && !digestPattern.MatchString(l.Set) || l.Digest != "" && !digestPattern.MatchString(l.Digest) || len(l.Packages) > maxPackages:
		return nil, errors.New("invalid digest, or too many packages")
	}
	for i := range l.Packages {
		p := &l.Packages[i]
		known := p.Ecosystem == Python || p.Ecosystem == NPM
		placed := p.At == "" || p.Ecosystem == NPM && fs.ValidPath(p.At) && strings.HasPrefix(p.At, "node_modules/")
		if !known || !placed || p.Name == "" || p.Digest != "" && !digestPattern.MatchString(p.Digest) || p.Digest != "" && l.Set == "" {
			return nil, fmt.Errorf("invalid package %q", skill.CleanText(p.Name, 80))
		}
	}
	return l, nil
}

// write replaces the lock of a folder, whole or not at all.
func (l *Lock) write(file string) error {
	if l.Digest == "" {
		b, err := l.Portable()
		if err != nil {
			return err
		}
		l.Digest = digest.Of(b)
	}
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
