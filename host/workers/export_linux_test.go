package workers

import (
	"context"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"openskill/sdk/skill"
)

// RefuseNamespaces makes the kernel refuse a process a namespace of its own during a test.
func RefuseNamespaces(t *testing.T) {
	t.Helper()
	before := ofItsOwn
	ofItsOwn = unix.CLONE_NEWNS | unix.CLONE_FS // which contradict each other
	t.Cleanup(func() { ofItsOwn = before })
}

// Fitting and Machine are what the number of workers follows.
var (
	Fitting    = fitting
	Machine    = machine
	LeastLimit = leastLimit
)

// SetShort has a pool ask f whether the machine is short of memory.
func (p *Pool) SetShort(f func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.short = f
}

// Held is a worker whose call has not begun yet.
type Held struct {
	p *Pool
	w *process
}

// Acquire returns the worker of a call.
func (p *Pool) Acquire(ctx context.Context, call *skill.Call) (*Held, error) {
	w, err := p.acquire(ctx, p.o.Key(call), call)
	return &Held{p, w}, err
}

// Pid is that of the worker.
func (h *Held) Pid() string { return strconv.Itoa(h.w.cmd.Process.Pid) }

// Leave says that the call does not need it any more.
func (h *Held) Leave() { h.p.release(h.w) }

// MayMount reports whether a process of a namespace of its own can mount, as a shell finds it.
func MayMount() bool {
	s := newSpawner()
	defer s.close()
	cmd := exec.Command("sh", "-c", "mount -t tmpfs none /proc")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	return s.apart(cmd) == nil && cmd.Wait() == nil && !s.together
}
