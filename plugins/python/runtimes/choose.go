package runtimes

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// For chooses the runtime for a skill: of those that are installed the smallest that
// has what requires names (packages as the package index calls them, without
// versions) and what imports names (modules).
//
// What is required and not there is an error: a *skill.Error of code
// INVALID_MANIFEST if no runtime has it, else TOOL_INVOCATION_ERROR that says what
// to install. What is only imported is not, for a script may do without: it gets the
// scientific runtime where that is installed, and else an ImportError that says how
// to get it (see [Bootstrap]). Modules that no runtime knows are the skill's own.
//
// Where slim is not installed but another one would do, that one is chosen.
func (s *Store) For(requires, imports []string) (string, error) {
	var required []*Package
	for _, name := range requires {
		p := packageNamed(name)
		if p == nil {
			return "", unknownPackage(name)
		}
		required = append(required, p)
	}
	var imported []*Package
	for _, m := range imports {
		top, _, _ := strings.Cut(m, ".")
		if p := packageImported(top); p != nil {
			imported = append(imported, p)
		}
	}
	var best *recipe // of those that have what is required
	for _, r := range s.recipes {
		if !r.has(required) || r.present(s.folder(r)) != nil {
			continue
		}
		if r.has(imported) {
			return r.name, nil
		}
		if best == nil {
			best = r
		}
	}
	if best != nil {
		return best.name, nil
	}
	return "", s.notInstalled(required)
}

// has reports whether a runtime has all these packages.
func (r *recipe) has(all []*Package) bool {
	return !slices.ContainsFunc(all, func(p *Package) bool { return r.packages == nil || !r.packages(p) })
}

// notInstalled says which runtime would do: the first of those that have the packages.
func (s *Store) notInstalled(required []*Package) error {
	for _, r := range s.recipes {
		if !r.has(required) {
			continue
		}
		for _, p := range required {
			if r != s.recipes[0] && !s.recipes[0].has([]*Package{p}) {
				return &skill.Error{
					Op: "runtimes.For", Code: skill.ToolInvocationError, Subject: p.Name,
					Message: fmt.Sprintf("%s needs the %s runtime, which is not installed; the operator must run: openskill runtime install %s", p.Name, r.name, r.name),
				}
			}
		}
		return unavailable(r, r.present(s.folder(r)))
	}
	return &skill.Error{Op: "runtimes.For", Code: skill.Internal, Message: "no runtime has all required packages"}
}

func unknownPackage(name string) error {
	message := fmt.Sprintf("requires: no runtime has the package %q; openskill runtime list --modules scientific lists the available ones", skill.CleanText(name, 80))
	if bare := packageName.FindString(name); bare != name && packageNamed(bare) != nil {
		message = fmt.Sprintf("requires: %q: omit the version and write %q: each runtime has one version", skill.CleanText(name, 80), bare)
	} else if p := packageImported(name); p != nil {
		message = fmt.Sprintf("requires: %q is a module; its package is called %q", name, p.Name)
	}
	return &skill.Error{Op: "runtimes.For", Code: skill.InvalidManifest, Subject: "requires", Message: message}
}

var packageName = regexp.MustCompile(`^[A-Za-z0-9._-]*`)

// CheckRequires reports what is wrong with the key requires of a manifest, wherever
// it is read: an error as [Store.For] gives it, or nil.
func CheckRequires(requires []string) error {
	for _, name := range requires {
		if packageNamed(name) == nil {
			return unknownPackage(name)
		}
	}
	return nil
}

// Undecided reports whether what a script imports can change which runtime [Store.For] gives:
// whether it has the name of a module that only another one has.
func (s *Store) Undecided(requires []string, script []byte) bool {
	now, err := s.For(requires, nil)
	return err == nil && slices.ContainsFunc(Packages(), func(p Package) bool {
		return slices.ContainsFunc(p.Imports, func(module string) bool {
			if !bytes.Contains(script, []byte(module)) {
				return false
			}
			other, err := s.For(requires, []string{module})
			return err == nil && other != now
		})
	})
}
