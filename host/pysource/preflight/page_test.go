package preflight

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/plugins/all"
	"openskill/plugins/python/runtimes"
	"openskill/plugins/runnertest"
	"openskill/plugins/shell"
	"openskill/sdk/skill"
	"openskill/wasm"
)

var update = flag.Bool("update", false, "write docs/author-scripts.md anew")

// missingPrograms are the programs that public scripts start most often and the sandbox has not.
var missingPrograms = strings.Fields(`apt apt-get brew cargo docker ffmpeg gcc gh git go kubectl make npm npx open osascript perl pip pip3 rsync
ruby ssh systemctl tmux uv`)

// facts are rows of the page beside the lists: each is a line of a script, and what it prints.
var facts = []struct{ about, says, kind, code, want string }{
	{"files", "the skill's folder: read and write; `--artifacts DIR` keeps what a run wrote", ".sh", `echo a > new.txt; cat new.txt`, "a"},
	{"files", "`/tmp` and the home folder: empty at the start, gone at the end", ".sh", `echo b > /tmp/b; cat /tmp/b; echo $(ls -A ~ | grep -v '^b$')`, "b"},
	{"files", "`/data`: where it is granted, read only", ".sh", `test -e /data || echo none`, "none"},
	{"files", "other files of the machine: not there", ".sh", `cat /etc/passwd 2>/dev/null | grep -c root; ls /home 2>/dev/null || echo none`, "0\nnone"},
	{"processes", "each language starts the others and the commands, in pipes, too", ".py", `import subprocess; print(subprocess.run("echo '[1]' | jq -c . | node -e 'process.stdin.on(\"data\", d => console.log(\"js\", String(d).trim()))'", shell=True, capture_output=True, text=True).stdout.strip())`, "js [1]"},
	{"processes", "`child_process` of Node", ".js", `console.log(require('child_process').execSync('python3 -c "print(6*7)"').toString().trim())`, "42"},
	{"processes", "jobs in the background, and `wait`", ".sh", `(sleep 0; echo job) & wait; echo end`, "job\nend"},
	{"processes", "`subprocess`, `asyncio`, `os.system`, `os.spawn*`, `os.exec*` of Python; `shutil.which` finds what there is", ".py", "import os, shutil\nprint(shutil.which('jq'), shutil.which('git'), flush=True)\nos.execvp('sh', ['sh', '-c', 'echo shell'])", "/usr/bin/jq None\nshell"},
	{"processes", "`os.fork`: not there", ".py", "import os; print(hasattr(os, 'fork'))", "False"},
	{"threads", "`threading`, pools, `asyncio`: they run one after another", ".py", `import concurrent.futures as c; print(sum(c.ThreadPoolExecutor(4).map(len, ["a", "bc"])))`, "3"},
	{"threads", "`multiprocessing`, `ProcessPoolExecutor`: such threads, which share globals", ".py", `import multiprocessing as m; print(m.Pool(2).map(len, ["a", "bc"]))`, "[1, 2]"},
	{"threads", "`asyncio` with timers", ".py", `import asyncio; print(asyncio.run(asyncio.sleep(0.001, "slept")))`, "slept"},
	{"network", "requests to granted addresses, from each language; others are refused", ".sh", `curl -s https://example.com; echo $?`, "7"},
	{"network", "`urllib`, `http.client`, and packages over them", ".py", "import urllib.request\ntry:\n    urllib.request.urlopen('https://example.com')\nexcept OSError as e:\n    print(type(e).__name__)", "URLError"},
	{"network", "`fetch`, `http`, `https`", ".js", `fetch('https://example.com').catch((e) => console.log(e.constructor.name))`, "TypeError"},
	{"network", "other sockets, and servers: an error", ".py", "import socket\ntry:\n    socket.create_connection(('example.com', 25))\nexcept OSError:\n    print('no')", "no"},
	{"environment", "variables: those of the sandbox and granted ones alone", ".py", `import os; print(os.environ.get("USER"))`, "None"},
	{"environment", "time zone UTC, no terminal", ".sh", `date +%Z; test -t 0 || echo no terminal`, "UTC\nno terminal"},
}

// page runs a script in the sandbox, and gives what it printed.
type page map[skill.Kind]skill.Runner

func newPage(t *testing.T) page {
	t.Helper()
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = filepath.Join("..", "..", "..", ".openskill")
	}
	state = musttest.Get(filepath.Abs(state))(t)
	e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: filepath.Join(state, "cache", "wasm"), ImageBytes: 2 << 30}))(t)
	t.Cleanup(func() { _ = e.Close() }) // the rows say what failed
	p := page{}
	for _, r := range all.Sandboxed(all.Options{Engine: e, StateDir: state}) {
		t.Cleanup(func() { _ = r.Close() })
		p[r.Kind()] = r
	}
	for _, kind := range []skill.Kind{skill.WasmPython, skill.WasmJavaScript, skill.WasmShell} {
		if err := runnertest.Ready(t.Context(), p[kind]); err != nil {
			t.Skip(err)
		}
	}
	return p
}

