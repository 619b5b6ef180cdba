package wasm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"openskill/wasm/image"
	"openskill/wasm/meter"
	"openskill/wasm/wasi"
)

// instance is a module that was started and waits at its first read of standard
// input, in a coroutine, for calls. What it has seen until then is in the Program. It
// serves one call at a time, on the goroutine of whoever makes that: between two
// goroutines a call would wait until a thread is woken, which takes longer than many a
// guest.
//
// After a call it is put back to what it was at that read, if all of its state can
// be; if not, it ends with that call.
type instance struct {
	im    *Image
	x     *execution
	live  liveContext
	files Files

	// only is the call that the instance is started for, with the real clock and real
	// chance, since all of the run may be start-up; nil: it is started for any.
	only *call
	pays *atomic.Uint64 // for the start-up; nil: nobody counts

	cancel context.CancelFunc // of the start-up's time

	// resume lets the coroutine go on until it waits the next time, and reports whether
	// it does. One at a time may call it: who started the instance, then who took it from
	// the image. Given is the next call; nil: there is none, and the instance ends.
	resume func() bool
	given  *call
	// retired says that it ends since nobody needs it.
	retired bool

	parked chan struct{} // closed when it waits for its first call
	ended  chan struct{} // closed when everything is given back

	// Owned by the coroutine.
	wait    func() // until resume is called
	mod     api.Module
	now     *call // under way; nil: none
	startup outputs
	saved   *frozen          // what it is put back to; nil: it serves one call
	own     uint64           // bytes of pages of its own after the last reset
	brief   bool             // the next reset takes a moment, as the last one did
	dated   func() time.Time // the clock of scratch space while a call has its own; nil: it has not
	// verified says that a reset was held against the image's bytes.
	verified  bool
	began     time.Time // of the start-up
	startFuel uint64    // that it used

	// Valid when ended is closed and parked is not: how the start-up ended.
	outcome *Outcome
	err     error

	// Guarded by Image.mu.
	private uint64 // bytes of pages of its own, while it is idle
	since   time.Time
}

// call is one run, on its way through an instance.
type call struct {
	*Call
	ctx            context.Context //nolint:containedctx // the run's
	limits         Limits
	began, entered time.Time
	stdout, stderr bytes.Buffer // what the Call takes no writer for
	outcome        *Outcome
	err            error
	failed         any // what Done panicked with

	self  *wasi.Process // who the guest is; nil: it cannot ask
	group *group        // nil: it is alone
	files *Files        // of a process that another one started; nil: the instance's

	unready error // of Begin, or of its state

	read bool // it has read standard input
	idle bool // it has come to where another run can go on
}

// ready calls Begin and reports whether it succeeded.
func (c *call) ready(f Files) bool {
	if c.Begin != nil {
		c.unready = c.Begin(f)
	}
	return c.unready == nil
}

// fetch gives the Fetch of the call with a context that ends with this call, whatever
// the instance does next.
func (c *call) fetch() Fetch {
	if c.Fetch == nil {
		return nil
	}
	return func(_ context.Context, request []byte) []byte { return c.Fetch(c.ctx, request) } // that of the call, which the instance has not
}

// result is what the caller is told of a call that was served.
func (c *call) result() (*Outcome, error) {
	if c.failed != nil {
		panic(c.failed) // where it can be seen, and the next call of the instance is not harmed
	}
	return c.outcome, c.err
}

// frozen is the state of an instance at its first read of input.
type frozen struct {
	memory  *image.Memory
	size    uint64 // of the memory, in bytes
	globals []api.MutableGlobal
	values  []uint64
	touched api.Global // nil if the module has nothing to touch
	world   *wasi.Saved
	scratch scratchSaved
	pending wasi.Pending
	stack   *checkpoint
	depth   uint64 // of the host's stack, in bytes
}

// liveContext is the context of everything that a guest does: its values are the
// instance's, its end is that of the call under way.
type liveContext struct {
	context.Context //nolint:containedctx // of the values

	now context.Context //nolint:containedctx // of the end
}

func (c *liveContext) Deadline() (time.Time, bool) { return c.now.Deadline() }
func (c *liveContext) Done() <-chan struct{}       { return c.now.Done() }
func (c *liveContext) Err() error                  { return c.now.Err() }

