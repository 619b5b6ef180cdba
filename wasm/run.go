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
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"openskill/wasm/guestfs"
	"openskill/wasm/image"
	"openskill/wasm/lower"
	"openskill/wasm/meter"
	"openskill/wasm/wasi"
)

// Run is one run of a module: what the guest sees, and what it may use. It is
// not changed.
type Run struct {
	// Entry is the exported function to call, without parameters; "" means _start of
	// a command, _initialize and run of a reactor that has both, or nothing if the
	// module has only a start function. What run returns is the exit code.
	Entry string
	Args  []string  // the program's name first
	Env   []string  // NAME=value
	Stdin io.Reader // nil: empty; see wasi.Config for readers that block

	// Stdout and Stderr take the output as it comes. nil keeps it for the Outcome.
	Stdout, Stderr io.Writer

	Files   guestfs.FS      // what stands behind "/"; nil: nothing. The caller closes it.
	Scratch *guestfs.Memory // the part of Files that the guest can write, which counts towards Limits.Memory; nil: none
	Fetch   Fetch           // requests to the network; nil: none
	Limits  Limits

	// Random, Wall and Mono replace chance and clocks, for replay; nil means the
	// real ones. See wasi.Config.
	Random io.Reader
	Wall   func() time.Time
	Mono   func() int64
}

// Fetch answers what a guest asks of the network; see wasi.Config. It sees the end of
// the run in ctx, and returns soon after.
type Fetch func(ctx context.Context, request []byte) (response []byte)

// execution is the host's state of one run.
type execution struct {
	tank  meter.Tank
	world *wasi.World
	mem   memory
	stack uint64
	top   reflect.Value // of the host's stack for the function that runs
	ended Ended         // the limit that the host ended it with
	stop  bool          // whether ended counts
	trap  string        // the kind of a trap that the host found, with ended
	code  uint32        // what the main function returned

	ctx       context.Context //nolint:containedctx // the guest's, for refuel
	pays      *atomic.Uint64  // is added the fuel as it is used; nil: the outcome has it
	paid      uint64          // of that
	fuel      api.MutableGlobal
	exception api.Global // not 0 when a function came back by an exception; nil: none can
	over      func()     // called when the main function is over; nil: nothing
}

// globals finds what the host reads and writes of an instance.
func (x *execution) globals(inst api.Module) {
	x.fuel, _ = inst.ExportedGlobal(meter.ExportFuel).(api.MutableGlobal)
	x.exception = inst.ExportedGlobal(lower.Export)
}

// used is the fuel that was used so far.
func (x *execution) used() uint64 {
	return x.tank.Used(x.fuelLeft())
}

// fuelLeft is what the guest has of what it was granted.
func (x *execution) fuelLeft() int64 {
	if x.fuel == nil {
		return 0
	}
	return int64(x.fuel.Get())
}

// pay adds what was used since the last time.
func (x *execution) pay(used uint64) {
	if x.pays != nil && used > x.paid {
		x.pays.Add(used - x.paid)
		x.paid = used
	}
}

// account notes the fuel of a run that is over.
func (x *execution) account(out *Outcome) { out.Fuel = x.used() }

// uncaught is the kind of the trap of an exception that nobody caught.
const uncaught = "uncaught exception"

