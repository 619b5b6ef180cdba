package wasi

import (
	"context"
	"crypto/rand"
	"io"
	"reflect"
	"time"

	"github.com/tetratelabs/wazero/api"

	"openskill/wasm/guestfs"
	"openskill/wasm/tape"
)

// Defaults for zero fields of [Config].
const (
	DefaultOutputLimit  = 1 << 20
	DefaultMaxOpenFiles = 128
)

// The grain of the real clocks, as clock_res_get reports it.
const (
	WallGrain = time.Millisecond
	MonoGrain = time.Microsecond
)

// monoStart is what the guest's monotonic clock shows when a World begins.
const monoStart = int64(time.Second)

// Config is what one run sees. It is copied by NewWorld; the zero Config is a
// world with no arguments, no files, empty input and dropped output.
type Config struct {
	Args []string // argv, the program's name first; nil: none
	Env  []string // "NAME=value"; nil: none

	// Stdin is the input. nil: empty. *bytes.Reader, *bytes.Buffer and
	// *strings.Reader are read directly; any other reader is read by a goroutine,
	// one Read of up to 64 KiB at a time, so that a Read that never returns does
	// not hold up the run's end. That goroutine ends when its Read returns, so a
	// caller that ends a run early closes the reader's other side.
	Stdin io.Reader

	// Stdout and Stderr are the outputs. nil: dropped, but counted. They must not
	// block for long: nothing interrupts a Write. A failing Write is EIO.
	Stdout, Stderr io.Writer

	// StdoutLimit and StderrLimit are in bytes. 0: DefaultOutputLimit (1 MiB);
	// negative: not one byte. At the limit the part that fits is written, then
	// the run ends with ReasonOutputLimit.
	StdoutLimit, StderrLimit int64

	// Root is the file system behind the only preopen, "/". nil: no preopen. Its
	// owner closes it, after the World.
	Root guestfs.FS

	// Random is the source of random_get. nil: crypto/rand. A failing Read is EIO.
	Random io.Reader

	// Wall is the time of day. nil: the real one, cut to WallGrain (1 ms).
	Wall func() time.Time

	// Mono is the time since the World began, in nanoseconds, never going back.
	// nil: the real one, cut to MonoGrain (1 us). Sleeps take real time always.
	Mono func() int64

	// Charge is called with the cost of a call, for work that a guest's own
	// instructions do not show: a constant for each call, and about one unit for
	// 8 bytes copied. nil: nothing. It may panic to end the run; the World stays
	// consistent.
	Charge func(units uint64)

	// Hold is told how much memory of the host's, in bytes, the guest has beside its own,
	// and says how much that may be: the blocks of [PluginModule]. What is more than it
	// said before is a refusal. nil: as much as there is.
	Hold func(bytes uint64) (most uint64)

	// Space gives address space of this many zeros for more than a few of those blocks, and
	// Release takes it back; nil: they are kept as other memory of the host's is.
	Space   func(bytes uint64) []byte
	Release func(space []byte)

	// Begin is called when the guest first asks for standard input, by reading it
	// or by polling it, or for anything of [PluginModule] that has an answer, before anything of the input is looked at: until then a
	// guest has seen nothing but what is in this Config. The World may be saved and
	// restored in it. When it returns, the call is answered from the World as it is
	// then. Where Answer has a World answer the same call again, Begin is not
	// called. nil: nothing.
	Begin func(ctx context.Context, mod api.Module, p Pending)

	// Idle is called when the guest reads standard input again, with the arguments of the call in
	// place, before anything is read. It need not return. nil: nothing.
	Idle func(args []uint64)

	// Exit is called when the guest calls proc_exit, after the stop is recorded and
	// before the guest is unwound. It need not return. nil: nothing.
	Exit func()

	// Slept is told how long a sleep took, where Mono is not nil: a clock that is
	// not the real one has to move on by that. nil: nobody.
	Slept func(d time.Duration)

	// Fetch answers what the guest asks of the network: the functions of
	// [OutgoingModule], and files of guestfs.Exchange. It returns soon after ctx has
	// ended; ctx is that of the call of the host function. What the bytes mean is
	// between it and the guest. nil: nothing can be asked, which is EACCES.
	Fetch func(ctx context.Context, request []byte) (response []byte)

	// Process is who the guest is: what files of guestfs.Processes tell it. It has the
	// streams that it was started with in the place of those above, unless it is the first of
	// its run. nil: it cannot ask, which is EACCES.
	Process *Process

	// Group makes the group of a first process when that starts another one, by [NewGroup];
	// nil: it may start none.
	Group func(first *Process)

	// MaxOpenFiles is how many descriptors may be open at once, the standard
	// streams and the preopen included. 0: DefaultMaxOpenFiles (128).
	MaxOpenFiles int

	// Record is told of all that the guest is given of clocks, of chance and of the
	// network, in the order in which it asks. nil: nobody.
	Record *tape.Recorder

	// Replay gives all that instead: no clock, no chance and no network is looked at,
	// and time that the guest waits for has passed at once. A guest that asks for
	// what it has not ends with ReasonReplay. nil: the world is the real one.
	Replay *tape.Player
}

