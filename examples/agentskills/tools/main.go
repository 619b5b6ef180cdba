// Command tools prints the tools that a model is given for the skills of a folder, as
// JSON, and plays what a model does with them: load, read, and what it is told when it
// asks for something that is not there.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"openskill/host/agentskills"
	"openskill/sdk/skill"
)

func main() {
	folder := "skills"
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	provider, err := agentskills.NewBuilder().UseFileSkill(folder, nil).Build()
	if err != nil {
		log.Fatal(err)
	}
	ctx, me := context.Background(), skill.Local()
	tools, err := provider.Tools(ctx, me)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range tools {
		fmt.Printf("%s %s\n", t.Name, t.InputSchema)
	}
	for _, step := range []struct{ tool, args string }{
		{agentskills.ToolLoad, `{"skill_name": "unit-converter"}`},
		{agentskills.ToolRead, `{"skill_name": "unit-converter", "resource_name": "references/conversion-table.md"}`},
		{agentskills.ToolRead, `{"skill_name": "unit-converter", "resource_name": "conversion-tables.md"}`},
		{agentskills.ToolRead, `{"skillName": "unit-converter", "resourceName": "../../etc/passwd"}`},
		{agentskills.ToolLoad, `{"skill_name": "unit-convertor"}`},
	} {
		r := provider.CallTool(ctx, me, step.tool, json.RawMessage(step.args), "example")
		if r.Error != nil {
			fmt.Printf("%s: %s\n", r.Error.Code, r.Error.Message)
			continue
		}
		fmt.Printf("%s\n", r.Data)
	}
}
