// Command engine makes the compiler that openSkill is built with: wazero as go.mod names
// it, with the edits of wasm/edits. It takes wazero from Go's module cache, which go.sum
// holds to its hash, copies it into the state folder, edits the copy, and has the go command
// and gopls use it by a go.work beside each go.mod. Nothing of wazero is part of this project,
// and without those files the project builds with wazero as it is.
//
//	GOWORK=off go -C lab run ./engine STATE
//
// An edit begins with what it is for; then come lines "File: HASH NAME" with the SHA-256 of each
// file before the edit, and a diff. Where a hash differs nothing is edited, and it exits with 1.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"golang.org/x/mod/modfile"
)

const (
	product = "openskill"
	wazero  = "github.com/tetratelabs/wazero"
	// named is the file of the copy that says which edits it has.
	named = "internal/version/edits.go"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: engine STATE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(1)
	}
}

func run(state string) error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	edits, err := read(filepath.Join(root, "wasm", "edits"))
	if err != nil {
		return err
	}
	// Relative within the project: then the path is the same in every clone.
	at, err := filepath.Abs(filepath.Join(state, "engine", edits.digest))
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(at, named)); errors.Is(err, fs.ErrNotExist) {
		if err := edits.make(at); err != nil {
			return err
		}
	}
	if err := workspaces(root, at); err != nil {
		return err
	}
	return sweep(at, time.Now())
}

// unused is how long a copy that no make was for is kept: other clones and worktrees may
// share the state folder and build with it.
const unused = 24 * time.Hour

// sweep marks the copy as used now, and removes the others in its folder that are unused.
func sweep(at string, now time.Time) error {
	if err := os.Chtimes(at, now, now); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Dir(at))
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // another one removed it
			continue
		}
		if err != nil {
			return err
		}
		if !info.IsDir() || e.Name() == filepath.Base(at) || now.Sub(info.ModTime()) < unused {
			continue
		}
		if err := os.RemoveAll(filepath.Join(filepath.Dir(at), e.Name())); err != nil {
			return err
		}
		fmt.Printf("engine: removed the copy %s, which nothing was built with for a day\n", e.Name())
	}
	return nil
}

// edits are those of the folder, in the order of their names.
type edits struct {
	list   []edit
	digest string // of them all
}

type edit struct {
	name   string
	before map[string]string // the SHA-256 of each file before it, in hexadecimal digits
	files  []*gitdiff.File
}

func read(folder string) (*edits, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("%s has no edits: %w", folder, err)
	}
	var all edits
	var whole []byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		whole = fmt.Appendf(whole, "%s %d\n%s", filepath.Base(name), len(b), b)
		e := edit{name: filepath.Base(name), before: map[string]string{}}
		for line := range strings.Lines(string(b)) {
			if line, ok := strings.CutPrefix(line, "File: "); ok {
				digest, file, _ := strings.Cut(strings.TrimSpace(line), " ")
				e.before[file] = digest
			}
		}
		if e.files, _, err = gitdiff.Parse(bytes.NewReader(b)); err != nil || len(e.files) == 0 {
			return nil, fmt.Errorf("%s is no diff: %w", e.name, err)
		}
		all.list = append(all.list, e)
	}
	sum := sha256.Sum256(whole)
	all.digest = hex.EncodeToString(sum[:])[:12]
	return &all, nil
}

// make copies wazero to a folder, which is there when it is whole.
func (e *edits) make(at string) error {
	out, err := goCommand("mod", "download", "-json", wazero)
	if err != nil {
		return err
	}
	var module struct{ Dir, Version string }
	if err := json.Unmarshal(out, &module); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(at), "making-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := os.CopyFS(work, os.DirFS(module.Dir)); err != nil {
		return err
	}
	for i := range e.list {
		if err := e.list[i].apply(work); err != nil {
			return err
		}
	}
	names := make([]string, len(e.list))
	for i := range e.list {
		names[i] = strings.TrimSuffix(e.list[i].name, ".patch")
	}
	text := fmt.Sprintf("package version\n\n// Edited tells this copy from others, and EditNames say what was edited.\nconst Edited = %q\n\nvar EditNames = %#v\n", module.Version+"-"+e.digest, names)
	if err := os.WriteFile(filepath.Join(work, named), []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.Rename(work, at); err != nil {
		if _, other := os.Stat(at); other != nil { // else another one was quicker
			return err
		}
	}
	return nil
}

func (e *edit) apply(root string) error {
	for _, f := range e.files {
		name := f.OldName
		if f.IsNew {
			name = f.NewName
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		if !filepath.IsLocal(name) || f.IsDelete || f.IsRename || f.IsCopy || f.IsBinary {
			return fmt.Errorf("%s: %s: an edit changes files or adds some", e.name, name)
		}
		b, err := os.ReadFile(path)
		if f.IsNew {
			if !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s: %s is there already: %w", e.name, name, err)
			}
		} else {
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			if got := sha256.Sum256(b); hex.EncodeToString(got[:]) != e.before[name] {
				return fmt.Errorf("%s: %s has the SHA-256 %x and not %q: the edit is for another version of wazero than the project's, or for other edits before it", e.name, name, got, e.before[name])
			}
		}
		var changed bytes.Buffer
		if err := gitdiff.Apply(&changed, bytes.NewReader(b), f); err != nil {
			return fmt.Errorf("%s: %s: %w", e.name, name, err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, changed.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// workspaces writes a go.work beside each go.mod, for modules beside a go.work are not built
// unless it names them, and one for all would have each built with what the others require.
func workspaces(root, at string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "target"):
			return filepath.SkipDir
		case name != "go.mod":
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		mod, err := modfile.Parse(path, b, nil)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		replace := ""
		if mod.Module.Mod.Path == product || slices.ContainsFunc(mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == product }) {
			to := at
			if rel, err := filepath.Rel(dir, at); err == nil && strings.HasPrefix(at, root+string(filepath.Separator)) {
				to = filepath.ToSlash(rel)
				if !strings.HasPrefix(to, "../") {
					to = "./" + to
				}
			}
			replace = fmt.Sprintf("\nreplace %s => %s\n", wazero, modfile.AutoQuote(to))
		}
		text := fmt.Sprintf("// Written by make. Without it the project builds with wazero as it is.\ngo %s\n\nuse .\n%s", mod.Go.Version, replace)
		return write(filepath.Join(dir, "go.work"), []byte(text))
	})
}

// write keeps a file that is right: the go command looks at when it was changed.
func write(path string, text []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	whole := path + ".new"
	if err := os.WriteFile(whole, text, 0o600); err != nil {
		return err
	}
	return os.Rename(whole, path)
}

func goCommand(args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out, nil
}
