package app

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"openskill/host/packages"
	"openskill/internal/musttest"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

// TestPackagesOfCode: code imports the packages that the operator added to run_code, or to an Agent Skill that it names.
func TestPackagesOfCode(t *testing.T) {
	wheels(t, "words-1.0", "letters-1.0", "words-2.0")
	var dir string
	h := codeHost(t, map[string]string{}, func(skills string) {
		dir = skills
		for _, name := range []string{"writer", "reader", "plain"} {
			musttest.Write(t, filepath.Join(skills, name, "SKILL.md"), "---\nname: "+name+"\ndescription: Writes.\n---\nRun scripts/say.py.\n")
		}
	})
	p := skill.Local()
	runs(t, h, p, "python", "1") // skips the test if no runtime is installed
	o := musttest.Get(PackageOptions(runtimes.New(h.settings.StateDir), "python3"))(t)
	o.MinAge = 0
	add := func(folder string, names ...string) {
		t.Helper()
		var asked []packages.Requirement
		for _, name := range names {
			asked = append(asked, musttest.Get(packages.ParseRequirement(name, packages.Python))(t))
		}
		musttest.Get(packages.New(h.settings.StateDir).Add(t.Context(), musttest.Get(PackagesFolder(h.settings, folder))(t), asked, o))(t)
	}
	expect := func(code, want string, more map[string]any) *skill.Result {
		t.Helper()
		got, r := works(t, h, p, code, with(map[string]any{"workspace": nil}, more))
		if got != want {
			t.Errorf("%s %v: %s, want %s; %+v", code, more, got, want, r.Error)
		}
		return r
	}
	const imports = "import words; words.text"
	expect(imports, "GUEST_EXIT", nil)
	if r := expect(imports, "NOT_FOUND", map[string]any{"packages": []string{"words"}}); !strings.Contains(r.Error.Message, "openskill packages add run_code python:words") {
		t.Error(r.Error.Message)
	}
	add(skill.RunCode, "words==1.0", "pyyaml")
	expect(imports, `"words-1.0"`, nil)
	expect("import yaml; yaml.safe_load('a: 1')", `{"a":1}`, map[string]any{"packages": []string{"Words", "PyYAML", "python:openpyxl"}})
	expect("1", "INVALID_ARGUMENT", map[string]any{"packages": []string{"words>=1"}})
	expect("1", "INVALID_ARGUMENT", map[string]any{"packages": []string{"../words"}})
	expect("1", "NOT_FOUND", map[string]any{"packages": []string{"words"}, "language": "javascript"})
	expect("1", "NOT_FOUND", map[string]any{"packages": []string{"npm:words"}})
	report := musttest.Get(h.Replay(t.Context(), p, expect(imports, `"words-1.0"`, nil).Meta.ExecutionID))(t)
	if !report.Identical {
		t.Errorf("replayed: %+v", report)
	}
	r := expect("import words", "", map[string]any{"session": "new"})
	expect("words.text", `"words-1.0"`, map[string]any{"session": sessionOf(t, r)})

	add(filepath.Join(dir, "writer"), "letters")
	add(filepath.Join(dir, "reader"), "words==2.0")
	expect("import letters; letters.text", `"letters-1.0"`, map[string]any{"agent_skills": []string{"plain", "writer"}, "packages": []string{"letters"}})
	expect(imports, `"words-2.0"`, map[string]any{"agent_skills": []string{"reader"}})
	expect(imports, `"words-1.0"`, map[string]any{"agent_skills": []string{"plain"}})
	expect(imports, "INVALID_ARGUMENT", map[string]any{"agent_skills": []string{"reader", "writer"}})
	expect("1", "NOT_FOUND", map[string]any{"agent_skills": []string{"writer"}, "packages": []string{"words"}})
	expect("words.text", "CONFLICT", map[string]any{"session": sessionOf(t, r), "agent_skills": []string{"writer"}})
	if lock := musttest.Get(packages.New(h.settings.StateDir).Of(codeDir(h.settings)))(t); !slices.Contains(lock.Names(), "python:words 1.0") {
		t.Error(lock.Names())
	}
}
