package chat

import (
	"context"
	"errors"

	"openskill/host/agent/budget"
	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/sdk/skill"
)

// told is err as a caller may read it.
func told(err error) error {
	var known *skill.Error
	if errors.As(err, &known) {
		return err
	}
	return &skill.Error{
		Op: "chat.Turn", Code: skill.AgentLoopError, Err: err,
		Message: "internal error of the agent; the server log has the reason under this trace id",
	}
}

// ended says how the end of ctx ends the turn: by a limit, or with an error; neither while
// ctx has not ended.
func (t *turn) ended(ctx context.Context) (StopReason, error) {
	if ctx.Err() == nil {
		return "", nil
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTime):
		return StopReason(budget.Time), nil
	case errors.Is(cause, errDeleted):
		return "", gone(cause)
	}
	return "", llm.Ended(ctx)
}

// endOr is the error of a part that failed, or that of the turn's end if that is why.
func (t *turn) endOr(ctx context.Context, err error) error {
	switch reason, end := t.ended(ctx); {
	case end != nil:
		return end
	case reason != "":
		return &skill.Error{
			Op: "chat.Turn", Code: skill.AgentExecutionTimeout, Err: err,
			Message: "the turn timed out before the model was called; retry",
		}
	}
	return err
}

// unread is the error of what the store does not give.
func (t *turn) unread(ctx context.Context, err error) error {
	return t.endOr(ctx, storeError(err, "cannot read the conversation: database unavailable; retry"))
}

// unwritten is the error of what the store does not take.
func (t *turn) unwritten(ctx context.Context, err error) error {
	if errors.Is(err, conversations.ErrNotFound) || errors.Is(err, conversations.ErrChanged) {
		return storeError(err, "")
	}
	return t.endOr(ctx, storeError(err, "cannot store the conversation: database unavailable; retry"))
}

// storeError is an error of the store in the words of this package.
func storeError(err error, otherwise string) error {
	var known *skill.Error
	switch {
	case errors.Is(err, conversations.ErrNotFound):
		return gone(err)
	case errors.Is(err, conversations.ErrChanged):
		return &skill.Error{
			Op: "chat.keep", Code: skill.Conflict, Err: err,
			Message: "the conversation changed; reload it and send again",
		}
	case errors.As(err, &known):
		return err
	}
	return &skill.Error{Op: "chat.keep", Code: skill.AuditUnavailable, Message: otherwise, Err: err}
}

func gone(err error) error {
	return &skill.Error{
		Op: "chat.find", Code: skill.NotFound, Err: err,
		Message: "conversation not found; list yours, or send a message without an id to start one",
	}
}
