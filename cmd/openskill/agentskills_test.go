package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"openskill/sdk/skill"
)

// The skill that comes with openSkill answers with the numbers of its table, by CPython
// in the sandbox; what the script says of wrong arguments comes back.
func TestUnitConverter(t *testing.T) {
	t.Parallel()
	state, skills := pythonState(t), filepath.Join("..", "..", "skills")
	run := func(want int, args ...string) *skill.Result {
		t.Helper()
		var stdout, stderr bytes.Buffer
		all := append([]string{"agent-skills", "run", "--agent-skills", skills, "--state", state, "unit-converter"}, args...)
		if code := Run(t.Context(), all, strings.NewReader(""), &stdout, &stderr); code != want {
			t.Fatalf("%v: exit code %d, want %d: %s%s", args, code, want, &stdout, &stderr)
		}
		r := &skill.Result{}
		if err := json.Unmarshal(stdout.Bytes(), r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	const want = `{"output":"{\"result\": 42.1647, \"value\": 26.2, \"factor\": 1.60934}\n"}`
	for _, args := range [][]string{
		{"scripts/convert.py", "--", "--value", "26.2", "--factor", "1.60934"},
		{"convert.py", "--args", `{"value": 26.2, "factor": 1.60934}`},
	} {
		if r := run(0, args...); string(r.Data) != want || r.Meta.Runner != skill.WasmPython {
			t.Errorf("%v: %s by %s, want %s", args, r.Data, r.Meta.Runner, want)
		}
	}
	r := run(exitFailed, "convert.py", "--", "--value", "far", "--factor", "1")
	if r.Error == nil || r.Error.Code != skill.GuestExit || !strings.Contains(r.Error.Message, "invalid float value: 'far'") {
		t.Errorf("%+v", r.Error)
	}
}
