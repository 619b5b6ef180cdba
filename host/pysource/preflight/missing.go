package preflight

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"openskill/host/pysource"
)

//go:embed missing.txt
var missingText string

// missing has what CPython's standard library has on Linux and the sandbox has not: modules
// by their names, and names of modules after a dot. lab/stdnames makes it of the runtime.
var missing = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(missingText) {
		module, names, some := strings.Cut(strings.TrimSpace(line), ":")
		if strings.HasPrefix(module, "#") {
			continue
		}
		if !some {
			all[module] = true
		}
		for _, name := range strings.Fields(names) {
			all[module+"."+name] = true
		}
	}
	return all
})

// lacks looks at an import of the standard library: it may name a module of a package, or
// something of a module, that is not there.
func (c *check) lacks(name string, im *pysource.Import) {
	all := missing()
	for m := im.Module; m != ""; m = m[:max(0, strings.LastIndexByte(m, '.'))] {
		if all[m] {
			c.find(name, im.Line, hardness(im), KindImport, "import "+im.Module+": "+fmt.Sprintf(absent.what, m), softened(im, absent.instead))
			return
		}
	}
	for _, n := range im.Names {
		if what := im.Module + "." + n.Name; all[what] {
			c.find(name, im.Line, hardness(im), KindImport, fmt.Sprintf(absent.what, what), softened(im, absent.instead))
		}
	}
}
