package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/check"
)

// end is how one way to end is told to a caller: with a code, what the limit was,
// and what to do.
type end struct {
	code skill.Code
	text func(l *skill.Limits, out *wasm.Outcome) string
}

// ends is the one table from the engine's outcome to a code. Returned and Exited
// are not in it: the guest ended by itself, whatever its exit code says.
var ends = map[wasm.Ended]end{
	wasm.Trapped: {skill.Trap, func(_ *skill.Limits, out *wasm.Outcome) string {
		return fmt.Sprintf("the module trapped: %s; this is a bug in the skill, see its standard error", out.Trap)
	}},
	wasm.OutOfFuel: {skill.FuelExhausted, func(l *skill.Limits, _ *wasm.Outcome) string {
		return fmt.Sprintf("the skill used up its %d units of fuel; give it less to do, or raise limits.fuel", l.Fuel)
	}},
	wasm.OutOfTime: {skill.Timeout, func(l *skill.Limits, _ *wasm.Outcome) string {
		return fmt.Sprintf("the skill did not finish within %d ms; give it less to do, or raise limits.timeout_ms", l.Timeout.Milliseconds())
	}},
	wasm.OutOfMemory: {skill.MemoryLimit, func(l *skill.Limits, _ *wasm.Outcome) string {
		return fmt.Sprintf("the skill needs more memory than its %d MiB; give it less to do, or raise limits.memory_mb", l.Memory>>20)
	}},
	wasm.OutOfTable: {skill.TableLimit, func(*skill.Limits, *wasm.Outcome) string {
		return "a table of the module exceeded the fixed limit of this host"
	}},
	wasm.OutOfStack: {skill.StackLimit, func(*skill.Limits, *wasm.Outcome) string {
		return "calls in the skill were nested too deeply; check for endless recursion"
	}},
	wasm.OutputOverflow: {skill.OutputLimit, func(l *skill.Limits, _ *wasm.Outcome) string {
		return fmt.Sprintf("the skill printed more than %d bytes; the first part is kept; let it print less, or raise limits.output_kb", l.Output)
	}},
	wasm.Cancelled: {skill.Cancelled, func(*skill.Limits, *wasm.Outcome) string {
		return "the client disconnected before the skill finished"
	}},
	wasm.Diverged: {skill.Conflict, func(*skill.Limits, *wasm.Outcome) string {
		return "the run differs from the recorded one"
	}},
}

// reply tells in the words of package skill how a run of call ended. ctx is the
// caller's: where its own deadline ended the run, that is Cancelled. runtime is the
// language whose runtime the module is; "" for a module of the skill's own.
func reply(ctx context.Context, call *skill.Call, out *wasm.Outcome, took time.Duration, runtime string) *skill.Reply {
	r := &skill.Reply{
		Stdout: out.Stdout, Stderr: out.Stderr,
		Usage: skill.Usage{Fuel: min(out.Fuel, call.Limits.Fuel), MemoryPeak: out.MemoryPeak},
	}
	r.Usage.StartFuel = out.Fuel - r.Usage.Fuel // a start-up has fuel of its own
	r.Processes = processes(out)
	ended := out.Ended
	if ended == wasm.OutOfTime && ctx.Err() != nil && took < call.Limits.Timeout {
		ended = wasm.Cancelled
	}
	if e, ok := ends[ended]; ok {
		r.Code, r.Message = e.code, e.text(&call.Limits, out)
		if ended == wasm.Trapped && runtime != "" {
			r.Message = fmt.Sprintf("the %s runtime trapped: %s; its earlier output is kept: change the step after it", runtime, out.Trap)
		}
	} else {
		r.ExitCode = out.ExitCode
	}
	return r
}

func processes(out *wasm.Outcome) *skill.Processes {
	if out.Started == 0 {
		return nil
	}
	p := &skill.Processes{Started: out.Started}
	for _, r := range out.Ran {
		p.List = append(p.List, skill.Process{
			ID: r.ID, Parent: r.Parent, Program: skill.CleanText(r.Program, skill.MaxProgram), Exit: r.Exit.Code, Signal: r.Exit.Signal,
		})
	}
	return p
}

// blamed tells what the engine's error means for a caller: a Reply where the
// module is at fault, else the error of the host.
func blamed(err error) (*skill.Reply, error) {
	var verdict *check.Error
	var entry *wasm.NoEntryError
	switch {
	case errors.As(err, &verdict):
		return &skill.Reply{Code: skill.Code(verdict.Code), Message: skill.CleanText(verdict.Error(), skill.MaxMessage)}, nil
	case errors.As(err, &entry):
		return &skill.Reply{Code: skill.InvalidModule, Message: skill.CleanText(entry.Error(), skill.MaxMessage)}, nil
	default:
		return nil, &skill.Error{Op: "sandbox.Run", Code: skill.Internal, Message: "the sandbox failed", Err: err}
	}
}

// gone is the reply to a call whose caller has left.
func gone() *skill.Reply {
	return &skill.Reply{Code: skill.Cancelled, Message: ends[wasm.Cancelled].text(nil, nil)}
}

// waited is the reply to a call whose context or time ended before its module was
// compiled.
func waited(ctx context.Context, after time.Duration) *skill.Reply {
	if ctx.Err() != nil {
		return gone()
	}
	return &skill.Reply{
		Code:    skill.Timeout,
		Message: fmt.Sprintf("still compiling after %d ms; retry shortly", after.Milliseconds()),
	}
}
