// Package firstline reads the first line of scripts: #! and the program that runs them.
package firstline

import (
	"path"
	"slices"
	"strings"
)

// Most is how much of a file is looked at, in bytes, as on Linux.
const Most = 256

// endings are those that files for these programs have.
var endings = map[string]string{
	"node": ".js", "nodejs": ".js", "tsx": ".ts", "ts-node": ".ts", "sh": ".sh", "bash": ".sh", "dash": ".sh", "ash": ".sh", "zsh": ".zsh", "fish": ".fish",
	"ruby": ".rb", "perl": ".pl", "php": ".php", "lua": ".lua", "Rscript": ".r", "pwsh": ".ps1", "python": ".py",
}

// Program returns what the first line of a file that begins with head names, such as
// /usr/bin/python3 or, where env looks for it, python3; "" if that is not a script.
func Program(head []byte) string {
	line, _, _ := strings.Cut(string(head[:min(len(head), Most)]), "\n")
	rest, ok := strings.CutPrefix(line, "#!")
	if !ok || strings.Contains(rest, "\x00") {
		return ""
	}
	words := slices.DeleteFunc(strings.Fields(rest), func(w string) bool { return path.Base(w) == "env" || strings.HasPrefix(w, "-") })
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// Ending returns the ending that files for the program have, such as .py; "" if it is not
// known. Versions do not count: python3.12 is python.
func Ending(program string) string {
	return endings[strings.TrimRight(path.Base(program), "0123456789.")]
}
