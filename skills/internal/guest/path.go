package guest

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
)

// MaxPath is the length of a path in characters up to which it is looked at.
const MaxPath = 1024

// errNotCapable is WASI's errno for a path that leaves its preopened folder. Go
// has no name for it that exists on every system.
const errNotCapable = syscall.Errno(76)

// Root is put before data/… and work/… to open a file. In a WASI module Go takes
// the first preopened folder for the working directory unless PWD says otherwise,
// so a relative path would begin somewhere else with every host.
var Root = map[bool]string{true: "/", false: "./"}[runtime.GOOS == "wasip1"]

// Path is a string field with a path below ./data, as data or data/a/b. It is checked
// before anything is opened.
func (in *Input) Path(name string, fallback ...string) string {
	path, err := dataPath(name, in.String(name, 0, MaxPath, fallback...))
	in.Fail(err)
	return path
}

func dataPath(field, path string) (string, error) {
	forbidden := &Fault{
		Code: ForbiddenPath, Field: field, Reason: "outside_data",
		Message: field + ": must be a relative path in ./data, without .. and backslashes, as ./data/docs",
	}
	// Any "..", also within a name: the door has the same rule, and a path that
	// needs no thought is worth more than names with two dots.
	if strings.HasPrefix(path, "/") || strings.Contains(path, `\`) || strings.Contains(path, "..") {
		return "", forbidden
	}
	for _, r := range path {
		if r < 0x20 || r == 0x7f {
			return "", forbidden
		}
	}
	var parts []string
	for _, part := range strings.Split(path, "/") {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 || parts[0] != "data" {
		return "", forbidden
	}
	return strings.Join(parts, "/"), nil
}

// Stat looks at a path that DataPath returned. No link is followed, wherever it
// points. A path that is not there is the caller's mistake, not the skill's.
func Stat(field, path string) (fs.FileInfo, error) {
	if info, err := os.Stat(Root + "data"); err != nil || !info.IsDir() {
		return nil, &Fault{Code: Internal, Field: field, Reason: "no_data", Message: "this skill was given no ./data folder to read"}
	}
	var info fs.FileInfo
	parts := strings.Split(path, "/")
	for i := range parts {
		var err error
		// The data folder itself may be a link: it is the host that put it there.
		look := os.Lstat
		if i == 0 {
			look = os.Stat
		}
		if info, err = look(Root + strings.Join(parts[:i+1], "/")); err != nil {
			return nil, OpenFault(field, err)
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, OpenFault(field, syscall.ELOOP)
		}
	}
	return info, nil
}

// OpenFault says what an error of opening or reading means for the caller.
func OpenFault(field string, err error) *Fault {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return Invalid(field, "not_found", field+": there is no such file or folder in ./data")
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EPERM), errors.Is(err, errNotCapable):
		return &Fault{Code: ForbiddenPath, Field: field, Reason: "link", Message: field + ": links are not followed"}
	default:
		return &Fault{Code: Internal, Field: field, Reason: "unreadable", Message: field + ": could not be read"}
	}
}
