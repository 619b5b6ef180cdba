package guest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"
)

// errNotCapable is WASI's errno for a path that leaves its folder. Go has no name for
// it that exists on every system.
const errNotCapable = syscall.Errno(76)

// ReadData reads a file of the data folder, all of it. The path is as callers give it,
// ./data/docs/a.txt; one that is absolute or could lead out of the folder is
// FORBIDDEN_PATH before anything is opened. Links are not followed.
func (c *Call) ReadData(path string) ([]byte, error) {
	fault := func(code, reason, message string) error {
		e := because(code, reason, message)
		e.Details["path"] = strings.ToValidUTF8(head(path, 200), "\uFFFD")
		return e
	}
	parts := dataPath(path)
	if parts == nil {
		return nil, fault(ForbiddenPath, "outside_data",
			"a path must be relative and in ./data, without .., backslashes and control characters, as ./data/docs/a.txt")
	}
	if info, err := os.Stat(filepath.Join(c.root, "data")); c.root == "" || err != nil || !info.IsDir() {
		return nil, because(Internal, "no_data", "this skill was given no ./data folder to read")
	}
	at := c.root
	for i, part := range parts {
		at = filepath.Join(at, part)
		look := os.Lstat
		if i == 0 { // the host may have put a link there
			look = os.Stat
		}
		info, err := look(at)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
			return nil, fault(NotFound, "not_found", "there is no such file in ./data")
		case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EPERM), errors.Is(err, errNotCapable), err == nil && info.Mode()&fs.ModeSymlink != 0:
			return nil, fault(ForbiddenPath, "link", "links in ./data are not followed")
		case err == nil && i == len(parts)-1 && !info.Mode().IsRegular():
			return nil, fault(InvalidArgument, "no_file", "the path in ./data is not a file")
		}
	}
	b, err := os.ReadFile(at)
	if err != nil {
		c.Error("reading ./data", "why", err)
		return nil, fault(Internal, "unreadable", "the file in ./data could not be read")
	}
	return b, nil
}

// dataPath is a path of the data folder in its parts, the first one data; nil if it is
// none.
func dataPath(path string) []string {
	// Any "..", also within a name: the host has the same rule.
	if strings.HasPrefix(path, "/") || strings.Contains(path, "..") || utf8.RuneCountInString(path) > 1024 || !plain(path) {
		return nil
	}
	var parts []string
	for _, part := range strings.Split(path, "/") {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 || parts[0] != "data" {
		return nil
	}
	return parts
}

// plain reports whether a name has no backslash and no control character.
func plain(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
}

// WriteArtifact writes a file that becomes an artifact of the call, in the place of an
// earlier one of the name. The skill must have been granted scratch space.
func (c *Call) WriteArtifact(name string, content []byte) error {
	if name == "" || name == "." || strings.Contains(name, "..") || strings.Contains(name, "/") || len(name) > 200 || !plain(name) {
		return because(ForbiddenPath, "name",
			"an artifact's name must be one file name of at most 200 bytes, without slashes, backslashes and control characters, as report.csv")
	}
	if info, err := os.Stat(filepath.Join(c.root, "work")); c.root == "" || err != nil || !info.IsDir() {
		return because(Internal, "no_scratch", "this skill was given no scratch space to write to")
	}
	if err := write(filepath.Join(c.root, "work", name), content); err != nil {
		c.Error("writing an artifact", "why", err)
		return because(Internal, "unwritable", "the artifact could not be written; the scratch space may be full")
	}
	return nil
}

// write leaves the whole file, or none.
func write(path string, content []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // half an artifact is none
	}
	return err
}
