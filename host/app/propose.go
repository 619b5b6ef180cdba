package app

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	list          []byte // the file of cases
	cases         []cases.Case
}

// mayPropose refuses callers who cannot upload a skill or call every skill.
func (h *Host) mayPropose(p skill.Principal) error {
	switch {
	case h.uploads == nil:
		return &skill.Error{Op: "host.propose", Code: skill.NotFound, Subject: tools.ProposeSkill, Message: "this host takes no skills"}
	case !p.May(skill.ScopeRead) || !p.May(skill.ScopeUpload) || !p.May(skill.ScopeInvoke):
		return &skill.Error{
			Op: "host.propose", Code: skill.Forbidden, Subject: p.ID,
			Message: "proposing skills needs the scopes " + skill.ScopeRead + ", " + skill.ScopeUpload + " and " + skill.ScopeInvoke,
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
	meta.Ran = t.ran > 0 && skill.CodeOf(err) == skill.RateLimited // it is not simply tried again
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
	version, files, err := w.files()
	if err != nil {
		return nil, err
	}
	leave, err := h.proposals.enter(ctx, p.Tenant+"\x00"+string(w.id)) // one at a time, so that none removes what another has asked for
	if err != nil {
		return nil, err
	}
	defer leave()
	s, err := h.draft(ctx, p, w, version, files)
	if err != nil {
		return nil, err
	}
	d := &s.Descriptor
	replaces := h.current(p.Tenant, d.ID)
	switch {
	case d.State == skill.StateEnabled && replaces == d.Digest:
		return map[string]any{"skill": d.ID, "version": d.Version, "state": d.State}, nil
	case d.State == skill.StateQuarantined:
		return nil, &skill.Error{
			Op: "host.propose", Code: skill.Conflict, Subject: string(d.ID),
			Message: skill.CleanText("this version is quarantined ("+d.Reason+"); only the operator can enable it", skill.MaxMessage),
		}
	}
	failed, err := t.run(ctx, w, version)
	if failed {
		h.forget(ctx, p, s)
	}
	if err != nil {
		return nil, err
	}
	return nil, h.approvals.Check(ctx, approval.Ask{
		Skill: string(d.ID), Version: version, Script: programs[w.language].entry, Digest: d.Digest, Previous: replaces,
		Trust: d.Trust, Tenant: p.Tenant, Caller: p.ID, Arguments: []string{fmt.Sprintf("cases passed: %d", len(w.cases))},
	})
}

// current returns the digest of the version of a tenant's skill that is enabled now; "" if none is.
func (h *Host) current(tenant string, id skill.ID) string {
	now, err := h.uploads.Get(tenant, id, "")
	if err != nil || !now.Descriptor.Enabled || now.Owner != tenant {
		return ""
	}
	return now.Descriptor.Digest
}

// draft returns the version of a proposal, which is uploaded if it does not exist. It has the files of the proposal and
// no others.
func (h *Host) draft(ctx context.Context, p skill.Principal, w *proposal, version string, files []proposedFile) (s *manifest.Skill, err error) {
	if s, err = h.drafted(p, w, version, files); s != nil || err != nil {
		return s, err
	}
	if len(h.uploads.Own(p.Tenant, w.id)) == 0 {
		if _, err := h.uploads.Get(p.Tenant, w.id, ""); skill.CodeOf(err) != skill.NotFound { // which the draft would hide from the tenant
			return nil, &skill.Error{Op: "host.propose", Code: skill.Conflict, Subject: string(w.id), Message: "another tenant's published skill has this name; choose another"}
		}
	}
	place, err := h.uploads.Begin(p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	f, err := place.File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := archive(f, files); err != nil {
		return nil, fmt.Errorf("host.propose: %w", err)
	}
	size, err := f.Seek(0, io.SeekCurrent)
	if err == nil {
		err = place.Reserve(size)
	}
	if err == nil {
		_, err = place.Admit(ctx, admission.Source{Archive: f}, false)
	}
	if err != nil && skill.CodeOf(err) != skill.Conflict { // another host may have uploaded it meanwhile
		return nil, err
	}
	conflict := err
	if s, err = h.drafted(p, w, version, files); s == nil && err == nil {
		err = conflict
		if err == nil {
			err = &skill.Error{Op: "host.propose", Code: skill.Conflict, Subject: string(w.id), Message: "the version was deleted meanwhile; propose it again"}
		}
	}
	return s, err
}

// drafted returns the version of a proposal; nil: there is none. The error is CONFLICT for a version with other files.
func (h *Host) drafted(p skill.Principal, w *proposal, version string, files []proposedFile) (*manifest.Skill, error) {
	if !slices.Contains(h.uploads.Own(p.Tenant, w.id), version) {
		return nil, nil
	}
	s, err := h.uploads.Get(p.Tenant, w.id, version)
	if err != nil {
		return nil, err
	}
	n := 0
	err = filepath.WalkDir(s.Folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(s.Folder, path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n++; !slices.Contains(files, proposedFile{filepath.ToSlash(name), string(b)}) {
			n = len(files) + 1
		}
		return nil
	})
	if err == nil && n == len(files) {
		return s, nil
	}
	if err != nil && s.Descriptor.State != skill.StateQuarantined {
		return nil, fmt.Errorf("host.propose: %w", err)
	}
	return nil, &skill.Error{Op: "host.propose", Code: skill.Conflict, Subject: string(w.id), Message: "version " + version + " exists with other files; delete it, or change the proposal"}
}

// forget removes a version whose cases failed, unless a person was ever asked about it.
func (h *Host) forget(ctx context.Context, p skill.Principal, s *manifest.Skill) {
	d := &s.Descriptor
	asked, err := h.approvals.Asked(ctx, p.Tenant, string(d.ID), d.Digest)
	if asked || d.State != skill.StateDisabled {
		return
	}
	if err == nil {
		_, err = h.uploads.Decide(catalogue.Decision{Action: catalogue.Delete, By: p, ID: d.ID, Version: d.Version, Digest: d.Digest, Reason: "its cases failed"})
	}
	if err != nil {
		h.log.Warn("cannot remove a proposed version", slog.String("skill_id", string(d.ID)), slog.String("version", d.Version), slog.String("error", err.Error()))
	}
}

// enableProposed enables the version of an approved proposal, as the person who approves it.
func (h *Host) enableProposed(by skill.Principal, a *approval.Approval) error {
	if h.uploads == nil {
		return &skill.Error{Op: "host.enableProposed", Code: skill.NotFound, Subject: a.Skill, Message: "this host takes no skills"}
	}
	if now := h.current(a.Tenant, skill.ID(a.Skill)); now != a.PreviousDigest && now != a.Digest {
		return &skill.Error{
			Op: "host.enableProposed", Code: skill.Conflict, Subject: a.Skill,
			Message: "another version of the skill was enabled or disabled since the proposal; propose the skill again, or enable the version with POST /skills/" + a.Skill + ":enable",
		}
	}
	_, err := h.uploads.Decide(catalogue.Decision{
		Action: catalogue.Enable, By: by, Tenant: a.Tenant, ID: skill.ID(a.Skill), Version: a.Version, Digest: a.Digest, Reason: "approval " + a.ID,
	})
	return err
}

// turns are the skills of which a proposal is under way.
type turns struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed by leave
}

// enter waits until nobody else has a turn of the name.
func (t *turns) enter(ctx context.Context, name string) (leave func(), err error) {
	for {
		t.mu.Lock()
		wait, busy := t.held[name]
		if !busy {
			if t.held == nil {
				t.held = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			t.held[name] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.held, name)
				t.mu.Unlock()
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, &skill.Error{Op: "host.propose", Code: skill.Cancelled, Message: "the call ended while another proposal of the skill was tried"}
		}
	}
}

// caseRunner runs the cases of a proposal as the caller.
type caseRunner struct {
	host   *Host
	p      skill.Principal
	trace  skill.TraceID
	turn   skill.Turn
	limits skill.Limits // Fuel and Timeout are for all cases together
	fuel   uint64       // that they used
	ran    int          // cases whose code ran
}

// maxCasesTime bounds the cases of a proposal together.
const maxCasesTime = 2 * time.Minute

// failedCase is a case whose answer is not the expected one.
type failedCase struct {
	Name        string             `json:"name"`
	Differences []cases.Difference `json:"differences"`
	Error       *skill.ResultError `json:"error,omitempty"`
	ExecutionID string             `json:"execution_id,omitempty"`
}

// run runs the cases. failed says that some of them failed, as the error tells; other errors are no fault of the skill.
func (t *caseRunner) run(ctx context.Context, w *proposal, version string) (failed bool, err error) {
	refuse := func(code skill.Code, message string, details map[string]any) error {
		return &skill.Error{Op: "host.propose", Code: code, Subject: string(w.id), Message: message, Details: details}
	}
	var wrong []failedCase
	turn := t.turn
	turn.Tokens, turn.Workspace = 0, ""
	total := maxCasesTime
	if t.limits.Timeout > 0 {
		total = min(total, t.limits.Timeout)
	}
	ends := time.Now().Add(total)
	for i := range w.cases {
		c := &w.cases[i]
		limits := skill.Limits{Timeout: time.Until(ends), Memory: t.limits.Memory}
		if limits.Timeout <= 0 {
			return false, refuse(skill.Timeout, fmt.Sprintf("the cases take longer than %s together; propose fewer or shorter ones", total), nil)
		}
		if t.limits.Fuel > 0 {
			if t.fuel >= t.limits.Fuel {
				return false, refuse(skill.FuelExhausted, "the cases used up the fuel of the turn; propose fewer or smaller ones", nil)
			}
			limits.Fuel = t.limits.Fuel - t.fuel
		}
		got := t.host.door.Try(ctx, t.p, skill.Request{SkillID: w.id, Version: version, Input: c.Input, TraceID: t.trace, Turn: turn, Limits: limits.Lower(c.Limits)})
		t.fuel += got.Meta.FuelUsed
		if got.Meta.Ran {
			t.ran++
		}
		if e := got.Error; e != nil && (ctx.Err() != nil || !got.Meta.Ran && e.Code != skill.InvalidArgument || e.Code == skill.Cancelled || e.Code == skill.AuditUnavailable) {
			return false, refuse(e.Code, e.Message, e.Details)
		}
		if found := c.Compare(got); found != nil {
			wrong = append(wrong, failedCase{c.Name, found, got.Error, got.Meta.ExecutionID})
		}
	}
	switch {
	case wrong != nil:
		return true, refuse(skill.ToolInvocationError, fmt.Sprintf("%d of %d cases failed; correct the code or the cases, and propose it again", len(wrong), len(w.cases)), map[string]any{"cases": wrong})
	case t.ran == 0:
		return true, refuse(skill.ToolInvocationError, "no case ran the code: input_schema refuses all inputs; add a case with data", nil)
	}
	return false, nil
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
	name, given := "", json.RawMessage("[]")
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
		"cases": {raw(&given, '['), "a list"},
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
	if w.list, err = safeyaml.Format(given); err != nil {
		return nil, badProposal("cases", "cannot be read: "+err.Error(), "a list of cases")
	}
	var problems []cases.Problem
	if w.cases, problems = cases.Parse(w.list); len(problems) > 0 {
		return nil, badProposal("cases", problems[0].Message, "a list of cases, each with name, input, and data or error")
	}
	if len(w.cases) > maxCases {
		return nil, badProposal("cases", fmt.Sprintf("are %d", len(w.cases)), fmt.Sprintf("at most %d", maxCases))
	}
	return w, nil
}

// proposedFile is a file of a proposal.
type proposedFile struct{ name, text string }

// files returns the version of the proposal, which is made of its content, and the files of its folder.
func (w *proposal) files() (version string, files []proposedFile, err error) {
	of := programs[w.language]
	about, err := ordered.Encode(ordered.Of("id", string(w.id), "description", w.description, "type", "wasm", "runtime", of.runtime, "entry", of.entry))
	if err != nil {
		return "", nil, badProposal("description", "cannot be read: "+err.Error(), "a string")
	}
	with := func(version string) ([]byte, error) {
		return safeyaml.Format(fmt.Appendf(nil, "%s,\"version\":%q,\"input_schema\":%s,\"output_schema\":%s}", bytes.TrimSuffix(about, []byte("}")), version, w.input, w.output))
	}
	b, err := with("")
	if err != nil {
		return "", nil, badProposal("input_schema", "or output_schema cannot be read: "+err.Error(), "a JSON Schema")
	}
	sum := digest.Of(slices.Concat(b, []byte{0}, []byte(w.code), []byte{0}, w.list))
	version = "0.0.0-sha" + strings.TrimPrefix(sum, "sha256:")[:40]
	if b, err = with(version); err != nil {
		return "", nil, err
	}
	return version, []proposedFile{{manifest.ManifestFile, string(b)}, {of.entry, w.code}, {cases.FileName, string(w.list)}}, nil
}

// archive writes files as a zip.
func archive(to io.Writer, files []proposedFile) error {
	z := zip.NewWriter(to)
	for _, f := range files {
		one, err := z.Create(f.name)
		if err == nil {
			_, err = io.WriteString(one, f.text)
		}
		if err != nil {
			return err
		}
	}
	return z.Close()
}
