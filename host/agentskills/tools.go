package agentskills

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// The names of the three tools.
const (
	ToolLoad = "load_skill"
	ToolRead = "read_skill_resource"
	ToolRun  = "run_skill_script"
)

// maxDescription is the length in bytes of a tool's description that every vendor
// takes.
const maxDescription = 1000

// Tools gives the tools that make sense for a caller: none without skills, none for
// reading without something to read, none for running without scripts, or without the
// scope to call one. Never nil.
func (p *Provider) Tools(ctx context.Context, who skill.Principal) ([]skill.Tool, error) {
	members, err := p.members(ctx, who, skill.ScopeRead, "")
	if err != nil {
		return nil, err
	}
	tools := []skill.Tool{}
	if len(members) == 0 {
		return tools, nil
	}
	tools = append(tools, skill.Tool{
		Name: ToolLoad, Title: "Load a skill", ReadOnly: true, Description: describe(members),
		InputSchema:  compactJSON([]byte(loadInput)),
		OutputSchema: compactJSON([]byte(loadOutput)),
	})
	if slices.ContainsFunc(members, func(m member) bool { return m.readable() }) {
		tools = append(tools, skill.Tool{
			Name: ToolRead, Title: "Read a file of a skill", ReadOnly: true,
			Description: "Reads one file that belongs to a skill, such as a reference or a table, or the source of a script. Load the skill first: " +
				"its resources and scripts are listed there, and only those names are accepted.",
			InputSchema:  compactJSON([]byte(readInput)),
			OutputSchema: compactJSON([]byte(readOutput)),
		})
	}
	if slices.ContainsFunc(members, func(m member) bool { return m.runnable(who) }) {
		tools = append(tools, skill.Tool{
			Name: ToolRun, Title: "Run a script of a skill",
			Description: "Runs a script that belongs to a skill and gives what it prints. Load the skill first: its instructions say which script to run " +
				"and with which arguments. It runs in a sandbox: its working folder is the skill's folder, and nothing that it writes is kept there.",
			InputSchema:  compactJSON([]byte(runInput)),
			OutputSchema: compactJSON([]byte(runOutput)),
		})
	}
	return tools, nil
}

// readable reports whether the tool for reading has something of this skill.
func (m *member) readable() bool {
	return len(m.view.Resources) > 0 || slices.ContainsFunc(m.skill.Scripts(), func(s Script) bool { _, ok := s.(readable); return ok })
}

// runnable reports whether it has a script that the caller may run.
func (m *member) runnable(who skill.Principal) bool {
	return len(m.view.Scripts) > 0 && who.MayInvoke(skill.ID(m.view.Name))
}

const (
	loadInput = `{"type": "object", "additionalProperties": false, "required": ["skill_name"], "properties": {
		"skill_name": {"type": "string", "description": "Name of the skill."}}}`
	files = `{"type": "array", "items": {"type": "object", "required": ["name"], "properties": {
		"name": {"type": "string"}, "description": {"type": "string"}, "media_type": {"type": "string"},
		"size": {"type": "integer"}, "parameters": {"type": "object"}}}}`
	loadOutput = `{"type": "object", "required": ["content", "resources", "scripts"], "properties": {
		"content": {"type": "string"}, "resources": ` + files + `, "scripts": ` + files + `}}`
	readInput = `{"type": "object", "additionalProperties": false, "required": ["skill_name", "resource_name"], "properties": {
		"skill_name": {"type": "string", "description": "Name of the skill."},
		"resource_name": {"type": "string", "description": "Name of the file as load_skill lists it, such as references/table.md."}}}`
	readOutput = `{"type": "object", "properties": {
		"content": {"type": "string"}, "base64": {"type": "string"}, "media_type": {"type": "string"}}}`
	runInput = `{"type": "object", "additionalProperties": false, "required": ["skill_name", "script_file"], "properties": {
		"skill_name": {"type": "string", "description": "Name of the skill."},
		"script_file": {"type": "string", "description": "Name of the script as load_skill lists it, such as scripts/convert.py."},
		"args": {"description": "Arguments of the command line: a list of texts, such as [\"--value\", \"1\"], or an object, such as {\"value\": 1}, which becomes --value 1. In an object true gives the option alone, false and null leave it out, and a list gives its values behind the option.",
			"anyOf": [{"type": "array", "items": {"type": ["string", "number", "boolean"]}}, {"type": "object"}, {"type": "null"}]},
		"input": {"type": "string", "description": "Text that the script reads from standard input, for what is long or has several lines."},
		"timeout_ms": {"type": "integer", "minimum": 1, "description": "Time limit of a script that takes long, in place of the default, up to the maximum of the host."}}}`
	runOutput = `{"type": "object", "required": ["output"], "properties": {"output": {"type": "string"},
		"encoding": {"type": "string", "enum": ["base64"], "description": "Of output that is no text."}}}`
)

