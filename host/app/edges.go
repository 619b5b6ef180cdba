package app

import (
	"context"
	"net/http"

	"openskill/host/api"
	"openskill/host/dispatch/approval"
	"openskill/host/manifest"
	"openskill/host/mcp"
	"openskill/sdk/skill"
)

// openApprovals opens the store of what people have approved.
func (h *Host) openApprovals(ctx context.Context, d state) (err error) {
	h.copies.dir = approvedDir(d.root)
	h.copies.sweepOld()
	h.approvals, err = approval.Open(ctx, approval.Options{
		DB: h.kept.db, Dir: approval.Dir(d.root), Policy: approval.Policy(h.settings.ScriptApproval), Log: h.log, Record: RecordApprovals(h.kept.db), Enable: h.enableProposed,
	})
	if err == nil {
		h.owns(h.approvals.Close)
	}
	return err
}

// approve asks the record before a script runs; it is nil where nothing asks.
func (h *Host) approve() func(context.Context, skill.Principal, *manifest.Skill, *skill.ScriptRequest) error {
	if h.approvals.Policy() == approval.Never {
		return nil
	}
	return func(ctx context.Context, p skill.Principal, s *manifest.Skill, r *skill.ScriptRequest) error {
		return h.approvals.Check(ctx, approval.Ask{
			Skill: string(s.Descriptor.ID), Script: s.Primary.Entry, Digest: s.Descriptor.Digest, Trust: s.Descriptor.Trust,
			Tenant: p.Tenant, Caller: p.ID, Arguments: r.Args, Input: r.Stdin,
		})
	}
}

// openMCP makes the MCP server, which the caller closes.
func (h *Host) openMCP(o *api.Options) (*mcp.Server, error) {
	var over func(context.Context, skill.Principal) bool
	if h.kept.callers != nil {
		over = h.kept.callers.Over
	}
	return mcp.New(mcp.Options{
		Alone: h.alone,
		Door:  h, Catalogue: h.Catalogue(), AgentSkills: hostTools{h.agents, h}, Search: h.Search, Origins: o.Origins,
		Principal: func(r *http.Request) (skill.Principal, error) { return api.PrincipalOf(r.Context()), nil },
		Over:      over, Revision: h.revision, Lists: h.lists, Reads: o.Reads, Rate: o.Rates.Request,
		Artifact: h.Artifact, Tasks: h.Tasks(), Approvals: h.approvals, Grants: h.Allowing(), Logger: h.log, Version: Version, BodyLimit: o.BodyLimit,
	})
}

// Approvals is the record of what people have approved.
func (h *Host) Approvals() *approval.Store { return h.approvals }
