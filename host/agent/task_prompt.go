package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/internal/ordered"
	"openskill/sdk/skill"
)

// taskPrompt is what the model of one task reads. What was counted once is not counted
// again: to count a prompt takes longer than all else in a round.
type taskPrompt struct {
	system string
	head   string // the task and its context
	base   int    // tokens of both, and of what stands before the rounds
	rounds []past
	long   int // how many of them are shown
	short  int // where those do not fit
	count  func(string) int
}

// past is a round that is over.
type past struct {
	text   string
	tokens int
}

// minReply is how many tokens a prompt must leave for the answer: the shortest one that
// is of use takes about as many.
const minReply = 64

// maxParams is how much of what a skill was called with is shown again, in bytes.
const maxParams = 1000

// fullShare says when schemas are shown as a whole: where the prompt without the task then
// takes a sixth of the task's tokens at most. Each round pays for it again.
const fullShare = 6

// newTaskPrompt makes that of a task, and notes the names of its tools.
func newTaskPrompt(r *taskRun) *taskPrompt {
	list, more := r.tools.List(), r.tools.Instructions()
	for i := range list {
		r.names = append(r.names, list[i].Name)
	}
	p := &taskPrompt{system: system(list, more, false), long: r.o.Task.History, short: r.o.Task.ShortHistory, count: r.model.Count}
	if llm.Rough.Count(p.system) > r.budget.tokens/fullShare {
		p.system = system(list, more, true)
	}
	p.head = "Task: " + r.task.Text
	if r.task.Context != nil {
		p.head += "\n\nContext: " + compactJSON(r.task.Context)
	}
	p.base = r.model.Tokens(&llm.Request{System: p.system, Messages: []llm.Message{{Role: llm.User, Text: p.head}}}) + p.count(before(1000))
	return p
}

// system is the part of the prompt that is the same for every task of a caller's.
func system(list []skill.Tool, more string, short bool) string {
	var b strings.Builder
	b.WriteString("You are an agent. You work on one task for a user by yourself, step by step, and call skills for what you do not know or cannot do.\n\n")
	if len(list) == 0 {
		b.WriteString("There are no skills that you can call.\n")
	} else {
		b.WriteString("Skills that you can call:\n")
	}
	for i := range list {
		describe(&b, &list[i], short)
	}
	if more != "" {
		b.WriteString("\n" + more + "\n")
	}
	b.WriteString("\n" + tools.Notice + "\n" + form)
	return b.String()
}

// form is how the model is to answer.
const form = `
Answer with one JSON object and nothing else.

To call a skill:
{"thought": "why this is the next step", "action": {"type": "skill_call", "skill": "name of the skill", "params": {}}}

When you have finished:
{"thought": "what you have found", "action": {"type": "finish", "result": {"summary": "the answer for the user", "findings": []}}}

Rules:
1. Call one skill at a time.
2. Decide on the next step by what the last one gave.
3. Where a call fails, mend its params and try again, or use another skill.
4. Finish as soon as you know enough. Make no call that the task does not need.
5. Write the result in the language of the task.
`

func describe(b *strings.Builder, t *skill.Tool, short bool) {
	schema := string(t.InputSchema)
	switch {
	case short:
		schema = shape(t.InputSchema)
	case schema == "":
		schema = "{}"
	}
	took := "unknown"
	if t.Cost != nil && t.Cost.EstimatedDurationMS > 0 {
		took = fmt.Sprintf("%d ms", t.Cost.EstimatedDurationMS)
	}
	fmt.Fprintf(b, "- **%s**: %s\n  Params (JSON Schema): %s\n  Estimated duration: %s\n", t.Name, t.Description, schema, took)
}

func compactJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil { // it was read before
		return "{}"
	}
	return b.String()
}

// add notes a round that is over. saw is what the toolbox made of the skill's answer.
func (p *taskPrompt) add(index int, name, params, saw string) {
	text := fmt.Sprintf("\n--- round %d ---\nAction: %s(%s)\nObservation:\n%s\n", index, name, skill.CleanText(params, maxParams), saw)
	p.rounds = append(p.rounds, past{text, p.count(text)})
}

// fit gives the user's message of a round and the tokens that the whole prompt takes,
// and reports whether these leave room for an answer within left. It shows fewer rounds
// where it must.
func (p *taskPrompt) fit(index, most, left int) (text string, tokens int, ok bool) {
	tail := fmt.Sprintf("\nThis is round %d, and %d are left with it. Answer with one JSON object: what is your next step?", index, most-index)
	fixed := p.base + p.count(tail)
	for _, n := range []int{p.long, p.short} {
		shown := p.rounds[max(len(p.rounds)-n, 0):]
		tokens = fixed
		for i := range shown {
			tokens += shown[i].tokens
		}
		if tokens+minReply <= left {
			return p.text(shown, tail), tokens, true
		}
	}
	return "", tokens, false
}

func (p *taskPrompt) text(shown []past, tail string) string {
	var b strings.Builder
	b.WriteString(p.head)
	b.WriteByte('\n')
	if len(shown) > 0 {
		b.WriteString(before(len(p.rounds) - len(shown)))
	}
	for i := range shown {
		b.WriteString(shown[i].text)
	}
	b.WriteString(tail)
	return b.String()
}

// before is what stands before the rounds, of which so many are not shown.
func before(gone int) string {
	if gone == 0 {
		return "\nWhat happened so far:\n"
	}
	return fmt.Sprintf("\nWhat happened so far (the first %d rounds are left out):\n", gone)
}

// shape is a schema without its words: which members there are, of which types, and what
// is required. It takes a third of what the whole takes, and a model that gets more than
// that wrong is told what was expected. The order is the schema's.
func shape(schema json.RawMessage) string {
	o, err := ordered.DecodeObject(schema)
	if err != nil {
		return "{}"
	}
	b, err := ordered.Encode(bones(o))
	if err != nil {
		return "{}"
	}
	return string(b)
}

// bones gives what shape keeps of a value in the place of a schema.
func bones(v any) any {
	o, ok := v.(*ordered.Object)
	if !ok {
		return v // true or false
	}
	out := &ordered.Object{}
	for _, m := range o.Members {
		switch m.Key {
		case "type", "required", "enum", "const", "minimum", "maximum", "$ref":
			out.Set(m.Key, m.Value)
		case "items", "additionalProperties":
			if of, ok := m.Value.(*ordered.Object); ok { // what is not said may be anything
				out.Set(m.Key, bones(of))
			}
		case "properties", "$defs", "definitions":
			if named, ok := m.Value.(*ordered.Object); ok {
				all := &ordered.Object{}
				for _, n := range named.Members {
					all.Members = append(all.Members, ordered.Member{Key: n.Key, Value: bones(n.Value)})
				}
				out.Set(m.Key, all)
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			if list, ok := m.Value.([]any); ok {
				all := make([]any, len(list))
				for i := range list {
					all[i] = bones(list[i])
				}
				out.Set(m.Key, all)
			}
		}
	}
	return out
}
