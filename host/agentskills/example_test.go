package agentskills_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"openskill/host/agentskills"
	"openskill/sdk/skill"
)

// An Agent Skill made in Go: its script is a function, whose arguments are read from its
// struct. A model calls it by the same tools as one that is a folder.
func ExampleBuilder() {
	type words struct {
		Text string `json:"text" description:"The text to count."`
	}
	counter := agentskills.NewInline(agentskills.Frontmatter{
		Name: "word-counter", Description: "Counts words. Use when asked how long a text is.",
	}, "Run the script count on the text, and say the number.").
		AddScript("count", func(w words) map[string]int { return map[string]int{"words": len(strings.Fields(w.Text))} }, "Counts the words of a text.")
	p, err := agentskills.NewBuilder().UseSkill(counter).Build()
	if err != nil {
		log.Fatal(err)
	}
	for _, args := range []string{`{"text": "one two three"}`, `{"txt": "one"}`} {
		r := p.CallTool(context.Background(), skill.Local(), agentskills.ToolRun, json.RawMessage(`{"skill_name": "word-counter", "script_file": "count", "args": `+args+`}`), "example")
		if r.Error != nil {
			fmt.Println(r.Error.Code, r.Error.Message)
			continue
		}
		fmt.Println(string(r.Data))
	}
	// Output:
	// {"output":"{\"words\":3}"}
	// INVALID_ARGUMENT the arguments of count do not fit: /text is missing (accepted: string); /txt is not known (accepted: one of text)
}
