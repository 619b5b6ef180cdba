package preflight

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"openskill/host/pysource"
	"openskill/sdk/skill"
)

// source is one Python file of the folder that was looked at.
type source struct {
	readable bool
	main     bool
	runtime  string          // the smallest that has what it imports
	requires []string        // packages that ask for more than the default runtime
	modules  []string        // files of the folder that it imports
	imports  map[string]bool // the same
	optional []optional
}

// optional is an import of something in a large runtime whose error is caught.
type optional struct {
	line   int
	module string
	home   Home
}

// pythonScript fills s. A file that others import and that does nothing by itself is
// their module, and no script.
func (c *check) pythonScript(ctx context.Context, name string, s *Script) (is bool, err error) {
	f, err := c.sourceOf(ctx, name)
	if err != nil {
		return false, err
	}
	if path.Base(name) == "__init__.py" {
		return false, nil
	}
	s.Runtime = f.runtime
	s.Requires = append(s.Requires, f.requires...)
	seen := map[string]bool{name: true}
	for queue := f.modules; len(queue) > 0; queue = queue[1:] {
		m := queue[0]
		if c.steps++; c.steps > maxSteps {
			c.report.Cut = true
			break
		}
		if seen[m] {
			continue
		}
		seen[m] = true
		s.Modules = append(s.Modules, m)
		g, err := c.sourceOf(ctx, m)
		if err != nil {
			return false, err
		}
		if c.o.Large[g.runtime] {
			s.Runtime = g.runtime
		}
		s.Requires = append(s.Requires, g.requires...)
		queue = append(queue, g.modules...)
	}
	slices.Sort(s.Requires)
	s.Requires = slices.Compact(s.Requires)
	slices.Sort(s.Modules)
	return true, nil
}

// maxSteps bounds how far modules of modules are followed in all: in a folder whose
// files all import each other, that grows with the cube of their number.
const maxSteps = 2_000_000

// sourceOf looks at one file, once.
func (c *check) sourceOf(ctx context.Context, name string) (*source, error) {
	if f := c.python[name]; f != nil {
		return f, nil
	}
	f := &source{runtime: c.o.Default, imports: map[string]bool{}}
	c.python[name] = f
	text, err := c.content(name)
	if err != nil || text == nil {
		return f, err
	}
	m, err := c.o.Python.Analyze(ctx, c.o.Tenant, text)
	switch {
	case err != nil && skill.CodeOf(err) == skill.InvalidArgument:
		c.find(name, 0, MayDiffer, KindLimit, "it is nested too deeply, or too large, to check", "")
		return f, nil
	case err != nil:
		return nil, err
	case m.Problem != nil && m.Problem.Kind == "complex":
		c.find(name, m.Problem.Line, MayDiffer, KindLimit, m.Problem.Message, "")
		return f, nil
	case m.Problem != nil:
		c.find(name, m.Problem.Line, CannotRun, KindSyntax, "Python cannot read it: "+m.Problem.Message, "")
		return f, nil
	}
	f.readable, f.main = true, m.Main
	return f, c.analyzed(ctx, name, f, m)
}

// analyzed notes what a program in Python needs.
func (c *check) analyzed(ctx context.Context, name string, f *source, m *pysource.Module) error {
	if m.Cut {
		c.find(name, 0, MayDiffer, KindLimit, "it is too large; not all of it was checked", "")
	}
	for i := range m.Imports {
		c.imported(name, f, &m.Imports[i])
	}
	c.optionals(name, f)
	c.uses(name, f, m)
	return c.pythonNeeds(ctx, name, m)
}

// imported resolves one import as the interpreter would.
func (c *check) imported(name string, f *source, im *pysource.Import) {
	if im.TypeChecking {
		return
	}
	dir := path.Dir(name)
	if im.Level > 0 {
		for range im.Level - 1 {
			dir = path.Dir(dir)
		}
		if !c.own(f, dir, im) && len(im.Names) > 0 && im.Module != "" {
			c.find(name, im.Line, hardness(im), KindImport, fmt.Sprintf("there is no module %s in the folder", strings.Repeat(".", im.Level)+im.Module), "")
		}
		return
	}
	top, _, _ := strings.Cut(im.Module, ".")
	// The folder of the script stands before the library; other folders of the skill
	// are found by scripts that change sys.path.
	if c.own(f, dir, im) {
		return
	}
	if home, ok := c.o.Modules(top); ok {
		c.home(name, f, im, top, home)
		c.lacks(name, im)
		return
	}
	if top == "__future__" || ours[top] || top == "__main__" || strings.HasPrefix(top, "_") && knownPrivate[top] {
		return
	}
	if c.elsewhere(f, im, top) {
		return
	}
	if why, ok := missingLibrary[top]; ok {
		c.find(name, im.Line, hardness(im), why.kind, fmt.Sprintf("import %s: %s", im.Module, why.what), softened(im, why.instead))
		return
	}
	if c.indexed(name, im, top) {
		return
	}
	pip := top
	if p, ok := packageOf[top]; ok {
		pip = p
	}
	instead := fmt.Sprintf("the package %s is in no runtime: do it with the standard library or with a package that is there (openskill runtime list --modules scientific)", pip)
	if better, ok := insteadOf[top]; ok {
		instead = better
	}
	c.find(name, im.Line, hardness(im), KindImport, fmt.Sprintf("import %s: no runtime has the package %s", im.Module, pip), softened(im, instead))
}

