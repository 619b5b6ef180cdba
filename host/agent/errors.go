package agent

import (
	"context"
	"errors"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/sdk/skill"
)

func invalid(field, message string) error {
	return &skill.Error{
		Op: "agent.check", Code: skill.InvalidArgument, Subject: field, Message: field + ": " + message,
		Details: map[string]any{"fields": []map[string]string{{"field": field, "problem": message}}},
	}
}

// stopped says how the end of ctx ends the turn: by a limit, or with an error; neither
// while ctx has not ended.
func (t *turn) stopped(ctx context.Context) (StopReason, error) {
	if ctx.Err() == nil {
		return "", nil
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTime):
		return StopTime, nil
	case errors.Is(cause, errDeleted):
		return "", gone(cause)
	}
	return "", llm.Ended(ctx)
}

// endOr is the error of a part that failed, or that of the turn's end if that is why.
func (t *turn) endOr(ctx context.Context, err error) error {
	switch reason, end := t.stopped(ctx); {
	case end != nil:
		return end
	case reason != "":
		return &skill.Error{
			Op: "agent.Turn", Code: skill.AgentExecutionTimeout, Err: err,
			Message: "the turn timed out before the model was called; retry",
		}
	}
	return err
}

// unread is the error of what the store does not give.
func (t *turn) unread(ctx context.Context, err error) error {
	return t.endOr(ctx, conversationError(err, "cannot read the conversation: database unavailable; retry"))
}

// unwritten is the error of what the store does not take.
func (t *turn) unwritten(ctx context.Context, err error) error {
	if errors.Is(err, conversations.ErrNotFound) || errors.Is(err, conversations.ErrChanged) {
		return conversationError(err, "")
	}
	return t.endOr(ctx, conversationError(err, "cannot store the conversation: database unavailable; retry"))
}

// conversationError is an error of the store for a caller.
func conversationError(err error, otherwise string) error {
	switch {
	case errors.Is(err, conversations.ErrNotFound):
		return gone(err)
	case errors.Is(err, conversations.ErrChanged):
		return &skill.Error{
			Op: "agent.store", Code: skill.Conflict, Err: err,
			Message: "the conversation changed; reload it and send again",
		}
	}
	return storeError(err, otherwise)
}

func gone(err error) error {
	return &skill.Error{
		Op: "agent.find", Code: skill.NotFound, Err: err,
		Message: "conversation not found; list yours, or send a message without an id to start one",
	}
}
