package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
	"openskill/sdk/vectorstest"
)

// skillCall is what openskill run prints of a call.
type skillCall struct {
	exit      int
	result    skill.Result
	artifacts map[string]string
}

// callSkill has openskill call the skill of a folder, with a data folder if it is not "".
func callSkill(t *testing.T, folder, state, input, data string) (c skillCall) {
	t.Helper()
	files := t.TempDir()
	file, made := filepath.Join(files, "input.json"), filepath.Join(files, "made")
	musttest.Do(t, os.WriteFile(file, []byte(input), 0o600))
	args := []string{"run", folder, "--state", state, "--input", "@" + file, "--trace-id", "t-1", "--artifacts", made}
	if data != "" {
		args = append(args, "--data", data)
	}
	var stdout, stderr bytes.Buffer
	c.exit = Run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
	if err := json.Unmarshal(stdout.Bytes(), &c.result); err != nil {
		t.Fatalf("exit code %d: %v: %s%s", c.exit, err, &stdout, &stderr)
	}
	c.artifacts = map[string]string{}
	entries, err := os.ReadDir(made)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		b := musttest.Get(os.ReadFile(filepath.Join(made, e.Name())))(t)
		c.artifacts[e.Name()] = string(b)
	}
	return c
}

// copyGlob copies files into a folder.
func copyGlob(t *testing.T, pattern, to string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("..", "..", "sdk", filepath.FromSlash(pattern)))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(found), err)
	}
	for _, from := range found {
		b, err := os.ReadFile(from)
		if err == nil {
			err = errors.Join(os.MkdirAll(to, 0o700), os.WriteFile(filepath.Join(to, filepath.Base(from)), b, 0o600))
		}
		musttest.Do(t, err)
	}
}

// The vectors by the door: what the vector skill says is what callers get, but for codes
// that are nobody's but the author's.
func TestVectorsByTheDoor(t *testing.T) {
	all := musttest.Get(vectorstest.All())(t)
	folder, state := filepath.Join(t.TempDir(), "vectors"), t.TempDir()
	copyGlob(t, "javascript/vectors/main.mjs", folder)
	copyGlob(t, "javascript/openskill_guest.mjs", folder)
	manifest := "id: vectors\nversion: 0.1.0\ndescription: The vectors.\ntype: wasm\nruntime: javascript\nentry: main.mjs\nlimits: {output_kb: 1024}\npermissions: {data: read, scratch: true}\n"
	musttest.Do(t, os.WriteFile(filepath.Join(folder, "skill.yaml"), []byte(manifest), 0o600))
	for _, v := range all {
		if v.Stdin != nil { // which no door lets through
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			data := ""
			if v.Files != nil {
				data = t.TempDir()
			}
			for name, text := range v.Files {
				musttest.Write(t, filepath.Join(data, filepath.FromSlash(name)), text)
			}
			got := callSkill(t, folder, state, string(v.Input), data)
			if v.Name == "own_error" {
				v.Want.Error.Code = "INTERNAL"
				v.Want.Error.Details = json.RawMessage(`{"guest_code": "QUOTA_EXCEEDED",` + string(v.Want.Error.Details)[1:])
			}
			v.Want.Logs = nil // the operator's
			said := map[string]any{"success": got.result.Success, "data": got.result.Data, "error": nil}
			if e := got.result.Error; e != nil {
				said["error"] = map[string]any{"code": e.Code, "message": e.Message, "details": e.Details}
			}
			stdout := musttest.Get(json.Marshal(said))(t)
			left := &vectorstest.Got{Stdout: stdout, Exit: got.exit}
			for _, name := range slices.Sorted(maps.Keys(got.artifacts)) {
				left.Artifacts = append(left.Artifacts, vectorstest.Artifact{Name: name, Content: got.artifacts[name]})
			}
			if err := v.Check(left); err != nil {
				t.Error(err)
			}
		})
	}
}

// block is a file in a README: its name stands at the end of the line before it.
var block = regexp.MustCompile("`([^`\n]+)`:\n\n```[a-z]+\n((?s:.*?))```\n")

