package app

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"openskill/host/admission"
	"openskill/host/agent/tools"
	"openskill/host/agentskills"
	"openskill/host/catalogue"
	"openskill/host/dispatch/approval"
	"openskill/host/manifest"
	"openskill/internal/cases"
	"openskill/internal/digest"
	"openskill/internal/ordered"
	"openskill/internal/safeyaml"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// hostTools are the tools of Agent Skills, and propose_skill.
type hostTools struct {
	*agentskills.Provider
	host *Host
}

// Tools lists the tools of a caller.
func (t hostTools) Tools(ctx context.Context, p skill.Principal) ([]skill.Tool, error) {
	list, err := t.Provider.Tools(ctx, p)
	if err == nil && t.host.mayPropose(p) == nil {
		list = append(slices.Clip(list), proposeTool)
	}
	return list, err
}

// CallTool calls a tool outside of a conversation.
func (t hostTools) CallTool(ctx context.Context, p skill.Principal, name string, args json.RawMessage, trace skill.TraceID) *skill.Result {
	return t.CallToolIn(ctx, p, name, args, trace, skill.Turn{}, skill.Limits{})
}

// CallToolIn calls a tool.
func (t hostTools) CallToolIn(
	ctx context.Context, p skill.Principal, name string, args json.RawMessage, trace skill.TraceID, turn skill.Turn, limits skill.Limits,
) *skill.Result {
	if name != tools.ProposeSkill {
		return t.Provider.CallToolIn(ctx, p, name, args, trace, turn, limits)
	}
	return t.host.propose(ctx, p, args, &caseRunner{host: t.host, p: p, trace: trace, turn: turn, limits: limits})
}

// The bounds of a proposal.
const (
	maxProposed = 256 << 10 // bytes of its arguments
	maxCases    = 20
)

