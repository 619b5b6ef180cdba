package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"time"

	"openskill/sdk/skill"
	"openskill/sdk/sse"
)

type (
	// Usage is what models took in a turn.
	Usage = skill.TurnUsage
	// ToolCall is one call of a tool.
	ToolCall = skill.ToolCall
	// Awaited is an approval that a turn waits for.
	Awaited = skill.Awaited
	// ConversationSummary is a conversation in a list.
	ConversationSummary = skill.ConversationSummary
)

// ChatRequest is one message to the agent.
type ChatRequest struct {
	Message      string `json:"message"`
	Conversation string `json:"conversation_id,omitempty"` // "": a new one
	Provider     string `json:"provider,omitempty"`        // "": the host's choice
	Model        string `json:"model,omitempty"`
	Tools        string `json:"tools,omitempty"` // all, code or both; "": as many skills as a model can have
	// Files are added to the workspace of the conversation, or to Workspace if it is not "".
	Files     []skill.FileRef `json:"files,omitempty"`
	Workspace string          `json:"workspace,omitempty"`
	// The limits may only lower what the host allows; 0: no opinion.
	MaxIterations int `json:"max_iterations,omitempty"`
	MaxToolCalls  int `json:"max_tool_calls,omitempty"`
	MaxTokens     int `json:"max_tokens,omitempty"`
	// MaxValidationRetries is how often in a row the model may mend wrong calls.
	MaxValidationRetries int `json:"max_validation_retries,omitempty"`
	TimeoutMS            int `json:"timeout_ms,omitempty"` // of each call of a tool
}

// Decision is what a person says about a call that waits for an approval.
type Decision struct {
	ApprovalID string `json:"approval_id,omitempty"` // "": the one that waits, if it is one alone
	Approve    bool   `json:"approve"`
	// What follows is as in [ChatRequest], for the turn that goes on.
	Provider      string `json:"provider,omitempty"`
	Model         string `json:"model,omitempty"`
	Tools         string `json:"tools,omitempty"`
	MaxIterations int    `json:"max_iterations,omitempty"`
	MaxToolCalls  int    `json:"max_tool_calls,omitempty"`
	MaxTokens     int    `json:"max_tokens,omitempty"`

	MaxValidationRetries int `json:"max_validation_retries,omitempty"`
	TimeoutMS            int `json:"timeout_ms,omitempty"`
}

// ChatAnswer is what a turn came to.
type ChatAnswer struct {
	Conversation string     `json:"conversation_id"`
	Answer       string     `json:"answer"`
	ToolCalls    []ToolCall `json:"tool_calls"` // in the order in which the model asked
	Iterations   int        `json:"iterations"` // questions to the model in this turn
	Usage        Usage      `json:"usage"`
	StopReason   string     `json:"stop_reason"` // Completed, ApprovalRequired, or the limit that was reached
	TraceID      string     `json:"trace_id"`
	Provider     string     `json:"provider"`
	Model        string     `json:"model"`
	Approvals    []Awaited  `json:"approvals,omitempty"` // what a turn that ended as ApprovalRequired waits for
	Workspace    string     `json:"workspace,omitempty"` // that the calls used
}

// The reasons for which a turn ends that callers act on.
const (
	Completed        = "completed"
	ApprovalRequired = "approval_required"
)

// EventKind is a kind of [Event].
type EventKind string

// The kinds, and the fields of an [Event] that each one has. A stream begins with
// EventStart and ends with EventDone, or with an error.
const (
	EventStart    EventKind = "start"             // Conversation, TraceID
	EventText     EventKind = "text"              // Text
	EventToolGo   EventKind = "tool_start"        // Tool without outcome
	EventToolEnd  EventKind = "tool_end"          // Tool, Result
	EventApproval EventKind = "approval_required" // Approval
	EventUsage    EventKind = "usage"             // Usage so far
	EventDone     EventKind = "done"              // Answer
)

