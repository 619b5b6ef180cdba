package tools_test

import (
	"testing"

	"openskill/host/agent/tools"
	"openskill/sdk/skill"
)

func TestNamesBesideTheThree(t *testing.T) {
	for _, c := range []struct{ id, name string }{
		{"echo", "echo"},
		{"skill-echo", "skill-echo"},
		{"load_skill", "skill-load_skill"},
		{"skill-load_skill", "skill-skill-load_skill"},
		{"run_skill_script", "skill-run_skill_script"},
		{"read_skill_resource", "skill-read_skill_resource"},
		{"load_skills", "load_skills"},
	} {
		if got := tools.NameOf(skill.ID(c.id)); got != c.name {
			t.Errorf("the tool of %s is %s, want %s", c.id, got, c.name)
		}
		if got, err := tools.IDOf(c.name); err != nil || string(got) != c.id {
			t.Errorf("the skill of %s is %s, %v, want %s", c.name, got, err, c.id)
		}
	}
}
