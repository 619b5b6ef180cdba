package all

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/plugins/javascript"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// ready makes the runners of the sandbox whose runtimes the test needs.
func ready(t testing.TB, kinds ...skill.Kind) map[skill.Kind]skill.Runner {
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
	for _, kind := range kinds {
		if err := runnertest.Ready(t.Context(), runners[kind]); err != nil {
			t.Skip(err) // not installed: the message says what to run
		}
		if kind == skill.WasmJavaScript && !javascript.HasNode() {
			t.Skip("Node's modules are not installed: make node-modules")
		}
	}
	return runners
}

// ran runs a script of an Agent Skill, which has a file beside it.
func ran(t testing.TB, r skill.Runner, entry, text, stdin string, files ...string) *skill.Reply {
	t.Helper()
	return ranFor(t, r, time.Minute, entry, text, stdin, files...)
}

func ranFor(t testing.TB, r skill.Runner, limit time.Duration, entry, text, stdin string, files ...string) *skill.Reply {
	t.Helper()
	folder := t.TempDir()
	files = append(files, entry, text, "notes.txt", "first\n")
	for i := 0; i < len(files); i += 2 {
		musttest.Do(t, os.WriteFile(filepath.Join(folder, files[i]), []byte(files[i+1]), 0o600))
	}
	reply, err := runnertest.Do(t.Context(), r, &skill.Call{
		SkillID: "my-skill", TraceID: "t-1", Folder: folder, Entry: entry, Trust: skill.Trusted, Script: true, Stdin: []byte(stdin),
		Limits: skill.Limits{Timeout: limit, Memory: 512 << 20, Fuel: 100_000_000_000, Output: 1 << 20, Scratch: 16 << 20},
	})
	musttest.Do(t, err)
	return reply
}

type scriptCase struct{ name, text, want string }

func runAll(t *testing.T, r skill.Runner, entry, before string, cases []scriptCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			reply := ran(t, r, entry, before+c.text, "given\nsecond\n", "other.py", "#!/usr/bin/env python3\nimport sys\nprint('py', *sys.argv)\n", "other.mjs", "#!/usr/bin/env node\nimport fs from 'node:fs';\nconsole.log('js', process.argv.slice(1).join(' '), fs.readFileSync(0, 'utf8').trim());\nprocess.exitCode = 4;\n")
			if got := strings.TrimSpace(string(reply.Stdout)); reply.Code != "" || got != strings.TrimSpace(c.want) {
				t.Errorf("%s %s %d\n%s\nwant\n%s\nstderr: %s", reply.Code, reply.Message, reply.ExitCode, got, c.want, reply.Stderr)
			}
		})
	}
}

