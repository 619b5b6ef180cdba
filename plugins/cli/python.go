package cli

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"openskill/sdk/skill"
)

// boot is the supervisor; doc.go says why.
//
//go:embed boot.py
var boot string

// python is an interpreter that was asked about itself.
type python struct {
	Path    string   `json:"path"`    // the interpreter itself, behind links and shims
	Version []int    `json:"version"` // major, minor
	Folders []string `json:"folders"` // what it reads: its prefixes and its path
	Address uint64   `json:"address"` // bytes of address space with the modules of boot.py loaded; 0 where unknown
}

// question is answered with a python as JSON.
const question = `
import json, os, sys
address = 0
try:
    import _signal, resource, ctypes
except ImportError:
    pass
try:
    with open("/proc/self/statm") as f:
        address = int(f.read().split()[0]) * resource.getpagesize()
except OSError:
    pass
json.dump({"path": os.path.realpath(sys.executable) if sys.prefix == sys.base_prefix else sys.executable,
    "version": sys.version_info[:2], "address": address,
    "folders": sorted({os.path.realpath(p) for p in
        [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, os.path.dirname(os.path.realpath(sys.executable))] + sys.path
        if os.path.exists(p)})}, sys.stdout)
`

// flags of the interpreter: isolated, no writing of compiled code (which would
// change the skill's folder), and UTF-8 whatever the locale.
var flags = []string{"-I", "-B", "-X", "utf8"}

// askTime bounds the questions to an interpreter; a cold disk takes seconds.
const askTime = 20 * time.Second

// ask finds out about the interpreter called name. Alone of all starts in this
// package it has the host's environment, because name may be a shim (pyenv,
// asdf) that finds the interpreter by it.
func ask(ctx context.Context, name string) (*python, error) {
	missing := func(message string, err error) error {
		return &skill.Error{Op: "cli.ask", Code: skill.ToolInvocationError, Subject: "python3", Message: message, Err: err}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, missing("python3 was not found; install Python 3.8 or newer, or name it in the settings", err)
	}
	ctx, stop := context.WithTimeout(ctx, askTime)
	defer stop()
	var out, diag bytes.Buffer
	cmd := exec.CommandContext(ctx, path, append(append([]string{}, flags...), "-c", question)...)
	cmd.Stdout, cmd.Stderr = &out, &diag
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return nil, missing("python3 does not start; check the installation", fmt.Errorf("%w: %.200s", err, diag.Bytes()))
	}
	var p python
	if err := json.Unmarshal(out.Bytes(), &p); err != nil {
		return nil, missing("python3 does not behave like Python 3; check the installation", err)
	}
	if len(p.Version) != 2 || p.Version[0] != 3 || p.Version[1] < 8 {
		return nil, missing("python3 is too old; Python 3.8 or newer is needed", fmt.Errorf("version %v", p.Version))
	}
	return &p, nil
}

// entry is the path of an entry that the runner can execute.
func (r *Runner) entry(folder, entry string) (string, error) {
	path, err := script(folder, entry)
	if err != nil || !r.program || !executable {
		return path, err
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o111 != 0o111 { // runs may have users of their own
		return "", &skill.Error{
			Op: "cli.entry", Code: skill.InvalidManifest, Subject: skill.CleanText(entry, 80), Err: err,
			Message: "the entry must be executable by everyone; run chmod a+x on it",
		}
	}
	return path, nil
}

// executable says that files say whether they may be executed.
const executable = runtime.GOOS != "windows"

// script is the path of the entry, which must be a regular file in the folder.
func script(folder, entry string) (string, error) {
	refuse := func(message string, err error) error {
		return &skill.Error{Op: "cli.script", Code: skill.InvalidManifest, Subject: skill.CleanText(entry, 80), Message: message, Err: err}
	}
	local, err := filepath.Localize(entry)
	if err != nil {
		return "", refuse("invalid entry: use a path inside the skill's folder with slashes, such as main.py", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", refuse("cannot open the skill's folder", err)
	}
	defer root.Close()
	info, err := root.Stat(local)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", refuse("entry not found in the skill's folder; add the script or correct entry in skill.yaml", err)
	case err != nil:
		return "", refuse("the entry cannot be read, or leads out of the skill's folder", err)
	case !info.Mode().IsRegular():
		return "", refuse("the entry is not a regular file", nil)
	}
	return filepath.Join(folder, local), nil
}
