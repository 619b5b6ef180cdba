package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// REQ-011, REQ-012 and REQ-013: the skill that comes with openSkill answers with the
// numbers of its table, by CPython in the sandbox; what the script says of wrong
// arguments comes back.
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
		musttest.Do(t, json.Unmarshal(stdout.Bytes(), r))
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
	for _, bad := range []struct{ value, factor, want string }{
		{"far", "1", "invalid float value: 'far'"},
		{"1", "nan", "argument --factor: must be a finite number"}, // NaN and Infinity are no JSON
		{"-inf", "1", "argument --value: must be a finite number"},
		{"1e308", "-1e308", "the result does not fit a double"},
	} {
		r := run(exitFailed, "convert.py", "--", "--value="+bad.value, "--factor="+bad.factor)
		if r.Error == nil || r.Error.Code != skill.GuestExit || !strings.Contains(r.Error.Message, bad.want) {
			t.Errorf("%+v: %+v", bad, r.Error)
		}
	}
}

// listed are the names that agent-skills list gives in a folder, under an environment.
func listed(t *testing.T, environ []string, args ...string) []string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &cli{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, environ: environ}
	root := a.rootCommand()
	root.SetArgs(append([]string{"agent-skills", "list", "--json"}, args...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var l listing[skill.AgentSkill]
	musttest.Do(t, json.Unmarshal(stdout.Bytes(), &l))
	names := []string{}
	for _, s := range l.Data {
		names = append(names, s.Name)
	}
	return names
}

// skillAt makes a folder with one Agent Skill.
func skillAt(t *testing.T, dir, name string) {
	t.Helper()
	folder := filepath.Join(dir, name)
	musttest.Do(t, os.MkdirAll(folder, 0o700))
	musttest.Do(t, os.WriteFile(filepath.Join(folder, "SKILL.md"), []byte("---\nname: "+name+"\ndescription: D\n---\n"), 0o600))
}

// REQ-014: where Agent Skills are is a setting: of the environment, of a file and of a
// flag, which wins; several folders are one list.
func TestREQ014RootsAreASetting(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"one", "two", "three"} {
		skillAt(t, filepath.Join(dir, "in-"+name), name)
	}
	musttest.Do(t, os.WriteFile("settings.yaml", []byte("agent_skills: in-three\n"), 0o600))
	both := "OPENSKILL_AGENT_SKILLS=in-one" + string(filepath.ListSeparator) + "in-two"
	for name, c := range map[string]struct {
		environ, args, want []string
	}{
		"the environment": {[]string{both}, nil, []string{"one", "two"}},
		"a file":          {nil, []string{"--config", "settings.yaml"}, []string{"three"}},
		"a flag":          {[]string{both}, []string{"--agent-skills", "in-three"}, []string{"three"}},
	} {
		if diff := cmp.Diff(c.want, listed(t, c.environ, c.args...)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// REQ-015: without a setting it is the folder skills below the working folder, which
// may be missing.
func TestREQ015DefaultRoot(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if got := listed(t, nil); len(got) != 0 {
		t.Error(got)
	}
	skillAt(t, filepath.Join(dir, "skills"), "mine")
	if diff := cmp.Diff([]string{"mine"}, listed(t, nil)); diff != "" {
		t.Error(diff)
	}
}
