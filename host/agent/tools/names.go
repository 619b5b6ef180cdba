package tools

import (
	"strings"

	"openskill/sdk/skill"
)

// The tools of the host: those by which a model uses Agent Skills, finds skills, and proposes one.
const (
	LoadSkill    = "load_skill"
	ReadResource = "read_skill_resource"
	RunScript    = "run_skill_script"
	SearchSkills = "search_skills"
	ProposeSkill = "propose_skill"
)

// Reserved reports whether a name is that of a tool of the host.
func Reserved(name string) bool {
	switch name {
	case LoadSkill, ReadResource, RunScript, SearchSkills, ProposeSkill:
		return true
	}
	return false
}

// prefix is put before a skill's id that is the name of a tool of the host.
const prefix = "skill-"

// NameOf returns the name of a skill's tool: the skill's id. An id that is the name of a tool
// of the host, with any number of prefixes, gets one more prefix, so that no two tools have
// one name.
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