// outputs are what a guest printed while it started.
type outputs struct{ stdout, stderr bytes.Buffer }

// start makes an instance and lets it run to its first read of input. only is nil,
// or the one call that it serves.
func (im *Image) start(only *call, pays *atomic.Uint64) *instance {
	in := &instance{im: im, only: only, pays: pays, parked: make(chan struct{}), ended: make(chan struct{})}
	in.began = time.Now()
	l := im.program.Limits.withDefaults()
	ctx, cancel := context.WithTimeout(context.Background(), l.Timeout)
	if only != nil {
		ctx = only.ctx
		l.Fuel, l.Memory, l.Output = only.limits.Fuel, min(l.Memory, only.limits.Memory), only.limits.Output
	}
	in.cancel = cancel
	next, _ := iter.Pull(func(yield func(struct{}) bool) { // a start-up outlives the call that it is begun for
		in.wait = func() { yield(struct{}{}) }
		in.main(ctx, l)
	})
	in.resume = func() bool { _, waits := next(); return waits }
	go func() {
		if !in.resume() {
			return
		}
		close(in.parked)
		if only == nil {
			im.put(in, true)
		}
	}()
	return in
}

// serve runs a call to its end, and has the instance put back. Where that takes a
// moment only, it is done at once: to have another goroutine do it wakes a thread, and
// that takes longer.
func (in *instance) serve(c *call) {
	in.given = c
	in.resume()
	if in.brief {
		in.comeBack()
		return
	}
	go in.comeBack()
}

// comeBack lets an instance that has served a call come back to where it waits, or end.
func (in *instance) comeBack() {
	if in.resume() {
		in.im.put(in, false)
	}
}

// retire ends an instance that waits for a call.
func (in *instance) retire() {
	in.given, in.retired = nil, true
	go in.resume()
}

// spoilt reports whether the instance ends because a run did to it what cannot be put
// back.
func (in *instance) spoilt() bool {
	select {
	case <-in.parked:
		return !in.retired
	default:
		return false // its start-up ended otherwise
	}
}

func (in *instance) main(ctx context.Context, l Limits) {
	defer in.cancel()
	p := &in.im.program
	in.outcome = &Outcome{}
	defer close(in.ended)
	defer in.im.gone(in) // a start-up outlives the call that it is begun for
	m, err := p.Module.lease(ctx)
	if err != nil {
		in.err = err
		return
	}
	defer m.done()
	if only := in.only; only != nil && only.files != nil {
		in.files = Files{Root: only.files.Root}
	} else if p.Open != nil {
		if in.files, in.err = p.Open(); in.err != nil {
			return
		}
		if in.files.Close != nil {
			defer in.files.Close()
		}
	}
	if in.only != nil && !in.only.ready(in.files) {
		in.err = in.only.unready
		return
	}
	x := &execution{tank: meter.Tank{Budget: l.Fuel, Slice: m.e.o.Slice}, stack: l.Stack, mem: memory{limit: l.Memory, tables: countedTables(m.tables), spaces: m.spaces}}
	in.x = x
	x.over = in.over
	if in.only == nil {
		x.pays = in.pays // as it goes: a start-up may outlive the run that it is begun for
	}
	defer x.mem.share(in.files.Scratch)()
	cfg := wasi.Config{
		Args: p.Args, Env: p.Env, Stdout: &in.startup.stdout, Stderr: &in.startup.stderr,
		StdoutLimit: l.Output, StderrLimit: l.Output, Root: in.files.Root, MaxOpenFiles: l.Files,
		Charge: x.charge, Hold: x.mem.hold, Space: image.Zeros, Release: image.Release, Begin: in.begin, Exit: in.exit,
	}
	if in.only == nil {
		clock := &startClock{wall: in.im.begin.Made}
		cfg.Random, cfg.Wall, cfg.Mono, cfg.Slept = in.im.chance(), clock.Wall, clock.Mono, clock.Slept
		cfg.Fetch = p.Fetch
	} else {
		cfg.Fetch, cfg.Record, cfg.Replay = in.only.fetch(), in.only.Record, in.only.Replay
		in.join(in.only)
		in.process(in.only, &cfg)
	}
	x.world = wasi.NewWorld(cfg)
	if in.only != nil {
		in.tape(in.only)
	}
	defer x.world.Close()
	defer x.mem.Free()
	in.live.now = ctx //nolint:fatcontext // of the call under way, and then of the next
	in.live.Context = wasi.WithWorld(context.WithValue(context.Background(), executionKey{}, x), x.world)
	x.ctx = &in.live
	in.run(m) // a start-up outlives the call that it is begun for
	if in.saved != nil {
		_ = in.saved.world.Release()
	}
}

