package preflight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"openskill/host/pysource"
	"openskill/sdk/skill"
)

// Analyzer reads Python source and runs nothing of it; *pysource.Analyzer is one. What
// is wrong with the source is in the module; an error of code INVALID_ARGUMENT says
// that the source is too much to be read, every other one is the host's failure.
type Analyzer interface {
	Analyze(ctx context.Context, tenant string, source []byte) (*pysource.Module, error)
}

// Home says where a module of Python is.
type Home struct {
	Runtime string // the smallest runtime that has it
	Package string // that brings it, as requires names it; "" for the standard library
}

// Options of [Check]. Python and Modules are needed.
type Options struct {
	Python   Analyzer
	Tenant   string                          // for whom the analyzer runs
	Modules  func(name string) (Home, bool)  // a top-level module of the runtimes
	Default  string                          // the runtime of scripts that need no package; "" is "slim"
	Large    map[string]bool                 // runtimes that a skill gets only for what it requires; nil: "scientific"
	Files    int                             // looked at, at most; 0: 2,000
	Bytes    int64                           // of one script that is read, at most; 0: 1 MiB
	Total    int64                           // of all scripts together, at most; 0: 32 MiB
	Node     bool                            // scripts written for Node run
	Commands func(name string) bool          // a program that scripts can start; nil: none
	NPM      map[string]bool                 // packages of npm that the folder's scripts were given
	Declared map[string]bool                 // packages of Python that the folder's collection declares: see DeclaredNames
	Builtins func(name string) bool          // a command that the shell has beside those; nil: none
	Scripts  func(name string) (script bool) // which files of a language are scripts; nil: all but tests
}

func (o *Options) normal() Options {
	n := *o
	if n.Default == "" {
		n.Default = "slim"
	}
	if n.Large == nil {
		n.Large = map[string]bool{"scientific": true}
	}
	if n.Files <= 0 {
		n.Files = 2000
	}
	if n.Bytes <= 0 {
		n.Bytes = pysource.MaxSource
	}
	if n.Total <= 0 {
		n.Total = 32 << 20
	}
	if n.Scripts == nil {
		n.Scripts = func(name string) bool { return !isTest(name) }
	}
	return n
}

// Check looks at the scripts of a folder. A script that cannot be read, links and
// files that are too large are findings; the error is the host's failure alone.
func Check(ctx context.Context, folder *os.Root, opts *Options) (*Report, error) {
	if opts == nil || opts.Python == nil || opts.Modules == nil {
		return nil, errors.New("preflight: Python and Modules are needed")
	}
	c := &check{
		o:      opts.normal(),
		root:   folder,
		files:  map[string]int64{},
		report: Report{Verdict: Runs, Scripts: []Script{}, Requires: []string{}, Findings: []Finding{}, Needs: noNeeds(), LeftOut: []string{}},
		python: map[string]*source{},
		worst:  map[string]Severity{},
	}
	if err := c.list(ctx); err != nil {
		return nil, err
	}
	for _, name := range c.order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.script(ctx, name); err != nil {
			return nil, err
		}
	}
	for i := range c.report.Scripts {
		s := &c.report.Scripts[i]
		c.report.Verdict = worse(c.report.Verdict, s.Verdict)
		c.report.Requires = append(c.report.Requires, s.Requires...)
	}
	slices.Sort(c.report.Requires)
	c.report.Requires = slices.Compact(c.report.Requires)
	c.report.sort()
	return &c.report, nil
}

type check struct {
	o         Options
	root      *os.Root
	files     map[string]int64 // all regular files, by name, with their sizes
	order     []string         // their names, sorted
	read      int64            // bytes of scripts so far
	report    Report
	python    map[string]*source
	tops      map[string][]string // see index; nil: not made yet
	bases     map[string]string   // see fileOf; nil: not made yet
	functions map[string]string   // see functionOf; nil: not made yet
	declared  map[string]bool     // see declares; nil: not made yet
	steps     int                 // see maxSteps
	worst     map[string]Severity // of the findings of a file, by its name as it is
}

