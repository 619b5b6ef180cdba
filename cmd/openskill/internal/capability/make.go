package capability

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
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
	"unicode"

	"openskill/host/agent/tools"
	"openskill/host/manifest"
	"openskill/host/pysource"
	"openskill/internal/ordered"
	"openskill/sdk/skill"
)

//go:embed entry.py
var entryProgram string

// entryFile is the program of a skill that was made.
const entryFile = "openskill_entry.py"

// codeFolder is where the code of a skill that was made is, so that no name of its files
// hides a module of the library.
const codeFolder = "code"

// made begins the manifest of every skill that was made.
const made = "# Made by openskill from "

// Options say how skills are made. Analyzer is needed.
type Options struct {
	Analyzer Analyzer
	Tenant   string // whose code it is
	// Package gives the package, as manifests require it, that has a top-level module,
	// "" where none has; nil: there are no packages.
	Package func(module string) string
}

// Maker makes skills of functions. It is safe for concurrent use.
type Maker struct{ o Options }

// New makes a maker.
func New(o Options) *Maker { return &Maker{o} }

// Source is a function that is to become a skill.
type Source struct {
	File     string // as it is named in problems
	Code     []byte // of the file
	Function string // "": the one that [Extract] finds

	ID          string // of the skill, where it is one; "": of the name, or of the function
	Name        string // in another form; ""
	Description string // ""; of the docstring
	// Modules are the files beside it that it imports, by their names.
	Modules map[string][]byte
	// Declared is what is said of the parameters elsewhere; nil: nothing.
	Declared *Declared
}

// Skill is a skill that was made: a manifest and its files.
type Skill struct {
	ID       skill.ID
	Function *Function
	Manifest []byte
	Files    map[string][]byte // by their paths in the folder, skill.yaml too
}

// Make makes a skill of a function. Problems are what its author must mend; the error is
// what the host could not do.
func (mk *Maker) Make(ctx context.Context, s *Source) (*Skill, []Problem, error) {
	f, problems, err := Extract(ctx, mk.o.Analyzer, mk.o.Tenant, s.Code, s.Function)
	if err != nil || len(problems) > 0 {
		return nil, in(s.File, problems), err
	}
	if s.Declared != nil {
		if problems := s.Declared.merge(f); len(problems) > 0 {
			return nil, in(s.File, problems), nil
		}
	}
	id, problem := s.id(f.Name)
	if problem != "" {
		return nil, in(s.File, []Problem{at(f.Line, problem)}), nil
	}
	f.Input = tools.Schema(f.Input) // what was declared is cleaned too
	if _, errs := manifest.CompileSchema(f.Input); len(errs) > 0 {
		return nil, in(s.File, []Problem{at(f.Line, "the parameters of "+f.Name+" make no schema that is accepted: "+errs[0].Error())}), nil
	}
	if _, errs := manifest.CompileSchema(f.Output); len(errs) > 0 {
		f.Output = json.RawMessage(`{"type":"object"}`)
	}
	out := &Skill{ID: id, Function: f, Files: map[string][]byte{}}
	base := fileName(s.File)
	out.Files[path.Join(codeFolder, base)] = s.Code
	for name, code := range s.Modules {
		out.Files[path.Join(codeFolder, name)] = code
	}
	target, err := target(f, path.Join(codeFolder, base))
	if err != nil {
		return nil, nil, &skill.Error{Op: "capability.Make", Code: skill.Internal, Err: err}
	}
	out.Files[entryFile] = []byte(strings.Replace(entryProgram, "TARGET = {}", "TARGET = "+target, 1))
	description := skill.CleanText(s.Description, maxDescription)
	if description == "" {
		description = f.Description
	}
	if description == "" {
		description = "Calls the function " + f.Name + "."
	}
	f.Description = description
	out.Manifest = mk.manifest(out, base)
	out.Files["skill.yaml"] = out.Manifest
	return out, nil, nil
}

func in(file string, list []Problem) []Problem {
	for i := range list {
		list[i].File = file
	}
	return list
}

// target writes what entry.py knows of the function, as a literal of Python, which JSON
// of texts and lists is.
func target(f *Function, file string) (string, error) {
	list := []any{}
	for _, p := range f.parameters {
		list = append(list, []any{p[0], p[1]})
	}
	b, err := ordered.Encode(ordered.Of("file", file, "function", f.Name, "parameters", list))
	return string(b), err
}

// fileName is the name that the code has in the skill.
func fileName(file string) string {
	base := path.Base(filepath.ToSlash(file))
	if base = strings.TrimSuffix(base, ".py"); base == "" || base == "." || base == "/" || len(base) > 80 {
		return "capability.py"
	}
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, base) + ".py"
}

