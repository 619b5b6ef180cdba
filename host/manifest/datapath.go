package manifest

import (
	"errors"
	"path"
	"strings"
	"unicode/utf8"
)

// DataPath is the format of a string that names a file or folder of the data
// folder: relative, beginning with data/ or ./data/ (or just data). A value that
// is anything else is refused before a skill runs, as a forbidden path.
const DataPath = "data-path"

var errDataPath = errors.New("leaves the data folder")

const dataPathExpected = "a relative path that begins with ./data/, without .. and backslashes"

// InData reports whether s is a path of the form that [DataPath] accepts. It looks
// at the text only: what lies behind a symbolic link is the guest file system's
// concern.
func InData(s string) bool {
	if s == "" || len(s) > 4096 || !utf8.ValidString(s) || strings.HasPrefix(s, "/") || strings.Contains(s, "..") {
		return false
	}
	for _, r := range s {
		if r < 0x20 || r == 0x7f || r == '\\' {
			return false
		}
	}
	clean := path.Clean(s)
	return clean == "data" || strings.HasPrefix(clean, "data/")
}

// checkDataPath is the format's check: only strings have formats.
func checkDataPath(v any) error {
	if s, ok := v.(string); ok && !InData(s) {
		return errDataPath
	}
	return nil
}