// Event is something that happened in a turn. What its kind does not name is nil or "".
type Event struct {
	Kind         EventKind   `json:"-"`
	Conversation string      `json:"conversation_id"`
	TraceID      string      `json:"trace_id"`
	Text         string      `json:"text"` // a part of the answer; the parts make it up
	Tool         *ToolCall   `json:"-"`
	Result       string      `json:"result"` // the beginning of what a call that succeeded gave; "" where the host does not say
	Approval     *Awaited    `json:"-"`
	Usage        *Usage      `json:"-"`
	Answer       *ChatAnswer `json:"-"`
}

const (
	chatPath          = "/agent/chat"
	conversationsPath = "/agent/conversations"
)

// Chat sends a message and waits for the whole answer.
func (c *Client) Chat(ctx context.Context, r ChatRequest) (*ChatAnswer, error) {
	return get[ChatAnswer](ctx, c, http.MethodPost, chatPath, r)
}

// ChatStream sends a message and gives what happens as it happens. Nothing is sent before
// the sequence is ranged over, and each range over it sends the message anew. To leave the
// loop, or the end of ctx, cancels the turn. The last pair has EventDone or an error.
func (c *Client) ChatStream(ctx context.Context, r ChatRequest) iter.Seq2[Event, error] {
	body := struct {
		ChatRequest
		Stream bool `json:"stream"`
	}{r, true}
	return c.stream(ctx, chatPath, body)
}

// Approve decides about a call of a conversation that waits, and goes on with the turn.
func (c *Client) Approve(ctx context.Context, conversation string, d Decision) (*ChatAnswer, error) {
	path, err := approvePath(conversation)
	if err != nil {
		return nil, err
	}
	return get[ChatAnswer](ctx, c, http.MethodPost, path, d)
}

// ApproveStream is Approve, and gives what happens as [Client.ChatStream] does.
func (c *Client) ApproveStream(ctx context.Context, conversation string, d Decision) iter.Seq2[Event, error] {
	path, err := approvePath(conversation)
	if err != nil {
		return func(yield func(Event, error) bool) { yield(Event{}, err) }
	}
	body := struct {
		Decision
		Stream bool `json:"stream"`
	}{d, true}
	return c.stream(ctx, path, body)
}

func approvePath(conversation string) (string, error) {
	part, err := segment("conversation id", conversation)
	return conversationsPath + "/" + part + ":approve", err
}

