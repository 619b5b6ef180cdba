package agentskills

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"openskill/sdk/skill"
)

// Skill is one Agent Skill, wherever it comes from. Implementations do not change and
// are safe for concurrent use.
type Skill interface {
	Frontmatter() Frontmatter
	// Content is its SKILL.md, frontmatter included.
	Content() string
	// Resources and Scripts have distinct names each; nil: none.
	Resources() []Resource
	Scripts() []Script
}

// Origin is what a skill that was not made in this process says of where it came
// from. A Skill without it is the operator's own: trusted, and everybody's.
type Origin interface {
	Digest() string // "sha256:" and 64 hex digits, of all that the skill consists of
	Trust() skill.Trust
	Owner() string // the tenant whose skill it is; "" for everybody's
}

// Resource is something of a skill that can be read.
type Resource interface {
	// Info names it. A size of 0 is not known before it is read.
	Info() skill.AgentFile
	// Read gives all of it. An *skill.Error is told to the caller as it is.
	Read(ctx context.Context) ([]byte, error)
}

// Script is something of a skill that can be run.
type Script interface {
	Info() skill.AgentFile
	// Run runs it for one call. What it gives becomes {"output": text}: text as it is,
	// nil as "", anything else as JSON; a *skill.Result is the answer itself. An
	// *skill.Error is told to the caller as it is, and of any other error its text:
	// it must not tell secrets.
	Run(ctx context.Context, s Skill, c *Call) (any, error)
}

// Call is one run of a script.
type Call struct {
	Principal skill.Principal
	Args      []string        // of the command line, whatever form the caller gave them in
	Object    json.RawMessage // the same as the caller's JSON object; nil where it gave a list
	Stdin     []byte
	Files     []skill.FileRef // initial files of the working folder
	Workspace skill.WorkspaceRef
	TraceID   skill.TraceID
	Limits    skill.Limits // may only lower what the host says
	Asked     skill.Limits // in place of the host's defaults, up to its maximum
	Turn      skill.Turn   // of the agent that asks; zero: none does

	runner ScriptRunner // of the provider, for files whose source has none
	runs   []string     // extensions that it takes
}

// ScriptRunner runs scripts that are files. What it gives is as of [Script.Run].
type ScriptRunner func(ctx context.Context, s *FileSkill, script *FileScript, c *Call) (any, error)

// origin gives what is known of where a skill came from.
func origin(s Skill) (digest string, trust skill.Trust, owner string) {
	if o, ok := s.(Origin); ok {
		return o.Digest(), o.Trust(), o.Owner()
	}
	return contentDigest(s), skill.Trusted, ""
}

// contentDigest is the digest of a skill that is no folder: of its text, and of the
// names and descriptions of the rest. Code in it has no bytes that could count.
func contentDigest(s Skill) string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode([]any{"openskill agent skill 1", s.Content(), resourceInfos(s), scriptInfos(s)}) // strings alone
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func resourceInfos(s Skill) []skill.AgentFile {
	list := []skill.AgentFile{}
	for _, r := range s.Resources() {
		list = append(list, r.Info())
	}
	return list
}

func scriptInfos(s Skill) []skill.AgentFile {
	list := []skill.AgentFile{}
	for _, r := range s.Scripts() {
		list = append(list, r.Info())
	}
	return list
}

// view is a skill as callers see it. Its lists are in order of name.
func view(s Skill) skill.AgentSkill {
	f := s.Frontmatter()
	v := skill.AgentSkill{
		Name: f.Name, Description: f.Description, License: f.License, Compatibility: f.Compatibility,
		AllowedTools: f.AllowedTools, Metadata: f.Metadata,
		Resources: byName(resourceInfos(s)), Scripts: byName(scriptInfos(s)),
	}
	v.Digest, v.Trust, _ = origin(s)
	return v
}

// mediaTypes are those of the extensions that are listed where nobody says otherwise.
var mediaTypes = map[string]string{
	".md": "text/markdown", ".json": "application/json", ".yaml": "application/yaml", ".yml": "application/yaml",
	".csv": "text/csv", ".xml": "application/xml", ".txt": "text/plain",
	".py": "text/x-python", ".js": "text/javascript", ".mjs": "text/javascript", ".cjs": "text/javascript",
	".ts": "text/typescript", ".mts": "text/typescript", ".cts": "text/typescript", ".tsx": "text/typescript", ".sh": "text/x-shellscript", ".bash": "text/x-shellscript",
	".ps1": "text/x-powershell", ".cs": "text/x-csharp", ".csx": "text/x-csharp",
	".html": "text/html", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg",
	".pdf": "application/pdf",
}

// mediaType goes by the name; "" where the name says nothing.
func mediaType(name string) string { return mediaTypes[strings.ToLower(path.Ext(name))] }

// text reports whether bytes can be shown to a model as they are.
func text(b []byte) bool { return utf8.Valid(b) && !strings.ContainsRune(string(b), 0) }

func byName(list []skill.AgentFile) []skill.AgentFile {
	slices.SortFunc(list, func(a, b skill.AgentFile) int { return strings.Compare(a.Name, b.Name) })
	return list
}