// run lives as long as the instance: a guest that is put back to its first read
// never comes back from its main function.
func (in *instance) run(m *Module) {
	x, out := in.x, in.outcome
	err := m.instantiate(&in.live, x, func(inst api.Module) error {
		in.mod = inst
		x.globals(inst)
		f := inst.ExportedFunction(meter.ExportMain)
		if !entered(f) {
			return &NoEntryError{Name: "_start"}
		}
		x.top = m.e.probe.guest(f)
		return invoke(experimental.WithSnapshotter(&in.live), f)
	})
	if errors.Is(err, errRetired) {
		return // between two calls, and nobody waits
	}
	if c := in.now; c != nil {
		in.now = nil
		in.settle(c, err)
		in.deliver(c)
		return
	}
	x.account(out)
	out.MemoryPeak = x.mem.most
	var host error
	if in.only != nil {
		host = in.leave(in.only, out)
	}
	in.err = errors.Join(x.settle(x.ctx, out, err), host)
	x.pay(out.Fuel)
	out.Total = time.Since(in.began)
	out.Stdout, out.Stderr = in.startup.stdout.Bytes(), in.startup.stderr.Bytes()
}

// errRetired ends an instance between two calls.
var errRetired = errors.New("wasm: the instance is not needed any more")

// begin is called by the guest's first read: the start-up is over.
func (in *instance) begin(ctx context.Context, mod api.Module, p wasi.Pending) {
	in.startFuel = in.x.used()
	in.x.pays = in.pays
	in.x.pay(in.startFuel)
	in.x.pays = nil // what comes is a run's
	if in.files.Begun != nil {
		in.files.Begun()
	}
	in.freeze(ctx, p)
	in.next()
}

// next waits for a call, and makes the instance ready for it.
func (in *instance) next() {
	in.wait()
	c := in.given
	if c == nil {
		panic(errRetired)
	}
	in.now = c
	c.entered = time.Now()
	in.prepare(c)
}

// prepare lets a call see its own input, clock and limits, and nothing of others.
func (in *instance) prepare(c *call) {
	x, p := in.x, &in.im.program
	in.live.now = c.ctx //nolint:fatcontext // of the call under way, and then of the next
	x.tank = meter.Tank{Budget: c.limits.Fuel, Slice: x.tank.Slice}
	in.join(c)
	x.fuel.Set(0)
	x.stop, x.ended, x.trap, x.code = false, 0, "", 0
	l := p.Limits.withDefaults()
	x.mem.begin(min(l.Memory, c.limits.Memory), in.files.Scratch)
	cfg := wasi.Config{
		Args: p.Args, Env: p.Env, Stdin: c.Stdin, Stdout: c.writer(c.Stdout, &c.stdout), Stderr: c.writer(c.Stderr, &c.stderr),
		Root: in.root(c), MaxOpenFiles: l.Files, Random: c.Random, Wall: c.Wall, Mono: c.Mono, Charge: x.charge, Hold: x.mem.hold, Space: image.Zeros, Release: image.Release, Exit: in.exit,
		Fetch: c.fetch(), Record: c.Record, Replay: c.Replay,
	}
	if in.im.leaves(leaveChance) {
		cfg.Random = in.im.chance()
	}
	if c.KeepState {
		cfg.Idle = in.idle
	}
	over, room := false, true
	in.process(c, &cfg)
	if c.files == nil { // a process's streams are its group's
		cfg.StdoutLimit, over = c.replay(cfg.Stdout, in.startup.stdout.Bytes(), over)
		cfg.StderrLimit, over = c.replay(cfg.Stderr, in.startup.stderr.Bytes(), over)
	}
	if in.saved != nil && !in.im.leaves(leaveDescriptors) {
		_ = x.world.Restore(in.saved.world, cfg) // closing what was only read
	} else {
		world := x.world.Save()
		_ = x.world.Restore(world, cfg)
		_ = world.Release()
	}
	in.tape(c)
	if c.KeepState {
		room, c.unready = in.thaw(c)
	}
	switch {
	case c.unready != nil || !c.ready(in.files):
		x.end(Cancelled)
	case !room:
		x.end(OutOfMemory)
	case over:
		x.end(OutputOverflow)
	case x.mem.most > x.mem.limit: // the start-up alone took more
		x.end(OutOfMemory)
	}
}

