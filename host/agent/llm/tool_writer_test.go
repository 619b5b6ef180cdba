package llm

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"openskill/host/agent/tools"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func tool(name, description, schema string) skill.Tool {
	return skill.Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema)}
}

// Tools are written as by the function itself, and anew only where one has changed.
func TestToolsAreWrittenOnce(t *testing.T) {
	asked := 0
	d, err := newToolWriter(func(list []skill.Tool) any {
		asked++
		return tools.Anthropic(list)
	})
	musttest.Do(t, err)
	list := []skill.Tool{
		tool("a", "does a", `{"type":"object"}`),
		tool("left out", "", `{"type":"object","properties":{"no such name!":{}},"required":["no such name!"]}`),
		tool("b", "", ""),
	}
	same := func() {
		t.Helper()
		got := musttest.Get(d.write(list))(t)
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(tools.Anthropic(list))
		if string(g) != string(w) || len(got) != 2 {
			t.Errorf("%s\nwant %s", g, w)
		}
	}
	same()
	same()
	if asked != 3 {
		t.Errorf("written %d times", asked)
	}
	for i, change := range []func(*skill.Tool){
		func(t *skill.Tool) { t.Name = "c" },
		func(t *skill.Tool) { t.Description = "does c" },
		func(t *skill.Tool) { t.InputSchema = json.RawMessage(`{"type":"object","properties":{"x":{}}}`) },
		func(t *skill.Tool) { t.Name, t.Description = "cdoes", " c" },
	} {
		change(&list[0])
		same()
		if asked != 4+i {
			t.Errorf("after change %d written %d times", i, asked)
		}
	}
	if got, err := d.write(nil); err != nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestToolsAreWrittenConcurrently(t *testing.T) {
	d := musttest.Get(newToolWriter(tools.OpenAI))(t)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for j := range 50 {
				name := fmt.Sprintf("tool_%d", (i+j)%20)
				got, err := d.write([]skill.Tool{tool(name, "", `{"type":"object"}`)})
				var o struct{ Function struct{ Name string } }
				if err != nil || len(got) != 1 || json.Unmarshal(got[0], &o) != nil || o.Function.Name != name {
					t.Errorf("%s: %s, %v", name, got, err)
				}
			}
		})
	}
	all.Wait()
}
