package all

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// programs are runners that share an engine, of which Python and the shell are installed.
func programs(t *testing.T) map[skill.Kind]skill.Runner {
	t.Helper()
	if testing.Short() {
		t.Skip("short: compiling runtimes takes seconds")
	}
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = filepath.Join("..", "..", ".openskill")
	}
	e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: filepath.Join(state, "cache", "wasm")}))(t)
	t.Cleanup(func() { _ = e.Close() })
	runners := map[skill.Kind]skill.Runner{}
	for _, r := range Sandboxed(Options{Engine: e, StateDir: state}) {
		t.Cleanup(func() { _ = r.Close() })
		runners[r.Kind()] = r
	}
	for _, kind := range []skill.Kind{skill.WasmPython, skill.WasmShell} {
		if err := runnertest.Ready(t.Context(), runners[kind]); err != nil {
			t.Skip(err) // not installed: the message says what to run
		}
	}
	return runners
}

// TestArchives: zip and unzip of the shell print what those of Info-ZIP print, but for the order of lines, and read
// archives of Python and the other way round. Names of hostile archives stay in the folder.
func TestArchives(t *testing.T) {
	runners := programs(t)
	text := musttest.Get(os.ReadFile("testdata/archives.sh"))(t)
	run := func(text string) *skill.Reply {
		folder := t.TempDir()
		musttest.Write(t, filepath.Join(folder, "main.sh"), text)
		return musttest.Get(runnertest.Do(t.Context(), runners[skill.WasmShell], &skill.Call{
			SkillID: "archives", TraceID: "t-1", Folder: folder, Entry: "main.sh", Trust: skill.Trusted, Script: true,
			Limits: skill.Limits{Timeout: time.Minute, Memory: 512 << 20, Fuel: 100_000_000_000, Output: 1 << 20, Scratch: 16 << 20},
		}))(t)
	}
	lines := slices.Sorted(strings.Lines(string(run(string(text)).Stdout)))
	if diff := cmp.Diff(string(musttest.Get(os.ReadFile("testdata/archives.golden"))(t)), strings.Join(lines, "")); diff != "" {
		t.Errorf("-Info-ZIP +here\n%s", diff)
	}
	r := run(`python -c "
import zipfile
with zipfile.ZipFile('h.zip', 'w') as z:
    for name in '../up', '/top', 'a/../../side', './same':
        z.writestr(name, name)
"
mkdir in && cd in && unzip -q ../h.zip; find .. -type f | sort; head -c 40 ../h.zip > cut.zip; unzip cut.zip; echo $?; zip -q f.zip up && python -c "import zipfile; print(zipfile.ZipFile('f.zip').namelist())"`)
	if got, want := string(r.Stdout), "../h.zip\n../in/a/side\n../in/same\n../in/top\n../in/up\n../main.sh\n9\n['up']\n"; got != want {
		t.Errorf("hostile: %s, want %s; %s", got, want, r.Stderr)
	}
}