// tape has files of scratch space dated by the clock that is on the tape of a call.
func (in *instance) tape(c *call) {
	if (c.Record == nil && c.Replay == nil && !c.KeepState) || in.files.Scratch == nil || in.dated != nil {
		return
	}
	in.dated = in.files.Scratch.SetClock(in.x.world.Now)
}

// untape ends that before anything of the call is put back.
func (in *instance) untape() {
	if in.dated != nil {
		in.files.Scratch.SetClock(in.dated)
		in.dated = nil
	}
}

func (c *call) writer(w io.Writer, own *bytes.Buffer) io.Writer {
	if w != nil {
		return w
	}
	return own
}

// replay begins an output with what the start-up printed, and gives the limit for
// the rest; over if there is no room for that.
func (c *call) replay(w io.Writer, printed []byte, over bool) (int64, bool) {
	left := c.limits.Output - int64(len(printed))
	if left < 0 {
		printed, left, over = printed[:c.limits.Output], 0, true
	}
	if len(printed) > 0 {
		_, _ = w.Write(printed) // as a guest's own output would be lost too
	}
	if left == 0 {
		left = -1 // not one byte
	}
	return left, over
}

// exit is called by the guest's proc_exit.
func (in *instance) exit() {
	if in.now != nil {
		in.finish()
	}
}

// over is called when the main function has returned.
func (in *instance) over() {
	if in.now != nil {
		in.finish()
	}
}

// fewBytes is how much memory is put back in the time that it takes to wake a thread.
const fewBytes = 256 << 10

// finish ends a call from within the guest, and begins the next one if the
// instance can be put back. It returns only if not.
func (in *instance) finish() {
	c := in.now
	in.now = nil
	in.settle(c, nil)
	if o := c.outcome; c.idle && (o.Ended == Returned || o.Ended == Exited) {
		o.State = in.capture()
	}
	s := in.saved
	again := in.restorable()
	in.brief = again && in.verified && in.own <= fewBytes
	in.deliver(c)
	if !again || !in.reset() {
		panic(errRetired)
	}
	in.im.e.images.restored.Add(1)
	in.next()
	s.stack.restore(in.x.world.Answer(&in.live, in.mod, s.pending))
}

// settle decides how a call ended.
func (in *instance) settle(c *call, err error) {
	in.untape()
	x, out := in.x, &Outcome{StartFuel: in.startFuel, Shared: in.only == nil}
	x.account(out)
	out.MemoryPeak = x.mem.most
	host := in.leave(c, out)
	c.err = errors.Join(x.settle(c.ctx, out, err), host, c.unready)
	out.Instantiate = c.entered.Sub(c.began)
	c.outcome = out
}

// deliver hands the outcome to the caller, and comes back when that goes on.
func (in *instance) deliver(c *call) {
	defer in.wait()
	defer func() { c.failed = recover() }()
	if c.Done != nil {
		c.Done(in.files)
	}
	c.outcome.Stdout, c.outcome.Stderr = c.stdout.Bytes(), c.stderr.Bytes()
	c.outcome.Total = time.Since(c.began)
}

// startClock is the clock of a start-up: it begins at a fixed time and moves by a
// little at every look, so that all instances of an image see the same.
type startClock struct {
	wall time.Time
	at   int64
}

func (c *startClock) Mono() int64 {
	c.at += int64(time.Microsecond)
	return c.at
}

func (c *startClock) Wall() time.Time {
	return c.wall.Add(time.Duration(c.Mono())).Truncate(wasi.WallGrain)
}

func (c *startClock) Slept(d time.Duration) { c.at += int64(d) }
