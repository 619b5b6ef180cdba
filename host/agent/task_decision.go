package agent

import (
	"encoding/json"
	"strings"

	"openskill/internal/ordered"
	"openskill/internal/strictjson"
)

// decision is what a model wants next.
type decision struct {
	call   bool   // of a skill; else it has finished
	skill  string // as the model wrote it
	params string // JSON; {} where it gave none
	result *ordered.Object
	// prose says that the answer was not the JSON that was asked for: result is its text.
	prose bool
}

// The bounds of what is looked at of an answer. Models are told how long an answer may
// be; these are for those that do not care.
const (
	maxAnswer = 256 << 10 // bytes
	maxTries  = 16        // places where an object may begin
	maxDepth  = 64        // of objects and lists in a result
)

// decide reads an answer. It makes something of everything: what cannot be read as an
// action is taken for the result, so that nothing of what a task has cost is lost.
func decide(text string) decision {
	if len(text) > maxAnswer {
		text = strings.ToValidUTF8(text[:maxAnswer], "")
	}
	text = strings.TrimSpace(text)
	answer := find(text)
	if answer == nil {
		if text == "" {
			text = "The model answered with nothing."
		}
		return decision{result: ordered.Of("summary", text), prose: true}
	}

	// {"action": {"type": …, …}} is what was asked for. Some models write the type in the
	// place of the action, or leave that level out.
	fields := answer
	kind := answer.Text("action")
	if o := answer.Object("action"); o != nil {
		fields = o
	}
	if kind == "" {
		kind = fields.Text("type")
	}
	if kind == "skill_call" {
		d := decision{call: true, skill: fields.Text("skill"), params: "{}"}
		if p := fields.Get("params"); p != nil {
			if b, err := ordered.Encode(p); err == nil {
				d.params = string(b)
			}
		}
		return d
	}
	result := fields.Get("result")
	if result == nil {
		result = answer.Get("result")
	}
	if result == nil && answer.Object("action") == nil { // the level of the result is left out, too
		rest := &ordered.Object{}
		for _, m := range answer.Members {
			switch m.Key {
			case "thought", "action", "type", "result":
			default:
				rest.Members = append(rest.Members, m)
			}
		}
		result = rest
	}
	return decision{result: finished(result)}
}

// finished makes an object of a result. One that other readers of JSON might choke on,
// because of a number for example, is told as text.
func finished(result any) *ordered.Object {
	switch r := result.(type) {
	case nil:
		return &ordered.Object{}
	case string:
		return ordered.Of("summary", r)
	}
	b, err := ordered.Encode(result)
	if err != nil { // of what was read as JSON
		return &ordered.Object{}
	}
	if o, ok := result.(*ordered.Object); ok {
		if _, err := strictjson.Decode(b, maxDepth, nil); err == nil {
			return o
		}
	}
	return ordered.Of("summary", string(b))
}

// find gives the object that an answer is: all of it, or what is between the marks of a
// block of code; or else the first one with an action that stands somewhere in the text.
// nil: there is none.
func find(text string) *ordered.Object {
	if o, err := ordered.DecodeObject([]byte(unfence(text))); err == nil {
		return o
	}
	for range maxTries {
		i := strings.IndexByte(text, '{')
		if i < 0 {
			return nil
		}
		text = text[i:]
		var one json.RawMessage
		dec := json.NewDecoder(strings.NewReader(text))
		if err := dec.Decode(&one); err != nil {
			text = text[1:]
			continue
		}
		if o, err := ordered.DecodeObject(one); err == nil && o.Has("action") {
			return o
		}
		text = text[dec.InputOffset():]
	}
	return nil
}

// unfence gives what is between the marks of a block of code that is the whole text, or
// the text.
func unfence(text string) string {
	const mark = "```"
	inner, ok := strings.CutPrefix(text, mark)
	if !ok {
		return text
	}
	if inner, ok = strings.CutSuffix(inner, mark); !ok {
		return text
	}
	if i := strings.IndexAny(inner, "{\n"); i >= 0 { // json, or another name
		inner = inner[i:]
	}
	return strings.TrimSpace(inner)
}
