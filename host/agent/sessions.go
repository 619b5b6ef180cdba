package agent

import (
	"context"
	"errors"

	"openskill/host/agent/conversations"
	"openskill/sdk/skill"
)

// Session gives what is kept of a task: one's own, with executions:read:all any of one's
// tenant, with admin any at all. One that the caller does not see is not there.
func (a *Agent) Session(ctx context.Context, p skill.Principal, id string) (*conversations.Session, error) {
	var whose conversations.Owner
	own := false
	switch {
	case p.May(skill.ScopeHost):
	case p.ID == "":
		return nil, &skill.Error{Op: "agent.Session", Code: skill.Unauthorized, Message: "authentication required: send an API key or a token"}
	case p.Tenant == "": // of no tenant must not become of all
		return nil, noSession()
	case p.May(skill.ScopeAllExecutions):
		whose.Tenant = p.Tenant
	case p.May(skill.ScopeExecutions), p.May(skill.ScopeAgent):
		whose, own = conversations.Owner{Tenant: p.Tenant, Principal: p.ID}, true
	default:
		return nil, &skill.Error{Op: "agent.Session", Code: skill.Forbidden, Subject: p.ID, Message: "missing scope " + skill.ScopeExecutions}
	}
	s, err := a.o.Sessions.Session(ctx, whose, id)
	switch {
	case errors.Is(err, conversations.ErrNotFound):
		return nil, noSession()
	case err != nil:
		return nil, storeError(err, "the records are unavailable; retry")
	case own && s.PrincipalType != string(p.Type): // an API key and a person may have one id
		return nil, noSession()
	}
	out := *s
	if out.Status == string(TaskRunning) && a.o.Now().After(out.EndsBy) { // its host went down
		out.Status = string(TaskTerminated)
	}
	return &out, nil
}

func noSession() error {
	return &skill.Error{Op: "agent.Session", Code: skill.NotFound, Message: "session not found"}
}