// A shell script starts programs that are not part of the shell, as bash does.
func TestProgramsOfShellScripts(t *testing.T) {
	runners := ready(t, skill.WasmPython, skill.WasmShell)
	runAll(t, runners[skill.WasmShell], "tool.sh", "", []scriptCase{
		{"a program", `python3 -c 'import sys; print(sys.argv)' a "b c"; echo $?`, "['-c', 'a', 'b c']\n0"},
		{"a pipeline", `echo '{"a":1}' | python3 -c 'import json,sys; d=json.load(sys.stdin); d["b"]=2; print(json.dumps(d))' | jq -c '.b'`, "2"},
		{"two programs", `python3 -c 'for i in range(100000): print(i)' | python3 -c 'import sys; print(sum(map(int, sys.stdin)))'`, "4999950000"},
		{"a substitution", `x=$(python3 -c 'print("in")'); echo "<$x>"`, "<in>"},
		{"redirects", `python3 -c 'import sys; print("out"); print("err", file=sys.stderr)' >out.txt 2>err.txt; cat err.txt out.txt; python3 -c 'import sys; print("a", flush=True); print("b", file=sys.stderr, flush=True); print("c")' >both.txt 2>&1; cat both.txt; python3 -c 'print(input())' <notes.txt >>both.txt; tail -n 1 both.txt`, "err\nout\na\nb\nc\nfirst"},
		{"here documents", "python3 - x <<'EOF'\nimport sys\nprint(sys.argv[1], '$HOME')\nEOF\npython3 <<EOF\nprint('$HOME')\nEOF", "x $HOME\n/tmp"},
		{"exit codes", `python3 -c 'import sys; sys.exit(3)'; echo $?; python3 -c 'raise ValueError' 2>/dev/null || echo failed; if python3 -c 'pass'; then echo well; fi; ! python3 -c 'exit(1)' && echo not`, "3\nfailed\nwell\nnot"},
		{"set -e", `set -euo pipefail; echo one; python3 -c 'exit(7)' | cat; echo two`, "one"},
		{"variables", `export A=1; B=2 python3 -c 'import os; print(os.environ["A"], os.environ["B"], os.environ.get("C"), os.getcwd())'; C=3; env FOO=x python3 -c 'import os; print(os.environ["FOO"], "C" in os.environ)'; cd /tmp; python3 -c 'import os; print(os.getcwd(), os.environ["PWD"])'`, "1 2 None /skills/my-skill\nx False\n/tmp /tmp"},
		{"a path", `cat other.py >x.py; chmod +x x.py; ./x.py 1 2; /usr/bin/env python3 other.py; /usr/bin/python3 other.py z; python other.py`, "py ./x.py 1 2\npy other.py\npy other.py z\npy other.py"},
		{"found", `command -v python3 >/dev/null && echo there; type python3 >/dev/null && echo typed; which python3 >/dev/null && echo which; command -v ruby || echo none; P=$(command -v python3); "$P" -c 'print(1)'`, "there\ntyped\nwhich\nnone\n1"},
		{"not there", `ruby -e 1; echo $?; git status 2>&1`, "127\n/skills/my-skill/tool.sh: line 1: git: command not found"},
		{"a loop", `seq 3 | while read -r n; do python3 -c "print($n * 2)"; done; while read -r l; do python3 -c 'print("x")'; done < notes.txt`, "2\n4\n6\nx"},
		{"a reader in a loop", `printf 'a\nb\nc\n' | { read -r one; echo "$one"; python3 -c 'import sys; print(sys.stdin.read().split())'; cat; }`, "a\n['b', 'c']"},
		{"standard input of the script", `python3 -c 'print(input())'; cat`, "given"},
		{"an endless writer", `yes | python3 -c 'print(input())'; echo "${PIPESTATUS[@]}"`, "y\n141 0"},
		{"an early end", `python3 -c 'for i in range(10**9): print(i)' 2>/dev/null | head -n 1`, "0"},
		{"xargs", `printf 'a b\nc\n' | xargs -n 1 python3 -c 'import sys; print(sys.argv[1])'; find . -name other.py -exec python3 {} 9 \;`, "a\nb\nc\npy ./other.py 9"},
		{"timeout", `timeout 0.2 python3 -c 'import time; time.sleep(30)'; echo $?; timeout 20 python3 -c 'print(1)'`, "124\n1"},
		{"a job", `python3 -c 'print("job")' & wait; python3 -c 'exit(5)' & wait $!; echo $?`, "job\n5"},
		{"a function", `f() { python3 -c 'import sys; print(sys.stdin.read().upper(), end="")'; }; echo text | f; f < notes.txt`, "TEXT\nFIRST"},
		{"bash -c", `bash -c 'python3 -c "print(1)"; exit 3'; echo $?; sh -c 'echo $1 | python3 -c "print(input())"' x y`, "1\n3\ny"},
		{"exec", `exec python3 -c 'print("last"); exit(6)'; echo not`, "last"},
		{"time", `python3 --version | cut -d. -f1`, "Python 3"},
	})
}

// Node is a program of shell scripts and of those in Python, and one without end is ended.
func TestNodeAsProgram(t *testing.T) {
	runners := ready(t, skill.WasmPython, skill.WasmShell, skill.WasmJavaScript)
	runAll(t, runners[skill.WasmShell], "tool.sh", "", []scriptCase{
		{"eval", `node -e 'console.log(1, process.argv.slice(1), require("path").basename("/a/b"))' x; echo $?; node -p '1 + 1'; node -pe '({a: 1})'`, "1 [ 'x' ] b\n0\n2\n{ a: 1 }"},
		{"module", `node --input-type=module -e 'import fs from "node:fs"; console.log(fs.existsSync("notes.txt"), await Promise.resolve(2))'`, "true 2"},
		{"a script", `echo in | node other.mjs 1 2; echo $?; cp other.mjs x.mjs; chmod +x x.mjs; ./x.mjs 3 <notes.txt`, "js /skills/my-skill/other.mjs 1 2 in\n4\njs /skills/my-skill/x.mjs 3 first"},
		{"standard input", `echo 'console.log(process.argv.slice(1))' | node - a; node <<< 'console.log("here")'`, "[ '-', 'a' ]\nhere"},
		{"version", `node --version | cut -c1-3; node -v >/dev/null && echo ok`, "v20\nok"},
		{"not there", `node none.js 2>&1 | grep -o "Cannot find module '.*none.js'"; node none.js 2>/dev/null; echo $?`, "Cannot find module '/skills/my-skill/none.js'\n1"},
		{"errors", `node -e 'throw new Error("x")' 2>/dev/null; echo $?; node -e 'process.exit(7)'; echo $?`, "1\n7"},
		{"random", `a=$(node -p 'Math.random()'); b=$(node -p 'Math.random()'); [ "$a" != "$b" ] && echo differs`, "differs"},
		{"a stream", `printf 'a\nb\n' | node -e 'process.stdin.on("data", (d) => process.stdout.write(String(d).toUpperCase()))'`, "A\nB"},
	})
	runAll(t, runners[skill.WasmPython], "tool.py", "import subprocess\n", []scriptCase{
		{"from Python", `print(subprocess.run(["node", "-e", "console.log(1)"], capture_output=True, text=True))`, `CompletedProcess(args=['node', '-e', 'console.log(1)'], returncode=0, stdout='1\n', stderr='')`},
	})
}

