package react

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"openskill/host/agent/conversations"
	"openskill/sdk/skill"
)

// running is the status of a session that has not ended.
const running = "running"

// Session gives what is kept of a task: one's own, with executions:read:all any of one's
// tenant, with admin any at all. One that the caller does not see is not there.
func (a *Agent) Session(ctx context.Context, p skill.Principal, id string) (*conversations.Session, error) {
	var whose conversations.Owner
	own := false
	switch {
	case p.May(skill.ScopeHost):
	case p.ID == "":
		return nil, &skill.Error{Op: "react.Session", Code: skill.Unauthorized, Message: "authentication required: send an API key or a token"}
	case p.Tenant == "": // of no tenant must not become of all
		return nil, notFound()
	case p.May(skill.ScopeAllExecutions):
		whose.Tenant = p.Tenant
	case p.May(skill.ScopeExecutions), p.May(skill.ScopeAgent):
		whose, own = conversations.Owner{Tenant: p.Tenant, Principal: p.ID}, true
	default:
		return nil, &skill.Error{Op: "react.Session", Code: skill.Forbidden, Subject: p.ID, Message: "missing scope " + skill.ScopeExecutions}
	}
	s, err := a.o.Sessions.Session(ctx, whose, id)
	switch {
	case errors.Is(err, conversations.ErrNotFound):
		return nil, notFound()
	case err != nil:
		return nil, unavailable("react.Session", "the records are unavailable; retry", err)
	case own && s.PrincipalType != string(p.Type): // an API key and a person may have one id
		return nil, notFound()
	}
	out := *s
	if out.Status == running && a.o.Now().After(out.EndsBy) { // its host went down
		out.Status = string(Terminated)
	}
	return &out, nil
}

func notFound() error {
	return &skill.Error{Op: "react.Session", Code: skill.NotFound, Message: "session not found"}
}

// unavailable is the error of a store that fails. One that has a code keeps it.
func unavailable(op, message string, err error) error {
	var known *skill.Error
	if errors.As(err, &known) {
		return err
	}
	return &skill.Error{Op: op, Code: skill.AuditUnavailable, Message: message, Err: err}
}

// Tend removes sessions that are kept no longer, once an hour, until ctx ends.
func (a *Agent) Tend(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if n, err := a.o.Sessions.PruneSessions(ctx, a.o.Now().Add(-a.o.Keep)); err != nil && ctx.Err() == nil {
			a.o.Log.LogAttrs(ctx, slog.LevelWarn, "cannot remove old sessions", slog.String("error", err.Error()))
		} else if n > 0 {
			a.o.Log.LogAttrs(ctx, slog.LevelInfo, "removed old sessions", slog.Int("sessions", n))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
