package agentskills

import (
	"strings"

	"openskill/host/near"
	"openskill/sdk/skill"
)

// offer says which names there are: the near ones, or else the first of all.
func offer(name string, all []string, none string) string {
	if len(all) == 0 {
		return none
	}
	if list := near.Names(name, all); len(list) > 0 {
		return "did you mean " + names(list, " or ") + "?"
	}
	more := ""
	if len(all) > near.Most {
		more = " and others"
		all = all[:near.Most]
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
