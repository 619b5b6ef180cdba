package python

import (
	"context"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
)

// Program gives what a call runs, for an image of the caller's own on the runner's
// engine: to see what many sandboxes cost that wait. It compiles the runtime if
// that is left to do. The program serves until the runner is closed. The error is
// a *skill.Error.
func (r *Runner) Program(ctx context.Context, call *skill.Call) (*wasm.Program, error) {
	if err := r.gate.Enter("python.Program"); err != nil {
		return nil, err
	}
	defer r.gate.Leave()
	granted, err := r.folders.Grant(call)
	if err != nil {
		return nil, err
	}
	defer granted.Close()
	start, err := r.start(ctx, call, granted, time.Now()) //nolint:forbidigo // a limit of real time
	if err != nil {
		return nil, err
	}
	return r.images.Program(call, granted, start), nil
}
