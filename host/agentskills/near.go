package agentskills

import (
	"strings"

	"openskill/internal/suggest"
	"openskill/sdk/skill"
)

// offer says which names there are: the near ones, or else the first of all.
func offer(name string, all []string, none string) string {
	if len(all) == 0 {
		return none
	}
	if list := suggest.Names(name, all); len(list) > 0 {
		return "did you mean " + names(list, " or ") + "?"
	}
	more := ""
	if len(all) > suggest.Most {
		more = " and others"
		all = all[:suggest.Most]
	}
	return "there are " + names(all, ", ") + more
}

func names(list []string, between string) string {
	shown := make([]string, len(list))
	for i, n := range list {
		shown[i] = skill.CleanText(n, 80)
	}
	return strings.Join(shown, between)
}