// A script in JavaScript starts programs by child_process.
func TestChildProcess(t *testing.T) {
	runners := ready(t, skill.WasmPython, skill.WasmShell, skill.WasmJavaScript)
	runAll(t, runners[skill.WasmJavaScript], "tool.mjs", "import cp from 'node:child_process';\nimport { promisify } from 'node:util';\n", []scriptCase{
		{"execSync", `console.log(cp.execSync('echo a | tr a b', { encoding: 'utf8' }), cp.execSync('exit 0').length)`, "b\n 0"},
		{"execSync fails", `try { cp.execSync('echo out; echo err >&2; exit 3', { stdio: 'pipe' }) } catch (e) { console.log(e.status, e.signal, String(e.stdout), String(e.stderr), e.message) }`, "3 null out\n err\n Command failed: echo out; echo err >&2; exit 3\nerr"},
		{"execFileSync", `console.log(cp.execFileSync('python3', ['-c', 'import sys; print(sys.stdin.read() * 2)'], { input: 'ab' }).toString().trim())`, "abab"},
		{"spawnSync", `const r = cp.spawnSync('python3', ['-c', 'import sys; print(1); print(2, file=sys.stderr); sys.exit(5)'], { encoding: 'utf8' }); console.log(r.status, r.signal, r.output, r.error)`, "5 null [ null, '1\\n', '2\\n' ] undefined"},
		{"not there", `const r = cp.spawnSync('none', ['a']); console.log(r.status, r.error.code, r.error.message, r.error.spawnargs, r.stdout);
try { cp.execFileSync('none') } catch (e) { console.log(e.code, e.syscall + ",", e.path, e.errno) }
cp.spawn('none', ['x']).on('error', (e) => console.log('event', e.code, e.message)).on('close', (c) => console.log('close', c));
cp.execFile('none', ['x'], (e) => console.log('back', e.code, e.cmd));`, "null ENOENT spawnSync none ENOENT [ 'a' ] null\nENOENT spawnSync none, none -2\nevent ENOENT spawn none ENOENT\nclose -2\nback ENOENT none x"},
		{"spawn", `const p = cp.spawn('python3', ['-c', 'import sys\nfor l in sys.stdin: print(l.upper(), end="")\nsys.exit(2)']);
let all = ''; p.stdout.setEncoding('utf8').on('data', (d) => { all += d; });
p.on('spawn', () => console.log('spawn', typeof p.pid)).on('exit', (c, s) => console.log('exit', c, s)).on('close', (c) => console.log('close', c, p.exitCode, JSON.stringify(all)));
p.stdin.write('a\n'); p.stdin.end('b\n');`, "spawn number\nexit 2 null\nclose 2 2 \"A\\nB\\n\""},
		{"for await", `const p = cp.spawn('seq', ['20000']); let n = 0; for await (const c of p.stdout) n += c.length; console.log(n)`, "108894"},
		{"much input and output", `const p = cp.spawn('cat'); let n = 0; p.stdout.on('data', (c) => { n += c.length }); p.on('close', () => console.log(n)); p.stdin.end('x'.repeat(1 << 20)); console.log(cp.execSync('cat', { input: 'y'.repeat(1 << 18), maxBuffer: 1 << 19 }).length)`, "262144\n1048576"},
		{"exec", `await new Promise((done) => cp.exec('echo hi; exit 4', (e, out, err) => done(console.log(e.code, e.killed, e.signal, e.cmd, JSON.stringify(out + err)))));
const { stdout } = await promisify(cp.exec)('echo later'); console.log(stdout.trim());
try { await promisify(cp.execFile)('python3', ['-c', 'exit("no")']) } catch (e) { console.log(e.code, e.stderr.trim(), e.message.split('\n')[0]) }`, "4 false null echo hi; exit 4 \"hi\\n\"\nlater\n1 no Command failed: python3 -c exit(\"no\")"},
		{"shell, env, cwd", `console.log(cp.spawnSync('echo $A; pwd', { shell: true, env: { A: 'x' }, cwd: '/tmp' }).stdout.toString().trim(), cp.spawnSync('pwd', { cwd: '/none' }).error.code)`, "x\n/tmp ENOENT"},
		{"stdio", `cp.execSync('echo seen; echo not >&2', { stdio: ['ignore', 'inherit', 'ignore'] }); const r = cp.spawnSync('cat', { stdio: ['pipe', 'pipe', 'inherit'], input: 'q' }); console.log(String(r.stdout), r.stderr); cp.spawn('echo', ['later'], { stdio: 'inherit' }).on('close', (c) => console.log('closed', c))`, "seen\nq null\nlater\nclosed 0"},
		{"timeout and kill", `const r = cp.spawnSync('sleep', ['60'], { timeout: 50 }); console.log(r.status, r.signal, r.error.code);
const p = cp.spawn('sleep', ['60']); setTimeout(() => console.log(p.kill('SIGKILL')), 10);
p.on('exit', (c, s) => { console.log(c, s, p.killed); cp.exec('sleep 60', { timeout: 20 }, (e) => console.log(e.signal, e.killed)) })`, "null SIGTERM ETIMEDOUT\ntrue\nnull SIGKILL true\nSIGTERM true"},
		{"maxBuffer", `const r = cp.spawnSync('seq', ['100000'], { maxBuffer: 10 }); console.log(r.error.code, r.stdout.length); cp.exec('seq 100000', { maxBuffer: 10 }, (e, out) => console.log(e.code, out.length))`, "ENOBUFS 10\nERR_CHILD_PROCESS_STDIO_MAXBUFFER 10"},
		{"timers go on", `setTimeout(() => console.log('timer'), 1); cp.exec('sleep 0.2', () => console.log('end'))`, "timer\nend"},
		{"node", `console.log(cp.execFileSync(process.execPath, ['-p', 'process.argv0']).toString().trim()); cp.fork('other.mjs', ['f'], { stdio: ['ignore', 'inherit', 'inherit'] }).on('exit', (c) => console.log(c))`, "node\njs /skills/my-skill/other.mjs f \n4"},
		{"many", `const all = await Promise.all(Array.from({ length: 20 }, (_, i) => promisify(cp.execFile)('echo', [String(i)]))); console.log(all.map((r) => r.stdout.trim()).join(' '))`, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19"},
		{"a script", `console.log(cp.execSync('./other.py 1 2', { encoding: 'utf8' }).trim(), cp.execSync('python3 other.py').toString().trim())`, "py ./other.py 1 2 py other.py"},
		{"no messages", `try { cp.spawn('node', ['x'], { stdio: ['pipe', 'pipe', 'pipe', 'ipc'] }) } catch (e) { console.log(e.code) }`, "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM"},
	})
}

// Programs that start themselves without end are ended by a limit of the run, however they do.
func TestBombs(t *testing.T) {
	runners := ready(t, skill.WasmPython, skill.WasmShell, skill.WasmJavaScript)
	for name, c := range map[string]struct{ entry, text string }{
		"background":          {"tool.sh", `bash -c 'python3 -c "import subprocess,sys; subprocess.Popen([\"bash\", \"tool.sh\"]); subprocess.Popen([\"bash\", \"tool.sh\"])" & "$0" & "$0"' ./tool.sh`},
		"exec":                {"tool.sh", `exec python3 -c 'import os, subprocess; subprocess.run(["bash", "tool.sh"])'`},
		"one after the other": {"tool.sh", `while :; do python3 -c pass || break; done; echo ended`},
		"node":                {"tool.mjs", `import cp from 'node:child_process'; for (;;) { cp.spawn('node', ['tool.mjs']); cp.spawn('sleep', ['1']); }`},
		"node, synchronous":   {"tool.mjs", `import cp from 'node:child_process'; cp.spawnSync('node', ['tool.mjs']); cp.spawnSync('node', ['tool.mjs']);`},
	} {
		t.Run(name, func(t *testing.T) {
			r := runners[skill.WasmShell]
			if strings.HasSuffix(c.entry, ".mjs") {
				r = runners[skill.WasmJavaScript]
			}
			reply := ranFor(t, r, 10*time.Second, c.entry, c.text, "")
			switch reply.Code {
			case "", skill.FuelExhausted, skill.MemoryLimit, skill.OutputLimit, skill.Timeout, skill.Trap, skill.StackLimit:
			default:
				t.Errorf("%s %s", reply.Code, reply.Message)
			}
			if after := ran(t, runners[skill.WasmShell], "after.sh", "echo well", ""); string(after.Stdout) != "well\n" {
				t.Errorf("the next run: %q %s", after.Stdout, after.Message)
			}
		})
	}
}
