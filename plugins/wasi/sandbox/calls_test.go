package sandbox

import (
	"context"
	"testing"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/wasmtest"
)

// What a call waits for before it runs is not in its time where modules are compiled, and
// the caller who leaves ends that, too.
func TestWaitingIsNotInTheTimeOfACall(t *testing.T) {
	e, err := wasm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := NewCalls(CallsOf{Engine: e, Op: "test"})
	defer c.Close()
	b := wasmtest.New()
	b.Memory(1)
	b.Command("")
	m, err := e.Compile(t.Context(), b.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	call := &skill.Call{Folder: t.TempDir(), Limits: skill.Limits{Timeout: 50 * time.Millisecond, Memory: 1 << 20, Fuel: 1 << 30, Output: 1 << 10, Scratch: 1}}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for _, want := range []skill.Code{"", skill.Cancelled} {
		r, err := c.Run(ctx, call, func(ctx context.Context, p *Pending) (*Start, error) {
			return &Start{Module: m}, p.Within(ctx, func(ctx context.Context) error {
				select {
				case <-ctx.Done():
				case <-time.After(2 * call.Limits.Timeout):
				}
				return ctx.Err()
			})
		})
		if err != nil || r.Code != want {
			t.Errorf("%+v, %v; %q was expected", r, err, want)
		}
		leave()
	}
}