// id is the id of the skill, or what is wrong with it.
func (s *Source) id(function string) (skill.ID, string) {
	for _, name := range []string{s.Name, function, s.ID} {
		if id, err := skill.ParseID(asID(name)); err == nil && len(name) > 0 {
			return id, ""
		}
	}
	return "", fmt.Sprintf("cannot make a skill id of the name %q: use 1 to 64 of a-z, 0-9, _ and single -, beginning with a letter or digit", skill.CleanText(s.Name+function, 80))
}

// asID writes a name as an id where only case, spaces and dots keep it from being one.
func asID(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == ' ' || r == '.':
			return '_'
		}
		return r
	}, strings.TrimSpace(name))
}

// manifest writes the skill.yaml. What comes from elsewhere is in it as JSON, which YAML
// takes as it is.
func (mk *Maker) manifest(s *Skill, base string) []byte {
	sum := sha256.New()
	for _, name := range sorted(s.Files) {
		_, _ = fmt.Fprintf(sum, "%d %s %d\n", len(name), name, len(s.Files[name])) // a hash takes everything
		sum.Write(s.Files[name])
	}
	var b bytes.Buffer
	line := func(key, value string) { b.WriteString(key + ": " + value + "\n") }
	b.WriteString(made + base + "; recreated when that changes.\n")
	line("id", string(s.ID))
	line("version", "0.1.0+"+hex.EncodeToString(sum.Sum(nil))[:12])
	line("description", yaml(s.Function.Description))
	line("type", "wasm")
	line("runtime", "python")
	line("entry", entryFile)
	line("permissions", "{}")
	if list := mk.requires(s.Function.imports); len(list) > 0 {
		line("requires", yaml(list))
	}
	line("build", "{language: none}")
	line("input_schema", yaml(s.Function.Input))
	line("output_schema", yaml(s.Function.Output))
	return b.Bytes()
}

// yaml writes a value as JSON in which no character stands that YAML refuses.
func yaml(v any) string {
	if raw, ok := v.(json.RawMessage); ok {
		if o, err := ordered.Decode(raw); err == nil {
			v = o
		}
	}
	text, err := ordered.Encode(v)
	if err != nil {
		return "{}"
	}
	var b strings.Builder
	for _, r := range string(text) {
		if r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			_, _ = fmt.Fprintf(&b, `\u%04x`, r) // a Builder takes everything
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// requires are the packages whose modules the code imports at its beginning.
func (mk *Maker) requires(imports []pysource.Import) (list []any) {
	if mk.o.Package == nil {
		return nil
	}
	var names []string
	for _, i := range imports {
		if i.Level > 0 || i.TypeChecking {
			continue
		}
		top, _, _ := strings.Cut(i.Module, ".")
		if p := mk.o.Package(top); p != "" && !slices.Contains(names, p) {
			names = append(names, p)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		list = append(list, n)
	}
	return list
}

func sorted(files map[string][]byte) []string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Write puts a skill into a folder of its id below dir, whole or not at all, in the place
// of one that was made before. A folder that was not made is left alone: that is a
// CONFLICT. Others may write the same at once. The error is a *skill.Error.
func (s *Skill) Write(dir string) (folder string, err error) {
	folder = filepath.Join(dir, string(s.ID))
	for range 10 { // until no other is in the way
		old := false
		if _, err := os.Lstat(folder); err == nil {
			manifest, err := os.ReadFile(filepath.Join(folder, "skill.yaml"))
			switch {
			case err != nil && errors.Is(err, fs.ErrNotExist) && gone(folder):
				continue
			case err != nil || !bytes.HasPrefix(manifest, []byte(made)):
				return "", &skill.Error{
					Op: "capability.Write", Code: skill.Conflict, Subject: string(s.ID),
					Message: fmt.Sprintf("the folder %s exists and was not generated; move it away, or choose another folder", s.ID),
				}
			}
			old = true
		}
		if err = s.write(dir, folder, old); err == nil {
			return folder, nil
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return "", &skill.Error{Op: "capability.Write", Code: skill.Internal, Subject: string(s.ID), Message: "cannot write the skill", Err: err}
}

func gone(folder string) bool {
	_, err := os.Lstat(folder)
	return errors.Is(err, fs.ErrNotExist)
}

// write puts the files into a new folder, which it then gives its name. The error is
// fs.ErrExist or fs.ErrNotExist where another was faster.
func (s *Skill) write(dir, folder string, old bool) (err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	half, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return err
	}
	away := half + "-old"
	defer func() { err = errors.Join(err, os.RemoveAll(half), os.RemoveAll(away)) }()
	if err := os.Chmod(half, 0o750); err != nil {
		return err
	}
	for _, name := range sorted(s.Files) {
		file := filepath.Join(half, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(file, s.Files[name], 0o600); err != nil {
			return err
		}
	}
	if old {
		if err := os.Rename(folder, away); err != nil {
			return err
		}
	}
	return os.Rename(half, folder)
}
