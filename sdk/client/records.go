package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"

	"openskill/sdk/skill"
)

// Execution is one call as its records tell it.
type Execution struct {
	ID            string              `json:"id"`
	Status        string              `json:"status"` // queued, running, success, failed, terminated or timeout
	Skill         string              `json:"skill"`
	Script        string              `json:"script"` // of an Agent Skill; "" for a skill
	Version       string              `json:"version"`
	Digest        string              `json:"digest"`
	Runner        skill.Kind          `json:"runner"` // "" while it runs
	Tenant        string              `json:"tenant"`
	Principal     string              `json:"principal"`
	PrincipalType skill.PrincipalType `json:"principal_type"`
	TraceID       string              `json:"trace_id"`
	Session       string              `json:"session"`   // the conversation or task; its own id where no agent asked
	Iteration     int                 `json:"iteration"` // of the agent, from 0
	StartedAt     time.Time           `json:"started_at"`
	FinishedAt    time.Time           `json:"finished_at"` // zero, as what follows, while it runs
	DurationMS    int64               `json:"duration_ms"`
	Fuel          uint64              `json:"fuel_used"`
	MemoryPeak    uint64              `json:"memory_peak_bytes"`
	Tokens        int                 `json:"tokens"`
	Reported      int                 `json:"reported_tokens"` // by the skill's own word, unchecked; 0: none
	Error         *skill.ResultError  `json:"error"`           // code and message; nil of a success
	Limits        skill.LimitsJSON    `json:"limits"`
	Input         Payload             `json:"input"`
	Output        *Payload            `json:"output"`
	Processes     *skill.Processes    `json:"processes"` // that a script started; nil: none
	Result        *skill.Result       `json:"result"`    // of a long call, while it is kept; else nil
}

// Payload is what a record keeps of an input or output; how much, the operator decides.
type Payload struct {
	Bytes     int64           `json:"bytes"`
	SHA256    string          `json:"sha256"` // "": not kept
	JSON      json.RawMessage `json:"json"`   // nil: not kept
	Truncated bool            `json:"truncated"`
}

// Execution gives the record of a call.
func (c *Client) Execution(ctx context.Context, id string) (*Execution, error) {
	return one[Execution](ctx, c, "/executions/", "execution id", id)
}

// Approval is what a script of an Agent Skill asked, or a proposed version of a skill, and what became of it.
type Approval struct {
	ID             string      `json:"id"`
	State          string      `json:"state"`  // pending, approved, denied, expired or used
	Policy         string      `json:"policy"` // what it is good for: version (of the skill), call, or enable (a proposed version)
	Skill          string      `json:"skill"`
	Version        string      `json:"version"` // of a proposal; "" of scripts
	Script         string      `json:"script"`  // of a proposal its program
	Digest         string      `json:"digest"`
	PreviousDigest string      `json:"previous_digest"` // as it was approved before, if it has changed since, or that a proposal replaces; else ""
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

// Usage returns what a tenant has stored and what it has used today, with its limits. An
// empty tenant is the caller's own; another one needs the scope admin.
func (c *Client) Usage(ctx context.Context, tenant string) (*skill.TenantUsage, error) {
	path := "/usage"
	if tenant != "" {
		path += "?tenant=" + url.QueryEscape(tenant)
	}
	return get[skill.TenantUsage](ctx, c, http.MethodGet, path, nil)
}
