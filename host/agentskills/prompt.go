package agentskills

import (
	"context"
	"encoding/xml"
	"errors"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// The placeholders of [Options.InstructionPrompt].
const (
	PlaceholderSkills    = "{skills}"
	PlaceholderResources = "{resources}"
	PlaceholderScripts   = "{scripts}"
)

// DefaultPrompt is the template of the instructions for models.
const DefaultPrompt = `Skills are instructions for particular tasks, written by people who know them. You have these:

{skills}

When a task is one that a skill describes, call load_skill with its name before you begin, and do what its instructions say. Load no skill that the task does not need.{resources}{scripts}`

const (
	aboutResources = ` Files that the instructions mention are read with read_skill_resource, by the names that load_skill lists, folders included.`
	aboutScripts   = ` Scripts that they mention are run with run_skill_script, by those names too; do not write their output yourself.`
)

// maxList is the size in bytes that the list of skills may have before descriptions
// are shortened; leastDescription is what always remains of one.
const (
	maxList          = 48 << 10
	leastDescription = 60
)

// prompt is a template that was checked.
type prompt string

func parsePrompt(given string) (prompt, error) {
	if given == "" {
		return DefaultPrompt, nil
	}
	switch strings.Count(given, PlaceholderSkills) {
	case 1:
		return prompt(given), nil
	case 0:
		return "", errors.New("agentskills: the instruction prompt must hold " + PlaceholderSkills + ", where the list of skills goes")
	}
	return "", errors.New("agentskills: the instruction prompt holds " + PlaceholderSkills + " more than once")
}

// Instructions gives the text for a model's system prompt: which skills there are, and
// how to use them; "" without skills.
func (p *Provider) Instructions(ctx context.Context, who skill.Principal) (string, error) {
	members, err := p.members(ctx, who, skill.ScopeRead, "")
	if err != nil || len(members) == 0 {
		return "", err
	}
	resources, scripts := "", ""
	if slices.ContainsFunc(members, func(m member) bool { return m.readable() }) {
		resources = aboutResources
	}
	if slices.ContainsFunc(members, func(m member) bool { return m.runnable(who) }) {
		scripts = aboutScripts
	}
	// One pass, so that what skills say of themselves is never taken for a placeholder.
	return strings.NewReplacer(
		PlaceholderSkills, listOf(members), PlaceholderResources, resources, PlaceholderScripts, scripts,
	).Replace(string(p.prompt)), nil
}

// listOf writes names and descriptions so that no description can end its element.
func listOf(members []member) string {
	total := 0
	for _, m := range members {
		total += len(m.view.Description) + len(m.view.Name)
	}
	most := 8 * MaxDescription // more than a description can have
	if total > maxList {
		most = max(leastDescription, maxList/len(members)-64)
	}
	var b strings.Builder
	b.WriteString("<available_skills>\n")
	for _, m := range members {
		b.WriteString("  <skill>\n    <name>" + m.view.Name + "</name>\n    <description>")
		_ = xml.EscapeText(&b, []byte(skill.CleanText(m.view.Description, most))) // a Builder takes everything
		b.WriteString("</description>\n  </skill>\n")
	}
	b.WriteString("</available_skills>")
	return b.String()
}
