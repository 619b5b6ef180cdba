package client

import (
	"context"
	"net/http"
	"net/url"

	"openskill/sdk/skill"
)

// Usage returns what a tenant has stored and what it has used today, with its limits. An
// empty tenant is the caller's own; another one needs the scope admin.
func (c *Client) Usage(ctx context.Context, tenant string) (*skill.TenantUsage, error) {
	path := "/usage"
	if tenant != "" {
		path += "?tenant=" + url.QueryEscape(tenant)
	}
	return get[skill.TenantUsage](ctx, c, http.MethodGet, path, nil)
}
