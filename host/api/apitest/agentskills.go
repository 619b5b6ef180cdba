package apitest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"openskill/sdk/skill"
)

// AgentSkills is a list of Agent Skills in memory. It is safe for concurrent use.
type AgentSkills struct {
	mu        sync.Mutex
	skills    []skill.AgentSkill
	texts     map[string]string
	resources map[string][]byte
	scripts   map[string]Script
	runs      []skill.ScriptRequest
	reads     []string
}

// Script is what a script of [AgentSkills] does. It gives what it prints, or an error as
// *skill.Error.
type Script func(ctx context.Context, r skill.ScriptRequest) (string, error)

// NewAgentSkills has unit-converter: with the resource references/conversion-table.md
// and the script scripts/convert.py, which prints its arguments and its standard input.
func NewAgentSkills() *AgentSkills {
	a := &AgentSkills{texts: map[string]string{}, resources: map[string][]byte{}, scripts: map[string]Script{}}
	a.Add("unit-converter", "---\nname: unit-converter\ndescription: Convert between common units.\n---\n\nReview the table, then run the script.\n")
	a.AddResource("unit-converter", "references/conversion-table.md", "text/markdown", []byte("| miles | kilometers | 1.60934 |\n"))
	a.AddScript("unit-converter", "scripts/convert.py", func(_ context.Context, r skill.ScriptRequest) (string, error) {
		b, err := json.Marshal(r.Args)
		return string(b) + string(r.Stdin), err
	})
	return a
}

// Add makes a skill without resources and scripts.
func (a *AgentSkills) Add(name, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.skills = append(a.skills, skill.AgentSkill{
		Name: name, Description: "An Agent Skill for tests.", Digest: "sha256:" + strings.Repeat("0", 64), Trust: skill.Trusted,
	})
	slices.SortFunc(a.skills, func(x, y skill.AgentSkill) int { return strings.Compare(x.Name, y.Name) })
	a.texts[name] = text
}

func (a *AgentSkills) find(name string) (int, error) {
	i := slices.IndexFunc(a.skills, func(s skill.AgentSkill) bool { return s.Name == name })
	if i < 0 {
		return i, &skill.Error{Code: skill.NotFound, Message: "there is no Agent Skill of this name"}
	}
	return i, nil
}

// AddResource makes a resource of a skill.
func (a *AgentSkills) AddResource(name, resource, mediaType string, data []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i, err := a.find(name); err == nil {
		a.skills[i].Resources = append(a.skills[i].Resources, skill.AgentFile{Name: resource, MediaType: mediaType, Size: int64(len(data))})
		a.resources[name+"/"+resource] = data
	}
}

// AddScript makes a script of a skill.
func (a *AgentSkills) AddScript(name, script string, f Script) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i, err := a.find(name); err == nil {
		a.skills[i].Scripts = append(a.skills[i].Scripts, skill.AgentFile{Name: script})
		a.scripts[name+"/"+script] = f
	}
}

// Runs gives the runs of scripts that were asked for, in order.
func (a *AgentSkills) Runs() []skill.ScriptRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.runs)
}

// Reads gives the resources that were asked for, as name/resource, in order.
func (a *AgentSkills) Reads() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.reads)
}

// List gives all skills.
func (a *AgentSkills) List(context.Context, skill.Principal) ([]skill.AgentSkill, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.skills), nil
}

// Load gives one skill.
func (a *AgentSkills) Load(_ context.Context, _ skill.Principal, name string) (skill.AgentSkill, string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, err := a.find(name)
	if err != nil {
		return skill.AgentSkill{}, "", err
	}
	return a.skills[i], a.texts[name], nil
}

// ReadResource gives one resource.
func (a *AgentSkills) ReadResource(_ context.Context, _ skill.Principal, name, resource string) (skill.AgentResource, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reads = append(a.reads, name+"/"+resource)
	i, err := a.find(name)
	if err != nil {
		return skill.AgentResource{}, err
	}
	for _, f := range a.skills[i].Resources {
		if f.Name == resource {
			return skill.AgentResource{Name: resource, MediaType: f.MediaType, Data: a.resources[name+"/"+resource]}, nil
		}
	}
	return skill.AgentResource{}, &skill.Error{Code: skill.NotFound, Message: "the skill has no such resource"}
}

// RunScript runs one script.
func (a *AgentSkills) RunScript(ctx context.Context, p skill.Principal, r skill.ScriptRequest) *skill.Result {
	id := skill.ID(r.Skill)
	a.mu.Lock()
	a.runs = append(a.runs, r)
	f := a.scripts[r.Skill+"/"+r.Script]
	if f == nil {
		f = a.scripts[r.Skill+"/scripts/"+r.Script]
	}
	a.mu.Unlock()
	switch {
	case p.ID == "":
		return skill.Failure(id, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.Unauthorized, Message: "authentication required: send an API key or a token"})
	case !p.May(skill.ScopeInvoke):
		return skill.Failure(id, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.Forbidden, Message: "missing scope " + skill.ScopeInvoke})
	case f == nil:
		return skill.Failure(id, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.NotFound, Message: "the skill has no such script"})
	}
	meta := skill.Meta{LatencyMS: 1, ExecutionID: "x-1", Runner: skill.WasmPython, Digest: "sha256:" + strings.Repeat("0", 64)}
	out, err := f(ctx, r)
	if err != nil {
		return skill.Failure(id, r.TraceID, meta, err)
	}
	data, _ := json.Marshal(map[string]string{"output": out}) // a string
	return &skill.Result{Success: true, SkillID: id, TraceID: r.TraceID, Data: data, Meta: meta}
}

// Search finds echo, and with a limit above 1 the Agent Skill units.
func Search(_ context.Context, _ skill.Principal, query string, limit int) ([]skill.Found, error) {
	found := []skill.Found{
		{Type: "skill", Name: "echo", Description: "Finds " + query + ".", InputSchema: json.RawMessage(`{"type":"object"}`)},
		{Type: "agent_skill", Name: "units", Description: "Converts units."},
	}
	return found[:min(limit, len(found))], nil
}

// Tools gives one tool, in no dialect but with the format's name.
func Tools(_ context.Context, _ skill.Principal, format, _ string, _ int) (json.RawMessage, string, error) {
	list, err := json.Marshal([]any{map[string]any{"format": format, "name": "echo"}})
	return list, "", err
}
