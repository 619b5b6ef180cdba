package client

import (
	"context"
	"errors"
	"fmt"
)

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