// World is all that the host keeps for one run. It serves one guest and is not
// safe for concurrent use, but that Close may follow a call that has returned on
// another goroutine.
type World struct {
	cfg Config

	// Of the host call under way.
	ctx context.Context //nolint:containedctx // it does not outlive the call
	mod api.Module
	mem api.Memory // nil if the module has none

	fds    []descriptor // index is the descriptor's number
	inline [6]descriptor
	in     *input     // of its process group, where it is in one
	out    [2]*output // stdout, stderr; the same
	talk   []byte     // the rest of the last response to the functions of OutgoingModule
	plug   plugin
	// Directories whose entries are in memory, the oldest first.
	listings []*handle

	began   time.Time
	stopped Stop
	closed  bool
}

// NewWorld makes the world of one run. It opens nothing and does not block.
func NewWorld(cfg Config) *World {
	w := &World{}
	w.configure(cfg)
	w.began = realNow()
	w.fds = append(w.inline[:0],
		descriptor{kind: isStdin, rights: canRead},
		descriptor{kind: isStdout, rights: canWrite},
		descriptor{kind: isStderr, rights: canWrite})
	if cfg.Root != nil {
		w.fds = append(w.fds, descriptor{kind: isDir, path: ".", preopen: true})
	}
	w.join()
	return w
}

func (w *World) configure(cfg Config) {
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	if cfg.MaxOpenFiles <= 0 {
		cfg.MaxOpenFiles = DefaultMaxOpenFiles
	}
	w.cfg = cfg
	in, out, err := newInput(cfg.Stdin), newOutput(cfg.Stdout, cfg.StdoutLimit), newOutput(cfg.Stderr, cfg.StderrLimit)
	switch p := cfg.Process; {
	case p == nil || p.group == nil:
		w.in, w.out = in, [2]*output{out, err}
	case p.ID == 1: // its start-up began the group, whose other processes have these already
		*w.in, *w.out[0], *w.out[1] = *in, *out, *err
	default:
		w.in, w.out = p.group.in, p.group.out
	}
}

// join gives the guest the streams that its process was started with.
func (w *World) join() {
	p := w.cfg.Process
	if p == nil || p.group == nil || p.ID == 1 || len(w.fds) < len(p.std) {
		return
	}
	for i := range p.std {
		_ = w.closeFD(&w.fds[i]) // a standard stream of the start-up
		w.fds[i], p.std[i] = p.std[i], descriptor{}
	}
}

// Close closes every descriptor. It may be called twice; the World is of no use
// afterwards, but Stopped and Written keep their answers.
func (w *World) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	err := w.closeAll()
	w.ctx, w.mod, w.mem = nil, nil, nil
	w.talk = nil
	w.unplug()
	return err
}

// Stopped is the first stop that the host recorded, nil if there was none: the
// guest returned by itself, trapped, or was ended by something else.
func (w *World) Stopped() *Stop {
	if w.stopped.Reason == 0 {
		return nil
	}
	stop := w.stopped
	return &stop
}

// Written is how many bytes the guest has written to its standard streams.
func (w *World) Written() (stdout, stderr int64) { return w.out[0].count, w.out[1].count }

// enter prepares for one host call.
func (w *World) enter(ctx context.Context, mod api.Module) {
	if w.stopped.Reason != 0 {
		w.end(0, 0)
	}
	w.ctx, w.mod = ctx, mod
	w.mem = mod.Memory()
	// A module without a memory gives an interface around a nil pointer.
	if w.mem != nil && reflect.ValueOf(w.mem).IsNil() {
		w.mem = nil
	}
	w.checkContext()
}

