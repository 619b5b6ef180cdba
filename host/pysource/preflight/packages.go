package preflight

import (
	_ "embed"
	"strings"
	"sync"
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

// packageNeed notes a package that a program in Python imports. Of one that the table has not
// nothing is known; its module may be another file of the skill.
func (c *check) packageNeed(file string, line int, module string) {
	if p, ok := packages()[module]; ok {
		c.need(&c.report.Needs.Packages, Need{Name: p.name, File: file, Line: line, Ecosystem: "python", Native: p.native})
	}
}
