// Command filtered puts sources together: skills of a folder and one made in Go, without
// twins, of which only those are kept that a rule wants, with an instruction prompt of
// its own. A skill that breaks a rule is told on standard error and skipped.
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"

	"openskill/host/agentskills"
	"openskill/sdk/skill"
)

func main() {
	folder := "skills"
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	mine := agentskills.NewInline(agentskills.Frontmatter{Name: "house-rules", Description: "How this house writes. Use before you write anything."}, "Write plainly.")
	twin := agentskills.NewInline(agentskills.Frontmatter{Name: "unit-converter", Description: "Would be another one of this name."}, "Never seen.")
	hidden := agentskills.NewInline(agentskills.Frontmatter{Name: "draft-letters", Description: "Is not finished."}, "Not yet.")

	provider, err := agentskills.NewBuilder().
		UseLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))).
		UseFileSkill(folder, nil).
		UseSkills(mine, twin, hidden).
		UseFilter(func(s agentskills.Skill) bool { return !strings.HasPrefix(s.Frontmatter().Name, "draft-") }).
		UsePromptTemplate("You may use:\n{skills}").
		Build()
	if err != nil {
		log.Fatal(err)
	}
	instructions, err := provider.Instructions(context.Background(), skill.Local())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(instructions)
	for _, p := range provider.Problems() {
		fmt.Println("skipped:", p)
	}
}
