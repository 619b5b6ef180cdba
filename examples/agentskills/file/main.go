// Command file serves the skills of a folder: it lists them, shows what a model is told
// of them, and loads one.
package main

import (
	"context"
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
	list, err := provider.List(ctx, me)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range list {
		fmt.Printf("%s: %d resources, %d scripts\n", s.Name, len(s.Resources), len(s.Scripts))
	}
	instructions, err := provider.Instructions(ctx, me)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("\n%s\n", instructions)
	_, content, err := provider.Load(ctx, me, "unit-converter")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("\n%s", content)
}
