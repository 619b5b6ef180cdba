package wasm

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"openskill/wasm/guestfs"
	"openskill/wasm/meter"
	"openskill/wasm/wasi"
)

// Run is one run of a module: what the guest sees, and what it may use. It is
// not changed.
type Run struct {
	// Entry is the exported function to call, without parameters; "" means _start,
	// or nothing if the module has only a start function.
	Entry string
	Args  []string  // the program's name first
	Env   []string  // NAME=value
	Stdin io.Reader // nil: empty; see wasi.Config for readers that block

	// Stdout and Stderr take the output as it comes. nil keeps it for the Outcome.
	Stdout, Stderr io.Writer

	Files  guestfs.FS // what stands behind "/"; nil: nothing. The caller closes it.
	Limits Limits

	// Random, Wall and Mono replace chance and clocks, for replay; nil means the
	// real ones. See wasi.Config.
	Random io.Reader
	Wall   func() time.Time
	Mono   func() int64
}

// execution is the host's state of one run.
type execution struct {
	tank  meter.Tank
	world *wasi.World
	mem   memory
	stack uint64
	top   reflect.Value // of the host's stack for the function that runs
	ended Ended         // the limit that the host ended it with
	stop  bool          // whether ended counts
}

type executionKey struct{}

// endRun is the panic with which refuel and charge leave the guest.
var errEnded = errors.New("ended by the host")

func (x *execution) end(e Ended) {
	if !x.stop {
		x.ended, x.stop = e, true
	}
	panic(errEnded)
}

// refuel is what a metered guest calls when its slice is used up: (fuel, need)
// -> fuel. It is the only place where a guest that computes meets the host.
func (e *Engine) refuel(ctx context.Context, s []uint64) {
	x, ok := ctx.Value(executionKey{}).(*execution)
	if !ok {
		panic(errors.New("wasm: a guest runs without its state"))
	}
	select {
	case <-ctx.Done():
		x.end(endOf(ctx))
	default:
	}
	if depth(x.top, s) > x.stack {
		x.end(OutOfStack)
	}
	next, err := x.tank.Refuel(int64(s[0]), int64(s[1])) //nolint:gosec // bits
	switch {
	case errors.Is(err, meter.ErrTable):
		x.end(OutOfTable)
	case err != nil:
		x.end(OutOfFuel)
	}
	s[0] = uint64(next) //nolint:gosec // bits
}

// charge pays for what a host function does.
func (x *execution) charge(units uint64) {
	if x.tank.Charge(units) != nil {
		x.end(OutOfFuel)
	}
}

func endOf(ctx context.Context) Ended {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return OutOfTime
	}
	return Cancelled
}

// A source of chance is named though no guest can reach it: without one, wazero
// seeds a generator for every instance, a fifth of the price of a small run.
var anonymous = wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader)

// Run instantiates the module, runs it to its end, and throws the instance away.
// The error is non-nil only if the host failed.
func (m *Module) Run(ctx context.Context, r *Run) (*Outcome, error) {
	began := time.Now()
	l := r.Limits.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	out := &Outcome{}
	m, err := m.lease(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		out.Ended, out.Total = endOf(ctx), time.Since(began)
		return out, nil
	case err != nil:
		return nil, err
	}
	defer m.done()

	x := &execution{tank: meter.Tank{Budget: l.Fuel, Slice: m.e.o.Slice}, stack: l.Stack, mem: memory{limit: l.Memory, spaces: m.spaces}}
	var stdout, stderr bytes.Buffer
	cfg := wasi.Config{
		Args: r.Args, Env: r.Env, Stdin: r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr,
		StdoutLimit: l.Output, StderrLimit: l.Output, Root: r.Files, Random: r.Random, Wall: r.Wall, Mono: r.Mono,
		Charge: x.charge, MaxOpenFiles: l.Files,
	}
	if cfg.Stdout == nil {
		cfg.Stdout = &stdout
	}
	if cfg.Stderr == nil {
		cfg.Stderr = &stderr
	}
	x.world = wasi.NewWorld(cfg)
	defer x.world.Close() //nolint:errcheck // descriptors of read-only files and of memory
	defer x.mem.Free()    // wazero does it for instances, but not where a data segment does not fit
	ctx = context.WithValue(ctx, executionKey{}, x)
	ctx = wasi.WithWorld(ctx, x.world)

	err = m.run(ctx, r, x, out, began)
	out.Total = time.Since(began)
	out.Stdout, out.Stderr = stdout.Bytes(), stderr.Bytes()
	out.MemoryPeak = x.mem.peak
	return out, err
}

