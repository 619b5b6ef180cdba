package apitest

import (
	"context"
	"time"

	"openskill/sdk/skill"
)

// Usage gives what a tenant has used, which is nothing, to its own callers and to the
// operator.
func Usage(_ context.Context, p skill.Principal, tenant string) (*skill.TenantUsage, error) {
	if tenant == "" {
		tenant = p.Tenant
	}
	if tenant != p.Tenant && !p.May(skill.ScopeHost) {
		return nil, &skill.Error{Op: "httpapitest.Usage", Code: skill.Forbidden, Message: "the usage of another tenant"}
	}
	return &skill.TenantUsage{Tenant: tenant, Stored: []skill.StoredUsage{}, Today: []skill.DailyUsage{}, ResetsAt: time.Unix(0, 0).UTC()}, nil
}