// home notes an import of a package that is in a runtime. Scripts get the larger one
// for what they import, where it is installed.
func (c *check) home(name string, f *source, im *pysource.Import, top string, home Home) {
	if !c.o.Large[home.Runtime] {
		return
	}
	if im.Optional {
		f.optional = append(f.optional, optional{im.Line, im.Module, home})
		return
	}
	f.runtime = home.Runtime
	f.requires = append(f.requires, home.Package)
	c.find(name, im.Line, Runs, KindImport,
		fmt.Sprintf("import %s needs the %s runtime, which it gets where that is installed", top, home.Runtime),
		fmt.Sprintf("the operator installs it: openskill runtime install %s; a skill.yaml names it: requires: [%s]", home.Runtime, home.Package))
}

// optionals notes what a script can do without, and has if it gets a larger runtime
// for something else.
func (c *check) optionals(name string, f *source) {
	for _, o := range f.optional {
		if f.runtime == o.home.Runtime {
			continue
		}
		c.find(name, o.line, MayDiffer, KindImport,
			fmt.Sprintf("import %s, which is optional for the script, needs the %s runtime", o.module, o.home.Runtime),
			fmt.Sprintf("to have it, the operator installs that: openskill runtime install %s", o.home.Runtime))
	}
}

// hardness is how much a missing module matters.
func hardness(im *pysource.Import) Severity {
	if im.Optional {
		return MayDiffer
	}
	return CannotRun
}

func softened(im *pysource.Import, instead string) string {
	switch {
	case im.Optional:
		return "the script catches that and continues without it"
	case im.Function:
		return "only the function that imports it fails; " + instead
	}
	return instead
}

// own reports whether a module is one of the folder's, and notes its files.
func (c *check) own(f *source, dir string, im *pysource.Import) bool {
	below := strings.ReplaceAll(im.Module, ".", "/")
	found := false
	add := func(p string) {
		for _, file := range []string{p + ".py", path.Join(p, "__init__.py")} {
			if _, ok := c.files[file]; ok {
				if found = true; !f.imports[file] {
					f.imports[file] = true
					f.modules = append(f.modules, file)
				}
				return
			}
		}
	}
	parts := strings.Split(below, "/")
	if below != "" {
		for i := range parts {
			add(path.Join(dir, path.Join(parts[:i+1]...)))
		}
		if !found && !c.isFolder(path.Join(dir, parts[0])) {
			return false
		}
	}
	for _, n := range im.Names { // from package import module
		add(path.Join(dir, below, n.Name))
	}
	return found || below != "" // a folder without __init__.py is a package too
}

// elsewhere looks in the other folders of the skill, which scripts reach by changing
// sys.path.
func (c *check) elsewhere(f *source, im *pysource.Import, top string) bool {
	return slices.ContainsFunc(c.index()[top], func(dir string) bool { return c.own(f, dir, im) })
}

// index gives the folders in which a module of a name is. It is made once: a folder
// may have as many imports as a stranger likes.
func (c *check) index() map[string][]string {
	if c.tops != nil {
		return c.tops
	}
	c.tops = map[string][]string{}
	seen := map[string]bool{} // folders that hold Python
	for _, file := range c.order {
		name, ok := strings.CutSuffix(file, ".py")
		if !ok {
			continue
		}
		c.tops[path.Base(name)] = append(c.tops[path.Base(name)], path.Dir(name))
		for dir := path.Dir(file); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			c.tops[path.Base(dir)] = append(c.tops[path.Base(dir)], path.Dir(dir))
		}
	}
	return c.tops
}

// isFolder reports whether there are Python files below a path.
func (c *check) isFolder(dir string) bool {
	i, _ := slices.BinarySearch(c.order, dir+"/")
	for ; i < len(c.order) && strings.HasPrefix(c.order[i], dir+"/"); i++ {
		if strings.HasSuffix(c.order[i], ".py") {
			return true
		}
	}
	return false
}
