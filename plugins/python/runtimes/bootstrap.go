package runtimes

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed bootstrap.py
var bootstrap string

// Bootstrap is Python that a runner executes in __main__ or elsewhere before a
// script, on the runtime; "" if there is nothing to do. It imports nothing, defines
// no name that stays, and makes importing a package that only the scientific runtime
// has an ImportError that says how to get it.
func Bootstrap(runtime string) string {
	if runtime != Slim {
		return ""
	}
	var table strings.Builder
	for _, p := range packages {
		if !p.Pure {
			for _, m := range p.Imports {
				fmt.Fprintf(&table, "%q: %q, ", m, p.Name)
			}
		}
	}
	return strings.Replace(bootstrap, "{PACKAGES}", "{"+strings.TrimSuffix(table.String(), ", ")+"}", 1)
}
