package preflight_test

import (
	"slices"
	"strings"
	"testing"

	"openskill/host/pysource/preflight"
	"openskill/internal/musttest"
	"openskill/plugins/javascript"
	"openskill/plugins/shell"
	"openskill/sdk/skill"
)

// shellOptions are those of a host whose shell has its commands.
func shellOptions(t testing.TB) *preflight.Options {
	t.Helper()
	o := *options(t)
	builtins := shell.Builtins()
	o.Builtins = func(name string) bool { return slices.Contains(builtins, name) }
	return &o
}

// A library uses functions of another one, which the script reads before it.
func TestFunctionsOfLibraries(t *testing.T) {
	r := checked(t, shellOptions(t), map[string]string{
		"SKILL.md": "---\nname: x\ndescription: d\n---\n", "run.sh": "for f in lib/*.sh; do . \"$f\"; done\nsave\n",
		"lib/log.sh": "log_info() { echo \"$1\"; }\nfunction die {\n exit 1\n}\n", "lib/save.sh": "save() { log_info x || die; nothing_like_it; }\n",
	})
	got := map[string]preflight.Severity{}
	for _, f := range r.Findings {
		got[f.File+" "+strings.Fields(f.What)[0]] = f.Severity
	}
	for what, want := range map[string]preflight.Severity{
		"run.sh save": preflight.MayDiffer, "lib/save.sh log_info": preflight.MayDiffer, "lib/save.sh die": preflight.MayDiffer,
		"lib/save.sh nothing_like_it": preflight.CannotRun,
	} {
		if got[what] != want {
			t.Errorf("%s: %v, want %v", what, got[what], want)
		}
	}
}

func checked(t *testing.T, o *preflight.Options, files map[string]string) *preflight.Report {
	t.Helper()
	return musttest.Get(preflight.Check(t.Context(), folder(t, files), o))(t)
}

