package preflight

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"openskill/host/pysource"
)

//go:embed packages.txt
var packagesText string

// indexed is a package of Python's index.
type indexed struct {
	name   string
	native bool
}

// packages has the packages of an index by the modules that they bring.
var packages = sync.OnceValue(func() map[string]indexed {
	all := map[string]indexed{}
	for line := range strings.Lines(packagesText) {
		if f := strings.Fields(line); len(f) == 3 && f[0] != "#" {
			all[f[0]] = indexed{f[1], f[2] == "native"}
		}
	}
	return all
})

// adds says how the operator adds a package: to a folder, or to an upload, which has a skill.yaml.
func (c *check) adds(name string) string {
	_, manifest := c.files["skill.yaml"]
	_, agent := c.files["SKILL.md"]
	if manifest && !agent {
		return "the operator adds it to the upload: POST /skills/ID/versions/VERSION/packages"
	}
	return "the operator adds it: openskill packages add FOLDER " + name
}

// declares reports whether the folder, or the collection that it is of, declares the package of a
// module that the table has not.
func (c *check) declares(top string) (indexed, bool) {
	if c.declared == nil {
		c.declared = DeclaredNames(c.root)
	}
	name := top
	if p, ok := packageOf[top]; ok {
		name = p
	}
	name = indexName(name)
	return indexed{name: name}, c.declared[name] || c.o.Declared[name]
}

// indexed notes a package that a program in Python imports. Of one that the table has not and
// that nothing declares nothing is known: its module may be a file that the skill expects elsewhere.
func (c *check) indexed(file string, im *pysource.Import, top string) bool {
	p, known := packages()[top]
	if !known {
		var ok bool
		if p, ok = c.declares(top); !ok {
			return false
		}
	}
	c.need(&c.report.Needs.Packages, Need{Name: p.name, File: file, Line: im.Line, Ecosystem: "python", Native: p.native})
	if p.native {
		instead := "do it with the standard library or with a package that is there (openskill runtime list --modules scientific)"
		if better, ok := insteadOf[top]; ok {
			instead = better
		}
		c.find(file, im.Line, hardness(im), KindNative, fmt.Sprintf("import %s: the package %s needs native code, which the sandbox cannot load", im.Module, p.name), softened(im, instead))
		return true
	}
	what := fmt.Sprintf("import %s needs the package %s, in pure Python", im.Module, p.name)
	if !known {
		what = fmt.Sprintf("import %s needs the package %s, which is declared; adding it says whether it has native code", im.Module, p.name)
	}
	c.find(file, im.Line, Runs, KindImport, what, c.adds("python:"+p.name))
	return true
}

//go:embed npm.txt
var npmText string

// npmMissing says why the sandbox cannot run a package of npm: native or sockets.
var npmMissing = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(npmText) {
		if f := strings.Fields(line); len(f) == 2 {
			all[f[0]] = f[1]
		}
	}
	return all
})

// npmPackage notes a package of npm that is not in the folder.
func (c *check) npmPackage(file string, line int, module string) {
	parts := strings.SplitN(module, "/", 3)
	name, scope := parts[0], ""
	if strings.HasPrefix(name, "@") && len(parts) > 1 {
		name, scope = name+"/"+parts[1], name+"/"
	}
	why := npmMissing()[name]
	if why == "" {
		why = npmMissing()[scope]
	}
	c.need(&c.report.Needs.Packages, Need{Name: name, File: file, Line: line, Ecosystem: "npm", Native: why == "native"})
	switch why {
	case "native":
		c.find(file, line, CannotRun, KindNative, "package "+name+" needs native code or a browser, which the sandbox has not", "")
	case "sockets":
		c.find(file, line, CannotRun, KindNetwork, "package "+name+" needs sockets: the sandbox has HTTP requests alone", "use fetch")
	default:
		c.find(file, line, Runs, KindImport, "package "+name+" is not in the skill's folder", c.adds("npm:"+name))
	}
}
