package skillbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
)

// Parts are the times of a warm call below the door; each is one call's.
type Parts struct {
	Runner time.Duration // all of the runner's, the others included
	Take   time.Duration // an instance is taken and given the call's input, clock and limits
	Guest  time.Duration // from its first read of input to its end
	Back   time.Duration // what came of it is collected, and the instance put back
}

// Below measures them in turn, some calls each round. Fuel is what a guest used.
type Below struct {
	runner skill.Runner
	image  *wasm.Image
	call   *skill.Call
	Fuel   uint64
}

// BelowRust is the call of the skill echo.
func (b *Bench) BelowRust(ctx context.Context, input string) (*Below, error) {
	call := &skill.Call{
		SkillID: "echo", Folder: filepath.Join(b.o.Skills, "echo"), Entry: "echo.wasm", Trust: skill.Builtin, Stdin: stdin(input), Limits: limits,
	}
	if err := planned(ctx, b.wasi, call); err != nil {
		return nil, err
	}
	p, err := b.wasi.Program(ctx, call)
	if err != nil {
		return nil, err
	}
	return b.below(ctx, b.wasi, p, call)
}

// BelowPython is the call of the script stdlib.py.
func (b *Bench) BelowPython(ctx context.Context, input string) (*Below, error) {
	call := b.script("stdlib.py", input)
	if _, _, err := once(ctx, b.python, call); err != nil { // which compiles the runtime, or says what is missing
		return nil, err
	}
	if err := planned(ctx, b.python, call); err != nil {
		return nil, err
	}
	p, err := b.python.Program(ctx, call)
	if err != nil {
		return nil, err
	}
	return b.below(ctx, b.python, p, call)
}

func (b *Bench) below(ctx context.Context, r skill.Runner, p *wasm.Program, call *skill.Call) (*Below, error) {
	w := &Below{runner: r, call: call, image: b.o.Engine.Image(p, nil)}
	for range 20 { // the first ones start instances
		if _, err := w.parts(ctx); err != nil {
			return nil, errors.Join(err, w.image.Close())
		}
	}
	return w, nil
}

// Close ends the image.
func (w *Below) Close() error { return w.image.Close() }

// firstRead notes when the guest asked for input.
type firstRead struct {
	io.Reader

	at time.Time
}

func (f *firstRead) Read(p []byte) (int, error) {
	if f.at.IsZero() {
		f.at = time.Now()
	}
	return f.Reader.Read(p)
}

func (w *Below) parts(ctx context.Context) (p Parts, err error) {
	began := time.Now()
	reply, _, err := once(ctx, w.runner, w.call)
	if err != nil {
		return p, err
	}
	p.Runner, w.Fuel = time.Since(began), reply.Usage.Fuel
	in, ended := &firstRead{Reader: bytes.NewReader(w.call.Stdin)}, time.Time{}
	l := w.call.Limits
	began = time.Now()
	out, err := w.image.Run(ctx, &wasm.Call{
		Stdin: in, Limits: wasm.Limits{Fuel: l.Fuel, Timeout: l.Timeout, Output: int64(l.Output)},
		Done: func(wasm.Files) { ended = time.Now() },
	})
	over := time.Now()
	switch {
	case err != nil:
		return p, err
	case out.Ended != wasm.Exited && out.Ended != wasm.Returned || out.ExitCode != 0 || in.at.IsZero():
		return p, fmt.Errorf("%s: %s, exit code %d: %.300s", w.call.Entry, out.Ended, out.ExitCode, out.Stderr)
	}
	p.Take, p.Guest, p.Back = in.at.Sub(began), ended.Sub(in.at), over.Sub(ended)
	return p, nil
}

// Calls gives the parts of some calls, one after the other.
func (w *Below) Calls(ctx context.Context, n int) (all []Parts, err error) {
	for range n {
		p, err := w.parts(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// again has a started Python do what stdlib.py does after its imports, many times.
const again = `import sys, io, time
code = compile(open(sys.argv[1]).read(), "stdlib.py", "exec")
times = []
for _ in range(2000):
    sys.stdin, sys.stdout, names = io.StringIO(sys.argv[2]), io.StringIO(), {"__name__": "__main__"}
    t = time.perf_counter_ns()
    exec(code, names)
    times.append(time.perf_counter_ns() - t)
times.sort()
sys.__stdout__.write(str(times[1000]))
`

// Again is how long native Python takes for the same script once all is imported: the
// least that its guest could take.
func (b *Bench) Again(ctx context.Context, n *Native, input string) (time.Duration, error) {
	out, err := exec.CommandContext(ctx, n.Path, "-I", "-c", again, filepath.Join(b.o.Scripts, "stdlib.py"), string(stdin(input))).Output()
	if err != nil {
		return 0, err
	}
	ns := int64(0)
	_, err = fmt.Sscan(strings.TrimSpace(string(out)), &ns)
	return time.Duration(ns), err
}

// HandOver is how long two processes take that do nothing but hand some bytes to each
// other and back, by pipes: the least that a call in another process could take.
func HandOver(ctx context.Context, size, rounds int) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, "cat")
	to, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	b := make([]byte, size)
	began := time.Now()
	for range rounds {
		if _, err = to.Write(b); err == nil {
			_, err = io.ReadFull(from, b)
		}
		if err != nil {
			break
		}
	}
	took := time.Since(began) / time.Duration(rounds)
	return took, errors.Join(err, to.Close(), cmd.Wait())
}