// returned is called when a function of the run came back.
func (x *execution) returned() {
	if x.exception != nil && x.exception.Get() != 0 {
		x.trap = uncaught
		x.end(Trapped)
	}
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
// -> fuel. It is the only place where a guest that computes meets the host. It does not change
// the guest's memory or globals; see meter.ImportRefuel.
func (e *Engine) refuel(ctx context.Context, s []uint64) {
	x, ok := ctx.Value(executionKey{}).(*execution)
	if !ok {
		panic(errors.New("wasm: a guest runs without its state"))
	}
	switch visit, code := meter.VisitOf(int64(s[1])); visit {
	case meter.Return:
		x.returned()
		return // with the fuel that is left
	case meter.End:
		x.returned()
		x.code = code
		if x.over != nil {
			x.over()
		}
		return
	case meter.NeedsFuel:
	}
	x.pay(x.tank.Used(int64(s[0])))
	select {
	case <-ctx.Done():
		x.end(endOf(ctx))
	default:
	}
	if depth(x.top, s) > x.stack {
		x.end(OutOfStack)
	}
	x.world.Yield(ctx)
	next, err := x.tank.Refuel(int64(s[0]), int64(s[1]))
	switch {
	case errors.Is(err, meter.ErrTable):
		x.end(OutOfTable)
	case err != nil:
		x.end(OutOfFuel)
	}
	s[0] = uint64(next)
}

// charge pays for what a host function does.
func (x *execution) charge(units uint64) {
	if x.tank.Charge(units) == nil {
		return
	}
	// What was handed out to the guest and is not used yet counts as well.
	rest := x.tank.Left()
	if x.fuel == nil || x.tank.Charge(rest) != nil {
		x.end(OutOfFuel)
	}
	left := int64(x.fuel.Get()) - int64(units-rest)
	x.fuel.Set(uint64(left))
	if left < 0 {
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

	x := &execution{tank: meter.Tank{Budget: l.Fuel, Slice: m.e.o.Slice}, stack: l.Stack, mem: memory{limit: l.Memory, tables: countedTables(m.tables), spaces: m.spaces}}
	defer x.mem.share(r.Scratch)()
	var stdout, stderr bytes.Buffer
	cfg := wasi.Config{
		Args: r.Args, Env: r.Env, Stdin: r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr,
		StdoutLimit: l.Output, StderrLimit: l.Output, Root: r.Files, Random: r.Random, Wall: r.Wall, Mono: r.Mono,
		Charge: x.charge, Hold: x.mem.hold, Space: image.Zeros, Release: image.Release, MaxOpenFiles: l.Files, Fetch: r.Fetch,
	}
	if cfg.Stdout == nil {
		cfg.Stdout = &stdout
	}
	if cfg.Stderr == nil {
		cfg.Stderr = &stderr
	}
	x.world = wasi.NewWorld(cfg)
	defer x.world.Close()
	defer x.mem.Free() // wazero does it for instances, but not where a data segment does not fit
	ctx = context.WithValue(ctx, executionKey{}, x)
	ctx = wasi.WithWorld(ctx, x.world)

	err = m.run(ctx, r, x, out, began)
	out.Total = time.Since(began)
	out.Stdout, out.Stderr = stdout.Bytes(), stderr.Bytes()
	out.MemoryPeak = x.mem.most
	return out, err
}

func (m *Module) run(ctx context.Context, r *Run, x *execution, out *Outcome, began time.Time) error {
	err := m.instantiate(ctx, x, func(inst api.Module) (err error) {
		out.Instantiate = time.Since(began)
		x.globals(inst)
		for _, name := range m.entries(r) {
			f := inst.ExportedFunction(name)
			if !entered(f) {
				return &NoEntryError{Name: name}
			}
			x.top = m.e.probe.guest(f)
			if err = invoke(ctx, f); err != nil {
				return err
			}
			if x.exception != nil && x.exception.Get() != 0 {
				x.ended, x.stop, x.trap = Trapped, true, uncaught
				return errEnded
			}
		}
		return nil
	})
	x.account(out)
	return x.settle(ctx, out, err)
}

// instantiate makes an instance, lets do work with it, and throws it away. The
// error is that of do, or says why there is no instance.
func (m *Module) instantiate(ctx context.Context, x *execution, do func(api.Module) error) error {
	switch {
	case ctx.Err() != nil:
		x.ended, x.stop = endOf(ctx), true
		return errEnded
	case m.memoryMin > x.mem.room(x.mem.files+x.mem.tables):
		x.ended, x.stop = OutOfMemory, true
		return errEnded
	case m.startTrap != "":
		x.ended, x.stop, x.trap = Trapped, true, m.startTrap
		return errEnded
	}
	inst, err := m.e.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, &x.mem), m.compiled, anonymous)
	if err != nil {
		return err
	}
	defer inst.Close(ctx)
	return do(inst)
}

// invoke runs f. What a host function panics with comes back as an error from
// wazero; nothing else may panic here.
func invoke(ctx context.Context, f api.Function) error {
	_, err := f.Call(ctx)
	return err
}

// entered reports whether a function can be called to run a module: with nothing.
func entered(f api.Function) bool { return f != nil && len(f.Definition().ParamTypes()) == 0 }

// NoEntryError says that a module has no function to run.
type NoEntryError struct{ Name string }

// Error names what is missing.
func (e *NoEntryError) Error() string {
	return fmt.Sprintf("the module exports no function %s without parameters; build a WASI command (target wasm32-wasip1)", e.Name)
}

// entries are the functions to call, in order.
func (m *Module) entries(r *Run) []string {
	if r.Entry == "" && m.Exports(meter.ExportMain) {
		return []string{meter.ExportMain}
	}
	var names []string
	if m.Exports(meter.ExportStart) {
		names = append(names, meter.ExportStart)
	}
	if r.Entry == "" {
		return append(names, "_start")
	}
	return append(names, r.Entry)
}

// settle decides how the run ended, from what the host recorded. What the guest
// did after the host had refused it memory counts as the refusal.
func (x *execution) settle(ctx context.Context, out *Outcome, err error) error {
	refused := x.mem.refused || x.tank.MemoryRefused
	stop := x.world.Stopped()
	switch {
	case x.stop:
		out.Ended, out.Trap = x.ended, x.trap
	case stop != nil:
		out.Ended, out.ExitCode, out.Trap = exits[stop.Reason], stop.ExitCode, stop.What
		if refused && out.Ended == Exited && stop.ExitCode != 0 {
			out.Ended, out.ExitCode = OutOfMemory, 0
		}
	case err == nil && x.code != 0:
		out.Ended, out.ExitCode = Exited, x.code
		if refused {
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
	switch done := out.Ended == Returned || out.Ended == Exited; {
	case done && out.Fuel > x.tank.Spent():
		out.Ended, out.ExitCode = OutOfFuel, 0 // charged since the last test, but used all the same
	case done && late(ctx):
		out.Ended, out.ExitCode = OutOfTime, 0 // one bulk operation on 2 GiB takes seconds, without a test in it
	}
	if out.Ended == OutOfFuel {
		out.Fuel = x.tank.Spent()
	}
	out.Plugin = x.world.Plugin()
	return nil
}

// late reports whether the deadline has passed; its timer may not have had its turn yet.
func late(ctx context.Context) bool {
	d, ok := ctx.Deadline()
	return ok && time.Now().After(d)
}

var exits = map[wasi.Reason]Ended{
	wasi.ReasonExit: Exited, wasi.ReasonOutputLimit: OutputOverflow,
	wasi.ReasonDeadline: OutOfTime, wasi.ReasonCancelled: Cancelled, wasi.ReasonReplay: Diverged,
	wasi.ReasonMemory: OutOfMemory, wasi.ReasonFault: Trapped, wasi.ReasonFuel: OutOfFuel,
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
