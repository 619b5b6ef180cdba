package app

import (
	"context"
	"errors"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/sdk/skill"
)

// Usage gives what a tenant has stored and used today; "" is the tenant of p. Another
// tenant's is for callers with the scope admin.
func (h *Host) Usage(ctx context.Context, p skill.Principal, tenant string) (*skill.TenantUsage, error) {
	if tenant == "" {
		tenant = p.Tenant
	}
	if tenant == "" {
		return nil, &skill.Error{Op: "host.Usage", Code: skill.InvalidArgument, Subject: "tenant", Message: "tenant: you have no tenant; set one"}
	}
	if tenant != p.Tenant && !p.May(skill.ScopeHost) {
		return nil, &skill.Error{Op: "host.Usage", Code: skill.Forbidden, Subject: "tenant", Message: "the usage of other tenants requires the scope " + skill.ScopeHost + "; omit tenant to read your own"}
	}
	list, err := h.kept.db.Stored(ctx, tenant)
	if err != nil {
		return nil, unreadableUsage(err)
	}
	u := &skill.TenantUsage{Tenant: tenant, Stored: []skill.StoredUsage{}}
	if h.uploads != nil {
		skills, mostSkills, bytes, most := h.uploads.Used(tenant)
		u.Stored = append(u.Stored, storedUsage("uploads", store.Quota{Items: int64(skills), Bytes: bytes}, store.Quota{Items: int64(mostSkills), Bytes: most}))
	}
	for _, one := range list {
		switch one.Kind {
		case "results":
			one.Quota = store.Quota{Bytes: records.MostBytesOfTenant, Items: records.MostItemsOfTenant}
		case "keys", "definitions": // a few hundred bytes each
			u.Stored = append(u.Stored, skill.StoredUsage{Kind: one.Kind, Count: one.Has.Items})
			continue
		}
		u.Stored = append(u.Stored, storedUsage(one.Kind, one.Has, one.Quota))
	}
	if h.approvals != nil {
		n, most, err := h.approvals.Waiting(ctx, tenant)
		if err != nil {
			return nil, err
		}
		u.Stored = append(u.Stored, skill.StoredUsage{Kind: "approvals", Count: int64(n), CountLimit: limitOf(int64(most))})
	}
	t, err := h.kept.quotas.Today(ctx, tenant)
	if err != nil {
		return nil, err
	}
	const millionth = 1000 // billionths of a dollar
	u.ResetsAt = t.Ends
	u.Today = []skill.DailyUsage{
		{Kind: "calls", Used: t.Calls, Limit: limitOf(t.CallLimit)},
		{Kind: "fuel", Used: t.Fuel, Limit: limitOf(t.FuelLimit)},
		{Kind: "model_requests", Used: t.Models.Requests, Limit: limitOf(t.ModelLimits.Requests)},
		{Kind: "model_tokens", Used: t.Models.Tokens, Limit: limitOf(t.ModelLimits.Tokens)},
		{Kind: "model_cost", Used: t.Models.Cost / millionth, Limit: limitOf(t.ModelLimits.Cost / millionth)},
	}
	return u, nil
}

func storedUsage(kind string, has, most store.Quota) skill.StoredUsage {
	bytes := max(has.Bytes, 0)
	return skill.StoredUsage{Kind: kind, Count: max(has.Items, 0), CountLimit: limitOf(most.Items), Bytes: &bytes, BytesLimit: limitOf(most.Bytes)}
}

func limitOf(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func unreadableUsage(err error) error {
	if errors.Is(err, context.Canceled) {
		return &skill.Error{Op: "host.Usage", Code: skill.Cancelled, Message: "the caller left", Err: err}
	}
	return &skill.Error{Op: "host.Usage", Code: skill.AuditUnavailable, Message: "database unavailable; retry", Err: err}
}