// proposeTool is the tool propose_skill.
var proposeTool = skill.Tool{
	Name: tools.ProposeSkill, Title: "Propose a skill",
	Description: "Saves code as a new skill, or a new version of one. It is checked, its cases run in the sandbox, and a person must approve it " +
		"before it can be called. The program reads {\"input\": {...}} as JSON from standard input and prints one JSON object, as output_schema says. " +
		"Propose what will be needed again; for one result use run_code.",
	InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["name","description","language","code","input_schema","cases"],"properties":{` +
		`"name":{"type":"string","description":"a-z, 0-9, _ and -; that of an existing skill makes a new version of it."},` +
		`"description":{"type":"string","description":"What it does and when to use it."},` +
		`"language":{"type":"string","enum":["python","javascript","shell"]},` +
		`"code":{"type":"string","description":"The whole program."},` +
		`"input_schema":{"type":"object","description":"JSON Schema of input."},` +
		`"output_schema":{"type":"object","description":"JSON Schema of the printed object."},` +
		`"cases":{"type":"array","minItems":1,"maxItems":20,"items":{"type":"object","required":["name","input"],"properties":{"name":{"type":"string"},"input":{"type":"object"},` +
		`"data":{"type":"object","description":"The expected output."},"error":{"type":"string","description":"Instead of data: the expected error code."}}}}}}`),
}

// programs are the languages of proposals.
var programs = map[string]struct{ runtime, entry string }{
	"python": {"python", "main.py"}, "javascript": {"javascript", "main.js"}, "shell": {"shell", "main.sh"},
}

// proposal is a skill that a model proposes.
type proposal struct {
	id            skill.ID
	description   string
	language      string
	code          string
	input, output json.RawMessage
	given         json.RawMessage // the cases as they were given
	cases         []cases.Case
}

// mayPropose refuses callers who cannot upload a skill or call every skill.
func (h *Host) mayPropose(p skill.Principal) error {
	switch {
	case h.uploads == nil:
		return &skill.Error{Op: "host.propose", Code: skill.NotFound, Subject: tools.ProposeSkill, Message: "this host takes no skills"}
	case !p.May(skill.ScopeUpload) || !p.May(skill.ScopeInvoke):
		return &skill.Error{
			Op: "host.propose", Code: skill.Forbidden, Subject: p.ID,
			Message: "proposing skills needs the scopes " + skill.ScopeUpload + " and " + skill.ScopeInvoke,
		}
	}
	return nil
}

// propose answers a call of propose_skill. The version that it makes is disabled until a person approves it; the same
// call after that answers that it is enabled.
func (h *Host) propose(ctx context.Context, p skill.Principal, args json.RawMessage, t *caseRunner) *skill.Result {
	began := time.Now()
	answer, err := h.proposed(ctx, p, args, t)
	var data []byte
	if err == nil {
		data, err = json.Marshal(answer)
	}
	meta := skill.Meta{LatencyMS: time.Since(began).Milliseconds(), FuelUsed: t.fuel}
	if err != nil {
		return skill.Failure(tools.ProposeSkill, t.trace, meta, err)
	}
	return &skill.Result{Success: true, SkillID: tools.ProposeSkill, TraceID: t.trace, Data: data, Meta: meta}
}

func (h *Host) proposed(ctx context.Context, p skill.Principal, args json.RawMessage, t *caseRunner) (answer any, err error) {
	if err := h.mayPropose(p); err != nil {
		return nil, err
	}
	w, err := readProposal(args)
	if err != nil {
		return nil, err
	}
	version, archive, err := w.packed()
	if err != nil {
		return nil, err
	}
	s, made, err := h.draft(ctx, p, w, version, archive)
	if err != nil {
		return nil, err
	}
	d := &s.Descriptor
	switch d.State { //nolint:exhaustive // drafts have the others
	case skill.StateEnabled:
		return map[string]any{"skill": d.ID, "version": d.Version, "state": d.State}, nil
	case skill.StateQuarantined:
		return nil, &skill.Error{
			Op: "host.propose", Code: skill.Conflict, Subject: string(d.ID),
			Message: skill.CleanText("this version is quarantined ("+d.Reason+"); only the operator can enable it", skill.MaxMessage),
		}
	}
	if err := t.run(ctx, w, version); err != nil {
		if made {
			h.forget(p, s)
		}
		return nil, err
	}
	return nil, h.approvals.Check(ctx, approval.Ask{
		Skill: string(d.ID), Version: version, Script: programs[w.language].entry, Digest: d.Digest, Previous: h.replaces(p, d),
		Trust: d.Trust, Tenant: p.Tenant, Caller: p.ID, Arguments: []string{fmt.Sprintf("cases passed: %d", len(w.cases))},
	})
}

// replaces returns the digest of the version that is enabled now; "" if none is.
func (h *Host) replaces(p skill.Principal, d *skill.Descriptor) string {
	now, err := h.uploads.Get(p.Tenant, d.ID, "")
	if err != nil || !now.Descriptor.Enabled || now.Owner != p.Tenant {
		return ""
	}
	return now.Descriptor.Digest
}

// draft returns the version of a proposal, which is uploaded if it does not exist. made reports whether it was.
func (h *Host) draft(ctx context.Context, p skill.Principal, w *proposal, version string, archive func(io.Writer) error) (s *manifest.Skill, made bool, err error) {
	own := func() (*manifest.Skill, error) {
		if !slices.Contains(h.uploads.Own(p.Tenant, w.id), version) {
			return nil, nil
		}
		return h.uploads.Get(p.Tenant, w.id, version)
	}
	if s, err = own(); s != nil || err != nil {
		return s, false, err
	}
	place, err := h.uploads.Begin(p)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	f, err := place.File()
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if err := archive(f); err != nil {
		return nil, false, fmt.Errorf("host.propose: %w", err)
	}
	size, err := f.Seek(0, io.SeekCurrent)
	if err == nil {
		err = place.Reserve(size)
	}
	if err != nil {
		return nil, false, err
	}
	if _, err = place.Admit(ctx, admission.Source{Archive: f}, false); err != nil && skill.CodeOf(err) != skill.Conflict {
		return nil, false, err
	}
	conflict := err // another call may have uploaded it meanwhile
	if s, err = own(); s == nil && err == nil {
		err = conflict
	}
	return s, conflict == nil, err
}

// forget removes a version whose cases failed: the next proposal is another version.
func (h *Host) forget(p skill.Principal, s *manifest.Skill) {
	d := &s.Descriptor
	_, err := h.uploads.Decide(catalogue.Decision{Action: catalogue.Delete, By: p, ID: d.ID, Version: d.Version, Digest: d.Digest, Reason: "its cases failed"})
	if err != nil {
		h.log.Warn("cannot remove a proposed version", slog.String("skill_id", string(d.ID)), slog.String("version", d.Version), slog.String("error", err.Error()))
	}
}

// enableProposed enables the version of an approved proposal, as the person who approves it.
func (h *Host) enableProposed(by skill.Principal, a *approval.Approval) error {
	if h.uploads == nil {
		return &skill.Error{Op: "host.enableProposed", Code: skill.NotFound, Subject: a.Skill, Message: "this host takes no skills"}
	}
	_, err := h.uploads.Decide(catalogue.Decision{
		Action: catalogue.Enable, By: by, Tenant: a.Tenant, ID: skill.ID(a.Skill), Version: a.Version, Digest: a.Digest, Reason: "approval " + a.ID,
	})
	return err
}

// caseRunner runs the cases of a proposal as the caller.
type caseRunner struct {
	host   *Host
	p      skill.Principal
	trace  skill.TraceID
	turn   skill.Turn
	limits skill.Limits // Fuel is for all cases together
	fuel   uint64       // that they used
}

// failedCase is a case whose answer is not the expected one.
type failedCase struct {
	Name        string             `json:"name"`
	Differences []cases.Difference `json:"differences"`
	Error       *skill.ResultError `json:"error,omitempty"`
	ExecutionID string             `json:"execution_id,omitempty"`
}

// run runs the cases. The error says which failed.
func (t *caseRunner) run(ctx context.Context, w *proposal, version string) error {
	var failed []failedCase
	turn := t.turn
	turn.Tokens, turn.Workspace = 0, ""
	for i := range w.cases {
		c := &w.cases[i]
		limits := t.limits
		if limits.Fuel > 0 {
			if t.fuel >= limits.Fuel {
				return &skill.Error{Op: "host.propose", Code: skill.FuelExhausted, Message: "the cases used up the fuel of the turn; propose fewer or smaller ones"}
			}
			limits.Fuel -= t.fuel
		}
		got := t.host.door.Try(ctx, t.p, skill.Request{SkillID: w.id, Version: version, Input: c.Input, TraceID: t.trace, Turn: turn, Limits: limits})
		t.fuel += got.Meta.FuelUsed
		if !got.Meta.Ran && got.Error != nil && got.Error.Code != skill.InvalidArgument { // the host refused it: no fault of the skill
			return &skill.Error{Op: "host.propose", Code: got.Error.Code, Message: got.Error.Message, Details: got.Error.Details}
		}
		if found := c.Compare(got); found != nil {
			failed = append(failed, failedCase{c.Name, found, got.Error, got.Meta.ExecutionID})
		}
	}
	if failed == nil {
		return nil
	}
	return &skill.Error{
		Op: "host.propose", Code: skill.ToolInvocationError, Subject: string(w.id),
		Message: fmt.Sprintf("%d of %d cases failed; correct the code or the cases, and propose it again", len(failed), len(w.cases)),
		Details: map[string]any{"cases": failed},
	}
}

// badProposal refuses an argument.
func badProposal(field, problem, expected string) error {
	return &skill.Error{
		Op: "host.propose", Code: skill.InvalidArgument, Subject: field, Message: skill.CleanText(field+" "+problem, skill.MaxMessage),
		Details: map[string]any{"fields": []map[string]string{{"field": field, "problem": skill.CleanText(problem, skill.MaxMessage), "expected": expected}}},
	}
}

func readProposal(args json.RawMessage) (*proposal, error) {
	if len(args) > maxProposed {
		return nil, badProposal("arguments", fmt.Sprintf("have %d bytes", len(args)), fmt.Sprintf("at most %d", maxProposed))
	}
	w := &proposal{output: json.RawMessage(`{"type":"object"}`)}
	name := ""
	text := func(to *string) func([]byte) bool {
		return func(b []byte) bool { return b[0] == '"' && json.Unmarshal(b, to) == nil }
	}
	raw := func(to *json.RawMessage, begin byte) func([]byte) bool {
		return func(b []byte) bool { *to = slices.Clone(b); return b[0] == begin }
	}
	known := map[string]struct {
		read     func([]byte) bool
		expected string
	}{
		"name": {text(&name), "a string"}, "description": {text(&w.description), "a string"}, "language": {text(&w.language), "python, javascript or shell"},
		"code": {text(&w.code), "the text of the program"}, "input_schema": {raw(&w.input, '{'), "an object"}, "output_schema": {raw(&w.output, '{'), "an object"},
		"cases": {raw(&w.given, '['), "a list"},
	}
	err := strictjson.Object(args, func(key, value []byte) error {
		k := string(key)
		field, ok := known[k]
		if !ok {
			return badProposal(skill.CleanText(k, 64), "is unknown", "one of name, description, language, code, input_schema, output_schema, cases")
		}
		if !field.read(value) {
			return badProposal(k, "has the wrong type", field.expected)
		}
		return nil
	})
	switch {
	case err != nil && skill.CodeOf(err) == skill.Internal: // of strictjson
		return nil, badProposal("arguments", "cannot be read: "+err.Error(), "a JSON object")
	case err != nil:
		return nil, err
	case w.code == "":
		return nil, badProposal("code", "is missing", "the whole program")
	case w.input == nil:
		return nil, badProposal("input_schema", "is missing", "a JSON Schema of an object")
	case programs[w.language].entry == "":
		return nil, badProposal("language", "is unknown", "python, javascript or shell")
	}
	if w.id, err = skill.ParseID(name); err != nil {
		return nil, badProposal("name", "is not a skill id", "1 to 64 of a-z, 0-9, _ and -")
	}
	var problems []cases.Problem
	if w.cases, problems = cases.Parse(w.given); len(problems) > 0 {
		return nil, badProposal("cases", problems[0].Message, "a list of cases, each with name, input, and data or error")
	}
	if len(w.cases) > maxCases {
		return nil, badProposal("cases", fmt.Sprintf("are %d", len(w.cases)), fmt.Sprintf("at most %d", maxCases))
	}
	return w, nil
}

// packed returns the version of the proposal, which is made of its content, and writes its folder as an archive.
func (w *proposal) packed() (version string, archive func(io.Writer) error, err error) {
	list, err := safeyaml.Format(w.given)
	if err != nil {
		return "", nil, badProposal("cases", "cannot be read: "+err.Error(), "a list of cases")
	}
	of := programs[w.language]
	about, err := ordered.Encode(ordered.Of("id", string(w.id), "description", w.description, "type", "wasm", "runtime", of.runtime, "entry", of.entry))
	if err != nil {
		return "", nil, badProposal("description", "cannot be read: "+err.Error(), "a string")
	}
	join := func(version string) ([]byte, error) {
		b := fmt.Sprintf("%s,\"version\":%q,\"input_schema\":%s,\"output_schema\":%s}", strings.TrimSuffix(string(about), "}"), version, w.input, w.output)
		return safeyaml.Format([]byte(b))
	}
	b, err := join("")
	if err != nil {
		return "", nil, badProposal("input_schema", "or output_schema cannot be read: "+err.Error(), "a JSON Schema")
	}
	sum := digest.Of(slices.Concat(b, []byte{0}, []byte(w.code), []byte{0}, list))
	version = "0.0.0-sha" + strings.TrimPrefix(sum, "sha256:")[:12]
	if b, err = join(version); err != nil {
		return "", nil, err
	}
	return version, func(to io.Writer) error {
		z := zip.NewWriter(to)
		for _, f := range []struct{ name, text string }{{manifest.ManifestFile, string(b)}, {of.entry, w.code}, {cases.FileName, string(list)}} {
			one, err := z.Create(f.name)
			if err == nil {
				_, err = io.WriteString(one, f.text)
			}
			if err != nil {
				return err
			}
		}
		return z.Close()
	}, nil
}
