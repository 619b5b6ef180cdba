// Package llm asks language models: messages and tools go in, text and calls of tools
// come out, whoever's model it is.
//
// [OpenAI], [Anthropic], [Service] and [Rules] make a [Provider] each. Requests are structs
// with the members that are sent; answers are read by readers that bear with servers'
// accents. [Models] is what the agent asks: which model a caller gets, what it costs, and
// one more attempt where a vendor was busy.
package llm

import (
	"context"

	"openskill/sdk/skill"
)

// Role is who said a message.
type Role string

// The roles. Instructions of the host are [Request.System], and no message.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool" // the answer to one call
)

// Message is one of a conversation.
type Message struct {
	Role   Role   `json:"role"`
	Text   string `json:"text,omitempty"`
	Calls  []Call `json:"calls,omitempty"`   // of an assistant; each is answered by one message of the role tool, before anything else is said
	CallID string `json:"call_id,omitempty"` // of a tool: the call that it answers
	Failed bool   `json:"failed,omitempty"`  // of a tool: the answer is an error
}

// Call is one call of a tool, as a model asks for it.
type Call struct {
	ID        string `json:"id"` // unique in a conversation; adapters make one up where the model gave none
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as the model wrote them, which may be no JSON; "" and "{}" are the same
}

// Slot is what a model is wanted for.
type Slot string

// The slots.
const (
	Fast      Slot = "fast"      // conversations
	Reasoning Slot = "reasoning" // tasks
)

// Request is one question to a model.
type Request struct {
	Model       string // a vendor's name for it
	Slot        Slot   // for who chooses models by that; adapters of vendors do not look at it
	System      string
	Messages    []Message    // the first one is a user's, the last one a user's or a tool's
	Tools       []skill.Tool // that it may call; nil: none
	MaxTokens   int          // of the reply; at least 1
	Temperature *float64     // nil: as the model has it
	JSON        bool         // the reply is to be one JSON object; a wish, not a promise
	Trace       skill.TraceID
	Tenant      string // on whose behalf it is put, see [Options.Spending]; adapters do not look at it
}

// Stop is why a reply ended.
type Stop string

// The reasons.
const (
	StopEnd     Stop = "end"     // it was all said
	StopCalls   Stop = "calls"   // it waits for tools
	StopLength  Stop = "length"  // MaxTokens, or the model's own limit
	StopRefused Stop = "refused" // the vendor withheld it
)

// Usage is what a reply took, in tokens.
type Usage struct {
	Prompt     int
	Completion int
	Estimated  bool // counted here, because the vendor did not say
}

// Total is both together.
func (u Usage) Total() int { return u.Prompt + u.Completion }

// Add gives the sum of both.
func (u Usage) Add(o Usage) Usage {
	return Usage{u.Prompt + o.Prompt, u.Completion + o.Completion, u.Estimated || o.Estimated}
}

// Reply is what a model answered.
type Reply struct {
	Text  string
	Calls []Call
	Stop  Stop
	Usage Usage // zero where the vendor did not say; [Model.Chat] fills it
}

// Provider speaks with the models of one vendor. It is safe for concurrent use.
type Provider interface {
	// Chat asks once: it does not try again. text, if it is not nil, is told each part of
	// the reply's text as it comes, on the goroutine that called, and the parts make up
	// Reply.Text. When ctx ends, Chat returns soon.
	//
	// The error is a *skill.Error of AGENT_LLM_UNAVAILABLE (see [Unavailable]) where the
	// vendor cannot be reached, is busy, or refuses; of AGENT_LLM_PARSE_ERROR where its
	// answer cannot be read; or of CANCELLED or AGENT_EXECUTION_TIMEOUT where ctx ended.
	// None of them holds a key, or a URL that a client must not see.
	Chat(ctx context.Context, r *Request, text func(part string)) (*Reply, error)
}

// Counter counts the tokens of a text.
type Counter interface {
	Count(text string) int
	Exact() bool // the model's own way to count; otherwise it is an estimate
}
