package capability

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"openskill/host/pyast"
	"openskill/sdk/skill"
)

// problemsFile is where Sync keeps what it found wrong, beside the skills.
const problemsFile = ".problems.json"

// unused is how long what no Sync asked for is kept: another host may still run it.
const unused = 24 * time.Hour

// Sync makes skills of files (of Python, or capability registries) below dir, and gives
// the folders of skills, one a file, for a host to read. What was made of the same text
// before is there already and costs no look at the code: a file's folder is named by the
// digest of its text, of the Python beside it, and of what makes skills. What is not asked
// for any more goes after a day. A file that cannot be read is a problem; the error is a
// *skill.Error.
func (mk *Maker) Sync(ctx context.Context, dir string, files []string) (folders []string, problems []Problem, err error) {
	used := map[string]bool{}
	for _, file := range files {
		name, err := fingerprint(file)
		if err != nil {
			problems = append(problems, Problem{File: file, Message: plainly(err)})
			continue
		}
		folder := filepath.Join(dir, name)
		used[name] = true
		found, err := kept(folder)
		if err != nil {
			if found, err = mk.sync(ctx, file, dir, folder); err != nil {
				return nil, nil, err
			}
		}
		folders = append(folders, folder)
		for _, p := range found {
			p.File = path.Join(filepath.ToSlash(filepath.Dir(file)), p.File)
			problems = append(problems, p)
		}
	}
	if err := mk.sweep(dir, used); err != nil {
		return nil, nil, &skill.Error{Op: "capability.Sync", Code: skill.Internal, Err: err}
	}
	return folders, problems, nil
}

func plainly(err error) string {
	var e *skill.Error
	if errors.As(err, &e) && e.Message != "" {
		return e.Message
	}
	return "it cannot be read"
}

// kept gives the problems of a folder that was made, and marks it as used.
func kept(folder string) (problems []Problem, err error) {
	b, err := os.ReadFile(filepath.Join(folder, problemsFile)) //nolint:gosec // of the state folder
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &problems); err != nil {
		return nil, err
	}
	now := time.Now() //nolint:forbidigo // compared with the times of files
	return problems, os.Chtimes(folder, now, now)
}

// sync makes the skills of one file in a new folder, which it then gives its name.
func (mk *Maker) sync(ctx context.Context, file, dir, folder string) (problems []Problem, err error) {
	problems = []Problem{}
	sources, found, err := mk.Import(ctx, file, "")
	switch {
	case skill.CodeOf(err) == skill.InvalidArgument:
		found = append(found, Problem{File: filepath.Base(file), Message: plainly(err)})
	case err != nil:
		return nil, err
	}
	problems = append(problems, found...)
	internal := func(err error) error { return &skill.Error{Op: "capability.Sync", Code: skill.Internal, Err: err} }
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, internal(err)
	}
	half, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return nil, internal(err)
	}
	defer func() {
		if e := os.RemoveAll(half); e != nil && err == nil {
			err = internal(e)
		}
	}()
	for _, s := range sources {
		made, found, err := mk.Make(ctx, s)
		if err != nil {
			return nil, err
		}
		if problems = append(problems, found...); made == nil {
			continue
		}
		if _, err := made.Write(half); err != nil {
			return nil, err
		}
	}
	b, err := json.Marshal(problems)
	if err == nil {
		err = os.WriteFile(filepath.Join(half, problemsFile), b, 0o600)
	}
	if err == nil {
		if err = os.Rename(half, folder); errors.Is(err, fs.ErrExist) {
			if _, e := kept(folder); e == nil {
				err = nil // another host was faster
			}
		}
	}
	if err != nil {
		return nil, internal(err)
	}
	return problems, nil
}

// sweep removes what no one asked for since a day, and what was left half made.
func (mk *Maker) sweep(dir string, used map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		ours := strings.HasPrefix(e.Name(), prefix) || strings.HasPrefix(e.Name(), ".new-")
		if err != nil || !e.IsDir() || !ours || used[e.Name()] || time.Since(info.ModTime()) < unused { //nolint:forbidigo // compared with the times of files
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// prefix begins the names of folders that Sync makes.
const prefix = "cap-"

// maxBeside bounds the files that count for a digest.
const maxBeside = 1000

// fingerprint is the name of the folder of what is made of a file.
func fingerprint(file string) (string, error) {
	dir, base := filepath.Split(file)
	if dir == "" {
		dir = "."
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", unreadable(base, err)
	}
	defer root.Close() //nolint:errcheck // read only
	text, err := read(root, base, MaxRegistry)
	if err != nil {
		return "", unreadable(base, err)
	}
	sum := sha256.New()
	add := func(name string, b []byte) { _, _ = fmt.Fprintf(sum, "%d %s %x\n", len(name), name, sha256.Sum256(b)) } // a hash takes everything
	add("maker 1", []byte(entryProgram+pyast.Digest()))
	add(base, text)
	places := []string{"."}
	if strings.EqualFold(filepath.Ext(base), ".json") {
		places = nil
		list, _ := entries(text) // what is wrong with it is told when skills are made of it
		for _, e := range list {
			if code, problem := inside(e.CodePath); problem == "" && !slices.Contains(places, path.Dir(code)) {
				places = append(places, path.Dir(code))
			}
		}
	}
	slices.Sort(places)
	count := 0
	for _, place := range places {
		list, err := fs.ReadDir(root.FS(), place)
		if err != nil {
			continue
		}
		for _, e := range list {
			if !strings.HasSuffix(e.Name(), ".py") {
				continue
			}
			if count++; count > maxBeside {
				return "", &skill.Error{
					Op: "capability.Sync", Code: skill.InvalidArgument, Subject: skill.CleanText(base, 80),
					Message: fmt.Sprintf("there are more than %d files of Python beside it", maxBeside),
				}
			}
			name := path.Join(place, e.Name())
			if code, err := read(root, name, pyast.MaxSource); err == nil {
				add(name, code)
			}
		}
	}
	return prefix + hex.EncodeToString(sum.Sum(nil))[:32], nil
}
