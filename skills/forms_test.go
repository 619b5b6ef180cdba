package skills_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// A form is one way to run a skill: its Python file, or its module.
type form struct {
	name string
	run  func(t *testing.T, data string, stdin []byte) outcome
}

// pythonModule is where make runtimes puts CPython.
var pythonModule = filepath.Join("..", ".openskill", "runtimes", "python-3.12", "python.wasm")

// formsOf lists the forms of a skill that can be run here, the CLI form first.
// It skips the test where one cannot, and says which.
func formsOf(t *testing.T, id string) []form {
	t.Helper()
	if python() == "" {
		t.Skip("python3 is not installed: the CLI forms cannot be run")
	}
	forms := []form{{"cli", func(t *testing.T, data string, stdin []byte) outcome {
		t.Helper()
		return runCLI(t, id, data, stdin)
	}}}
	module, args := filepath.Join(id, id+".wasm"), []string{id}
	if id == "calculator" {
		module = pythonModule
		args = []string{"python", "-I", "-B", "/skill/calculator.py"}
	}
	if _, err := os.Stat(module); err != nil {
		t.Logf("%s is not there (make skills runtimes): only the CLI form is tested", filepath.Base(module))
		return forms
	}
	if id == "calculator" && testing.Short() {
		t.Log("short: only the CLI form is tested; CPython starts in a tenth of a second at best")
		return forms
	}
	return append(forms, form{"wasm", func(t *testing.T, data string, stdin []byte) outcome {
		t.Helper()
		return runWasm(t, module, args, id, data, stdin)
	}})
}

// python is the interpreter itself, not a script in front of it that chooses one:
// that takes longer than most cases.
var python = sync.OnceValue(func() string {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
})

// runCLI runs the Python file as the CLI runner does: in a folder of its own,
// with a link to the data and an empty scratch folder.
func runCLI(t *testing.T, id, data string, stdin []byte) outcome {
	t.Helper()
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	script, err := filepath.Abs(filepath.Join(id, id+".py"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(data, filepath.Join(dir, "data")), os.Mkdir(work, 0o755)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python(), "-I", "-B", script)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, bytes.NewReader(stdin), &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	logStderr(t, stderr.String())
	return outcome{stdout.Bytes(), cmd.ProcessState.ExitCode(), scratch(t, work)}
}

// engine compiles each module once for all tests.
var engine = struct {
	sync.Mutex
	runtime wazero.Runtime
	modules map[string]wazero.CompiledModule
}{}

func compiled(t *testing.T, module string) (wazero.Runtime, wazero.CompiledModule) {
	t.Helper()
	engine.Lock()
	defer engine.Unlock()
	ctx := context.Background() // the modules outlive the test that needs them first
	if engine.runtime == nil {
		engine.runtime = wazero.NewRuntime(ctx)
		engine.modules = map[string]wazero.CompiledModule{}
		wasi_snapshot_preview1.MustInstantiate(ctx, engine.runtime)
	}
	if m, ok := engine.modules[module]; ok {
		return engine.runtime, m
	}
	code, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	m, err := engine.runtime.CompileModule(ctx, code)
	if err != nil {
		t.Fatal(err)
	}
	engine.modules[module] = m
	return engine.runtime, m
}

// runWasm runs a module with the folders that a skill sees.
func runWasm(t *testing.T, module string, args []string, id, data string, stdin []byte) outcome {
	t.Helper()
	runtime, m := compiled(t, module)
	work := t.TempDir()
	var stdout, stderr bytes.Buffer
	config := wazero.NewModuleConfig().WithName("").WithArgs(args...).
		WithStdin(bytes.NewReader(stdin)).WithStdout(&stdout).WithStderr(&stderr).
		WithFSConfig(wazero.NewFSConfig().
			WithReadOnlyDirMount(data, "/data").
			WithReadOnlyDirMount(id, "/skill").
			WithDirMount(work, "/work"))
	instance, err := runtime.InstantiateModule(t.Context(), m, config)
	exit := 0
	var status *sys.ExitError
	if errors.As(err, &status) {
		exit = int(status.ExitCode())
	} else if err != nil {
		t.Fatal(err)
	}
	if instance != nil {
		_ = instance.Close(t.Context())
	}
	logStderr(t, stderr.String())
	return outcome{stdout.Bytes(), exit, scratch(t, work)}
}

func logStderr(t *testing.T, s string) {
	t.Helper()
	if strings.Contains(s, "Traceback") || strings.Contains(s, "panic:") {
		t.Errorf("the skill broke: %s", s)
	}
}

func scratch(t *testing.T, work string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(work)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(work, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(raw)
	}
	return files
}

// dataFolder is a copy of the sample data with the folder odd beside it: files
// that no repository should hold.
func dataFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "data"))); err != nil {
		t.Fatal(err)
	}
	huge := strings.Repeat(strings.Repeat("x", 99)+"\n", 52_430) // a little over 5 MiB
	for name, content := range map[string]string{
		"odd/binary.dat":        "needle\x00needle\n",
		"odd/latin1.txt":        "needle \xe9\n",
		"odd/bom.txt":           "\ufeffneedle after a byte order mark\n",
		"odd/crlf.txt":          "one\r\nneedle two\r\n",
		"odd/last.txt":          "needle without a line end",
		"odd/separators.txt":    "a\u2028needle\x0b\x0c\u0085z\n",
		"odd/empty.txt":         "",
		"odd/huge.txt":          "needle\n" + huge,
		"odd/limit.txt":         "needle at the limit\n" + huge[:5<<20-20],
		"odd/.hidden":           "needle in a hidden file\n",
		"order/a.txt":           "order\n",
		"order/a/b.txt":         "order\n",
		"order/a-b.txt":         "order\n",
		"order/a0.txt":          "order\n",
		"order/é.txt":           "order\n",
		"order/😀.txt":           "order\n",
		"order/｡.txt":           "order\n",
		"order/a/[x].txt":       "brackets\n",
		"order/A.TXT":           "order upper\n",
		"logs2/bad.jsonl":       badJSONLines,
		"logs2/numbers.jsonl":   numberLines,
		"logs2/bad.csv":         badCommaLines,
		"logs2/header.csv":      "a,,c\n1,2,3\n",
		"logs2/twice.csv":       "a,a\n1,2\n",
		"logs2/empty.log":       "",
		"logs2/blank.log":       "\n \t\n\r\n",
		"logs2/bom.csv":         "\ufefflevel,msg\r\nWARN,crlf\r\n",
		"logs2/shapes.log":      logShapes,
		"logs2/broken.log":      "2026-01-05T08:00:00Z INFO ok\n2026-01-05T08:00:00Z INFO \xff\xfe\n" + "INFO " + strings.Repeat("x", 64<<10) + "\nINFO " + strings.Repeat("y", 20) + "\n",
		"logs2/noextension":     "INFO plain\n",
		"logs2/.csv":            "a\n1\n",
		"logs2/two.dots.LOG":    "INFO two\n",
		"logs2/events.ndjson":   "{\"a\":1}\n",
		"logs2/quote \" 技能.log": "INFO odd name\n",
	} {
		writeFile(t, dir, name, content)
	}
	return dir
}

