package workers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestStartsPrograms: a script in whose folder a text may start a program waits for the runtimes of
// programs, by whichever function; others do not.
func TestStartsPrograms(t *testing.T) {
	for _, c := range []struct {
		file, text string
		want       bool
	}{
		{"a.py", "import os\nos.system('jq .')", true},
		{"a.py", "from os import system as s\ns('ls')", true},
		{"a.py", "import os\nos.popen('ls').read()", true},
		{"a.py", "import subprocess", true},
		{"lib/a.py", "import asyncio\nasyncio.create_subprocess_exec('ls')", true},
		{"a.py", "import os\nos.execvp('ls', ['ls'])", true},
		{"a.py", "import os\nos.spawnlp(os.P_WAIT, 'ls', 'ls')", true},
		{"a.py", "import os\nos.posix_spawnp('ls', ['ls'], os.environ)", true},
		{"a.js", "require('child_process').execSync('ls')", true},
		{"a.mjs", "import { spawn } from 'node:child_process'", true},
		{"a.ts", "import { execa } from 'execa'", true},
		{"a.sh", "python3 -c 1", true},
		{"a.sh", "jq . | sort", false},
		{"run", "#!/usr/bin/env bash\n./tool.py", true},
		{"run", "#!/usr/bin/env python3\nprint(1)", false},
		{"a.py", "import json, os\nprint(os.environ)", false},
		{"notes.md", "subprocess", false},
		{"a.py", strings.Repeat("#", maxScriptBytes+1), true},
	} {
		folder := t.TempDir()
		path := filepath.Join(folder, filepath.FromSlash(c.file))
		musttest.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		musttest.Do(t, os.WriteFile(path, []byte(c.text), 0o600))
		if got := startsPrograms(&skill.Call{Script: true, Folder: folder}); got != c.want {
			t.Errorf("%s %.60q: %v", c.file, c.text, got)
		}
		if startsPrograms(&skill.Call{Folder: folder}) {
			t.Error("a skill that is no script starts programs")
		}
	}
	folder := t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(t.TempDir(), "a.py"), []byte("subprocess"), 0o600))
	musttest.Do(t, os.Symlink(t.TempDir(), filepath.Join(folder, "a.py")))
	if startsPrograms(&skill.Call{Script: true, Folder: folder}) {
		t.Error("what a link leads to was read")
	}
	for i := range maxScriptFiles {
		musttest.Do(t, os.Mkdir(filepath.Join(folder, strings.Repeat("a", 1+i%200)+strings.Repeat("b", i/200)), 0o700))
	}
	if !startsPrograms(&skill.Call{Script: true, Folder: folder}) {
		t.Error("a folder with too many files to read was said to start nothing")
	}
}
