package client

import (
	"context"
	"time"

	"openskill/sdk/skill"
)

// Approval is what a script of an Agent Skill asked, and what became of it.
type Approval struct {
	ID             string      `json:"id"`
	State          string      `json:"state"`  // pending, approved, denied, expired or used
	Policy         string      `json:"policy"` // what it is good for: version (of the skill) or call
	Skill          string      `json:"skill"`
	Script         string      `json:"script"`
	Digest         string      `json:"digest"`
	PreviousDigest string      `json:"previous_digest"` // as it was approved before, if it has changed since; else ""
	Trust          skill.Trust `json:"trust"`
	Arguments      []string    `json:"arguments"`     // up to a length
	ArgumentsCut   bool        `json:"arguments_cut"` // there are more, or longer ones
	Tenant         string      `json:"tenant"`
	Caller         string      `json:"caller"`
	AskedAt        time.Time   `json:"asked_at"`
	ExpiresAt      time.Time   `json:"expires_at"` // zero: never
}

// Approval gives one, to those who may decide about it.
func (c *Client) Approval(ctx context.Context, id string) (*Approval, error) {
	return one[Approval](ctx, c, "/approvals/", "approval id", id)
}