// describe says what load_skill is for and which skills there are, as far as there is
// room: callers that show their models no instructions show them this.
func describe(members []member) string {
	var b strings.Builder
	b.WriteString("Gives the instructions of a skill, and the names of its files and scripts. Use it before a task that one of the skills is for, and do what the instructions say. Skills: ")
	room := maxDescription - b.Len()
	each := room/len(members) - 4
	for i, m := range members {
		one := m.view.Name
		if left := each - len(one); left > 30 {
			one += " (" + skill.CleanText(m.view.Description, left) + ")"
		}
		if b.Len()+len(one)+20 > maxDescription {
			fmt.Fprintf(&b, " and %d more", len(members)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(one)
	}
	return b.String()
}

// callArgs are the arguments of the three tools.
type callArgs struct {
	skill, resource, script, input string
	args                           json.RawMessage
	timeout                        uint64 // ms
}

// spellings are the names that arguments may have, the first one being ours.
var spellings = map[string][]string{
	"skill_name":    {"skill_name", "skillName"},
	"resource_name": {"resource_name", "resourceName"},
	"script_file":   {"script_file", "script_name", "scriptName", "scriptFile"},
	"args":          {"args", "arguments"},
	"input":         {"input"},
	"timeout_ms":    {"timeout_ms"},
}

// takes are the arguments of each tool, the required ones first; required is how many
// these are.
var takes = map[string]struct {
	args     []string
	required int
}{
	ToolLoad: {[]string{"skill_name"}, 1},
	ToolRead: {[]string{"skill_name", "resource_name"}, 2},
	ToolRun:  {[]string{"skill_name", "script_file", "args", "input", "timeout_ms"}, 2},
}

// CallTool runs one of the three tools for a model. It never gives nil. Data of
// load_skill is {"content", "resources", "scripts"}, of read_skill_resource {"content"},
// or {"base64", "media_type"} for what is no text, of run_skill_script what the runner
// gave, {"output": …}, with "encoding": "base64" where that is no text.
func (p *Provider) CallTool(ctx context.Context, who skill.Principal, name string, args json.RawMessage, trace skill.TraceID) *skill.Result {
	return p.CallToolIn(ctx, who, name, args, trace, skill.Turn{}, skill.Limits{})
}

// CallToolIn is CallTool for a model of an agent, whose turn is put on record, and whose
// budget may lower the limits of a script.
func (p *Provider) CallToolIn(
	ctx context.Context, who skill.Principal, name string, args json.RawMessage, trace skill.TraceID, turn skill.Turn, limits skill.Limits,
) *skill.Result {
	begun, trace := p.now(), traced(trace)
	var a callArgs
	meta := skill.Meta{}
	done := func(data any, err error) *skill.Result {
		meta.LatencyMS = p.now().Sub(begun).Milliseconds()
		var b json.RawMessage
		if err == nil {
			b, err = marshal(data)
		}
		if err != nil {
			return skill.Failure(skillID(a.skill), trace, meta, err)
		}
		return &skill.Result{Success: true, SkillID: skillID(a.skill), TraceID: trace, Data: b, Meta: meta}
	}
	if err := may(who, skill.ScopeRead, ""); err != nil {
		return done(nil, err)
	}
	if _, ok := takes[name]; !ok {
		return done(nil, &skill.Error{
			Op: "agentskills.CallTool", Code: skill.NotFound, Subject: skill.CleanText(name, 80),
			Message: fmt.Sprintf("tool not found: %q; use %s", skill.CleanText(name, 80), strings.Join(slices.Sorted(maps.Keys(takes)), ", ")),
		})
	}
	if err := a.read(name, args); err != nil {
		return done(nil, err)
	}
	switch name {
	case ToolLoad:
		s, content, err := p.Load(ctx, who, a.skill)
		meta.Digest, meta.Version = s.Digest, s.Metadata["version"]
		return done(map[string]any{"content": content, "resources": s.Resources, "scripts": s.Scripts}, err)
	case ToolRead:
		r, err := p.ReadResource(ctx, who, a.skill, a.resource)
		if err != nil {
			return done(nil, err)
		}
		if text(r.Data) {
			return done(map[string]any{"content": string(r.Data)}, nil)
		}
		return done(map[string]any{"base64": base64.StdEncoding.EncodeToString(r.Data), "media_type": r.MediaType}, nil)
	default:
		list, object, err := arguments(a.args)
		if err != nil {
			return done(nil, err)
		}
		r := skill.ScriptRequest{Skill: a.skill, Script: a.script, Args: list, TraceID: trace, Turn: turn, Limits: limits, Asked: skill.LimitsJSON{TimeoutMS: a.timeout}.Limits()}
		if a.input != "" {
			r.Stdin = []byte(a.input)
		}
		return p.run(ctx, who, &r, object)
	}
}

// ScriptOf names the script that a call of run_skill_script with these arguments runs.
func ScriptOf(args json.RawMessage) (name, script string, err error) {
	var a callArgs
	err = a.read(ToolRun, args)
	return a.skill, a.script, err
}

// read takes the arguments of a call of a tool apart.
func (a *callArgs) read(tool string, raw json.RawMessage) error {
	wrong := func(format string, args ...any) error {
		return &skill.Error{
			Op: "agentskills.CallTool", Code: skill.InvalidArgument, Subject: tool,
			Message: skill.CleanText(fmt.Sprintf(format, args...), skill.MaxMessage),
		}
	}
	if t := strings.TrimSpace(string(raw)); t == "" || t == "null" {
		raw = json.RawMessage("{}")
	}
	accepted := takes[tool]
	given := map[string]bool{}
	err := strictjson.Object(raw, func(key, value []byte) error {
		name := ours(string(key))
		if !slices.Contains(accepted.args, name) {
			return wrong("%s takes no argument %q; it takes %s", tool, skill.CleanText(string(key), 60), strings.Join(accepted.args, ", "))
		}
		if given[name] {
			return wrong("%s is given twice, under two names", name)
		}
		given[name] = true
		if name == "args" {
			a.args = slices.Clone(value)
			return nil
		}
		if value[0] == 'n' { // null is nothing
			given[name] = false
			return nil
		}
		if name == "timeout_ms" {
			if json.Unmarshal(value, &a.timeout) != nil || a.timeout < 1 {
				return wrong("timeout_ms must be a whole number of 1 or more")
			}
			return nil
		}
		var s string
		if value[0] != '"' || json.Unmarshal(value, &s) != nil {
			return wrong("%s must be text", name)
		}
		switch name {
		case "skill_name":
			a.skill = s
		case "resource_name":
			a.resource = s
		case "script_file":
			a.script = s
		default:
			a.input = s
		}
		return nil
	})
	if err != nil {
		if skill.CodeOf(err) == skill.Internal { // of strictjson
			return wrong("the arguments of %s must be a JSON object with %s: %v", tool, strings.Join(accepted.args, ", "), err)
		}
		return err
	}
	for _, name := range accepted.args[:accepted.required] {
		if !given[name] {
			return wrong("%s needs %s; it takes %s", tool, name, strings.Join(accepted.args, ", "))
		}
	}
	return nil
}

// ours is the name of an argument, however it was spelt.
func ours(key string) string {
	for name, list := range spellings {
		if slices.Contains(list, key) {
			return name
		}
	}
	return key
}

// marshal writes data for models, who read <value> better than \u003cvalue\u003e.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, &skill.Error{Op: "agentskills.marshal", Code: skill.Internal, Err: err}
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