// An author who does as a README says, word for word, has a skill that answers.
func TestSDKsAsTheirReadmesSay(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles")
	}
	work := musttest.Get(filepath.Abs(filepath.Join("..", "..", ".openskill")))(t)
	for _, c := range []struct{ language, needs string }{{"go", "go"}, {"rust", "cargo"}, {"python", ""}, {"javascript", ""}} {
		t.Run(c.language, func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); err != nil && c.needs != "" {
				t.Skipf("%s is not here", c.needs)
			}
			if c.language == "go" {
				hosttest.NoRace(t)
			}
			readme := musttest.Get(os.ReadFile(filepath.Join("..", "..", "sdk", c.language, "README.md")))(t)
			root, state := t.TempDir(), t.TempDir()
			folder := filepath.Join(root, "greeter")
			for _, m := range block.FindAllStringSubmatch(string(readme), -1) {
				musttest.Write(t, filepath.Join(folder, filepath.FromSlash(m[1])), m[2])
			}
			switch c.language {
			case "go":
				copyGlob(t, "go/go.mod", filepath.Join(root, "sdk", "go"))
				copyGlob(t, "go/guest/*.go", filepath.Join(root, "sdk", "go", "guest"))
			case "rust":
				for _, dir := range []string{"", "/src", "/vectors", "/examples/greeter"} {
					copyGlob(t, "rust"+dir+"/*.[rtl]*", filepath.Join(root, "sdk", "rust"+filepath.FromSlash(dir)))
				}
				lockCrates(t, folder)
			case "python":
				copyGlob(t, "python/openskill_guest/*.py", filepath.Join(folder, "openskill_guest"))
				hosttest.Runtimes(t, filepath.Join("..", ".."), state)
			case "javascript":
				copyGlob(t, "javascript/openskill_guest.mjs", folder)
			}
			var stdout, stderr bytes.Buffer
			if code := Run(t.Context(), []string{"skill", "build", folder, "--state", work}, strings.NewReader(""), &stdout, &stderr); code == exitHost {
				t.Skip(&stderr) // no toolchain
			} else if code != 0 {
				t.Fatalf("skill build: exit code %d: %s", code, &stderr)
			}
			if code := Run(t.Context(), []string{"skills", "validate", folder}, strings.NewReader(""), &stdout, &stderr); code != 0 {
				t.Fatalf("skills validate: exit code %d: %s", code, &stderr)
			}
			got := callSkill(t, folder, state, `{"name": "Ada", "times": 2}`, "")
			if c.language == "python" && got.result.Error != nil && got.result.Meta.FuelUsed == 0 {
				t.Skip(got.result.Error.Message) // no runtime
			}
			if string(got.result.Data) != `{"greeting":"Hello, Ada! Hello, Ada!"}` || got.exit != 0 {
				t.Errorf("exit code %d: %s, %+v", got.exit, got.result.Data, got.result.Error)
			}
			got = callSkill(t, folder, state, `{"name": " "}`, "")
			if e := got.result.Error; e == nil || e.Code != skill.InvalidArgument || e.Message != "name: must not be blank" || got.exit != exitFailed {
				t.Errorf("exit code %d: %s, %+v", got.exit, got.result.Data, got.result.Error)
			}
		})
	}
}

// lockCrates gives a skill the versions that the crate is tested with, which are here.
func lockCrates(t *testing.T, folder string) {
	t.Helper()
	lock := musttest.Get(os.ReadFile(filepath.Join("..", "..", "sdk", "rust", "Cargo.lock")))(t)
	own := "[[package]]\nname = \"greeter\"\nversion = \"0.1.0\"\ndependencies = [\n \"openskill-guest\",\n \"serde\",\n]\n\n"
	text := strings.Replace(string(lock), "[[package]]\n", own+"[[package]]\n", 1)
	musttest.Do(t, os.WriteFile(filepath.Join(folder, "Cargo.lock"), []byte(text), 0o600))
}
