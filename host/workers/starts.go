package workers

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"openskill/sdk/skill"
)

// The bounds of what is read of a skill's scripts; one that has more may start any program.
const (
	maxScriptFiles = 2000 // and folders
	maxScriptBytes = 16 << 20
)

// starters are the words of which each script that starts programs has one, in lower case: modules and
// functions of Python and Node, and packages that use them.
var starters = []string{
	"subprocess", "popen", "spawn", "system(", "execv", "execl", "import system", "child_process", "pexpect", "plumbum", "execa", "shelljs",
}

// shellStarters are those of scripts for a shell, whose own commands are part of it.
var shellStarters = []string{"python", "node", "sqlite3", "zip", skill.AgentSkillsDir, ".py", ".js", ".mjs"}

var errStarts = errors.New("it may start programs")

// startsPrograms reports whether a script may start programs in other runtimes than its own, by the
// text of the scripts in its folder. It may be wrong where a name is put together when it runs.
func startsPrograms(call *skill.Call) bool {
	if !call.Script || call.Folder == "" {
		return false
	}
	if call.Code {
		return slices.ContainsFunc(call.Files, func(f skill.File) bool {
			return f.Name == call.Entry && mayStart(f.Name, f.Data)
		})
	}
	root, err := os.OpenRoot(call.Folder)
	if err != nil {
		return true // the run tells what is wrong
	}
	defer root.Close()
	files, left := 0, int64(maxScriptBytes)
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if files++; err != nil || files > maxScriptFiles {
			return errStarts
		}
		if startersOf(name) == nil || !d.Type().IsRegular() {
			return nil // links too: to what is in the folder, or outside of what scripts see
		}
		text, err := readScript(root, name, left)
		left -= int64(len(text))
		if err != nil || left <= 0 || mayStart(name, text) {
			return errStarts
		}
		return nil
	}) != nil
}

// startersOf returns the words of scripts with this name that start programs; nil if the name is not that of a script.
func startersOf(name string) []string {
	switch path.Ext(name) {
	case ".sh", ".bash":
		return shellStarters
	case "":
		return slices.Concat(starters, shellStarters)
	case ".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx":
		return starters
	}
	return nil
}

// mayStart reports whether the text of a script may start programs.
func mayStart(name string, text []byte) bool {
	lower := bytes.ToLower(text)
	if first, rest, _ := bytes.Cut(lower, []byte("\n")); bytes.HasPrefix(first, []byte("#!")) {
		lower = rest
	}
	return slices.ContainsFunc(startersOf(name), func(w string) bool { return bytes.Contains(lower, []byte(w)) })
}

// readScript reads a file up to so many bytes.
func readScript(root *os.Root, name string, most int64) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}