// The costs of a call, in units of Config.Charge.
const (
	costCall  = 32   // every call
	costPath  = 1024 // a path to resolve: system calls of the host
	costEntry = 16   // an entry of a directory
	chunk     = 64 << 10
)

// Pending is a host call that waits to be answered.
type Pending struct {
	// InPlace are the arguments where the guest has put them; they are valid in Config.Begin only.
	InPlace []uint64

	call func(w *World, p []uint64) uint64
	args [4]uint64
}

// Same reports whether these are the arguments of the call.
func (p *Pending) Same(args []uint64) bool {
	for i, a := range args {
		if i >= len(p.args) || uint32(a) != uint32(p.args[i]) {
			return false
		}
	}
	return true
}

// begin tells the embedder that the guest asks for input.
func (w *World) begin(call func(w *World, p []uint64) uint64, p []uint64) {
	f := w.cfg.Begin
	if f == nil {
		return
	}
	w.cfg.Begin = nil
	ctx, mod, mem := w.ctx, w.mod, w.mem
	pending := Pending{InPlace: p, call: call}
	copy(pending.args[:], p)
	f(ctx, mod, pending)
	w.ctx, w.mod, w.mem = ctx, mod, mem
	// Paid again, since Answer pays it: the first run from a saved state uses as much
	// fuel as the others.
	w.checkContext()
	w.charge(costCall)
}

// Answer does a pending call, in the World as it is now, and gives its result.
func (w *World) Answer(ctx context.Context, mod api.Module, p Pending) uint64 {
	w.enter(ctx, mod)
	w.charge(costCall)
	return p.call(w, p.args[:])
}

func (w *World) charge(units uint64) {
	if w.cfg.Charge != nil {
		w.cfg.Charge(units)
	}
}

// copied charges for n bytes, and is where a long copy notices its deadline.
func (w *World) copied(n int) {
	w.charge(uint64(n+7) / 8)
	w.checkContext()
}

func (w *World) wall() time.Time {
	if p := w.cfg.Replay; p != nil {
		n, err := p.Wall()
		w.given(err)
		return time.Unix(0, n)
	}
	t := w.timeOfDay()
	if r := w.cfg.Record; r != nil {
		n := int64(nanos(t))
		r.Wall(n)
		t = time.Unix(0, n)
	}
	return t
}

func (w *World) timeOfDay() time.Time {
	if w.cfg.Wall != nil {
		return w.cfg.Wall()
	}
	return realNow().Truncate(WallGrain)
}

// Now is the time of day as the guest would see it now, for files that it writes.
func (w *World) Now() time.Time { return w.wall() }

func (w *World) elapsed() int64 {
	if w.cfg.Mono != nil {
		return w.cfg.Mono()
	}
	return int64(realNow().Sub(w.began).Truncate(MonoGrain))
}

// realNow is the clock behind the nil clocks of Config, the only one here.
func realNow() time.Time {
	return time.Now()
}

func (w *World) mono() int64 {
	if p := w.cfg.Replay; p != nil {
		n, err := p.Mono()
		w.given(err)
		return monoStart + n
	}
	n := w.elapsed()
	if r := w.cfg.Record; r != nil {
		r.Mono(n)
	}
	return monoStart + n
}

// chance fills b with random bytes.
func (w *World) chance(b []byte) error {
	if p := w.cfg.Replay; p != nil {
		w.given(p.Chance(b))
		return nil
	}
	_, err := io.ReadFull(w.cfg.Random, b)
	if r := w.cfg.Record; r != nil && err == nil {
		r.Chance(b)
	}
	return err
}

// answer gives what the network says to a request.
func (w *World) answer(request []byte) []byte {
	if p := w.cfg.Replay; p != nil {
		response, err := p.Answer(request)
		w.given(err)
		return response
	}
	response := w.cfg.Fetch(w.ctx, request)
	if r := w.cfg.Record; r != nil {
		r.Answer(request, response)
	}
	return response
}

// given ends the run where its recording has not got what it asks for.
func (w *World) given(err error) {
	if err != nil {
		w.end(ReasonReplay, 0)
	}
}

type worldKey struct{}

// WithWorld hands w to the host functions that are called with this context.
func WithWorld(ctx context.Context, w *World) context.Context {
	return context.WithValue(ctx, worldKey{}, w)
}
