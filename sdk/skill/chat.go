package skill

import (
	"encoding/json"
	"time"
)

// TurnUsage is what models took in a turn of a chat.
type TurnUsage struct {
	PromptTokens     int     `json:"prompt_tokens"`
	CompletionTokens int     `json:"completion_tokens"`
	TotalTokens      int     `json:"total_tokens"`
	Estimated        bool    `json:"estimated,omitempty"` // counted by the host, because the vendor did not say
	CostUSD          float64 `json:"cost_usd,omitempty"`  // where the model has a price
}

// ToolCall is one call of a tool in a chat.
type ToolCall struct {
	ID          string          `json:"id"`
	SkillID     string          `json:"skill_id"`
	Arguments   json.RawMessage `json:"arguments"`
	Success     bool            `json:"success"`
	Error       *ResultError    `json:"error"` // null for a success
	LatencyMS   int64           `json:"latency_ms"`
	ExecutionID string          `json:"execution_id"` // "" where nothing ran
}

// Awaited is an approval that a turn of a chat waits for.
type Awaited struct {
	ApprovalID string `json:"approval_id"`
	ToolCallID string `json:"tool_call_id"`
	SkillID    string `json:"skill_id"`
	Script     string `json:"script,omitempty"`
}

// ConversationSummary is a conversation in a list.
type ConversationSummary struct {
	ID        string    `json:"id"`
	Title     string    `json:"title"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Messages  int       `json:"messages"` // how many there were, also those that are no longer kept
}