// Conversation is one with the messages that are kept of it.
type Conversation struct {
	ID          string    `json:"id"`
	Title       string    `json:"title"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	Iterations  int       `json:"iterations"`
	TotalTokens int       `json:"total_tokens"`
	Messages    []Message `json:"messages"`
	Pending     []Awaited `json:"pending"` // what waits for an approval; nil: nothing does
}

// Message is one of a conversation.
type Message struct {
	Role   string    `json:"role"` // user, assistant or tool
	Text   string    `json:"text"`
	Calls  []Call    `json:"calls"`   // of an assistant
	CallID string    `json:"call_id"` // of a tool: the call that it answers
	Failed bool      `json:"failed"`  // of a tool: the answer is an error
	At     time.Time `json:"at"`
}

// Call is one call of a tool as the model asked for it.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as the model wrote them, which may be no JSON
}

// Conversations goes through the caller's conversations, the one that changed last first.
// Pages are asked for as they are needed.
func (c *Client) Conversations(ctx context.Context) iter.Seq2[*ConversationSummary, error] {
	return all[ConversationSummary](ctx, c, conversationsPath, nil)
}

// Conversation reads one.
func (c *Client) Conversation(ctx context.Context, id string) (*Conversation, error) {
	return one[Conversation](ctx, c, conversationsPath+"/", "conversation id", id)
}

// DeleteConversation removes one with its messages. The records of its calls stay.
func (c *Client) DeleteConversation(ctx context.Context, id string) error {
	part, err := segment("conversation id", id)
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodDelete, conversationsPath+"/"+part, nil, nil)
}

// stream posts body, and gives the events of the answer.
func (c *Client) stream(ctx context.Context, path string, body any) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		res, err := c.send(ctx, http.MethodPost, path, body, typeEvents)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer res.Body.Close()
		if kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || kind != typeEvents {
			yield(Event{}, errors.New("client: the response is not an event stream; check that the base URL is an openSkill server"))
			return
		}
		trace := res.Header.Get("X-Trace-Id")
		events := sse.NewReader(res.Body, c.maxEvent)
		for {
			raw, err := events.Next()
			if err != nil {
				yield(Event{}, fmt.Errorf("client: the stream ended before the turn: %w", err))
				return
			}
			e, known, err := eventOf(raw, trace)
			last := err != nil || e.Kind == EventDone
			if known && !yield(e, err) || last {
				return
			}
		}
	}
}

// eventOf reads one event. Kinds that are not known, which a host of a later release may
// send, are left out.
func eventOf(raw sse.Event, trace string) (e Event, known bool, err error) {
	e.Kind = EventKind(raw.Name)
	var into any
	switch e.Kind {
	case EventStart, EventText:
		into = &e
	case EventToolGo, EventToolEnd:
		into = &struct {
			*ToolCall
			Result *string `json:"result"`
		}{newOf(&e.Tool), &e.Result}
	case EventApproval:
		into = newOf(&e.Approval)
	case EventUsage:
		into = newOf(&e.Usage)
	case EventDone:
		into = newOf(&e.Answer)
	case "error":
		var failed skill.ResultError
		if err = json.Unmarshal(raw.Data, &failed); err == nil {
			err = newError(failed.Status, &failed, trace)
		} else {
			err = fmt.Errorf("client: cannot read the error event: %w", err)
		}
		return Event{}, true, err
	default:
		return Event{}, false, nil
	}
	if err := json.Unmarshal(raw.Data, into); err != nil {
		return Event{}, true, fmt.Errorf("client: cannot read the event %s: %w", e.Kind, err)
	}
	return e, true, nil
}

func newOf[T any](p **T) *T {
	*p = new(T)
	return *p
}

// Agent is a conversation: each message is answered with what was said before in mind,
// and with the skills that the caller may use. The host does the work: it asks the model,
// runs what that asks for, and keeps the messages. An Agent is used by one goroutine at
// a time.
type Agent struct {
	// Conversation is its id; "" before the first message. One that was had before goes on.
	Conversation string
	// Provider and Model choose who answers; "": the host's choice.
	Provider, Model string
	// Hear, if it is not nil, is told what happens while Run waits, on the same goroutine.
	Hear func(Event)

	c    *Client
	last *ChatAnswer
}

// NewAgent begins a conversation. It sends nothing.
func (c *Client) NewAgent() *Agent { return &Agent{c: c} }

// StoppedError is the error of a turn that ended without being completed: a limit was reached,
// or a call waits for a person's approval.
type StoppedError struct{ Answer *ChatAnswer }

// Error implements error.
func (s *StoppedError) Error() string {
	if s.Answer.StopReason == ApprovalRequired {
		return "the turn waits for an approval"
	}
	return fmt.Sprintf("the turn ended before it was completed: %q", s.Answer.StopReason)
}

// Run says something to the agent and gives its answer. The error is a [*StoppedError] where
// the turn has ended otherwise than completed, with what was said until then.
func (a *Agent) Run(ctx context.Context, text string) (string, error) {
	r := ChatRequest{Message: text, Conversation: a.Conversation, Provider: a.Provider, Model: a.Model}
	if a.Hear == nil {
		answer, err := a.c.Chat(ctx, r)
		if err != nil {
			return "", err
		}
		return a.ended(answer)
	}
	for e, err := range a.c.ChatStream(ctx, r) {
		if err != nil {
			return "", err
		}
		if e.Conversation != "" {
			a.Conversation = e.Conversation // also of a turn that fails later
		}
		a.Hear(e)
		if e.Answer != nil {
			return a.ended(e.Answer)
		}
	}
	return "", errors.New("client: the stream ended early") // it has, by the contract of ChatStream
}

func (a *Agent) ended(answer *ChatAnswer) (string, error) {
	a.Conversation, a.last = answer.Conversation, answer
	if answer.StopReason != Completed {
		return answer.Answer, &StoppedError{answer}
	}
	return answer.Answer, nil
}

// Last is the last turn's answer with its calls and what it took; nil before the first.
func (a *Agent) Last() *ChatAnswer { return a.last }
