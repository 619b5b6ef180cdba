package app

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"openskill/host/agentskills"
	"openskill/host/app/config"
	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// withAgentSkill opens a host with one Agent Skill, and gives the function that writes
// its script.
func withAgentSkill(t *testing.T, flags map[string]string) (*Host, func(script string)) {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, "skills", "greeter")
	musttest.Do(t, os.MkdirAll(filepath.Join(folder, "scripts"), 0o700))
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(folder+".new", []byte(text), 0o600); err != nil { // beside it
			t.Error(err)
		}
		if err := os.Rename(folder+".new", path); err != nil {
			t.Error(err)
		}
	}
	write("SKILL.md", "---\nname: greeter\ndescription: Greets people by name.\n---\nRun scripts/greet.js with a name.\n")
	script := func(text string) { write("scripts/greet.js", text) }
	script("console.log('hello', scriptArgs[1])")
	all := map[string]string{"listen": "127.0.0.1:0"}
	for k, v := range flags {
		all[k] = v
	}
	s := load(t, config.Sources{Dir: dir, Flags: all})
	hosttest.Runtimes(t, "../..", s.StateDir)
	h := musttest.Get(Open(s, nil))(t)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, script
}

// The tools of Agent Skills run scripts through the door, in the sandbox.
func TestAgentSkillTools(t *testing.T) {
	h, _ := withAgentSkill(t, nil)
	p := skill.Local()
	tools, err := h.AgentSkills().Tools(t.Context(), p)
	if err != nil || len(tools) != 3 { // a script can be read, too
		t.Fatalf("%v, %v", tools, err)
	}
	call := func(tool, args string) *skill.Result {
		return h.AgentSkills().CallTool(t.Context(), p, tool, json.RawMessage(args), "trace-1")
	}
	if r := call("load_skill", `{"skill_name": "greeter"}`); !r.Success || !strings.Contains(string(r.Data), "Run scripts/greet.js with a name.") {
		t.Errorf("%+v", r)
	}
	r := call("run_skill_script", `{"skill_name": "greeter", "script_file": "greet.js", "args": ["you"]}`)
	if !r.Success || string(r.Data) != `{"output":"hello you\n"}` || r.TraceID != "trace-1" || r.Meta.Runner != skill.WasmJavaScript || r.Meta.FuelUsed == 0 || r.Meta.ExecutionID == "" {
		t.Errorf("%+v", r)
	}
	for args, code := range map[string]skill.Code{
		`{"skill_name": "greeter", "script_file": "../SKILL.md"}`:        skill.ForbiddenPath,
		`{"skill_name": "greeter", "script_file": "/etc/passwd"}`:        skill.ForbiddenPath,
		`{"skill_name": "greeter", "script_file": "other.js"}`:           skill.NotFound,
		`{"skill_name": "nobody", "script_file": "greet.js"}`:            skill.NotFound,
		`{"skill_name": "greeter", "script_file": "greet.js", "args":1}`: skill.InvalidArgument,
	} {
		if r := call("run_skill_script", args); r.Success || r.Error.Code != code {
			t.Errorf("%s: %+v", args, r.Error)
		}
	}
}

// A skill that changes after its approval asks again, and the record shows both digests.
func TestApprovedSkillChanges(t *testing.T) {
	h, script := withAgentSkill(t, map[string]string{"script-approval": "version"})
	p := skill.Local()
	run := func() *skill.Result {
		r, _ := h.RunScript(t.Context(), p, skill.ScriptRequest{Skill: "greeter", Script: "greet.js", Args: []string{"you"}})
		return r
	}
	asked := func(r *skill.Result) (id, digest, previous string) {
		t.Helper()
		if r.Success || r.Error.Code != skill.Forbidden || r.Error.Details["reason"] != "approval_required" || r.Meta.FuelUsed != 0 {
			t.Fatalf("%+v %+v", r, r.Error)
		}
		id, _ = r.Error.Details["approval_id"].(string)
		digest, _ = r.Error.Details["digest"].(string)
		previous, _ = r.Error.Details["previous_digest"].(string)
		return id, digest, previous
	}
	first, before, none := asked(run())
	if again, _, _ := asked(run()); again != first || none != "" || before == "" {
		t.Errorf("asked as %s, then as %s; digest %q, before it %q", first, again, before, none)
	}
	musttest.Get(h.approvals.Decide(context.Background(), p, first, true))(t)
	for range 2 {
		if r := run(); !r.Success {
			t.Fatalf("%+v", r.Error)
		}
	}
	script("console.log('changed')")
	id, digest, previous := asked(run())
	if id == first || digest == before || previous != before {
		t.Errorf("approval %s then %s, digest %s then %s, which names %s", first, id, before, digest, previous)
	}
	a, err := h.approvals.Get(t.Context(), p, id)
	if err != nil || a.Digest != digest || a.PreviousDigest != before {
		t.Errorf("on record: %+v, %v", a, err)
	}
}

