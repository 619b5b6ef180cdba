package soak

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Folders are those of a host that is made for a soak.
type Folders struct{ Root, State, Skills, Data string }

// rateLimit is the key of a manifest that limits the calls a minute.
var rateLimit = regexp.MustCompile(`,\s*rate_limit_per_minute:\s*[0-9_]+|rate_limit_per_minute:\s*[0-9_]+(\s*,)?`)

// MakeFolders makes a host's folders inside state: the runtimes and compiled modules that
// state has are linked into the new one, and the built-in skills are copied out of the
// folder skills without their limits of calls a minute. The caller removes the Root.
func MakeFolders(state, skills string) (f Folders, err error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return f, err
	}
	root, err := os.MkdirTemp(state, "soak-")
	if err != nil {
		return f, err
	}
	if root, err = filepath.Abs(root); err != nil {
		return f, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(root))
		}
	}()
	f = Folders{root, filepath.Join(root, "state"), filepath.Join(root, "skills"), filepath.Join(root, "data")}
	for _, name := range []string{"runtimes", "modules"} {
		if err := link(filepath.Join(state, name), filepath.Join(f.State, name)); err != nil {
			return f, err
		}
	}
	for _, id := range []string{"echo", "calculator", "file_search", "log_transform"} {
		if err := copySkill(filepath.Join(skills, id), filepath.Join(f.Skills, id)); err != nil {
			return f, fmt.Errorf("the skill %s: %w", id, err)
		}
	}
	manifest := "id: " + Spin + "\nversion: 0.1.0\ndescription: Never ends.\ntype: wasm\nruntime: wasi\nentry: spin.wasm\n"
	return f, errors.Join(
		write(filepath.Join(f.Skills, Spin, "skill.yaml"), []byte(manifest)),
		write(filepath.Join(f.Skills, Spin, "spin.wasm"), spinModule),
		write(filepath.Join(f.Data, "notes", "a.txt"), []byte(strings.Repeat("hay and more hay\n", 200))),
		write(filepath.Join(f.Data, "notes", "b.txt"), []byte(strings.Repeat("hay\n", 50)+"a needle in it\n")),
		write(filepath.Join(f.Data, "app.log"), []byte(strings.Repeat("2026-01-05T08:00:00Z INFO server: a line of a log\n", 40))),
	)
}

// copySkill copies the manifest, module and script of a skill.
func copySkill(from, to string) error {
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range files {
		name := e.Name()
		if ext := filepath.Ext(name); name != "skill.yaml" && ext != ".wasm" && ext != ".py" || !e.Type().IsRegular() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if name == "skill.yaml" {
			b = rateLimit.ReplaceAll(b, nil)
		}
		if err := write(filepath.Join(to, name), b); err != nil {
			return err
		}
	}
	return nil
}

// write makes a file that looks as if it had been there for long: one that was just
// written is read again at each call.
func write(path string, b []byte) error {
	old := time.Now().Add(-time.Hour)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600), os.Chtimes(path, old, old))
}

// link makes the files of a folder anew elsewhere, as links where the file system can;
// nobody writes them in place. A folder that is not there has none.
func link(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a host may remove what nobody uses
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		if err := os.Link(path, target); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return copyFile(path, target)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
