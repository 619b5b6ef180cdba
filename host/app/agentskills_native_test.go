package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"openskill/host/app/config"
	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

const whereScript = `import json, os, sys
open("work/left.txt", "w").write("x") if os.path.isdir("work") else None
print(json.dumps([sys.platform, sys.argv[1:], sys.stdin.read(), os.environ.get("OPENSKILL_SECRET_FOR_TEST")]))
sys.stderr.write("on standard error\n")
sys.exit(3 if "fail" in sys.argv else 0)
`

// natives opens a host with two roots of Agent Skills, of which one may be served natively.
func natives(t *testing.T, flags map[string]string) (h *Host, root string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "openskill-native-") //nolint:usetesting // other users must be able to enter it
	musttest.Do(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	musttest.Do(t, os.Chmod(dir, 0o755))
	for _, name := range []string{"own/mine", "own/pulled", "other/theirs"} {
		folder := filepath.Join(dir, name)
		musttest.Do(t, os.MkdirAll(filepath.Join(folder, "scripts"), 0o755))
		files := map[string]string{
			"SKILL.md":         "---\nname: " + filepath.Base(name) + "\ndescription: Says where it runs.\n---\nRun scripts/where.py.\n",
			"scripts/where.py": whereScript,
			"scripts/where.js": "console.log('javascript')\n",
		}
		if name == "own/pulled" {
			files[".openskill-origin"] = "https://example.com/skills\n"
		}
		for file, text := range files {
			musttest.Do(t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644))
		}
	}
	all := map[string]string{"listen": "127.0.0.1:0", "state": t.TempDir(), "agent-skills": filepath.Join(dir, "own") + string(os.PathListSeparator) + filepath.Join(dir, "other")}
	for k, v := range flags {
		all[k] = strings.ReplaceAll(v, "DIR", dir)
	}
	s := load(t, config.Sources{Dir: t.TempDir(), Flags: all})
	hosttest.Runtimes(t, "../..", s.StateDir)
	if h, err = Open(s, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, dir
}

func kindOf(t *testing.T, h *Host, name, script string) skill.Kind {
	t.Helper()
	s := musttest.Get((scripts{h}).Script(t.Context(), skill.Local(), name, script))(t)
	return s.Primary.Kind
}

func TestNativeRootRunsItsOwnPythonOutsideTheSandbox(t *testing.T) {
	t.Setenv("OPENSKILL_SECRET_FOR_TEST", "secret")
	h, _ := natives(t, map[string]string{"agent-skills-native": "DIR/own"})
	r, reply := h.RunScript(t.Context(), skill.Local(), skill.ScriptRequest{Skill: "mine", Script: "where.py", Args: []string{"a b"}, Stdin: []byte("in")})
	if r.Meta.Runner != skill.CLIPython || !strings.Contains(string(r.Data), `a b`) || !strings.Contains(string(r.Data), `null]`) || strings.Contains(string(r.Data), "wasi") {
		t.Errorf("%s %+v %+v", r.Data, r.Error, reply)
	}
	if len(r.Meta.Artifacts) != 1 || r.Meta.Artifacts[0].Name != "left.txt" {
		t.Errorf("artifacts %+v", r.Meta.Artifacts)
	}
	failed, _ := h.RunScript(t.Context(), skill.Local(), skill.ScriptRequest{Skill: "mine", Script: "where.py", Args: []string{"fail"}})
	if failed.Error == nil || failed.Error.Code != skill.GuestExit || failed.Error.Message != "on standard error" {
		t.Errorf("%+v", failed.Error)
	}
}

// By default nothing runs outside the sandbox, and then only Python of the operator's own
// skills of that root.
func TestNativeRootIsForItsOwnSkillsAlone(t *testing.T) {
	closed, _ := natives(t, nil)
	open, _ := natives(t, map[string]string{"agent-skills-native": "DIR/own"})
	for _, c := range []struct {
		h            *Host
		name, script string
		kind         skill.Kind
	}{
		{closed, "mine", "where.py", skill.WasmPython},
		{open, "mine", "where.py", skill.CLIPython},
		{open, "mine", "where.js", skill.WasmJavaScript},
		{open, "pulled", "where.py", skill.WasmPython},
		{open, "theirs", "where.py", skill.WasmPython},
	} {
		if got := kindOf(t, c.h, c.name, c.script); got != c.kind {
			t.Errorf("%s of %s runs as %s, want %s", c.script, c.name, got, c.kind)
		}
	}
	for h, want := range map[*Host]bool{closed: false, open: true} {
		w := Warnings(h.settings)
		if got := slices.ContainsFunc(w, func(f Finding) bool { return f.Name == "OPENSKILL_AGENT_SKILLS_NATIVE" }); got != want {
			t.Errorf("warned: %t; %+v", got, w)
		}
	}
}

func TestRefusesANativeRootThatIsNone(t *testing.T) {
	_, err := config.Load(config.Sources{Dir: t.TempDir(), Flags: map[string]string{"agent-skills-native": t.TempDir()}})
	if err == nil || !strings.Contains(err.Error(), "is not one of the folders of Agent Skills") {
		t.Error(err)
	}
}

// What was approved is what runs, also natively.
func TestNativeScriptsNeedTheirApproval(t *testing.T) {
	h, _ := natives(t, map[string]string{"agent-skills-native": "DIR/own", "script-approval": "version"})
	run := func() *skill.Result {
		r, _ := h.RunScript(t.Context(), skill.Local(), skill.ScriptRequest{Skill: "mine", Script: "where.py"})
		return r
	}
	r := run()
	if r.Error == nil || r.Error.Details["reason"] != "approval_required" {
		t.Fatalf("%s %+v", r.Data, r.Error)
	}
	musttest.Get(h.approvals.Decide(t.Context(), skill.Local(), r.Error.Details["approval_id"].(string), true))(t)
	if r := run(); !r.Success {
		t.Errorf("%+v", r.Error)
	}
}
