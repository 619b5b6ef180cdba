// The lock remembers what was pulled into a folder of skills, in the file
// openskill.lock: each skill's version and digest, where it came from and who signed it.
//
// By it the same skills can be had again somewhere else, an older version is known for
// one, and a host knows that what was pulled is not the operator's own. So does it by the
// mark in each pulled folder. What the operator trusts by name is in the state folder.

package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// LockName is the name of the file, beside the skills' folders.
const LockName = "openskill.lock"

// What a file may hold.
const (
	maxLock   = 4 << 20 // bytes
	maxSkills = 10_000
)

// LockGeneration is that of the format.
const LockGeneration = 1

// Lock is what the file says.
type Lock struct {
	Lock   int                     `json:"lock"`
	Skills map[skill.ID]*LockEntry `json:"skills"`
}

// LockEntry is one skill.
type LockEntry struct {
	Version   string      `json:"version"`
	Digest    string      `json:"digest"`    // of the skill's folder
	Reference string      `json:"reference"` // host/repository:tag, or bundle
	Manifest  string      `json:"manifest"`  // digest of the OCI manifest
	Publisher string      `json:"publisher"` // "" where the policy had no name for it
	Key       string      `json:"key"`       // by which it was verified; "": it was taken unsigned
	Trust     skill.Trust `json:"trust"`
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// ReadLock reads the file of a folder. Where there is none, nothing is locked. A damaged file
// is an error, whose text is for the operator.
func ReadLock(folder string) (*Lock, error) {
	b, info, err := readLockFile(filepath.Join(folder, LockName), LockName)
	switch {
	case err != nil:
		return nil, err
	case info == nil:
		return &Lock{Lock: LockGeneration, Skills: map[skill.ID]*LockEntry{}}, nil
	}
	return ParseLock(b)
}

// readSmall reads a regular file of at most maxFile bytes. info is nil where there is none.
func readLockFile(path, name string) (b []byte, info fs.FileInfo, err error) {
	info, err = os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, named(err)
	case !info.Mode().IsRegular():
		return nil, nil, errors.New(name + " is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, named(err)
	}
	defer f.Close()
	b, err = io.ReadAll(io.LimitReader(f, maxLock+1))
	if err == nil && len(b) > maxLock {
		err = fmt.Errorf("%s has more than %d bytes", name, maxLock)
	}
	return b, info, named(err)
}

// ParseLock reads the content of a file.
func ParseLock(b []byte) (*Lock, error) {
	if len(b) > maxLock {
		return nil, fmt.Errorf("%s has more than %d bytes", LockName, maxLock)
	}
	f := &Lock{Skills: map[skill.ID]*LockEntry{}}
	err := object(b, map[string]func([]byte) error{
		"lock": func(v []byte) error { return json.Unmarshal(v, &f.Lock) },
		"skills": func(v []byte) error {
			return strictjson.Object(v, func(key, value []byte) error {
				id, err := skill.ParseID(string(key))
				if err != nil || len(f.Skills) == maxSkills {
					return fmt.Errorf("invalid skill id %q, or more than %d skills", skill.CleanText(string(key), 80), maxSkills)
				}
				if f.Skills[id], err = entry(value); err != nil {
					return fmt.Errorf("%s: %w", id, err)
				}
				return nil
			})
		},
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", LockName, err)
	case f.Lock != LockGeneration:
		return nil, fmt.Errorf("%s has the format %d; this version of openskill reads %d", LockName, f.Lock, LockGeneration)
	}
	return f, nil
}

func entry(b []byte) (*LockEntry, error) {
	e := &LockEntry{}
	fields := map[string]func([]byte) error{
		"trust": func(v []byte) error {
			if err := json.Unmarshal(v, &e.Trust); err != nil || e.Trust != skill.Community && e.Trust != skill.Trusted {
				return errors.New("trust must be community or trusted")
			}
			return nil
		},
	}
	for name, to := range map[string]*string{
		"version": &e.Version, "digest": &e.Digest, "reference": &e.Reference, "manifest": &e.Manifest,
		"publisher": &e.Publisher, "key": &e.Key,
	} {
		fields[name] = func(v []byte) error { return json.Unmarshal(v, to) }
	}
	if err := object(b, fields); err != nil {
		return nil, err
	}
	if e.Version == "" || e.Reference == "" || !digestPattern.MatchString(e.Digest) || !digestPattern.MatchString(e.Manifest) {
		return nil, errors.New("needs a version, a reference and two digests")
	}
	return e, nil
}

// object reads an object whose keys are known.
func object(b []byte, known map[string]func([]byte) error) error {
	return strictjson.Object(b, func(key, value []byte) error {
		read, ok := known[string(key)]
		if !ok {
			return fmt.Errorf("unknown key %q", skill.CleanText(string(key), 80))
		}
		return read(value)
	})
}

// Encode gives the file's content: the same for the same skills.
func (f *Lock) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(f, "", "  ")
	return append(b, '\n'), err
}

// plain takes the path out of a file error.
func named(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", filepath.Base(pe.Path), pe.Err)
	}
	return err
}
