// This is a runner for tests: it executes nothing and answers as it
// is told.

package runnertest

import (
	"context"
	"slices"
	"sync"

	"openskill/sdk/skill"
)

// Runner answers with the fields below. Set them before the first call; it is
// then safe for concurrent use. The zero value has the kind "" and replies {}.
type Runner struct {
	Is       skill.Kind                                                        // the kind
	NotReady error                                                             // what Prepare answers
	Missing  error                                                             // of its plans
	Answer   func(ctx context.Context, call *skill.Call) (*skill.Reply, error) // nil: exit 0 with {} on standard output

	mu     sync.Mutex
	specs  []*skill.Spec
	calls  []*skill.Call
	closed int
}

var _ skill.Runner = (*Runner)(nil)

// Kind is r.Is.
func (r *Runner) Kind() skill.Kind { return r.Is }

// Prepare records what it is asked for, and gives a plan.
func (r *Runner) Prepare(_ context.Context, s *skill.Spec) (skill.Plan, error) {
	r.mu.Lock()
	r.specs = append(r.specs, s)
	r.mu.Unlock()
	return skill.Plan{Missing: r.Missing}, r.NotReady
}

// Specs gives what it was asked to prepare so far.
func (r *Runner) Specs() []*skill.Spec {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.specs)
}

// Run records the call and answers.
func (r *Runner) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	r.mu.Lock()
	r.calls = append(r.calls, call)
	r.mu.Unlock()
	if r.Answer == nil {
		return Prints("{}"), nil
	}
	return r.Answer(ctx, call)
}

// Close counts.
func (r *Runner) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed++
	return nil
}

// Calls gives what was run so far.
func (r *Runner) Calls() []*skill.Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Closed says how often Close was called.
func (r *Runner) Closed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// Prints is a reply of a guest that wrote stdout and ended with 0.
func Prints(stdout string) *skill.Reply { return &skill.Reply{Stdout: []byte(stdout)} }

// Always answers every call with a copy of reply.
func Always(reply skill.Reply) func(context.Context, *skill.Call) (*skill.Reply, error) {
	return func(context.Context, *skill.Call) (*skill.Reply, error) {
		r := reply
		return &r, nil
	}
}
