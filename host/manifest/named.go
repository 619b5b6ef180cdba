package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"

	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// NamedFile is the name of the file, in the state folder, of the skills that the operator
// trusts by name. It is not beside the skills: what comes with them vouches for nothing.
const NamedFile = "trusted.json"

// Named is what the file says: the names of trusted skills by the digests of their folders.
// The zero value has none. It is not changed.
type Named struct{ skills map[string]skill.ID }

// ReadNamed reads the file of a state folder; "" has none. Where it is damaged, or others
// may write it, nothing is trusted by name, and the error is for the operator.
func ReadNamed(stateDir string) (*Named, error) {
	if stateDir == "" {
		return &Named{}, nil
	}
	b, info, err := readLockFile(filepath.Join(stateDir, NamedFile), NamedFile)
	switch {
	case err != nil:
		return &Named{}, err
	case info == nil:
		return &Named{}, nil
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0:
		return &Named{}, errors.New(NamedFile + " is writable by other users: check it, then run chmod go-w on it")
	}
	n := &Named{skills: map[string]skill.ID{}}
	generation := 0
	err = object(b, map[string]func([]byte) error{
		"trusted": func(v []byte) error { return json.Unmarshal(v, &generation) },
		"skills": func(v []byte) error {
			return strictjson.Object(v, func(key, value []byte) error {
				var name string
				if err := json.Unmarshal(value, &name); err != nil {
					return err
				}
				id, err := skill.ParseID(name)
				if err != nil || !digestPattern.Match(key) || len(n.skills) == maxSkills {
					return fmt.Errorf("use at most %d digests, each with the name of a skill", maxSkills)
				}
				n.skills[string(key)] = id
				return nil
			})
		},
	})
	switch {
	case err != nil:
		return &Named{}, fmt.Errorf("cannot read %s: %w", NamedFile, err)
	case generation != LockGeneration:
		return &Named{}, fmt.Errorf("%s has the format %d; this version of openskill reads %d", NamedFile, generation, LockGeneration)
	}
	return n, nil
}

// Has reports whether the operator trusts the folder with this digest.
func (n *Named) Has(digest string) bool { return n.skills[digest] != "" }

// change has a name trusted with one digest, and with no other; "" for none. It gives the
// digests that the name was trusted with before. Commands that change the file at once wait
// for each other.
func change(ctx context.Context, stateDir string, name skill.ID, digest string) (before []string, err error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, named(err)
	}
	l := flock.New(filepath.Join(stateDir, NamedFile+".lock"))
	if _, err := l.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return nil, named(err)
	}
	defer l.Close()
	now, err := ReadNamed(stateDir)
	if err != nil {
		return nil, err
	}
	next := maps.Clone(now.skills)
	for d, of := range now.skills {
		if of == name {
			before = append(before, d)
			delete(next, d)
		}
	}
	if digest != "" {
		if next == nil {
			next = map[string]skill.ID{}
		}
		next[digest] = name
	}
	b, err := json.MarshalIndent(map[string]any{"trusted": LockGeneration, "skills": next}, "", "  ")
	if err != nil {
		return nil, err
	}
	return before, replace(filepath.Join(stateDir, NamedFile), append(b, '\n'))
}

// Trust has the operator trust a skill, as its folder is with this digest.
func Trust(ctx context.Context, stateDir string, name skill.ID, digest string) error {
	_, err := change(ctx, stateDir, name, digest)
	return err
}

// Untrust takes that back. It reports whether the skill was trusted by name.
func Untrust(ctx context.Context, stateDir string, name skill.ID) (bool, error) {
	before, err := change(ctx, stateDir, name, "")
	return len(before) > 0, err
}

// replace writes a file through to the disk, whole or not at all.
func replace(to string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".new-") // for its owner alone
	if err != nil {
		return named(err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), to)
	}
	if err != nil {
		return errors.Join(named(err), os.Remove(f.Name()))
	}
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return named(err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}
