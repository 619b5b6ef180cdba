package identity

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"openskill/sdk/skill"
)

var (
	errRefused = &skill.Error{Code: skill.Unauthorized, Message: "a revoked key"}
	errDark    = &skill.Error{Code: skill.AuditUnavailable, Message: "the database does not answer"}
)

// Work ends within two seconds of the end of its credentials, goes on through a short stall of
// the database, and does not go on through a long one.
func TestStart(t *testing.T) {
	for name, c := range map[string]struct {
		check func(since time.Duration) error
		ends  time.Duration // at the latest; 0: not within an hour
		code  skill.Code
	}{
		"valid credentials": {check: func(time.Duration) error { return nil }},
		"revoked after ten seconds": {
			func(since time.Duration) error {
				if since >= 10*time.Second {
					return errRefused
				}
				return nil
			}, 11 * time.Second, skill.Unauthorized,
		},
		"stalls of 20 s": {check: func(since time.Duration) error {
			if since%(25*time.Second) >= 5*time.Second {
				return errDark
			}
			return nil
		}},
		"a stall without an end": {func(time.Duration) error { return errDark }, 31 * time.Second, skill.AuditUnavailable},
		"revoked behind a stall": {
			func(since time.Duration) error {
				if since >= 10*time.Second {
					return errRefused
				}
				return errDark
			}, 11 * time.Second, skill.Unauthorized,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, stop := Start(t.Context(), func(context.Context) error { return c.check(time.Since(began)) })
				defer stop()
				hour := time.NewTimer(time.Hour)
				defer hour.Stop()
				select {
				case <-ctx.Done():
				case <-hour.C:
				}
				took := time.Since(began)
				if ended := ctx.Err() != nil; ended != (c.ends > 0) || ended && took > c.ends {
					t.Fatalf("after %s: %v", took, ctx.Err())
				}
				if err := Refused(ctx); skill.CodeOf(err) != c.code {
					t.Errorf("the reason is %v", err)
				}
			})
		})
	}
}

// A check that hangs ends with the work, and work that is over is not checked.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := 0
		parent, cancel := context.WithCancelCause(t.Context())
		ctx, stop := Start(parent, func(ctx context.Context) error {
			checks++
			<-ctx.Done()
			return errRefused // too late to be the reason
		})
		_, soon := Start(parent, func(context.Context) error {
			t.Error("a check after stop")
			return nil
		})
		soon()
		time.Sleep(time.Minute)
		why := errors.New("the host is shutting down")
		cancel(why)
		synctest.Wait()
		if checks != 1 || !errors.Is(context.Cause(ctx), why) || Refused(ctx) != nil {
			t.Errorf("%d checks, %v", checks, context.Cause(ctx))
		}
		stop()
	})
}
