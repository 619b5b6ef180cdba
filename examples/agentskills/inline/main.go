// Command inline makes a skill in Go, with a resource that is read anew each time and a
// script that is a function, and calls both as a model would.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"openskill/host/agentskills"
	"openskill/sdk/skill"
)

type words struct {
	Text string `json:"text" description:"The text to count."`
}

func main() {
	reads := 0
	counter := agentskills.NewInline(agentskills.Frontmatter{
		Name: "word-counter", Description: "Counts words. Use when asked how long a text is.",
	}, "Run the count script on the text, and say the number.").
		AddResource("rules", "A word is what stands between spaces.", "What counts as a word.").
		AddResource("reads", func() int { reads++; return reads }, "How often this was read.").
		AddScript("count", func(w words) map[string]int { return map[string]int{"words": len(strings.Fields(w.Text))} }, "Counts the words of a text.")

	provider, err := agentskills.NewBuilder().UseSkill(counter).Build()
	if err != nil {
		log.Fatal(err)
	}
	out := json.NewEncoder(os.Stdout)
	call := func(tool, args string) {
		r := provider.CallTool(context.Background(), skill.Local(), tool, json.RawMessage(args), "example")
		if r.Error != nil {
			fmt.Printf("%s: %s: %s\n", tool, r.Error.Code, r.Error.Message)
			return
		}
		if err := out.Encode(r.Data); err != nil {
			log.Fatal(err)
		}
	}
	call("read_skill_resource", `{"skill_name": "word-counter", "resource_name": "rules"}`)
	call("read_skill_resource", `{"skill_name": "word-counter", "resource_name": "reads"}`)
	call("read_skill_resource", `{"skill_name": "word-counter", "resource_name": "reads"}`)
	call("run_skill_script", `{"skill_name": "word-counter", "script_file": "count", "args": {"text": "one two three"}}`)
	call("run_skill_script", `{"skill_name": "word-counter", "script_file": "count", "args": {"txt": "one"}}`)
}
