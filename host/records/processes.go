package records

import (
	"fmt"
	"strings"

	"openskill/sdk/skill"
)

// Tree draws the processes of a run: a line each, indented below the one that started it.
func Tree(p *skill.Processes) string {
	var b strings.Builder
	var below func(parent, depth int)
	below = func(parent, depth int) {
		for _, one := range p.List {
			if one.Parent != parent || one.ID <= parent { // a child's id is larger
				continue
			}
			ended := fmt.Sprintf("exit code %d", one.Exit)
			if one.Signal != 0 {
				ended = fmt.Sprintf("signal %d", one.Signal)
			}
			fmt.Fprintf(&b, "%s%d %s: %s\n", strings.Repeat("  ", depth), one.ID, skill.CleanText(one.Program, skill.MaxProgram), ended)
			below(one.ID, depth+1)
		}
	}
	below(1, 1)
	if more := p.Started - len(p.List); more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	return b.String()
}
