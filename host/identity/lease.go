package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"openskill/sdk/skill"
)

// The times of leases.
const (
	every = 500 * time.Millisecond // between two checks of the credentials
	blind = 30 * time.Second       // for so long work goes on whose credentials cannot be checked
)

// Start gives a context for work of a caller who was let in. It ends when check refuses the
// caller with UNAUTHORIZED, and the cause is an error of that code. Where check cannot tell,
// since a database does not answer, work goes on for half a minute: a short stall ends
// nothing, and a host that is cut off for long does not let a revoked key go on.
//
// stop must be called when the work is over.
func Start(parent context.Context, check func(context.Context) error) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	later := time.AfterFunc(every, func() { // most work is over by then
		if err := watch(ctx, check); err != nil {
			cancel(err)
		}
	})
	return ctx, func() {
		later.Stop()
		cancel(nil)
	}
}

// watch checks until ctx has ended, or gives the reason why it must end.
func watch(ctx context.Context, check func(context.Context) error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	good := time.Now()
	for {
		err := check(ctx)
		switch dark := time.Since(good); {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			good = time.Now()
		case skill.CodeOf(err) == skill.Unauthorized:
			return &skill.Error{
				Op: "lease", Code: skill.Unauthorized, Err: err,
				Message: "the host ended this because its credentials are no longer valid; call again with valid ones",
			}
		case dark >= blind:
			return &skill.Error{
				Op: "lease", Code: skill.CodeOf(err), Err: err,
				Message: fmt.Sprintf("the host ended this because its credentials could not be checked for %d s; try again in a moment", int(blind.Seconds())),
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Refused is the error with which a lease has ended ctx, or nil.
func Refused(ctx context.Context) error {
	var e *skill.Error
	if errors.As(context.Cause(ctx), &e) {
		return e
	}
	return nil
}