// A script in Python starts the shell and its commands, as it does where they are installed.
func TestProgramsOfScripts(t *testing.T) {
	runners := programs(t)
	for _, c := range []struct{ name, text, want string }{
		{"a command", `print(subprocess.run(["jq", "-c", ".a"], input='{"a": [1, 2]}', capture_output=True, text=True).stdout)`, "[1,2]"},
		{"the shell", `print(subprocess.check_output("for i in 1 2 3; do echo $((i * i)); done | tac | tr '\\n' ,", shell=True, text=True))`, "9,4,1,"},
		{"its arguments", `print(subprocess.check_output(["bash", "-euc", 'echo "$0|$1|$#|$A|$PWD"', "name", "a b", ""], text=True, env={"A": "x'y"}, cwd="/tmp"))`, "name|a b|2|x'y|/tmp"},
		{"a script", `
open("made.sh", "w").write('#!/bin/bash\nset -e\necho "$0 $1"\nfalse\necho not\n')
r = subprocess.run(["./made.sh", "x"], capture_output=True, text=True); print(r.returncode, r.stdout, r.stderr)
r = subprocess.run(["bash", "made.sh", "y"], capture_output=True, text=True); print(r.returncode, r.stdout, r.stderr)`, "1 ./made.sh x\n \n1 ./made.sh y\n"},
		{"standard input as the script", `print(subprocess.run(["sh", "-s", "a"], input="echo $1; exit 5", capture_output=True, text=True))`, `CompletedProcess(args=['sh', '-s', 'a'], returncode=5, stdout='a\n', stderr='')`},
		{"system", `print(os.system("exit 3") >> 8, os.popen("wc -l < notes.txt").read().strip())`, "3 1"},
		{"files", `
subprocess.run("mkdir -p out && sort -r notes.txt > out/sorted && echo more >> notes.txt", shell=True, check=True)
print(open("out/sorted").read().strip(), open("notes.txt").read().split())`, "first ['first', 'more']"},
		{"its parent's input", `subprocess.run(["cat"]); print("python:", sys.stdin.read())`, "given\nmore\npython:"},
		{"its parent's input by the shell", `subprocess.run("read -r a; echo \"1 $a\"", shell=True); subprocess.run("cat", shell=True); print("python:", sys.stdin.read())`, "1 given\nmore\npython:"},
		{"not its parent's input", `subprocess.run("echo a; true < /dev/null", shell=True); print("python:", sys.stdin.read())`, "a\npython: given\nmore"},
		{"input step by step", `
p = subprocess.Popen(["tr", "a-z", "A-Z"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
for l in ("a", "b"):
    p.stdin.write(l + "\n"); p.stdin.flush(); print(p.stdout.readline(), end="", flush=True)
p.stdin.close(); print(p.stdout.read(), p.wait())`, "A\nB\n 0"},
		{"a script's input step by step", `
open("filter.sh", "w").write('while read -r line; do echo "<$line>"; done; echo end')
for command in (["bash", "filter.sh"], ["bash", "-c", "cat"], ["cat"], ["bash", "-c", "while IFS= read -r l; do echo \"$l\" | tr a-z A-Z; done"]):
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    for l in ("a", "b"):
        p.stdin.write(l + "\n"); p.stdin.flush(); print(p.stdout.readline().strip(), end=" ", flush=True)
    p.stdin.close(); print(p.stdout.read().strip(), p.wait())`, "<a> <b> end 0\na b  0\na b  0\nA B  0"},
		{"a script's input that never ends", `
for command in ("head -n 1", "read -r a; echo $a", "grep -m1 y", "while read -r a; do echo $a; break; done", "cat | head -n 1"):
    p = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
    print(subprocess.check_output(["bash", "-c", command], stdin=p.stdout, text=True), end=""); p.kill(); p.wait()`, strings.Repeat("y\n", 4) + "y"},
		{"an input that never ends", `
p = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
print(subprocess.check_output(["head", "-n", "1"], stdin=p.stdout, text=True)); p.kill()`, "y"},
		{"a database", `
print(subprocess.check_output(["sqlite3", "-json", "x.db", "create table a(b, c); insert into a values('d e', 0.1), (null, x'41'); select * from a"], text=True), end="")
print(subprocess.run("sqlite3 -header -csv x.db <<< 'select b, count(*) as n from a group by b;'", shell=True, capture_output=True, text=True).stdout, end="")
print(subprocess.run(["sqlite3", "x.db", ".tables", "select nope"]).returncode)`, "[{\"b\":\"d e\",\"c\":0.1},\n{\"b\":null,\"c\":\"A\"}]\nb,n\n,1\n\"d e\",1\na\n1"},
		{"names of their own", `print(len({subprocess.check_output(["mktemp"]) for _ in range(3)}))`, "3"},
		{"not there", `
r = subprocess.run("git status", shell=True, capture_output=True, text=True); print(r.returncode, r.stderr)`, "127 sh: line 1: git: command not found"},
		{"a wrong option", `print(subprocess.run(["bash", "-c"], capture_output=True, text=True))`, `CompletedProcess(args=['bash', '-c'], returncode=2, stdout='', stderr='bash: -c: option requires an argument\n')`},
		{"a pipe of processes", `
p = subprocess.Popen(["seq", "100000"], stdout=subprocess.PIPE)
q = subprocess.Popen(["awk", "{ s += $1 } END { print s }"], stdin=p.stdout, stdout=subprocess.PIPE, text=True)
p.stdout.close()
print(q.communicate()[0], p.wait())`, "5000050000\n 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			for name, text := range map[string]string{"tool.py": "import os, subprocess, sys\n" + c.text + "\n", "notes.txt": "first\n"} {
				musttest.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
			}
			r, err := runnertest.Do(t.Context(), runners[skill.WasmPython], &skill.Call{
				SkillID: "my-skill", TraceID: "t-1", Folder: folder, Entry: "tool.py", Trust: skill.Trusted, Script: true, Stdin: []byte("given\nmore\n"),
				Limits: skill.Limits{Timeout: time.Minute, Memory: 512 << 20, Fuel: 100_000_000_000, Output: 1 << 20, Scratch: 16 << 20},
			})
			musttest.Do(t, err)
			if got := strings.TrimSpace(string(r.Stdout)); r.Code != "" || r.ExitCode != 0 || got != strings.TrimSpace(c.want) {
				t.Errorf("%s %s %d\n%s\nwant\n%s\n%s", r.Code, r.Message, r.ExitCode, got, c.want, r.Stderr)
			}
		})
	}
}