// What a shell script does, what is found, and what it needs.
func TestShell(t *testing.T) {
	o := shellOptions(t)
	for _, c := range []struct{ name, text, findings, commands, env, http string }{
		{name: "commands that are there", text: "#!/bin/bash\nset -euo pipefail\ncd x && echo hi | sort | uniq -c > out\n", findings: ""},
		{name: "one that is not", text: "set -e\ngit log | head\n/usr/bin/ffmpeg -i x\n", findings: "s.sh:2: cannot run: git is not there: command not found (127); s.sh:3: cannot run: ffmpeg is not there", commands: "s.sh:2 git; s.sh:3 ffmpeg"},
		{name: "functions of its own", text: "log() { echo; }\nfunction die { exit 1; }\nlog x || die y\nlater\nlater() { :; }\n"},
		{name: "a file that it reads", text: "source \"$(dirname \"$0\")/lib/common.sh\"\nhelp_me\n. ./none.sh\n", findings: "s.sh:3: may differ: ./none.sh is read, and is not in the folder"},
		{name: "looked for first", text: "if command -v pbcopy >/dev/null; then pbcopy < x; else cat x; fi\ncommand -v xsel && xsel\n", findings: "s.sh:1: may differ: pbcopy is not there, and the script looks for it first; s.sh:2: may differ: xsel is not there", commands: "s.sh:1 pbcopy; s.sh:2 xsel"},
		{name: "looked for, and then ended", text: "if ! command -v gog; then exit 1; fi\ngog x\n", findings: "s.sh:2: cannot run: gog is not there", commands: "s.sh:2 gog"},
		{
			name: "commands that start others", text: "find . -exec perl -e 1 {} \\;\nls | xargs -I {} -P 4 convert {} x\nsudo -u me env A=b timeout -k 1 5 rsync x\nbash -c 'npm i'\neval \"brew x\"\ntrap 'tput sgr0' EXIT\nnohup ./own.sh &\nx=$(docker ps)\n",
			findings: "s.sh:1: cannot run: perl is; s.sh:2: cannot run: convert is; s.sh:3: cannot run: rsync is; s.sh:4: cannot run: npm is; s.sh:5: cannot run: brew is; s.sh:6: cannot run: tput is; s.sh:7: may differ: it starts a file; s.sh:8: cannot run: docker is",
			commands: "s.sh:1 perl; s.sh:2 convert; s.sh:3 rsync; s.sh:4 bash have; s.sh:4 npm; s.sh:5 brew; s.sh:6 tput; s.sh:8 docker",
		},
		{name: "names in variables", text: "GOG=${GOG_BIN:-gog}\n\"$GOG\" x\nCMD=\"rclone -v\"\n$CMD y\nB=$(command -v bat || echo cat)\n$B\n\"$1\" x\n", findings: "s.sh:2: cannot run: gog is; s.sh:4: cannot run: rclone is; s.sh:6: cannot run: bat is; s.sh:7: may differ: it starts a program whose name is computed", commands: "s.sh:2 gog; s.sh:4 rclone; s.sh:6 bat", env: "s.sh:1 GOG_BIN"},
		{name: "a file of a user", text: "~/.local/bin/tool x\n\"$HOME/bin/other\" y\n", findings: "s.sh:1: cannot run: ~/.local/bin/tool is not there; s.sh:2: may differ: it starts a file that is not in the folder", commands: "s.sh:1 tool"},
		{
			name: "variables", text: ": \"${API_KEY:?set it}\"\nTOKEN=\"${TOKEN:-}\"\nDIR=x\necho $DIR $HOME $1 $RANDOM $lower\nfor F in a; do echo $F; done\nmain() { echo $LATER; }\nLATER=1\nread -r ANSWER\necho $ANSWER\nif [ -z \"$KEY2\" ]; then KEY2=x; fi\nexport NAKED\n",
			env: "s.sh:1 API_KEY; s.sh:2 TOKEN; s.sh:10 KEY2",
		},
		{
			name: "requests", text: "API=https://api.a.test/v1\ncurl -s \"$API/x\" -H \"A: b\"\ncurl -sX POST ${BASE:-https://b.test} -d x\necho https://c.test\n# https://d.test\ncurl \"https://$HOST/x\"\n",
			commands: "s.sh:2 curl have", env: "s.sh:3 BASE; s.sh:6 HOST", http: "s.sh:1 https://api.a.test,GET,POST; s.sh:3 https://b.test,GET,POST",
		},
		{name: "no requests", text: "API=https://api.a.test/v1\necho $API\n"},
		{name: "Python within", text: "python3 - <<'EOF'\nimport torch\nEOF\npython3 -c 'import os\nos.fork()'\n", findings: "s.sh:2: cannot run: import torch: the package torch needs native; s.sh:5: cannot run: os.fork is not there", commands: "s.sh:1 python3 have"},
		{name: "not for a shell", text: "if then\n", findings: "s.sh:1: cannot run: the shell cannot read it"},
		{name: "lines of Windows", text: "#!/bin/sh\nif true; then\r\nls\r\nfi\r\n", findings: "s.sh:2: cannot run: its lines end in CR and LF"},
		{name: "empty", text: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := checked(t, o, map[string]string{"s.sh": c.text, "lib/common.sh": "help_me() { :; }\n"})
			found := seen(r)
			want := strings.Split(c.findings, "; s.sh")
			if c.findings == "" {
				want = nil
			}
			for i := range max(len(found), len(want)) {
				if i >= len(found) || i >= len(want) || !strings.HasPrefix(strings.TrimPrefix(found[i], "s.sh"), strings.TrimPrefix(want[i], "s.sh")) {
					t.Errorf("found\n%s\nwant\n%s", strings.Join(found, "\n"), c.findings)
					break
				}
			}
			for _, l := range []struct {
				want string
				list []preflight.Need
			}{{c.commands, started(r.Needs.Commands)}, {c.env, r.Needs.Env}, {c.http, r.Needs.HTTP}} {
				if got := told(l.list); got != l.want {
					t.Errorf("%s\nwant %s", got, l.want)
				}
			}
		})
	}
}

// started leaves out ls, which tests use as they like.
func started(list []preflight.Need) []preflight.Need {
	return slices.DeleteFunc(slices.Clone(list), func(n preflight.Need) bool { return n.Name == "ls" })
}

// Commands that programs in Python and JavaScript give to the shell are read as in a script.
func TestCommandsOfPrograms(t *testing.T) {
	o := shellOptions(t)
	o.Commands = func(name string) bool { return has(name) || name == "node" }
	for _, c := range []struct{ file, text, findings, commands string }{
		{"s.py", "import os, subprocess\nos.system('ls | jq . && git x')\nsubprocess.run(f'convert {a} b', shell=True)\nsubprocess.run(x, shell=True)\nos.popen(f'{x} y')\n", "s.py:2: cannot run: git; s.py:3: cannot run: convert; s.py:4: may differ: it starts a program whose name is computed; s.py:5: may differ: it starts a program whose name", "s.py:2 jq have; s.py:2 git; s.py:3 convert"},
		{"s.py", "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'x'])\n", "s.py:2: cannot run: python3 -m pip: packages", ""},
		{"s.js", "const { execSync, spawn, exec } = require('child_process');\nconst x = promisify(exec);\nexecSync('git log | head');\nspawn('ffmpeg', ['-i', f]);\nfunction run(cmd) { return execSync(cmd); }\nrun(`gh pr ${n}`);\nx(\"jq .\");\nspawn(process.execPath, ['x']);\nspawn(name);\n", "s.js:3: cannot run: git; s.js:4: cannot run: ffmpeg; s.js:6: cannot run: gh; s.js:9: may differ: it starts a program whose name is computed", "s.js:3 git; s.js:4 ffmpeg; s.js:6 gh; s.js:7 jq have; s.js:8 node have"},
		{"s.js", "function exec(x) { return /a/.exec('git x'); }\nexec('git y');\n", "", ""},
	} {
		r := checked(t, o, map[string]string{c.file: c.text})
		found := seen(r)
		want := strings.Split(c.findings, "; s.")
		if c.findings == "" {
			want = nil
		}
		if len(found) != len(want) {
			t.Errorf("%s\n%s\nwant %s", c.text, strings.Join(found, "\n"), c.findings)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(strings.TrimPrefix(found[i], "s."), strings.TrimPrefix(want[i], "s.")) {
				t.Errorf("%s\nwant %s", found[i], want[i])
			}
		}
		if got := told(started(r.Needs.Commands)); got != c.commands {
			t.Errorf("%s\nwant %s", got, c.commands)
		}
	}
}

