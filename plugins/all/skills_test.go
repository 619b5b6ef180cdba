package all

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// The skills that come with openSkill answer in the sandbox as their tables say.
// What the skills themselves do is tested beside them, and here that the runners
// give them what they need.
func TestSkillsInTheSandbox(t *testing.T) {
	root := filepath.Join("..", "..")
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = filepath.Join(root, ".openskill")
	}
	e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: filepath.Join(state, "cache", "wasm")}))(t)
	defer e.Close()
	list := Runners(Options{Engine: e, StateDir: state})
	byKind := map[skill.Kind]skill.Runner{}
	for _, r := range list {
		defer r.Close()
		byKind[r.Kind()] = r
	}
	if !testing.Short() {
		for _, r := range list {
			_ = runnertest.Ready(t.Context(), r) // what is missing shows below
		}
	}
	data := musttest.Get(filepath.Abs(filepath.Join(root, "data")))(t)

	for id, s := range map[skill.ID]struct {
		kind   skill.Kind
		entry  string
		grants skill.Grants
	}{
		"echo":          {skill.WasmWASI, "echo.wasm", skill.Grants{}},
		"file_search":   {skill.WasmWASI, "file_search.wasm", skill.Grants{Data: data}},
		"log_transform": {skill.WasmWASI, "log_transform.wasm", skill.Grants{Data: data, Scratch: true}},
		"calculator":    {skill.WasmPython, "calculator.py", skill.Grants{}},
	} {
		t.Run(string(id), func(t *testing.T) {
			if testing.Short() && s.kind == skill.WasmPython {
				t.Skip("short: compiling CPython takes seconds")
			}
			folder := musttest.Get(filepath.Abs(filepath.Join(root, "skills", string(id))))(t)
			r := byKind[s.kind]
			if err := runnertest.Look(t.Context(), r, folder, s.entry); err != nil {
				t.Skip(err) // not built, or no runtime: the message says what to run
			}
			inputs := map[string]json.RawMessage{
				"file_search":   json.RawMessage(`{"query": "e", "glob": "**/*.md", "limit": 1}`),
				"log_transform": json.RawMessage(`{"input_path": "./data/logs/app.log", "format": "text", "output": "file"}`),
			}
			input, want := inputs[string(id)], json.RawMessage(nil)
			if input == nil {
				input, want = firstCase(t, filepath.Join(root, "skills", "testdata", "cases", string(id)+".json"))
			}
			stdin := musttest.Get(json.Marshal(map[string]any{"input": input, "skill_id": id, "trace_id": "t-1"}))(t)
			reply, err := runnertest.Do(t.Context(), r, &skill.Call{
				SkillID: id, Folder: folder, Entry: s.entry, Digest: "sha256:test", Trust: skill.Builtin, Stdin: stdin, Grants: s.grants,
				Limits: skill.Limits{Timeout: time.Minute, Memory: 256 << 20, Fuel: 60e9, Output: 1 << 20, Scratch: 16 << 20},
			})
			if err != nil || reply.Code != "" || reply.ExitCode != 0 {
				t.Fatalf("%+v, %v", reply, err)
			}
			var answer struct {
				Success bool
				Data    json.RawMessage
			}
			if err := json.Unmarshal(reply.Stdout, &answer); err != nil || !answer.Success {
				t.Fatalf("%.300s, %v", reply.Stdout, err)
			}
			if want != nil {
				if diff := cmp.Diff(value(t, want), value(t, answer.Data)); diff != "" {
					t.Errorf("data (-want +got):\n%s", diff)
				}
			}
			if s.grants.Scratch && (len(reply.Artifacts) != 1 || reply.Artifacts[0].Size == 0) {
				t.Errorf("artifacts: %v; want one file", reply.Artifacts)
			}
		})
	}
}

func value(t *testing.T, raw json.RawMessage) (v any) {
	t.Helper()
	musttest.Do(t, json.Unmarshal(raw, &v))
	return v
}

// firstCase is the first call of a skill's table that must give data.
func firstCase(t *testing.T, file string) (input, want json.RawMessage) {
	t.Helper()
	raw, err := os.ReadFile(file)
	var cases []struct{ Input, Want json.RawMessage }
	musttest.Do(t, errors.Join(err, json.Unmarshal(raw, &cases)))
	for _, c := range cases {
		if c.Input != nil && c.Want != nil {
			return c.Input, c.Want
		}
	}
	t.Fatalf("no case with data in %s", filepath.Base(file))
	return nil, nil
}
