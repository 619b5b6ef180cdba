package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"openskill/sdk/skill"
)

// Task is what an agent is to do by itself, without anybody to ask.
type Task struct {
	Text    string       `json:"task"`
	Context any          `json:"context,omitempty"` // an object in JSON; nil: none
	Options *TaskOptions `json:"options,omitempty"` // nil: as the host has them
}

// TaskOptions may lower what the host allows; zero: no opinion.
type TaskOptions struct {
	MaxIterations  int        `json:"max_iterations,omitempty"`
	TimeoutSeconds int        `json:"timeout_seconds,omitempty"`
	Skills         []skill.ID `json:"skills,omitzero"` // the only ones that may be called; nil: all of the caller's; empty: refused
	Kind           string     `json:"kind,omitempty"`  // one that the operator has named; its limits are those of the task
}

// Outcome is what a task came to.
type Outcome struct {
	SessionID     string          `json:"session_id"`
	Status        string          `json:"status"`     // completed, terminated, timeout or failed
	Iterations    int             `json:"iterations"` // calls of skills
	TotalTokens   int             `json:"total_token_usage"`
	TotalDuration int64           `json:"total_duration_ms"`
	Result        json.RawMessage `json:"result"` // an object: what the model said, skill_calls and partial
}

// Execute gives a task to the host's agent and waits for it. Where the answer is a failure
// with something reached before it, both are given.
func (c *Client) Execute(ctx context.Context, t Task) (*Outcome, error) {
	var out struct {
		Data *Outcome `json:"data"`
	}
	err := c.call(ctx, http.MethodPost, "/api/agent/execute", t, &out)
	var e *Error
	if errors.As(err, &e) {
		if json.Unmarshal(e.answer, &out) != nil {
			out.Data = nil
		}
		return out.Data, err
	}
	if err == nil && out.Data == nil {
		err = errors.New("client: the response has no outcome; check that the base URL is an openSkill server")
	}
	return out.Data, err
}

// Session is a run of an agent: a task, or a conversation.
type Session struct {
	ID            string      `json:"session_id"`
	PrincipalID   string      `json:"principal_id"`
	PrincipalType string      `json:"principal_type"`
	Status        string      `json:"status"` // running, completed, terminated, timeout or failed
	Iterations    []Iteration `json:"iterations"`
	TotalTokens   int         `json:"total_token_usage"`
	TotalDuration int64       `json:"total_duration_ms"`
	CreatedAt     time.Time   `json:"created_at"`
}

// Iteration is one call of a skill in a [Session].
type Iteration struct {
	Index      int             `json:"index"`
	Skill      string          `json:"skill_name"`
	Input      json.RawMessage `json:"input_params"` // null where records keep none, as the output
	Output     json.RawMessage `json:"output_result"`
	Status     string          `json:"status"`
	Tokens     int             `json:"token_usage"`
	DurationMS *int64          `json:"duration_ms"` // nil while it runs
	CreatedAt  time.Time       `json:"created_at"`
}

// Session gives a run of an agent with its calls.
func (c *Client) Session(ctx context.Context, id string) (*Session, error) {
	part, err := segment("session id", id)
	if err != nil {
		return nil, err
	}
	var out struct {
		Data *Session `json:"data"`
	}
	if err := c.call(ctx, http.MethodGet, "/api/agent/executions/"+part, nil, &out); err != nil {
		return nil, err
	}
	if out.Data == nil {
		return nil, errors.New("client: the response has no session; check that the base URL is an openSkill server")
	}
	return out.Data, nil
}