// list finds the files of the folder. Links are not followed: the sandbox does not
// show what they lead to.
func (c *check) list(ctx context.Context) error {
	err := fs.WalkDir(c.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == ".":
			return err
		case err != nil:
			c.find(name, 0, CannotRun, KindLimit, "cannot be read", "fix its permissions")
			return nil
		case name == ".":
			return nil
		case hidden(d.Name()) && d.IsDir():
			return fs.SkipDir
		case hidden(d.Name()) || d.IsDir():
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			c.find(name, 0, MayDiffer, KindFile, "it is a link out of the folder, which the sandbox does not follow", "replace it by the file")
			return nil
		case !d.Type().IsRegular():
			return nil
		case len(c.files) >= c.o.Files:
			c.report.Cut = true
			c.find(name, 0, MayDiffer, KindLimit, fmt.Sprintf("the folder has more than %d files; this one and the rest were not checked", c.o.Files), "")
			return fs.SkipAll
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		c.files[name] = info.Size()
		c.order = append(c.order, name)
		return nil
	})
	slices.Sort(c.order)
	return err
}

// hidden are folders and files that are no part of a skill.
func hidden(name string) bool {
	return strings.HasPrefix(name, ".") || name == "__pycache__" || name == "node_modules"
}

// isTest tells what a test runner runs, and no agent.
func isTest(name string) bool {
	base := path.Base(name)
	if strings.HasPrefix(base, "test_") || strings.HasSuffix(base, "_test.py") || base == "conftest.py" || base == "setup.py" ||
		strings.HasSuffix(base, ".test.js") || strings.HasSuffix(base, ".test.mjs") || strings.HasSuffix(base, ".test.ts") || strings.HasSuffix(base, ".d.ts") {
		return true
	}
	for dir := range strings.SplitSeq(path.Dir(name), "/") {
		if dir == "tests" || dir == "test" || dir == "__tests__" {
			return true
		}
	}
	return false
}

func (c *check) script(ctx context.Context, name string) error {
	ext := strings.ToLower(path.Ext(name))
	language, known := languages[ext]
	if ext == "" {
		language, known = c.interpreter(name)
	}
	if !known {
		return nil
	}
	if language.native {
		c.find(name, 0, MayDiffer, KindNative, "it is native code, which the sandbox cannot load", "imports of it fail: use pure Python")
		return nil
	}
	if !c.o.Scripts(name) {
		c.report.LeftOut = append(c.report.LeftOut, skill.CleanText(name, 200))
		return nil
	}
	s := Script{Name: name, Language: language.name, Requires: []string{}, Modules: []string{}}
	switch language.name {
	case "python":
		is, err := c.pythonScript(ctx, name, &s)
		if err != nil || !is {
			return err
		}
	case "javascript":
		if err := c.javaScript(ctx, name, &s); err != nil {
			return err
		}
	case "shell":
		if err := c.shellScript(ctx, name, &s); err != nil {
			return err
		}
	default:
		c.find(name, 0, CannotRun, KindLanguage, "the sandbox has no interpreter for "+language.title, language.instead)
	}
	s.Verdict = worse(Runs, c.worst[name])
	for _, m := range s.Modules {
		s.Verdict = worse(s.Verdict, c.worst[m])
	}
	s.Name = skill.CleanText(s.Name, 200)
	c.report.Scripts = append(c.report.Scripts, s)
	return nil
}

// find notes a finding. Text of strangers in it is cleaned and cut.
func (c *check) find(file string, line int, s Severity, k Kind, what, instead string) {
	c.worst[file] = worse(c.worst[file], s)
	if len(c.report.Findings) >= maxFindings {
		c.report.Cut = true
		return
	}
	c.report.Findings = append(c.report.Findings, Finding{
		File: skill.CleanText(file, 200), Line: line, Severity: s, Kind: k,
		What: skill.CleanText(what, 300), Instead: skill.CleanText(instead, 300),
	})
}

// maxFindings bounds the report, whatever a folder holds.
const maxFindings = 5000

// content reads a script. Where it is too much it is a finding, and nil.
func (c *check) content(name string) ([]byte, error) {
	if size := c.files[name]; size > c.o.Bytes {
		c.find(name, 0, MayDiffer, KindLimit, fmt.Sprintf("it has %d bytes; scripts up to %d are checked", size, c.o.Bytes), "")
		return nil, nil
	}
	if c.read += c.files[name]; c.read > c.o.Total {
		c.report.Cut = true
		c.find(name, 0, MayDiffer, KindLimit, fmt.Sprintf("the scripts exceed %d bytes together; this one was not checked", c.o.Total), "")
		return nil, nil
	}
	f, err := c.root.Open(name)
	if err != nil {
		c.find(name, 0, CannotRun, KindLimit, "cannot be read", "fix its permissions")
		return nil, nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, c.o.Bytes+1))
	if err != nil || int64(len(b)) > c.o.Bytes { // it grew meanwhile
		c.find(name, 0, MayDiffer, KindLimit, "it changed during the check", "")
		return nil, nil
	}
	return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), nil
}
