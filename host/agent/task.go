package agent

import (
	"encoding/json"

	"openskill/sdk/skill"
)

// Task is what a caller asks for: work that an agent does by itself, in a loop of
// reasoning, action and observation. In each round the model answers with one JSON object
// that says which skill to call next, or that it has finished. The words, numbers and
// statuses are those of the agent-service documents.
type Task struct {
	Text    string
	Context json.RawMessage // an object; nil: none
	Options TaskOptions
	Trace   skill.TraceID
}

// TaskOptions may lower what the host allows; zero: no opinion.
type TaskOptions struct {
	MaxIterations  int
	TimeoutSeconds int
	Skills         []string // the only ones that may be called; nil: all of the caller's
	Kind           string   // one of TaskLimits.Kinds; "": none
}

// TaskStatus is how a task ended.
type TaskStatus string

// The statuses.
const (
	TaskRunning    TaskStatus = "running"    // it has not ended
	TaskCompleted  TaskStatus = "completed"  // the model has finished
	TaskTerminated TaskStatus = "terminated" // a limit was reached: rounds, tokens, money, fuel
	TaskTimedOut   TaskStatus = "timeout"    // a round, or all of them, took too long
	TaskFailed     TaskStatus = "failed"     // the model is unavailable, or the agent itself is at fault
)

// Outcome is what a task came to. The fields of its JSON are those of the documents.
type Outcome struct {
	SessionID     string          `json:"session_id"`
	Status        TaskStatus      `json:"status"`
	Iterations    int             `json:"iterations"` // calls of skills
	TotalTokens   int             `json:"total_token_usage"`
	TotalDuration int64           `json:"total_duration_ms"`
	Result        json.RawMessage `json:"result"` // an object: what the model said, skill_calls, partial, and for all but completed summary, findings and error
	// Err is set where the answer is a failure of its own, with what was reached: the time
	// of the whole task is over (408), the model could not be had at all (503), or the
	// agent is at fault (500). nil: it is not.
	Err *skill.Error `json:"-"`
}

// SkillCall is one entry of skill_calls.
type SkillCall struct {
	Skill       string          `json:"skill"`
	Iteration   int             `json:"iteration"`
	Input       json.RawMessage `json:"input"`
	Status      string          `json:"status"` // success or failed
	DurationMS  int64           `json:"duration_ms"`
	ExecutionID string          `json:"execution_id,omitempty"` // "" where nothing ran
	Error       string          `json:"error,omitempty"`
}
