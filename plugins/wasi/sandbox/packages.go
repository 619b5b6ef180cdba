package sandbox

import (
	"os"
	"path/filepath"

	"openskill/sdk/skill"
	"openskill/wasm/guestfs"
)

// Where guests see the packages of their skill: the interpreter's path of Python has the one,
// and Node looks for the other in the folders above a script.
const (
	PythonPackages = "/openskill/packages"
	nodePackages   = "/node_modules"
)

// packages are the folders of packages that a call is granted; nil: it has none of that kind.
type packages struct{ python, node *Folder }

// packages opens those of a folder. The error is a *skill.Error.
func (f *Folders) packages(folder string) (p packages, err error) {
	if folder == "" {
		return p, nil
	}
	if _, err := os.Stat(folder); err != nil {
		return p, cannotOpen(err)
	}
	for _, of := range []struct {
		name string
		to   **Folder
	}{{"python", &p.python}, {"node_modules", &p.node}} {
		at := filepath.Join(folder, of.name)
		if info, err := os.Stat(at); err != nil || !info.IsDir() {
			continue // there are none of this kind
		}
		if *of.to, err = f.Acquire(at, false); err != nil {
			p.release()
			return packages{}, cannotOpen(err)
		}
	}
	return p, nil
}

// HasNodePackages reports whether a call is granted packages of npm.
func HasNodePackages(call *skill.Call) bool {
	if call.Grants.Packages == "" {
		return false
	}
	info, err := os.Stat(filepath.Join(call.Grants.Packages, "node_modules"))
	return err == nil && info.IsDir()
}

func cannotOpen(err error) error {
	return &skill.Error{
		Op: "sandbox.Grant", Code: skill.ToolInvocationError, Subject: "packages", Err: err,
		Message: "cannot open the packages of this skill; the operator must run: openskill packages lock FOLDER, or restart the host where they are of an upload",
	}
}

func (p packages) release() {
	for _, d := range []*Folder{p.python, p.node} {
		if d != nil {
			d.Release()
		}
	}
}

func (p packages) mounts() (list []guestfs.Mount) {
	if p.python != nil {
		list = append(list, guestfs.Mount{Path: PythonPackages, FS: p.python})
	}
	if p.node != nil {
		list = append(list, guestfs.Mount{Path: nodePackages, FS: p.node})
	}
	return list
}
