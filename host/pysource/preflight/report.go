package preflight

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity is how much something stands in a script's way.
type Severity string

// The severities, from the mildest to the worst.
const (
	Runs      Severity = "runs"       // good to know, no obstacle
	MayDiffer Severity = "may_differ" // runs, but may give something else than outside
	CannotRun Severity = "cannot_run" // fails where the script comes to that line
)

func (s Severity) rank() int {
	switch s {
	case CannotRun:
		return 2
	case MayDiffer:
		return 1
	default:
		return 0
	}
}

// worse gives the worse of two; the zero value is the mildest.
func worse(a, b Severity) Severity {
	if b.rank() > a.rank() {
		return b
	}
	if a == "" {
		return Runs
	}
	return a
}

// Kind is what a finding is about.
type Kind string

// The kinds. The list only grows.
const (
	KindImport      Kind = "import"      // a module that is not there, or that chooses a runtime
	KindProcess     Kind = "process"     // other programs
	KindThread      Kind = "thread"      // threads and event loops
	KindNetwork     Kind = "network"     // sockets and what needs them
	KindNative      Kind = "native"      // compiled code
	KindFile        Kind = "file"        // files outside the folder
	KindInput       Kind = "input"       // standard input
	KindSignal      Kind = "signal"      // signals
	KindSystem      Kind = "system"      // users, terminals and what else a machine has
	KindEnvironment Kind = "environment" // environment variables
	KindLanguage    Kind = "language"    // a file that the sandbox has no interpreter for
	KindSyntax      Kind = "syntax"      // a script that cannot be read
	KindLimit       Kind = "limit"       // the folder or a file is too large to look at
)

// Finding is one thing that a script needs. All text in it is clean: one line,
// nothing of the host.
type Finding struct {
	File     string   `json:"file"` // relative to the folder, with /
	Line     int      `json:"line"` // 1 is the first; 0: the file as a whole
	Severity Severity `json:"severity"`
	Kind     Kind     `json:"kind"`
	What     string   `json:"what"`              // what it needs, and what comes of it
	Instead  string   `json:"instead,omitempty"` // what to do about it
}

// String gives file:line: severity: what; instead.
func (f *Finding) String() string {
	s := f.File
	if f.Line > 0 {
		s = fmt.Sprintf("%s:%d", s, f.Line)
	}
	s += ": " + f.Severity.words() + ": " + f.What
	if f.Instead != "" {
		s += "; " + f.Instead
	}
	return s
}

func (s Severity) words() string {
	switch s {
	case CannotRun:
		return "cannot run"
	case MayDiffer:
		return "may differ"
	default:
		return "runs"
	}
}

// Worse gives the worse of two; the zero value is the mildest.
func Worse(a, b Severity) Severity { return worse(a, b) }

// Words are the severity as people read it.
func (s Severity) Words() string { return s.words() }

// Script is one script of a folder.
type Script struct {
	Name     string   `json:"name"`     // its path in the folder
	Language string   `json:"language"` // python, javascript, or what its name says
	Verdict  Severity `json:"verdict"`  // the worst of its findings and of its modules'
	Runtime  string   `json:"runtime"`  // that it gets; "" where there is none for it
	Requires []string `json:"requires"` // packages that choose that runtime, never nil
	Modules  []string `json:"modules"`  // files of the folder that it imports, never nil
}

// Report is what a folder needs.
type Report struct {
	Verdict  Severity  `json:"verdict"`  // the worst of the scripts
	Scripts  []Script  `json:"scripts"`  // in order of name, never nil
	Requires []string  `json:"requires"` // of all scripts together, for a manifest; never nil
	Findings []Finding `json:"findings"` // in order of file and line, never nil
	Needs    Needs     `json:"needs"`    // what can be granted or installed
	LeftOut  []string  `json:"left_out"` // scripts that were not looked at, being tests; never nil
	Cut      bool      `json:"cut"`      // there is more than Options lets be looked at
}

// Count gives how many scripts have each verdict.
func (r *Report) Count() (run, differ, cannot int) {
	for i := range r.Scripts {
		switch r.Scripts[i].Verdict {
		case CannotRun:
			cannot++
		case MayDiffer:
			differ++
		default:
			run++
		}
	}
	return run, differ, cannot
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	r.Findings = slices.CompactFunc(r.Findings, func(a, b Finding) bool { return a == b })
	slices.SortFunc(r.Scripts, func(a, b Script) int { return cmp.Compare(a.Name, b.Name) })
}