func (p page) run(t *testing.T, name, text string) string {
	t.Helper()
	folder := t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	kind := map[string]skill.Kind{".py": skill.WasmPython, ".js": skill.WasmJavaScript, ".sh": skill.WasmShell}[filepath.Ext(name)]
	call := &skill.Call{
		SkillID: "page", TraceID: "page", ExecutionID: name, Tenant: "test", Folder: folder, Entry: name, Digest: name, Trust: skill.Trusted, Script: true,
		Limits: skill.Limits{Timeout: 3 * time.Minute, Memory: 512 << 20, Fuel: 1 << 38, Output: 1 << 20, Scratch: 16 << 20},
	}
	reply, err := runnertest.Do(t.Context(), p[kind], call)
	if err != nil || reply.Code != "" || reply.ExitCode != 0 {
		t.Fatalf("%s: %v\n%s%s", name, err, reply.Stderr, reply.Message)
	}
	return strings.TrimSpace(string(reply.Stdout))
}

// lines runs a script that prints a name of a list per line: those that are not as the page says.
func (p page) lines(t *testing.T, name, text string) {
	t.Helper()
	if wrong := p.run(t, name, text); wrong != "" {
		t.Errorf("%s: not as the page says: %s", name, strings.ReplaceAll(wrong, "\n", ", "))
	}
}

// The page says what scripts can use: each name and row of it is tried in the sandbox.
func TestPageOfScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("short: compiling runtimes takes seconds")
	}
	p := newPage(t)
	programs, builtins := all.Programs(), shell.Builtins()
	missing := slices.DeleteFunc(slices.Clone(missingPrograms), func(name string) bool { return slices.Contains(programs, name) || slices.Contains(builtins, name) })
	library, bundled, err := runtimes.New("").Modules("slim")
	musttest.Do(t, err)
	has := slices.DeleteFunc(slices.Clone(library), func(name string) bool { _, lacks := missingLibrary[name]; return lacks || strings.HasPrefix(name, "_") })
	var imports, packages []string
	for _, b := range bundled {
		imports = append(imports, b.Imports...)
		packages = append(packages, b.Name)
	}
	slices.Sort(packages)

	p.lines(t, "commands.sh", "for c in "+words(slices.Concat(programs, builtins))+"; do type \"$c\" >/dev/null 2>&1 || \"$c\" -c : >/dev/null 2>&1 || echo \"$c\"; done\n"+
		"for c in "+words(missing)+"; do type \"$c\" >/dev/null 2>&1 && echo \"$c\"; done; true\n")
	p.lines(t, "modules.py", "import importlib, io, contextlib\nfor there, names in (True, "+list(slices.Concat(has, imports))+"), (False, "+list(slices.Sorted(maps.Keys(missingLibrary)))+"):\n"+
		"    for name in names:\n        try:\n            with contextlib.redirect_stdout(io.StringIO()):\n                importlib.import_module(name)\n            found = True\n        except ImportError:\n            found = False\n"+
		"        if found != there: print(name)\n")
	p.lines(t, "modules.js", "for (const name of "+list(slices.Concat(slices.Sorted(maps.Keys(nodeModules)), slices.Sorted(maps.Keys(missingModules))))+") {\n"+
		"  try { require('node:' + name); } catch (e) { console.log(name, e.message); }\n}\n")
	var rows strings.Builder
	for i, f := range facts {
		if got := p.run(t, fmt.Sprintf("facts%d%s", i, f.kind), f.code); got != f.want {
			t.Errorf("%s, %s:\ngot  %q\nwant %q", f.about, f.says, got, f.want)
		}
		fmt.Fprintf(&rows, "| %s | %s |\n", f.about, f.says)
	}

	text := "<!-- lists: written by go test ./host/pysource/preflight -update -->\n" +
		"## Commands\n\n| | |\n|---|---|\n| programs, from each language | " + ticks(programs) + " |\n| commands of the shell beside them | " +
		ticks(slices.DeleteFunc(slices.Clone(builtins), func(name string) bool { return slices.Contains(programs, name) })) + " |\n| not there, such as | " + ticks(missing) + " |\n\n" +
		"## Python\n\n| | |\n|---|---|\n| modules | " + ticks(has) + " |\n| packages, without adding them | " + ticks(packages) + " |\n\n" +
		"| not there | why | instead |\n|---|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(missingLibrary)) {
		text += "| `" + name + "` | " + missingLibrary[name].what + " | " + missingLibrary[name].instead + " |\n"
	}
	text += "\n## Node\n\n| | |\n|---|---|\n| modules | " + ticks(slices.Sorted(maps.Keys(nodeModules))) + " |\n\n| can be loaded, and does nothing | instead |\n|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(missingModules)) {
		text += "| `" + name + "` | " + missingModules[name].instead + " |\n"
	}
	text += "\n## Files, processes, network\n\n| | |\n|---|---|\n" + rows.String() + "<!-- end -->\n"

	file := filepath.Join("..", "..", "..", "docs", "author-scripts.md")
	was := musttest.Get(os.ReadFile(file))(t)
	start, rest, _ := strings.Cut(string(was), "<!-- lists")
	_, end, found := strings.Cut(rest, "<!-- end -->\n")
	switch want := start + text + end; {
	case !found:
		t.Fatal("the page has no place for the lists")
	case *update:
		musttest.Do(t, os.WriteFile(file, []byte(want), 0o644))
	case want != string(was):
		t.Error("docs/author-scripts.md does not list what there is: run with -update")
	}
}

func ticks(names []string) string { return "`" + strings.Join(names, "` `") + "`" }

func words(names []string) string { return "'" + strings.Join(names, "' '") + "'" }

func list(names []string) string { return "['" + strings.Join(names, "', '") + "']" }
