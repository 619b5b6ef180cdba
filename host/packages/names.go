package packages

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Given are the packages of a folder by the names that its scripts import them by.
type Given struct {
	Lock    *Lock           // nil: the folder has none
	Modules map[string]bool // top-level modules of Python
	NPM     map[string]bool // packages of npm that scripts find
}

// Given says what the scripts of a folder can import of its packages. The error is a *skill.Error.
func (s *Store) Given(folder string) (*Given, error) {
	g := &Given{Modules: map[string]bool{}, NPM: map[string]bool{}}
	var err error
	if g.Lock, err = s.Of(folder); err != nil {
		return nil, damaged(err)
	}
	if g.Lock == nil {
		return g, nil
	}
	for i := range g.Lock.Packages {
		if p := &g.Lock.Packages[i]; p.At != "" && strings.Count(p.At, "node_modules/") == 1 {
			g.NPM[scoped(p.At)] = true
		}
	}
	entries, err := os.ReadDir(filepath.Join(s.set(g.Lock.Set), "python"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, damaged(err)
	}
	for _, e := range entries {
		if name, isFile := strings.CutSuffix(e.Name(), ".py"); isFile || e.IsDir() && !strings.Contains(name, ".") {
			g.Modules[name] = true
		}
	}
	return g, nil
}

// Has reports whether a set has a package. set is the folder of a set; "": an empty one.
func Has(set string, r Requirement) bool {
	if set == "" {
		return false
	}
	if r.Ecosystem == NPM {
		info, err := os.Stat(filepath.Join(set, "node_modules", filepath.FromSlash(r.Name)))
		return err == nil && info.IsDir()
	}
	entries, _ := os.ReadDir(filepath.Join(set, "python")) // none: it has none of Python
	for _, e := range entries {
		if info, is := strings.CutSuffix(e.Name(), ".dist-info"); is {
			if name, _, _ := strings.Cut(info, "-"); normal(name) == r.Name {
				return true
			}
		}
	}
	return false
}

// Names lists the packages of a lock, as in python:requests 2.34.2; nil for none.
func (l *Lock) Names() (list []string) {
	if l == nil {
		return nil
	}
	for i := range l.Packages {
		list = append(list, l.Packages[i].String())
	}
	return list
}