func TestNeedsOfJavaScript(t *testing.T) {
	r := checked(t, shellOptions(t), map[string]string{
		"s.ts": "import type { X } from 'types';\nimport axios from 'axios';\nimport '@scope/pkg/sub';\nimport Database from 'better-sqlite3';\nconst API = 'https://api.a.test/v1';\nconst key = process.env.API_KEY ?? '';\nconst { TWO, three: four = 1 } = process.env;\nprocess.env.SET = 'x';\nprocess.env['FIVE'];\naxios.post(`${API}/x`);\nfetch(`https://${host}/x`);\nfetch(`https://b.test/${id}`, { method: 'PUT' });\nconsole.log('see https://c.test');\nconsole.log('https://d.test');\n",
	})
	n := r.Needs
	if got := told(n.HTTP); got != "s.ts:5 https://api.a.test,GET,POST,PUT; s.ts:12 https://b.test,GET,POST,PUT" {
		t.Errorf("%s", got)
	}
	if got := told(n.Env); got != "s.ts:6 API_KEY; s.ts:9 FIVE; s.ts:7 TWO; s.ts:7 three" {
		t.Errorf("%s", got)
	}
	if got := told(n.Packages); got != "s.ts:2 axios; s.ts:3 @scope/pkg; s.ts:4 better-sqlite3 native" {
		t.Errorf("%s", got)
	}
	if !javascript.HasNode() {
		t.Log("without Node's modules")
	}
}

// A script without an ending is one by its first line.
func TestFirstLine(t *testing.T) {
	r := checked(t, shellOptions(t), map[string]string{
		"bin/a": "#!/usr/bin/env bash\ngit x\n", "bin/b": "#!/usr/bin/env python3\nimport os\nos.fork()\n", "bin/c": "#!/usr/bin/env -S node --x\nnew Worker('x');\n", "bin/d": "#!/usr/bin/perl\n",
		"bin/e": "#!/opt/nonsense\n", "LICENSE": "no script\n", "f": "#!", "g": "#!/usr/bin/env\n",
	})
	var got []string
	for _, s := range r.Scripts {
		got = append(got, s.Name+" "+s.Language+" "+string(s.Verdict))
	}
	if want := "bin/a shell cannot_run; bin/b python cannot_run; bin/c javascript cannot_run; bin/d perl cannot_run; bin/e other cannot_run"; strings.Join(got, "; ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "; "), want)
	}
}

// Texts that make a parser call itself for ever are refused before it reads them.
func TestHostileShell(t *testing.T) {
	o := shellOptions(t)
	for name, text := range map[string]string{
		"brackets":     "$((" + strings.Repeat("(", 60_000),
		"loops":        strings.Repeat("while ", 20_000),
		"substitution": strings.Repeat("$(", 60_000),
		"too long":     strings.Repeat("echo hi\n", 20_000),
		"conditions":   "$((" + strings.Repeat("1?", 40_000),
	} {
		r := checked(t, o, map[string]string{"s.sh": text})
		if len(r.Findings) != 1 || r.Findings[0].Kind != preflight.KindLimit || r.Verdict != preflight.MayDiffer {
			t.Errorf("%s: %q", name, seen(r))
		}
	}
	for name, text := range map[string]string{
		"below the bound": "$((" + strings.Repeat("(", 10_000), "zeros": "echo \x00\x00 | git\n", "bytes": "\xff\xfe echo \x80\n", "within": strings.Repeat("bash -c '", 50),
		"a name for itself": "A=$A$A\nB=$A\nA=$B$B\n$A x\n", "many commands": strings.Repeat("a$b x\n", 5000), "many variables": strings.Repeat("echo $ABC\n", 9000), "a link of sources": "source s.sh\n. ./s.sh\n",
	} {
		if r := checked(t, o, map[string]string{"s.sh": text}); len(r.Scripts) != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if _, err := preflight.Check(t.Context(), folder(t, map[string]string{"s.sh": "python3 -c 'import x'\n"}), &preflight.Options{Python: broken{}, Modules: o.Modules, Commands: has}); skill.CodeOf(err) != skill.WorkerCrashed {
		t.Errorf("%v", err)
	}
}
