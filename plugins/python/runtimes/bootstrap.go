package runtimes

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed bootstrap.py
var bootstrap string

// Bootstrap is a line of Python that a runner executes before a script, on the
// runtime; "" if there is nothing to do. It imports nothing, leaves no name, and makes
// importing a package that only the scientific runtime has an ImportError that says
// how to get it.
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
	text := strings.Replace(bootstrap, "{PACKAGES}", "{"+strings.TrimSuffix(table.String(), ", ")+"}", 1)
	return "exec(compile(" + strconv.QuoteToASCII(text) + `, "<openskill>", "exec"), {})` + "\n"
}
