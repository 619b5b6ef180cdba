package dispatch

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"openskill/host/records"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// code is the program of a run_code call.
type code struct {
	target   skill.Target
	text     []byte
	language string
	session  string     // id, or "new"; "": none
	agents   []string   // Agent Skills whose files the code sees
	packages []string   // that the code needs
	skills   []skill.ID // that it may call; nil: all of its caller's
}

// languages maps the languages of run_code to a runner and a file name.
var languages = map[string]skill.Target{
	"python":     {Kind: skill.WasmPython, Entry: "main.py"},
	"javascript": {Kind: skill.WasmJavaScript, Entry: "main.js"},
	"typescript": {Kind: skill.WasmJavaScript, Entry: "main.ts"},
	"shell":      {Kind: skill.WasmShell, Entry: "main.sh"},
}

// readCode reads the input of a run_code call, which is valid by its schema.
func (c *call) readCode() error {
	if c.code != nil {
		return nil
	}
	var in struct {
		Language, Code string
		Files          []skill.FileRef
		Workspace      string
		Session        string
		Commit, Busy   string
		AgentSkills    []string `json:"agent_skills"`
		Limits         skill.LimitsJSON
		Packages       []string
		Skills         []skill.ID
	}
	if err := json.Unmarshal(c.request.Input, &in); err != nil {
		return &skill.Error{Op: "dispatch.readCode", Code: skill.InvalidArgument, Message: "the input must be an object with language and code, and limits must be whole numbers", Err: err}
	}
	target, ok := languages[in.Language]
	if !ok {
		return &skill.Error{Op: "dispatch.readCode", Code: skill.InvalidArgument, Subject: "language", Message: "unknown language"}
	}
	c.code, c.fileRefs = &code{target: target, text: []byte(in.Code), language: in.Language, session: in.Session, agents: in.AgentSkills, packages: in.Packages, skills: in.Skills}, slices.Concat(in.Files, c.request.Files)
	c.asked = in.Limits.Limits()
	if c.workspaceRef = c.request.Workspace; in.Workspace != "" {
		c.workspaceRef = skill.WorkspaceRef{ID: in.Workspace, Always: in.Commit == "always", NoWait: in.Busy == "conflict"}
	}
	c.joinConversation()
	return c.checkFiles(target.Entry)
}

// maxAgentFiles is the maximum number of files of the Agent Skills of a call.
const maxAgentFiles = 2000

// withAgentSkills finds the Agent Skills whose files the code of a call sees. The record contains their digests.
func (d *Dispatcher) withAgentSkills(ctx context.Context, c *call) error {
	if c.code == nil || len(c.code.agents) == 0 {
		return nil
	}
	refuse := func(code skill.Code, message string) error {
		return &skill.Error{Op: "dispatch.agentSkills", Code: code, Subject: "agent_skills", Message: message}
	}
	if d.o.Scripts == nil {
		return refuse(skill.NotFound, "this host has no Agent Skills")
	}
	files := 0
	for _, name := range c.code.agents {
		of, err := d.o.Scripts.AgentFolder(ctx, c.principal, name)
		if err != nil {
			return err
		}
		if files += len(of.Files); files > maxAgentFiles {
			return refuse(skill.PayloadTooLarge, fmt.Sprintf("the Agent Skills of a call must not have more than %d files in total; name fewer", maxAgentFiles))
		}
		c.folders = append(c.folders, of)
		c.fileInfos = append(c.fileInfos, records.FileInfo{Name: skill.AgentSkillsDir + "/" + of.Name, SHA256: strings.TrimPrefix(of.Digest, "sha256:")})
	}
	return nil
}

// withPackages finds the packages that the code of a call sees; those that names are must be among them.
func (d *Dispatcher) withPackages(ctx context.Context, c *call, names []string) error {
	if d.o.Scripts == nil {
		return nil
	}
	set, requires, err := d.o.Scripts.CodePackages(ctx, c.principal, c.code.language, names, c.code.agents)
	if err != nil || set == "" && len(requires) == 0 {
		return err
	}
	s := *c.skill // which all calls share
	s.Packages, s.Descriptor.Requires = set, requires
	c.skill = &s
	return nil
}

// codeOutcome returns the outcome of a run_code call. On failure, the error's details contain all that the
// program printed, because the caller wrote it.
func (d *Dispatcher) codeOutcome(c *call, reply *skill.Reply, limits skill.Limits) (outcome, error) {
	s := c.skill
	out, err := d.printed(s, reply, limits)
	if e, ok := errors.AsType[*skill.Error](err); ok && e.Code == skill.GuestExit {
		maps.Copy(e.Details, skill.OutputFields(beginning(reply.Stdout)))
		e.Details["stderr"] = d.lines(reply.Stderr, s.Folder)
		if c.session != nil {
			e.Details["session"] = c.session.ID
		}
	}
	if err != nil {
		return out, err
	}
	data := map[string]any{"stdout": string(reply.Stdout)}
	if !utf8.Valid(reply.Stdout) {
		data["stdout"], data["encoding"] = base64.StdEncoding.EncodeToString(reply.Stdout), "base64"
	}
	if c.session != nil {
		data["session"] = c.session.ID
	}
	if len(reply.Stderr) > 0 {
		data["stderr"] = strings.ToValidUTF8(string(reply.Stderr), "\uFFFD")
	}
	if reply.Value != nil {
		mendPairs(reply.Value)
		_, err := strictjson.Decode(reply.Value, maxOutputDepth, func(key, value []byte) error {
			if k := string(key); k == "value" || k == "repr" {
				data[k] = json.RawMessage(value)
			}
			return nil
		})
		if err != nil {
			return outcome{}, &skill.Error{
				Op: "dispatch.codeOutcome", Code: skill.InvalidOutput, Err: logError("the value of the last expression is not valid JSON"),
				Message: "the value of the last expression is not valid JSON or too deeply nested; print it, or write it to a file",
			}
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // models read < better than \u003c
	if err := enc.Encode(data); err != nil {
		return outcome{}, fmt.Errorf("dispatch.codeOutcome: %w", err)
	}
	out.data = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	return out, nil
}
