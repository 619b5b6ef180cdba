package all

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/sdk/vectorstest"
)

// TestSDKsByThemselves runs the tests that each SDK has in its own language.
func TestSDKsByThemselves(t *testing.T) {
	if testing.Short() {
		t.Skip("short: toolchains take seconds")
	}
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		seen(t, "go")
		env := []string{"GOWORK=off", "GOFLAGS="}
		tool(t, sdkFolder(t, "go"), env, "go", "vet", "./...")
		tool(t, sdkFolder(t, "go"), env, "go", "test", "./...")
	})
	t.Run("rust", func(t *testing.T) {
		t.Parallel()
		fetchCrates(t)
		if out, err := cargo(t, "test", "--offline"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("python", func(t *testing.T) {
		t.Parallel()
		if _, err := exec.LookPath("python3"); err != nil {
			t.Skip("python3 not found: install Python 3.9 or newer")
		}
		seen(t, "python")
		tool(t, sdkFolder(t, "python"), nil, "python3", "-B", "-c", "import sys; sys.exit(sys.version_info < (3, 9) and 'Python 3.9 or newer is needed')")
		tool(t, sdkFolder(t, "python"), nil, "python3", "-B", "-m", "unittest", "discover", "-s", "tests")
	})
}

// The module in JavaScript is tested by a skill, where skills run.
func TestJavaScriptSDK(t *testing.T) {
	folder := beside(t, map[string]string{"javascript/tests/*.mjs": "", "javascript/*.mjs": ""})
	run := map[string]func(*testing.T, *vectorstest.Vector) *vectorstest.Got{"sandbox": byRunner(sdkRunners(t)[skill.WasmJavaScript], folder, "main.mjs")}
	if _, err := exec.LookPath("node"); err == nil {
		run["node"] = byCommand([]string{"node", filepath.Join(folder, "main.mjs")})
	}
	for name, run := range run {
		t.Run(name, func(t *testing.T) {
			got := run(t, &vectorstest.Vector{Input: json.RawMessage(`{}`), Files: map[string]string{"a": "ä\x00"}, Scratch: true})
			var answer struct {
				Success bool
				Data    struct{ Tests int }
			}
			if err := json.Unmarshal(got.Stdout, &answer); err != nil || !answer.Success || answer.Data.Tests < 50 || got.Exit != 0 {
				t.Fatalf("%v: %s\n%s", err, got.Stdout, got.Stderr)
			}
			want := "printed\nand this\n" + `DEBUG a\u000d\u000a\u001b[31m\u009b\u2028😀 {"l":["\u2029<"],"n":1}` + "\nWARN NaN [object Object]\n"
			if logs := string(got.Stderr); !strings.HasPrefix(logs, want) {
				t.Errorf("%s", logs)
			}
			if a := got.Artifacts; len(a) != 3 || a[1].Name != "twice" || a[1].Content != "\x00\xff" {
				t.Errorf("%q", a)
			}
		})
	}
}

// The whole skill in each README is the one that stands beside it, and it answers.
func TestSDKExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("short: toolchains and runtimes take seconds")
	}
	byKind := sdkRunners(t)
	for language, c := range map[string]struct {
		source string
		kind   skill.Kind
		build  func(t *testing.T) (folder, entry string)
	}{
		"go": {"examples/greeter/main.go", skill.WasmWASI, func(t *testing.T) (string, string) {
			t.Helper()
			return goSkill(t, "wasip1", "greeter", "./examples/greeter")
		}},
		"rust": {"examples/greeter/main.rs", skill.WasmWASI, func(t *testing.T) (string, string) { t.Helper(); return rustSkill(t, "wasm32-wasip1", "greeter") }},
		"python": {"examples/greeter/main.py", skill.WasmPython, func(t *testing.T) (string, string) {
			t.Helper()
			return beside(t, map[string]string{"python/examples/greeter/*.py": "", "python/openskill_guest/*.py": "openskill_guest"}), "main.py"
		}},
		"javascript": {"examples/greeter/main.mjs", skill.WasmJavaScript, func(t *testing.T) (string, string) {
			t.Helper()
			return beside(t, map[string]string{"javascript/examples/greeter/*.mjs": "", "javascript/*.mjs": ""}), "main.mjs"
		}},
	} {
		t.Run(language, func(t *testing.T) {
			readme := musttest.Get(os.ReadFile(filepath.Join(sdkFolder(t, language), "README.md")))(t)
			for _, name := range []string{c.source, "examples/greeter/skill.yaml"} {
				source := musttest.Get(os.ReadFile(filepath.Join(sdkFolder(t, language), filepath.FromSlash(name))))(t)
				if !strings.Contains(string(readme), "\n"+string(source)+"```\n") {
					t.Errorf("README.md does not have %s as it is", name)
				}
			}
			folder, entry := c.build(t)
			r := byKind[c.kind]
			if err := runnertest.Look(t.Context(), r, folder, entry); err != nil {
				t.Skip(err)
			}
			run := byRunner(r, folder, entry)
			for input, want := range map[string]string{
				`{"name": " Ada ", "times": 2.0}`: `{"success": true, "data": {"greeting": "Hello, Ada! Hello, Ada!"}, "exit": 0, "logs": ["INFO greeting {\"times\":2}"]}`,
				`{"name": " "}`:                   `{"success": false, "error": {"code": "INVALID_ARGUMENT", "message": "name: must not be blank", "details": {"field": "name", "reason": "blank"}}, "exit": 1}`,
				`{"name": "x", "times": -1}`:      `{"success": false, "error": {"code": "INVALID_ARGUMENT", "message": "times: must be from 1 to 9", "details": {"field": "times", "reason": "range"}}, "exit": 1}`,
				`{"times": 1}`:                    `{"success": false, "error": {"code": "INVALID_ARGUMENT", "message": "name: required"}, "exit": 1}`,
			} {
				v := vectorstest.Vector{Input: json.RawMessage(input)}
				musttest.Do(t, json.Unmarshal([]byte(want), &v.Want))
				if err := v.Check(run(t, &v)); err != nil {
					t.Errorf("%s: %v", input, err)
				}
			}
		})
	}
}

// seen reads the sources of an SDK: go test takes a result from its cache unless what
// the test itself has opened has changed.
func seen(t *testing.T, language string) {
	t.Helper()
	err := filepath.WalkDir(sdkFolder(t, language), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "target" || d.Name() == "__pycache__"): // made of them
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		_, err = os.ReadFile(path)
		return err
	})
	musttest.Do(t, err)
}