func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

const badJSONLines = `{"level":"WARN","n":1}
{"level":"WARN",
{"n":NaN}
{"n":Infinity}
{"n":-Infinity}
{"n":1e999}
{"half":"\ud800"}
{"pair":"\ud83d\ude00"}
[1]
"text"
null
{"a":1} {"b":2}
{"a":1,}
{'a':1}
{"a":01}
` + "{\"tab\":\"\t\"}\n" + `  {"spaces":true}  
{"twice":1,"twice":2}
{"level":5}
{ "a" : [ 1 , "x" ,{ "b" : "\u0063" , "level" : "WARN" } ] , "level" : "WA\u0052N" }
{"twice":"\ud800","twice":1}
`

const numberLines = `{"n":[1.0,1e5,1E+16,1e15,123456789012345678901234567890,-0,-0.0,1e-5,0.0001,1.5e-7,0.1,5e-324,1e-400,1.7976931348623157e308,9007199254740993,100.50]}
{"s":"q\" b\\ s\/ n\n t\t r\r b\b f\f u\u0001 del\u007f ls\u2028 é 技 😀 <&>","z":null,"a":{"y":[],"b":{}}}
`

const badCommaLines = `level,msg
WARN,plain
"INFO","quoted, with ""quotes"""
INFO,one,too many
INFO
ERROR,bare " quote
ERROR,"never closed
ERROR,"text"after
,

INFO,""
`

const logShapes = `2026/01/05 08:00:00 INFO go style
10.0.0.1 - - [05/Jan/2026:08:00:00 +0000] "GET / HTTP/1.1" 200
INFO: no time
WARNING - a dash
(FATAL) in brackets <b>
2026-01-05T08:00:00 lower info stays text
INFORMATION is no level
2026-01-05T08:00:00ZWARN|glued
ERROR -5 degrees
错误 磁盘
2026-01-05T08:00:00Z 级别=错误, 消息
2026-01-05T08:00:00Z
  2026-01-05T08:00:00+0800   DEBUG   spaces   inside  
[1736064000.123] NOTICE epoch
x]INFO (y
`
