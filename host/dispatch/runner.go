package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"openskill/sdk/skill"
)

// Set holds runners by kind. It does not change after NewSet and is safe for
// concurrent use.
type Set struct {
	byKind map[skill.Kind]skill.Runner
	kinds  []skill.Kind
	close  sync.Once
	closed error
}

// NewSet makes a set that owns the runners; two of one kind are refused, and then
// nothing is owned.
func NewSet(runners ...skill.Runner) (*Set, error) {
	s := &Set{byKind: make(map[skill.Kind]skill.Runner, len(runners))}
	for _, r := range runners {
		if r == nil {
			return nil, errors.New("dispatch.NewSet: a runner is nil")
		}
		k := r.Kind()
		if _, twice := s.byKind[k]; twice {
			return nil, fmt.Errorf("dispatch.NewSet: two runners for %s", k)
		}
		s.byKind[k] = r
		s.kinds = append(s.kinds, k)
	}
	slices.Sort(s.kinds)
	return s, nil
}

// Kinds lists what the set can run, sorted.
func (s *Set) Kinds() []skill.Kind { return slices.Clone(s.kinds) }

// Get finds the runner of a kind; the error, TOOL_INVOCATION_ERROR, lists the
// kinds that there are.
func (s *Set) Get(k skill.Kind) (skill.Runner, error) {
	if r, ok := s.byKind[k]; ok {
		return r, nil
	}
	names := make([]string, len(s.kinds))
	for i, k := range s.kinds {
		names[i] = string(k)
	}
	available := strings.Join(names, ", ")
	if available == "" {
		available = "none"
	}
	return nil, &skill.Error{
		Op: "runner.Get", Code: skill.ToolInvocationError, Subject: string(k),
		Message: fmt.Sprintf("this host has no runner for %s; available: %s", skill.CleanText(string(k), 40), available),
	}
}

// Choose prepares calls of a skill: by its primary target if that can be run now, else by its
// fallback. One without a fallback whose runtime is being compiled counts as ready: its runner
// waits. Outside the sandbox (cli:…, http) only trusted skills run: a community skill with such
// a primary target is refused with FORBIDDEN, and its fallback is never considered. When nothing
// is ready the error, TOOL_INVOCATION_ERROR unless a runner's own says otherwise, tells what
// each target lacks. spec is that of the primary target.
func (s *Set) Choose(ctx context.Context, spec *skill.Spec, primary skill.Target, fallback *skill.Target) (skill.Runner, skill.Target, skill.Plan, error) {
	if OutsideSandbox(primary.Kind) && spec.Trust < skill.Trusted {
		return nil, skill.Target{}, skill.Plan{}, &skill.Error{
			Op: "runner.Choose", Code: skill.Forbidden, Subject: string(primary.Kind),
			Message: fmt.Sprintf("%s runs outside the sandbox, for trusted skills only; this skill is %s", primary.Kind, spec.Trust),
		}
	}
	falls := fallback != nil && spec.Trust >= skill.Trusted
	r, plan, first := s.prepare(ctx, spec, primary, falls)
	if first == nil && (plan.Missing == nil || !falls) {
		return r, primary, plan, nil // if nothing else could answer, the call waits, within its own time
	}
	if !falls {
		return nil, skill.Target{}, skill.Plan{}, unready(primary.Kind, first)
	}
	if first == nil {
		first = plan.Missing
	}
	r, plan, second := s.prepare(ctx, spec, *fallback, false)
	if second == nil {
		second = plan.Missing
	}
	if second == nil {
		return r, *fallback, plan, nil
	}
	return nil, skill.Target{}, skill.Plan{}, &skill.Error{
		Op: "runner.Choose", Code: skill.ToolInvocationError, Subject: string(primary.Kind),
		Message: skill.CleanText(fmt.Sprintf("skill not runnable on this host: %s; fallback: %s", says(primary.Kind, first), says(fallback.Kind, second)), skill.MaxMessage),
		Err:     errors.Join(first, second),
	}
}

// prepare asks the runner of a target, which must not wait if noWait is set.
func (s *Set) prepare(ctx context.Context, spec *skill.Spec, t skill.Target, noWait bool) (skill.Runner, skill.Plan, error) {
	r, err := s.Get(t.Kind)
	if err != nil {
		return nil, skill.Plan{}, err
	}
	of := *spec
	of.NoWait = noWait
	if of.Entry != t.Entry {
		of.Entry, of.Module = t.Entry, "" // a fallback's is another file
	}
	plan, err := r.Prepare(ctx, &of)
	return r, plan, err
}

// OutsideSandbox reports whether runners of this kind execute native code, or code on
// another machine: nothing that the engine holds.
func OutsideSandbox(k skill.Kind) bool { return !strings.HasPrefix(string(k), "wasm:") }

// unready makes the error for the caller. INTERNAL would hide the message, which
// is there to be read.
func unready(k skill.Kind, err error) error {
	code := skill.CodeOf(err)
	if code == skill.Internal {
		code = skill.ToolInvocationError
	}
	return &skill.Error{
		Op: "runner.Choose", Code: code, Subject: string(k), Err: err,
		Message: skill.CleanText("skill not runnable on this host: "+says(k, err), skill.MaxMessage),
	}
}

// says gives the words of a runner for the caller; those of any other error stay
// in the log.
func says(k skill.Kind, err error) string {
	if e, ok := errors.AsType[*skill.Error](err); ok && e.Message != "" {
		return string(k) + ": " + e.Message
	}
	return string(k) + " is not ready"
}

// Close closes every runner and may be called twice.
func (s *Set) Close() error {
	s.close.Do(func() {
		var errs []error
		for _, k := range s.kinds {
			if err := s.byKind[k].Close(); err != nil {
				errs = append(errs, fmt.Errorf("closing %s: %w", k, err))
			}
		}
		s.closed = errors.Join(errs...)
	})
	return s.closed
}
