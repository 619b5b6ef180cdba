package agent

import (
	"time"

	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/sdk/skill"
)

type (
	// Usage is what models took in a turn.
	Usage = skill.TurnUsage
	// ToolCall is one call of a tool.
	ToolCall = skill.ToolCall
	// Awaited is an approval that a turn waits for.
	Awaited = skill.Awaited
	// Summary is a conversation in a list.
	Summary = skill.ConversationSummary
)

// ChatRequest is one message of a caller.
type ChatRequest struct {
	Message      string
	Conversation string // ""; a new one
	Provider     string // "": the host's choice
	Model        string
	Files        []skill.FileRef // added to the workspace
	Workspace    string          // of all calls of the turn; "": that of the conversation, if it has one
	Tools        tools.Form      // "": as many skills as a model can have; see [tools.Toolbox.For]
	// The limits may only lower what the host allows; 0: no opinion.
	MaxIterations int
	MaxToolCalls  int
	MaxTokens     int
	MaxRetries    int // as ChatOptions.Retries
	TimeoutMS     int // of each call of a tool, in milliseconds
	Trace         skill.TraceID
}

// Decision is what a caller says about a call that waits for an approval, and how the turn
// continues. Message and Conversation are not looked at.
type Decision struct {
	ApprovalID string // "": the one that waits, if it is one alone
	Approve    bool
	ChatRequest
}

// StopReason is why a turn ended.
type StopReason string

// The reasons.
const (
	StopCompleted        StopReason = "completed"
	StopApprovalRequired StopReason = "approval_required"
	StopInvalidCalls     StopReason = "invalid_calls" // the model has not mended a wrong call in as many attempts as it has
	StopLength           StopReason = "length"
	StopRefused          StopReason = "refused" // by the model's provider
	// A limit of the budget was reached.
	StopIterations StopReason = "max_iterations"
	StopToolCalls  StopReason = "max_tool_calls"
	StopTokens     StopReason = "max_tokens"
	StopCost       StopReason = "max_cost"
	StopFuel       StopReason = "max_fuel"
	StopTime       StopReason = "timeout"
)

// Answer is what a turn came to.
type Answer struct {
	Conversation string     `json:"conversation_id"`
	Answer       string     `json:"answer"`
	ToolCalls    []ToolCall `json:"tool_calls"` // in the order in which the model asked; never nil
	Iterations   int        `json:"iterations"` // questions to the model in this turn
	Usage        Usage      `json:"usage"`
	StopReason   StopReason `json:"stop_reason"`
	Trace        string     `json:"trace_id"`
	Provider     string     `json:"provider"`
	Model        string     `json:"model"`
	Approvals    []Awaited  `json:"approvals,omitempty"` // what a turn that ended as approval_required waits for
	Workspace    string     `json:"workspace,omitempty"` // that the calls used
}

// EventKind is a kind of [Event], and its name in a stream.
type EventKind string

// The kinds. A stream begins with Start and ends with Done or Error.
const (
	EventStart    EventKind = "start"             // Conversation, Trace
	EventText     EventKind = "text"              // Text
	EventToolGo   EventKind = "tool_start"        // Tool without outcome
	EventToolEnd  EventKind = "tool_end"          // Tool, Result
	EventApproval EventKind = "approval_required" // Approval
	EventUsage    EventKind = "usage"             // Usage so far, after each answer of a model
	EventDone     EventKind = "done"              // Answer
	EventError    EventKind = "error"             // Error
)

// Event is something that happened in a turn. What its kind does not name is nil or "".
type Event struct {
	Kind         EventKind
	Conversation string
	Trace        string
	Text         string
	Tool         *ToolCall
	Result       string // the beginning of the data of a call that succeeded, for people: 500 bytes at most, as the skill wrote them
	Approval     *Awaited
	Usage        *Usage
	Answer       *Answer
	Error        *skill.ResultError
}

// View is a conversation as its owner reads it.
type View struct {
	ID          string        `json:"id"`
	Title       string        `json:"title"`
	CreatedAt   time.Time     `json:"created_at"`
	UpdatedAt   time.Time     `json:"updated_at"`
	Iterations  int           `json:"iterations"`
	TotalTokens int           `json:"total_tokens"`
	Messages    []MessageView `json:"messages"` // those that are kept; never nil
	Pending     []Awaited     `json:"pending"`  // what waits for an approval; nil: nothing does
}

// MessageView is one message of a [View].
type MessageView struct {
	Role   llm.Role   `json:"role"`
	Text   string     `json:"text,omitempty"`
	Calls  []llm.Call `json:"calls,omitempty"`
	CallID string     `json:"call_id,omitempty"`
	Failed bool       `json:"failed,omitempty"`
	At     time.Time  `json:"at"`
}
