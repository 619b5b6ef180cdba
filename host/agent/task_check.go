package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// The bounds of a task that are not settings.
const (
	maxTask    = 2000             // characters
	minTimeout = 10 * time.Second // that a caller may ask for
	maxContext = 64 << 10         // bytes
	maxSkills  = 256              // that a caller may name
)

// field is one that is wrong, as the other answers of the host list them.
type field struct {
	Field    string `json:"field"`
	Problem  string `json:"problem"`
	Expected string `json:"expected"`
}

// taskLimits says what is wrong with a task, and what it may use.
func (a *Agent) taskLimits(t *Task) (limits, error) {
	if err := checkTask(t.Text); err != nil {
		return limits{}, err
	}
	var wrong []field
	add := func(name, problem, expected string) { wrong = append(wrong, field{name, problem, expected}) }

	switch {
	case len(t.Context) == 0 || string(t.Context) == "null":
		t.Context = nil
	case len(t.Context) > maxContext:
		add("context", fmt.Sprintf("has %d bytes", len(t.Context)), fmt.Sprintf("an object of at most %d bytes", maxContext))
	default:
		if err := strictjson.Object(t.Context, func(_, _ []byte) error { return nil }); err != nil {
			add("context", "is not a valid JSON object: "+skill.CleanText(err.Error(), 200), "an object")
		}
	}
	asked := &t.Options
	kind, ok := a.o.Task.Kinds[asked.Kind]
	if asked.Kind != "" && !ok {
		add("options.kind", "is not a configured kind of task", cmp.Or(strings.Join(slices.Sorted(maps.Keys(a.o.Task.Kinds)), ", "), "no kind: the operator has named none"))
	}
	all := a.of(kind)
	rounds := all.Iterations
	switch {
	case asked.MaxIterations == 0:
	case asked.MaxIterations < 1 || asked.MaxIterations > all.Iterations:
		add("options.max_iterations", "is out of range", fmt.Sprintf("a whole number from 1 to %d", all.Iterations))
	default:
		rounds = asked.MaxIterations
	}
	limit, longest := a.o.Task.Timeout, a.o.Task.MaxTimeout
	if kind.Timeout > 0 {
		limit, longest = all.Timeout, all.Timeout
	}
	least, most := int(min(minTimeout, longest)/time.Second), int(longest/time.Second)
	switch {
	case asked.TimeoutSeconds == 0:
	case asked.TimeoutSeconds < least || asked.TimeoutSeconds > most:
		add("options.timeout_seconds", "is out of range", fmt.Sprintf("a whole number from %d to %d", least, most))
	default:
		limit = time.Duration(asked.TimeoutSeconds) * time.Second
	}
	switch n := len(asked.Skills); {
	case asked.Skills != nil && n == 0: // it must not come to mean all of them
		add("options.skills", "is empty", "skill ids; default: all skills that the caller may call")
	case n > maxSkills:
		add("options.skills", fmt.Sprintf("names %d skills", n), fmt.Sprintf("at most %d", maxSkills))
	}
	if wrong != nil {
		return limits{}, &skill.Error{
			Op: "agent.Execute", Code: skill.AgentValidationError, Details: map[string]any{"fields": wrong},
			Message: fmt.Sprintf("%s %s; expected %s", wrong[0].Field, wrong[0].Problem, wrong[0].Expected),
		}
	}
	calls := min(rounds, a.o.ToolCalls)
	return limits{iterations: calls, toolCalls: calls, tokens: all.Tokens, time: limit}, nil
}

// of gives the limits of a kind, none above those of all tasks.
func (a *Agent) of(k TaskKind) TaskKind {
	t := &a.o.Task
	k = TaskKind{cmp.Or(k.Iterations, t.Iterations), cmp.Or(k.Tokens, t.Tokens), cmp.Or(k.Timeout, t.MaxTimeout)}
	return TaskKind{min(k.Iterations, t.Iterations), min(k.Tokens, t.Tokens), min(k.Timeout, t.MaxTimeout)}
}

func checkTask(text string) error {
	var problem string
	switch {
	case !utf8.ValidString(text):
		problem = "is not valid UTF-8"
	case len(text) > utf8.UTFMax*maxTask, utf8.RuneCountInString(text) > maxTask:
		problem = "is too long"
	case strings.TrimSpace(skill.CleanText(text, len(text))) == "": // nothing in it can be seen
		problem = "is empty"
	default:
		return nil
	}
	return &skill.Error{
		Op: "agent.Execute", Code: skill.AgentInvalidTask, Subject: "task",
		Message: fmt.Sprintf("the task %s; describe it in 1 to %d characters", problem, maxTask),
		Details: map[string]any{"fields": []field{{"task", problem, fmt.Sprintf("text of 1 to %d characters", maxTask)}}},
	}
}

// only names the skills that a task may use; nil is all of them. What is no id of a
// skill is none's, and will not be found.
func (t *Task) only() []skill.ID {
	if t.Options.Skills == nil {
		return nil
	}
	out := make([]skill.ID, len(t.Options.Skills))
	for i, s := range t.Options.Skills {
		out[i] = skill.ID(s)
	}
	return out
}

// object is raw, or {} where it is no JSON.
func object(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return json.RawMessage("{}")
	}
	return raw
}
