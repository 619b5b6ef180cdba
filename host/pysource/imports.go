package pysource

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"openskill/internal/digest"
	"openskill/sdk/skill"
)

// mostNames is how many names Imports gives with their modules, which may be long. Of modules
// beyond it the names are left out.
const mostNames = 1000

// Imports gives the modules that a program imports when it runs, sorted, each once: those
// within functions and conditions too, and none that is for type checkers alone. Of what is
// taken from a module, which may be a module in it, it gives module.name.
// A program that cannot be read is an error of code INVALID_ARGUMENT. of says on whose behalf
// it is read, and whether to wait for the runtime.
func (a *Analyzer) Imports(ctx context.Context, of *skill.Spec, source []byte) ([]string, error) {
	path := ""
	if a.o.Cache != "" {
		name := digest.Of(slices.Concat([]byte("modules\n"+Digest()+"\n"+of.Tenant+"\n"), source))
		path = filepath.Join(a.o.Cache, strings.TrimPrefix(name, digest.Prefix)+".json")
		if b, err := os.ReadFile(path); err == nil {
			var names []string
			if json.Unmarshal(b, &names) == nil {
				return names, nil
			}
		}
	}
	m, err := a.Ask(ctx, of.Tenant, source, Question{NoWait: of.NoWait})
	if err != nil {
		return nil, err
	}
	if m.Problem != nil {
		return nil, &skill.Error{Op: "pysource.Imports", Code: skill.InvalidArgument, Message: skill.CleanText(m.Problem.Message, skill.MaxMessage)}
	}
	names := []string{}
	for _, i := range m.Imports {
		if i.Level > 0 || i.TypeChecking || !identifier(i.Module) {
			continue
		}
		if len(i.Names) == 0 || i.Names[0].Name == "*" || len(names)+len(i.Names) > mostNames {
			names = append(names, i.Module)
			continue
		}
		for _, n := range i.Names {
			if name := i.Module + "." + n.Name; identifier(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if path != "" {
		if b, err := json.Marshal(names); err == nil && os.MkdirAll(a.o.Cache, 0o700) == nil {
			a.evict()
			_ = replace(a.o.Cache, path, b) // it is found again where it could not be written
		}
	}
	return names, nil
}

// evict removes the oldest quarter of a cache that is full: tenants decide how many scripts
// there are.
func (a *Analyzer) evict() {
	most := cmp.Or(a.o.Most, 10_000)
	entries, err := os.ReadDir(a.o.Cache)
	if err != nil || len(entries) < most {
		return
	}
	age := func(e os.DirEntry) int64 {
		info, err := e.Info()
		if err != nil {
			return 0 // another one has removed it
		}
		return info.ModTime().UnixNano()
	}
	slices.SortFunc(entries, func(x, y os.DirEntry) int { return cmp.Compare(age(x), age(y)) })
	for _, e := range entries[:len(entries)-most*3/4] {
		_ = os.Remove(filepath.Join(a.o.Cache, e.Name())) // the next one tries again
	}
}

// identifier reports whether a name can be that of a module: what the parser says may be forged.
func identifier(name string) bool {
	return name != "" && len(name) <= 200 && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '.' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
