package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

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
	var out skill.Envelope[*Outcome]
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

// Session gives a run of an agent with its calls.
func (c *Client) Session(ctx context.Context, id string) (*skill.AgentSession, error) {
	out, err := one[skill.Envelope[*skill.AgentSession]](ctx, c, "/api/agent/executions/", "session id", id)
	if err != nil {
		return nil, err
	}
	if out.Data == nil {
		return nil, errors.New("client: the response has no session; check that the base URL is an openSkill server")
	}
	return out.Data, nil
}