// What runs is what was approved, though the folder changes all the time.
func TestApprovedIsWhatRuns(t *testing.T) {
	h, script := withAgentSkill(t, map[string]string{"script-approval": "version"})
	p := skill.Local()
	run := func() *skill.Result {
		r, _ := h.RunScript(t.Context(), p, skill.ScriptRequest{Skill: "greeter", Script: "greet.js"})
		return r
	}
	const good, bad = "console.log('approved')", "console.log('not this')"
	script(good)
	id, _ := run().Error.Details["approval_id"].(string)
	musttest.Get(h.approvals.Decide(t.Context(), p, id, true))(t)
	// The first run compiles JavaScript's runtime, which a slow machine does not do in one call's time.
	for r := run(); !r.Success; r = run() {
		if r.Error.Code != skill.Timeout || t.Context().Err() != nil {
			t.Fatalf("%+v", r.Error)
		}
	}
	ran := 0
	for range 200 {
		swapped := make(chan struct{})
		go func() { // once during each run, whole
			defer close(swapped)
			script(bad)
			script(good)
		}()
		r := run()
		<-swapped
		switch {
		case r.Success && strings.Contains(string(r.Data), "approved"):
			ran++
		case r.Success:
			t.Fatalf("what nobody approved ran: %s", r.Data)
		case r.Error.Code != skill.Forbidden && r.Error.Code != skill.Conflict && r.Error.Code != skill.NotFound:
			t.Errorf("%+v", r.Error)
		}
	}
	if r := run(); !r.Success {
		t.Errorf("at the end: %+v", r.Error)
	}
	t.Logf("%d of 200 ran while the folder changed", ran)
}

// What agents are told that runs is what is run, and is listed.
func TestScriptsThatRun(t *testing.T) {
	t.Parallel()
	runs := slices.Sorted(slices.Values(agentskills.DefaultRunExtensions()))
	if got := slices.Sorted(maps.Keys(scriptKinds)); !slices.Equal(got, runs) {
		t.Errorf("the host runs %v, and agents are told %v", got, runs)
	}
	for _, ext := range runs {
		if !slices.Contains(agentskills.DefaultScriptExtensions(), ext) {
			t.Errorf("%s is run and not listed", ext)
		}
	}
}

// What a script writes comes back byte for byte, also where it is no text, from HTTP's door
// and from the tools that models call.
func TestScriptOutputKeepsItsBytes(t *testing.T) {
	h, script := withAgentSkill(t, nil)
	script("import * as std from 'std'\nstd.out.write(new Uint8Array([0x89, 0xff, 0]).buffer, 0, 3)\n")
	const want = `{"encoding":"base64","output":"if8A"}`
	p := skill.Local()
	if r, _ := h.RunScript(t.Context(), p, skill.ScriptRequest{Skill: "greeter", Script: "greet.js"}); string(r.Data) != want {
		t.Errorf("by the door: %s, %+v", r.Data, r.Error)
	}
	if r := h.AgentSkills().CallTool(t.Context(), p, "run_skill_script", json.RawMessage(`{"skill_name": "greeter", "script_file": "greet.js"}`), "t"); string(r.Data) != want {
		t.Errorf("by the tool: %s, %+v", r.Data, r.Error)
	}
	script("for (;;) console.log('a line')\n")
	r, _ := h.RunScript(t.Context(), p, skill.ScriptRequest{Skill: "greeter", Script: "greet.js", Limits: skill.Limits{Output: 1 << 10}})
	if r.Error == nil || r.Error.Code != skill.OutputLimit || r.Error.Details["output"] != strings.Repeat("a line\n", 147)[:1024] {
		t.Errorf("over the limit: %s, %+v", r.Data, r.Error)
	}
}
