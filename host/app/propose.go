package app

import (
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
	"time"

	"openskill/host/admission"
	"openskill/host/agent/tools"
	"openskill/host/agentskills"
	"openskill/host/catalogue"
	"openskill/host/dispatch/approval"
	"openskill/host/internal/gate"
	"openskill/host/manifest"
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
	// One proposal of a skill at a time, so that none removes what another has asked for.
	leave, err := h.uploads.proposals.Enter(ctx, p.Tenant, gate.Part{Key: ofProposal{p.Tenant, w.id}, Places: 1, Owner: p.Tenant})
	if err != nil {
		return nil, gate.Refusal(err, "host.propose", "too many proposals are being tried")
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

// ofProposal is the part of the gate of proposals for one skill.
type ofProposal struct {
	tenant string
	id     skill.ID
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

// drafted returns the version of a proposal, or nil if it does not exist. The error is CONFLICT if it has other files.
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
