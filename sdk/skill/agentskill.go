package skill

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"unicode/utf8"
)

// AgentSkill is an Agent Skill (agentskills.io) as callers see it: what its SKILL.md
// says of it, and what can be read and run. Nothing in it tells where it lives.
type AgentSkill struct {
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	AllowedTools  []string          `json:"allowed_tools,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	Version       string            `json:"version,omitempty"` // of an upload
	Digest        string            `json:"digest"`            // "sha256:" and 64 hex digits, of all that it consists of
	Trust         Trust             `json:"trust"`
	Resources     []AgentFile       `json:"resources"` // in order of name, never nil
	Scripts       []AgentFile       `json:"scripts"`   // the same
	// Grant says in lists whether its scripts were allowed something: "none", "allowed", or "changed"
	// where other files were. Those who may not decide get "".
	Grant string `json:"grant,omitempty"`
	// GrantName is the name under which its scripts are allowed something; "": Name.
	GrantName string `json:"-"`
}

// Found is a result of a search.
type Found struct {
	Type        string          `json:"type"` // "skill" or "agent_skill"
	Name        string          `json:"name"` // id of a skill, name of an Agent Skill
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"` // of a skill
}

// AgentFile is a resource or a script of an [AgentSkill].
type AgentFile struct {
	Name        string          `json:"name"` // its path in the folder, slash-separated, where it is a file
	Description string          `json:"description,omitempty"`
	MediaType   string          `json:"media_type,omitempty"`
	Size        int64           `json:"size,omitempty"`       // bytes; 0: not known before it is read
	Parameters  json.RawMessage `json:"parameters,omitempty"` // JSON Schema of a script's arguments, where it is known
}

// AgentResource is what reading one gave.
type AgentResource struct {
	Name      string
	MediaType string
	Data      []byte
}

var agentNamePattern = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9])*$`)

// ValidAgentSkillName reports whether s is a name by the specification of Agent
// Skills: 1 to 64 of a-z, 0-9 and single hyphens, none at the ends.
func ValidAgentSkillName(s string) bool { return len(s) <= 64 && agentNamePattern.MatchString(s) }

// ScriptRequest is one run of a script of an Agent Skill, as an edge hands it to the
// door.
type ScriptRequest struct {
	Skill     string   // the skill's name
	Script    string   // its path in the folder; a leading "scripts/" may be left out
	Args      []string // of the command line, without the script's own name
	Stdin     []byte   // standard input as it is
	Files     []FileRef
	Workspace WorkspaceRef // zero: none
	TraceID   TraceID      // valid, as in a Request
	Limits    Limits       // may only lower what the host says; zero: no opinion
	Asked     Limits       // in place of the host's defaults, up to its maximum; zero: no opinion
	Turn      Turn         // of the agent that asks; zero: none does

	ExecutionID string // of a call that was queued; "": a new one
}

// OutputFields is what a script printed as fields of JSON: "output" is the text; where the
// bytes are not UTF-8 it is their base64, and "encoding" says so.
func OutputFields(b []byte) map[string]any {
	if utf8.Valid(b) {
		return map[string]any{"output": string(b)}
	}
	return map[string]any{"output": base64.StdEncoding.EncodeToString(b), "encoding": "base64"}
}

// Tool is a skill as models see one: a function with a name, a description and
// schemas. The dialects of vendors are made of it.
type Tool struct {
	Name         string          `json:"name"` // ^[a-zA-Z0-9_-]{1,64}$, which every vendor takes
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`            // JSON Schema of an object
	OutputSchema json.RawMessage `json:"output_schema,omitempty"` // of the result's data; nil: not said
	ReadOnly     bool            `json:"read_only,omitempty"`     // changes nothing
	Cost         *Cost           `json:"cost_metadata,omitempty"` // nil: not said
}
