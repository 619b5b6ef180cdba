package llm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"openskill/sdk/skill"
)

// BusyError is in the chain of an error where another attempt may do better.
type BusyError struct {
	Status int           // that the vendor answered with; 0: it was not reached
	After  time.Duration // when it wants to be asked again; 0: it did not say
}

// Error implements error.
func (b *BusyError) Error() string { return fmt.Sprintf("the provider is busy (status %d)", b.Status) }

// Unavailable is the error of a vendor that answered with a status, or was not reached
// (0). said is what it said of that, or what went wrong; it is shown to callers and to
// the log, and must hold no secret. err is for the log, and may be nil.
//
// 503 and 529, and 429, are [BusyError]; so is a vendor that was not reached.
func Unavailable(vendor string, status int, said string, after time.Duration, err error) error {
	said = skill.CleanText(said, 200)
	message := fmt.Sprintf("the model provider %s cannot be reached", vendor)
	switch {
	case status == 401 || status == 403:
		message = fmt.Sprintf("the model provider %s refuses the host's key (status %d)", vendor, status)
		said = "" // some repeat the key
	case status > 0:
		message = fmt.Sprintf("the model provider %s answered with status %d", vendor, status)
	}
	if said != "" {
		message += ": " + said
	}
	details := map[string]any{"provider": vendor}
	if status > 0 {
		details["provider_status"] = status
	}
	switch status {
	case 0, 429, 503, 529:
		err = errors.Join(&BusyError{status, after}, err)
	}
	return &skill.Error{Op: "llm", Code: skill.AgentLLMUnavailable, Message: message, Details: details, Err: err}
}

// Unreadable is the error of a vendor whose answer cannot be read.
func Unreadable(vendor, why string, err error) error {
	return &skill.Error{
		Op: "llm", Code: skill.AgentLLMParseError, Details: map[string]any{"provider": vendor}, Err: err,
		Message: fmt.Sprintf("the answer of the model provider %s cannot be read: %s", vendor, skill.CleanText(why, 200)),
	}
}

// Ended is the error of a question whose context ended: its caller left, or its time
// was over.
func Ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &skill.Error{Op: "llm", Code: skill.AgentExecutionTimeout, Message: "the model did not answer in time", Err: ctx.Err()}
	}
	return &skill.Error{Op: "llm", Code: skill.Cancelled, Message: "the call was cancelled", Err: context.Cause(ctx)}
}
