package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"openskill/host/pysource"
	"openskill/internal/ordered"
	"openskill/sdk/skill"
)

// The bounds of what is imported at once.
const (
	MaxRegistry     = 4 << 20 // bytes of a capability_registry.json
	MaxCapabilities = 1000    // in one
	maxModules      = 50      // that code may import from beside it
)

// Import reads functions that are to become skills: of a capability_registry.json, or of
// a file of Python, of which function names the one. Problems tell of what is left out.
// The error is a *skill.Error.
func (mk *Maker) Import(ctx context.Context, file, function string) ([]*Source, []Problem, error) {
	dir, base := filepath.Split(file)
	if dir == "" {
		dir = "."
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, unreadable(base, err)
	}
	defer root.Close()
	switch strings.ToLower(filepath.Ext(base)) {
	case ".py":
		code, err := read(root, base, pysource.MaxSource)
		if err != nil {
			return nil, nil, unreadable(base, err)
		}
		s := &Source{File: base, Code: code, Function: function}
		problems, err := mk.modules(ctx, root, s)
		return []*Source{s}, problems, err
	case ".json":
		text, err := read(root, base, MaxRegistry)
		if err != nil {
			return nil, nil, unreadable(base, err)
		}
		return mk.registry(ctx, root, base, text, function)
	}
	return nil, nil, &skill.Error{
		Op: "capability.Import", Code: skill.InvalidArgument, Subject: skill.CleanText(base, 80),
		Message: "import a capability from a Python file (.py) or a capability_registry.json",
	}
}

func unreadable(base string, err error) error {
	message := "cannot be read"
	switch large, ok := errors.AsType[*tooLargeError](err); {
	case errors.Is(err, fs.ErrNotExist):
		message = "file not found"
	case ok:
		message = large.Error()
	}
	return &skill.Error{
		Op: "capability.Import", Code: skill.InvalidArgument, Subject: skill.CleanText(base, 80),
		Message: skill.CleanText(base, 80) + ": " + message, Err: err,
	}
}

type tooLargeError struct{ most int }

func (e *tooLargeError) Error() string { return fmt.Sprintf("it is over %d bytes", e.most) }

// read reads a regular file that no link leads out of the root to.
func read(root *os.Root, name string, most int) ([]byte, error) {
	info, err := root.Stat(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(b) > most {
		err = &tooLargeError{most}
	}
	return b, err
}

// modules finds what code imports from beside it, and what that imports.
func (mk *Maker) modules(ctx context.Context, root *os.Root, s *Source) ([]Problem, error) {
	folder := path.Dir(filepath.ToSlash(s.File))
	s.Modules = map[string][]byte{}
	var problems []Problem
	type waiting struct {
		file string
		code []byte
	}
	queue := []waiting{{s.File, s.Code}}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		m, err := mk.o.Analyzer.Ask(ctx, mk.o.Tenant, at.code, pysource.Question{})
		if err != nil {
			if skill.CodeOf(err) == skill.InvalidArgument {
				continue // Make tells of it
			}
			return nil, err
		}
		for _, i := range m.Imports {
			if i.Level > 0 {
				problems = append(problems, Problem{at.file, i.Line, "a relative import needs a package around the file; import the module by its name"})
				continue
			}
			top, _, _ := strings.Cut(i.Module, ".")
			name := top + ".py"
			if _, known := s.Modules[name]; known || top == "" || name == path.Base(filepath.ToSlash(s.File)) {
				continue
			}
			code, err := read(root, path.Join(folder, name), pysource.MaxSource)
			if err != nil {
				continue // of the library, or not there: the call will say so
			}
			if len(s.Modules) == maxModules {
				return append(problems, Problem{at.file, i.Line, fmt.Sprintf("the code imports more than %d modules from beside it", maxModules)}), nil
			}
			s.Modules[name] = code
			queue = append(queue, waiting{path.Join(folder, name), code})
		}
	}
	return problems, nil
}

// entryOf is one capability of a registry. Keys that are not listed are for others.
type entryOf struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	CodePath    string          `json:"code_path"`
	Entry       string          `json:"entry_function"`
	Schema      json.RawMessage `json:"tool_schema"`
}

