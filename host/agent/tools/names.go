package tools

import (
	"strings"

	"openskill/sdk/skill"
)

// The tools by which a model uses Agent Skills.
const (
	LoadSkill    = "load_skill"
	ReadResource = "read_skill_resource"
	RunScript    = "run_skill_script"
)

// Reserved reports whether a name is that of one of the three tools for Agent Skills.
func Reserved(name string) bool {
	return name == LoadSkill || name == ReadResource || name == RunScript
}

// prefix is put before a skill's id that would be the name of one of the three tools.
const prefix = "skill-"

// NameOf is what the tool of a skill is called beside the three: its id. An id that is
// one of their names, with the prefix any number of times before it, gets the prefix
// once more, so that no two tools have one name.
func NameOf(id skill.ID) string {
	if Reserved(bare(string(id))) {
		return prefix + string(id)
	}
	return string(id)
}

// IDOf is the skill whose tool is called so.
func IDOf(name string) (skill.ID, error) {
	if Reserved(bare(name)) {
		name = strings.TrimPrefix(name, prefix)
	}
	return skill.ParseID(name)
}

func bare(name string) string {
	for strings.HasPrefix(name, prefix) {
		name = name[len(prefix):]
	}
	return name
}
