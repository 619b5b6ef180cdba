package host

import (
	"context"
	"log/slog"
	"net/http"

	"openskill/host/agentskills"
	"openskill/host/approval"
	"openskill/host/httpapi"
	"openskill/host/mcpserver"
	"openskill/host/registry"
	"openskill/host/tools"
	"openskill/sdk/skill"
)

// openApprovals opens the record of what people have approved.
func (h *Host) openApprovals(d state) (err error) {
	h.copies.dir = approvedDir(d.root)
	h.copies.sweepOld()
	h.approvals, err = approval.Open(approval.Options{
		Dir: approval.Dir(d.root), Policy: approval.Policy(h.settings.ScriptApproval), Log: h.log,
	})
	return err
}

// approve asks the record before a script runs; it is nil where nothing asks.
func (h *Host) approve() func(context.Context, skill.Principal, *registry.Skill, *skill.ScriptRequest) error {
	if h.approvals.Policy() == approval.Never {
		return nil
	}
	return func(ctx context.Context, p skill.Principal, s *registry.Skill, r *skill.ScriptRequest) error {
		return h.approvals.Check(ctx, approval.Ask{
			Skill: string(s.Descriptor.ID), Script: s.Primary.Entry, Digest: s.Descriptor.Digest, Trust: s.Descriptor.Trust,
			Tenant: p.Tenant, Caller: p.ID, Arguments: r.Args, Input: r.Stdin,
		})
	}
}

// Tools gives what models may call, in the words of a vendor: every skill of the
// caller's, and the tools for Agent Skills where there are any.
func (h *Host) Tools(ctx context.Context, p skill.Principal, format string) (any, error) {
	list, err := h.tools(ctx, p)
	if err != nil {
		return nil, err
	}
	return tools.Write(format, list)
}

func (h *Host) tools(ctx context.Context, p skill.Principal) ([]skill.Tool, error) {
	var skills []skill.Descriptor
	for cursor := ""; ; {
		page, next, err := h.Catalogue().List(p, cursor, 100)
		if err != nil {
			return nil, err
		}
		skills = append(skills, page...)
		if cursor = next; cursor == "" {
			break
		}
	}
	own, err := h.agents.Tools(ctx, p)
	if err != nil {
		return nil, err
	}
	all, left := tools.Join(own, tools.All(skills))
	if len(left) > 0 {
		h.log.Warn("tools whose names are taken are left out", slog.Any("names", left))
	}
	return all, nil
}

// edges are the options of the HTTP edge that come of other parts; the MCP server is
// closed by the caller.
func (h *Host) edges(o *httpapi.Options) (*mcpserver.Server, error) {
	mcp, err := mcpserver.New(mcpserver.Options{
		Alone: h.alone,
		Door:  h, Catalogue: h.Catalogue(), AgentSkills: h.agents, Origins: o.Origins,
		Principal: func(r *http.Request) (skill.Principal, error) { return httpapi.PrincipalOf(r.Context()), nil },
		Approvals: h.approvals, Logger: h.log, Version: Version, BodyLimit: o.BodyLimit,
	})
	if err != nil {
		return nil, err
	}
	o.AgentSkills, o.Tools, o.Approvals, o.MCP, o.ScriptArgs = h.agents, h.Tools, h.approvals, mcp, agentskills.Arguments
	return mcp, nil
}

// Approvals is the record of what people have approved.
func (h *Host) Approvals() *approval.Store { return h.approvals }