// registry reads a capability_registry.json: a list of capabilities, an object of them by
// id, or either under the key capabilities.
func (mk *Maker) registry(ctx context.Context, root *os.Root, base string, text []byte, only string) ([]*Source, []Problem, error) {
	list, err := entries(text)
	if err != nil {
		return nil, nil, &skill.Error{
			Op: "capability.Import", Code: skill.InvalidArgument, Subject: skill.CleanText(base, 80),
			Message: "not a capability registry: " + skill.CleanText(err.Error(), 200), Err: err,
		}
	}
	if len(list) > MaxCapabilities {
		return nil, nil, &skill.Error{
			Op: "capability.Import", Code: skill.InvalidArgument, Subject: skill.CleanText(base, 80),
			Message: fmt.Sprintf("the registry has too many capabilities: %d, the limit is %d", len(list), MaxCapabilities),
		}
	}
	var sources []*Source
	var problems []Problem
	taken := map[string]string{}
	for _, e := range list {
		called := skill.CleanText(e.Name, 80)
		if called == "" {
			called = skill.CleanText(e.ID, 80)
		}
		report := func(format string, args ...any) {
			problems = append(problems, Problem{base, 0, called + ": " + fmt.Sprintf(format, args...)})
		}
		if only != "" && e.Entry != only && e.Name != only && e.ID != only {
			continue
		}
		file, problem := inside(e.CodePath)
		if problem != "" {
			report("code_path %q %s", skill.CleanText(e.CodePath, 120), problem)
			continue
		}
		if e.Entry == "" {
			report("entry_function is missing: the name of a function of the file")
			continue
		}
		code, err := read(root, file, pysource.MaxSource)
		if err != nil {
			switch large, ok := errors.AsType[*tooLargeError](err); {
			case ok:
				report("code_path %q: %s", skill.CleanText(e.CodePath, 120), large)
			case errors.Is(err, fs.ErrNotExist):
				report("code_path %q: file not found in the registry's folder", skill.CleanText(e.CodePath, 120))
			default: // a link out of the folder too: what it leads to is not told
				report("code_path %q cannot be read: it must be a regular file in the folder of the registry", skill.CleanText(e.CodePath, 120))
			}
			continue
		}
		s := &Source{File: file, Code: code, Function: e.Entry, ID: e.ID, Name: e.Name, Description: e.Description}
		if s.Declared, err = ParseDeclared(e.Schema); err != nil {
			report("tool_schema: %s", skill.CleanText(err.Error(), 200))
			continue
		}
		id, wrong := s.id(e.Entry)
		if wrong == "" && taken[string(id)] != "" {
			report("skipped: its skill id %s is taken by %s", id, taken[string(id)])
			continue
		}
		taken[string(id)] = called
		more, err := mk.modules(ctx, root, s)
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, more...)
		sources = append(sources, s)
	}
	if only != "" && len(sources) == 0 && len(problems) == 0 {
		problems = append(problems, Problem{base, 0, "capability not found: " + skill.CleanText(only, 80)})
	}
	return sources, problems, nil
}

// inside checks that a path stays in the folder of the registry.
func inside(p string) (clean, problem string) {
	slashed := strings.ReplaceAll(p, "\\", "/")
	switch {
	case p == "":
		return "", "is missing: the path of a Python file, relative to the registry"
	case strings.ContainsRune(p, 0) || len(p) > 1000:
		return "", "is no path"
	case path.IsAbs(slashed) || len(slashed) > 1 && slashed[1] == ':':
		return "", "must be relative to the folder of the registry, and stay in it"
	case slices.Contains(strings.Split(slashed, "/"), ".."):
		return "", "must not leave the folder of the registry: it has a .."
	case !strings.HasSuffix(strings.ToLower(slashed), ".py"):
		return "", "must be a file of Python, .py"
	}
	return path.Clean(slashed), ""
}

func entries(text []byte) ([]entryOf, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	v, err := ordered.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if o, ok := v.(*ordered.Object); ok && o.Has("capabilities") {
		v = o.Get("capabilities")
	}
	var list []entryOf
	add := func(id string, v any) error {
		o, ok := v.(*ordered.Object)
		if !ok {
			return errors.New("a capability must be an object with id, name, code_path and entry_function")
		}
		e := entryOf{ID: o.Text("id"), Name: o.Text("name"), Description: o.Text("description"), CodePath: o.Text("code_path"), Entry: o.Text("entry_function")}
		if e.ID == "" {
			e.ID = id
		}
		if s := o.Get("tool_schema"); s != nil {
			raw, err := ordered.Encode(s)
			if err != nil {
				return err
			}
			e.Schema = raw
		}
		list = append(list, e)
		return nil
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := add("", e); err != nil {
				return nil, err
			}
		}
	case *ordered.Object:
		if v.Has("code_path") { // one alone
			err := add("", v)
			return list, err
		}
		for _, m := range v.Members {
			if _, isObject := m.Value.(*ordered.Object); !isObject {
				continue // version, created_at and the like
			}
			if err := add(m.Key, m.Value); err != nil {
				return nil, err
			}
		}
	default:
		return nil, errors.New("it must be a list or an object of capabilities")
	}
	return list, nil
}
