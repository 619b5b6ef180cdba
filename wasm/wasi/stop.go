package wasi

import (
	"context"
	"errors"
	"fmt"
)

// Reason says why the host ended a run.
type Reason uint8

// The reasons. The zero Reason is none of them.
const (
	ReasonExit        Reason = iota + 1 // the guest called proc_exit
	ReasonOutputLimit                   // it wrote more than it may
	ReasonDeadline                      // the deadline of the context passed
	ReasonCancelled                     // the context was cancelled
	ReasonReplay                        // it asked for what its recording has not
	ReasonMemory                        // there is no memory for what it was given
	ReasonFault                         // it broke the rules of a function, or its processes wait for each other; What says which
	ReasonFuel                          // another process of its run used up the fuel
)

// String is the reason in lower case.
func (r Reason) String() string {
	switch r {
	case ReasonExit:
		return "exit"
	case ReasonOutputLimit:
		return "output limit"
	case ReasonDeadline:
		return "deadline"
	case ReasonCancelled:
		return "cancelled"
	case ReasonReplay:
		return "replay"
	case ReasonMemory:
		return "memory"
	case ReasonFault:
		return "fault"
	case ReasonFuel:
		return "fuel"
	}
	return "unknown"
}

// Stop is the end of a run, as the host recorded it. As an error it is what a
// host function panics with.
type Stop struct { //nolint:errname // an end, which is an error on its way up only
	Reason   Reason
	ExitCode uint32 // of proc_exit; 0 otherwise
	What     string // of ReasonFault; the host's words alone
}

// Error implements error.
func (s *Stop) Error() string {
	if s.Reason == ReasonExit {
		return fmt.Sprintf("wasi: exit code %d", s.ExitCode)
	}
	return "wasi: run ended: " + s.Reason.String()
}

// ErrNoWorld is what a host function panics with when the context of the call
// has no World: a mistake of the embedder.
var ErrNoWorld = errors.New("wasi: the context has no world")

// end records the first stop and unwinds the guest.
func (w *World) end(reason Reason, code uint32) {
	if w.stopped.Reason == 0 {
		w.stopped = Stop{Reason: reason, ExitCode: code}
	}
	stop := w.stopped
	panic(&stop)
}

// fault ends a run that broke the rules of a function, as an instruction that traps does.
func (w *World) fault(what string) {
	if w.stopped.Reason == 0 {
		w.stopped = Stop{Reason: ReasonFault, What: what}
	}
	stop := w.stopped
	panic(&stop)
}

// checkContext ends the run if its context has ended.
func (w *World) checkContext() {
	if err := w.ctx.Err(); err != nil {
		w.endContext(err)
	}
}

func (w *World) endContext(err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		w.end(ReasonDeadline, 0)
	}
	w.end(ReasonCancelled, 0)
}
