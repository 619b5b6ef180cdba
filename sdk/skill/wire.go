package skill

import (
	"encoding/json"
	"time"
)

// The types below are what the HTTP API answers with, where that is none of the other types of
// this package.

// List is a page of a list.
type List[T any] struct {
	Data []T     `json:"data"`
	Next *string `json:"next"` // the cursor of the next page; nil on the last one
}

// Problem is the answer to a request that failed.
type Problem struct {
	Error ResultError `json:"error"`
}

// Accepted is the answer to a call that outlives its request.
type Accepted struct {
	ID      string  `json:"id"`     // of its execution
	Status  string  `json:"status"` // running, or queued
	TraceID TraceID `json:"trace_id"`
}

// Health says that a host is there.
type Health struct {
	Status  string   `json:"status"` // ok
	Version string   `json:"version,omitempty"`
	Warming []string `json:"warming,omitempty"` // the kinds of skills of which some are still being compiled or started
}

// Envelope is an answer below /api/agent, as the agent-service documents have it.
type Envelope[T any] struct {
	Data T            `json:"data"`
	Meta EnvelopeMeta `json:"meta"`
}

// EnvelopeMeta goes with every answer below /api/agent.
type EnvelopeMeta struct {
	RequestID TraceID   `json:"request_id"`
	Timestamp time.Time `json:"timestamp"`
}

// EnvelopeProblem is the answer to a request below /api/agent that failed.
type EnvelopeProblem struct {
	Data  any          `json:"data,omitempty"` // what a task reached before it failed
	Error ResultError  `json:"error"`
	Meta  EnvelopeMeta `json:"meta"`
}

// AgentDefinition is a skill as the agent-service documents describe it.
type AgentDefinition struct {
	CostMetadata json.RawMessage `json:"cost_metadata"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	IsEnabled    bool            `json:"is_enabled"`
	Name         string          `json:"name"`
	OutputSchema json.RawMessage `json:"output_schema"`
}

// AgentSession is a task, or the calls of one session, in the words of the agent-service documents.
type AgentSession struct {
	CreatedAt       time.Time        `json:"created_at"`
	Iterations      []AgentIteration `json:"iterations"`
	PrincipalID     string           `json:"principal_id"`
	PrincipalType   string           `json:"principal_type"`
	SessionID       string           `json:"session_id"`
	Status          string           `json:"status"` // running, completed, failed, terminated or timeout
	TotalDurationMS int64            `json:"total_duration_ms"`
	TotalTokenUsage int              `json:"total_token_usage"`
}

// AgentIteration is a call of an [AgentSession].
type AgentIteration struct {
	CreatedAt    time.Time       `json:"created_at"`
	DurationMS   *int64          `json:"duration_ms"` // nil while it runs
	Index        int             `json:"index"`
	InputParams  json.RawMessage `json:"input_params"`  // as much as is kept of it
	OutputResult json.RawMessage `json:"output_result"` // likewise
	SkillName    string          `json:"skill_name"`
	Status       string          `json:"status"`
	TokenUsage   int             `json:"token_usage"`
}

// VersionState is what is so of one uploaded version.
type VersionState struct {
	ID      ID     `json:"id"`
	Version string `json:"version"`
	Digest  string `json:"digest"`           // "sha256:" and 64 hex digits
	State   State  `json:"state"`            // of the version, after what was asked
	Reason  string `json:"reason,omitempty"` // why it is quarantined
	Shared  bool   `json:"shared,omitempty"` // approved for all tenants
}

// UploadResult answers an upload.
type UploadResult struct {
	ID      ID              `json:"id"`
	Version string          `json:"version"`
	Digest  string          `json:"digest"`
	State   State           `json:"state"`  // StateDisabled; StateDryRun where nothing was kept
	Report  json.RawMessage `json:"report"` // of admission: what the skill asks for, and what it gets
	// Packages is nil where the upload did not ask for the packages that it needs.
	Packages *UploadPackages `json:"packages,omitempty"`
}

// UploadPackages are the packages that an upload was given because it asked for those that it needs.
type UploadPackages struct {
	Added []string     `json:"added"`           // as in python:requests 2.34.2; empty: it needs none, or Error
	Error *ResultError `json:"error,omitempty"` // why it has none; the version is stored
}

// PackagesResult answers a change of the packages of an uploaded version.
type PackagesResult struct {
	ID       ID              `json:"id"`
	Version  string          `json:"version"`
	Digest   string          `json:"digest"`
	State    State           `json:"state"`
	Packages json.RawMessage `json:"packages"` // the lock; null: it has none
	Added    []string        `json:"added"`    // as in python:requests 2.34.2
	Removed  []string        `json:"removed"`
}

// TenantUsage is what a tenant has stored, and what it has used of today's limits.
type TenantUsage struct {
	Tenant   string        `json:"tenant"`
	Stored   []StoredUsage `json:"stored"`
	Today    []DailyUsage  `json:"today"`
	ResetsAt time.Time     `json:"resets_at"` // when today ends (UTC)
}

// StoredUsage is what a tenant has stored of one kind, such as "uploads". A limit is nil
// where there is none.
type StoredUsage struct {
	Kind       string `json:"kind"`
	Count      int64  `json:"count"`
	CountLimit *int64 `json:"count_limit"`
	Bytes      *int64 `json:"bytes"` // nil: they are not counted
	BytesLimit *int64 `json:"bytes_limit"`
}

// DailyUsage is what a tenant has used today of one kind: "calls", "fuel",
// "model_requests", "model_tokens" or "model_cost" (millionths of a US dollar). Limit is nil where
// none is set.
type DailyUsage struct {
	Kind  string `json:"kind"`
	Used  int64  `json:"used"`
	Limit *int64 `json:"limit"`
}
