package sandbox

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/wasmtest"
)

// slow is a module that is there after a while.
type slow struct {
	io.Reader

	ctx context.Context
	d   time.Duration
}

func (s *slow) Read(b []byte) (int, error) {
	select {
	case <-time.After(s.d):
		s.d = 0
	case <-s.ctx.Done():
	}
	return s.Reader.Read(b)
}

func (*slow) Close() error { return nil }

// What a call waits for before it runs is not in its time where modules are compiled, and
// the caller who leaves ends that, too.
func TestWaitingIsNotInTheTimeOfACall(t *testing.T) {
	e := musttest.Get(wasm.Open(nil))(t)
	defer e.Close()
	c := NewCalls(CallsOf{Engine: e, Op: "test"})
	defer c.Close()
	b := wasmtest.New()
	b.Memory(1)
	b.Command("")
	call := &skill.Call{Folder: t.TempDir(), Limits: skill.Limits{Timeout: 50 * time.Millisecond, Memory: 1 << 20, Fuel: 1 << 30, Output: 1 << 10, Scratch: 1}}
	call.Plan.Module = skill.Module{Digest: wasm.Digest(b.Bytes()), File: wasm.Digest(b.Bytes()), Open: func() (io.ReadCloser, error) {
		return &slow{bytes.NewReader(b.Bytes()), t.Context(), 2 * call.Limits.Timeout}, nil
	}}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for _, want := range []skill.Code{"", skill.Cancelled} {
		r, err := c.Run(ctx, call, func(*skill.Call, *Folder) (*Start, error) { return &Start{}, nil })
		if err != nil || r.Code != want {
			t.Errorf("%+v, %v; %q was expected", r, err, want)
		}
		leave()
	}
}

// A module is what its plan was made of, or is not run.
func TestAnotherModuleThanThePlansIsNotRun(t *testing.T) {
	e := musttest.Get(wasm.Open(nil))(t)
	defer e.Close()
	c := NewCalls(CallsOf{Engine: e, Op: "test"})
	defer c.Close()
	call := &skill.Call{Folder: t.TempDir(), Limits: skill.Limits{Timeout: time.Second, Memory: 1 << 20, Fuel: 1 << 30, Output: 1 << 10, Scratch: 1}}
	call.Plan.Module = skill.Module{Digest: "sha256:other", File: "sha256:other", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte("x"))), nil }}
	r, err := c.Run(t.Context(), call, func(*skill.Call, *Folder) (*Start, error) { return &Start{}, nil })
	if r != nil || skill.CodeOf(err) != skill.Conflict {
		t.Errorf("%+v, %v; want CONFLICT", r, err)
	}
}
