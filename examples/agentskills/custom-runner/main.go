// Command custom-runner runs the scripts of a folder by a runner of its own. This one
// only tells what it would run, after asking for approval: a runner that starts
// programs of the machine would run whatever a stranger wrote there.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
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
	dry := func(_ context.Context, s *agentskills.FileSkill, script *agentskills.FileScript, c *agentskills.Call) (any, error) {
		return fmt.Sprintf("would run %s of %s with %s", script.Path(), s.Frontmatter().Name, strings.Join(c.Args, " ")), nil
	}
	ask := func(_ context.Context, a agentskills.Approval) error {
		if len(a.Arguments) == 0 {
			return errors.New("nobody runs " + a.Script + " without arguments")
		}
		return nil
	}
	provider, err := agentskills.NewBuilder().
		UseFileSkill(folder, nil).
		UseFileScriptRunner(dry, ".py", ".sh").
		UseScriptApproval(ask).
		Build()
	if err != nil {
		log.Fatal(err)
	}
	for _, args := range [][]string{{"--value", "1"}, nil} {
		r := provider.RunScript(context.Background(), skill.Local(), skill.ScriptRequest{Skill: "unit-converter", Script: "convert.py", Args: args})
		if r.Error != nil {
			fmt.Printf("%s: %s\n", r.Error.Code, r.Error.Message)
			continue
		}
		fmt.Printf("%s\n", r.Data)
	}
}
