package client

import (
	"context"
	"iter"
	"net/url"
	"time"

	"openskill/sdk/skill"
)

// Change is one change of a key, skill, approval or setting as the records tell it.
type Change struct {
	ID            string              `json:"id"`
	Tenant        string              `json:"tenant"` // whom it concerns; local is the host
	Action        string              `json:"action"` // such as key.create
	Subject       string              `json:"subject"`
	Details       map[string]string   `json:"details"`
	Failed        skill.Code          `json:"failed"` // why it was not made; "" where it was
	Principal     string              `json:"principal"`
	PrincipalType skill.PrincipalType `json:"principal_type"`
	Of            string              `json:"principal_tenant"`
	Time          time.Time           `json:"time"`
}

// ChangeQuery chooses changes; zero fields choose all.
type ChangeQuery struct {
	Tenant string    // whom they concern
	Since  time.Time // at or after
	Until  time.Time // before
}

// Changes goes through the changes on record, the newest first; it needs the scope admin. Pages
// are asked for as they are needed.
func (c *Client) Changes(ctx context.Context, q ChangeQuery) iter.Seq2[*Change, error] {
	query := url.Values{}
	if q.Tenant != "" {
		query.Set("tenant", q.Tenant)
	}
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return all[Change](ctx, c, "/audit/changes", query)
}