func (m *Module) run(ctx context.Context, r *Run, x *execution, out *Outcome, began time.Time) error {
	switch {
	case ctx.Err() != nil:
		out.Ended = endOf(ctx)
		return nil
	case m.memoryMin > x.mem.limit:
		out.Ended = OutOfMemory
		return nil
	case m.startTrap != "":
		out.Ended, out.Trap = Trapped, m.startTrap
		return nil
	}
	inst, err := m.e.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, &x.mem), m.compiled, anonymous)
	out.Instantiate = time.Since(began)
	if err != nil {
		return m.settle(x, out, err)
	}
	defer inst.Close(ctx) //nolint:errcheck // frees memory; there is no file behind it
	for _, name := range m.entries(r) {
		f := inst.ExportedFunction(name)
		if f == nil {
			return &NoEntryError{Name: name}
		}
		x.top = m.e.probe.guest(f)
		if err = call(ctx, f); err != nil {
			break
		}
	}
	fuel := inst.ExportedGlobal(meter.ExportFuel).Get()
	out.Fuel = x.tank.Used(int64(fuel)) //nolint:gosec // bits
	return m.settle(x, out, err)
}

// call runs f. What a host function panics with comes back as an error from
// wazero; nothing else may panic here.
func call(ctx context.Context, f api.Function) error {
	_, err := f.Call(ctx)
	return err
}

// NoEntryError says that a module has no function to run.
type NoEntryError struct{ Name string }

// Error names what is missing.
func (e *NoEntryError) Error() string {
	return fmt.Sprintf("the module exports no function %s; build a WASI command (target wasm32-wasip1)", e.Name)
}

// entries are the functions to call, in order.
func (m *Module) entries(r *Run) []string {
	var names []string
	start := m.Exports(meter.ExportStart)
	if start {
		names = append(names, meter.ExportStart)
	}
	switch {
	case r.Entry != "":
		names = append(names, r.Entry)
	case m.Exports("_start") || !start:
		names = append(names, "_start")
	}
	return names
}

// settle decides how the run ended, from what the host recorded. What the guest
// did after the host had refused it memory counts as the refusal.
func (m *Module) settle(x *execution, out *Outcome, err error) error {
	refused := x.mem.refused || x.tank.MemoryRefused
	stop := x.world.Stopped()
	switch {
	case x.stop:
		out.Ended = x.ended
	case stop != nil:
		out.Ended, out.ExitCode = exits[stop.Reason], stop.ExitCode
		if refused && out.Ended == Exited && stop.ExitCode != 0 {
			out.Ended, out.ExitCode = OutOfMemory, 0
		}
	case err == nil:
		out.Ended = Returned
	default:
		kind, ok := trapKind(err)
		switch {
		case !ok:
			return fmt.Errorf("wasm: run: %w", err)
		case refused:
			out.Ended = OutOfMemory
		case kind == "stack overflow":
			out.Ended = OutOfStack
		default:
			out.Ended, out.Trap = Trapped, kind
		}
	}
	if out.Ended == OutOfFuel {
		out.Fuel = x.tank.Spent()
	}
	return nil
}

var exits = map[wasi.Reason]Ended{
	wasi.ReasonExit: Exited, wasi.ReasonOutputLimit: OutputOverflow,
	wasi.ReasonDeadline: OutOfTime, wasi.ReasonCancelled: Cancelled,
}

// trapKind takes the kind of a trap out of wazero's message. The words behind
// the mark are wazero's own; a guest's names come on later lines, if at all.
func trapKind(err error) (string, bool) {
	line, _, _ := strings.Cut(err.Error(), "\n")
	_, kind, ok := strings.Cut(line, "wasm error: ")
	if !ok && strings.Contains(line, "data[") { // a data segment that does not fit its memory
		return "out of bounds memory access", true
	}
	return kind, ok
}
