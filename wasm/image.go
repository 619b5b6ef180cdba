package wasm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"openskill/wasm/guestfs"
	"openskill/wasm/image"
	"openskill/wasm/tape"
)

// Program is a module with all that its start-up can see: everything that is the
// same in all runs. It is not changed.
type Program struct {
	Module *Module
	Args   []string // the program's name first
	Env    []string // NAME=value

	// Open gives the files of one instance; nil: none. It is called on any goroutine.
	Open func() (Files, error)

	// Limits bound the start-up. Memory, Stack and Files hold for the runs as well.
	Limits Limits

	// Fetch answers what a start-up asks of the network, which must be the same
	// always: what it says becomes part of all runs. nil: EACCES. A start-up that
	// serves one run alone has that run's.
	Fetch Fetch
}

// Files are what stands behind an instance's descriptors.
type Files struct {
	Root    guestfs.FS      // nil: nothing
	Scratch *guestfs.Memory // the part of Root that guests can write, which counts towards Limits.Memory; nil: none
	Begun   func()          // called once, when the start-up is over; nil: nothing
	Close   func()          // called once, when the instance is gone; nil: nothing
}

// Call is one run of an image. It is not changed.
type Call struct {
	Stdin io.Reader // nil: empty; see wasi.Config for readers that block

	// Stdout and Stderr take the output as it comes. nil keeps it for the Outcome.
	Stdout, Stderr io.Writer

	// Limits bound the run: Fuel, Timeout and Output. Fuel counts from the first read
	// of input on.
	Limits Limits

	Fetch Fetch // requests to the network; nil: none

	// Self is what the guest is told that it was started with, by files of guestfs.Processes:
	// Args, Env and Dir. nil: it has nothing to ask but of processes that it starts.
	Self *Process

	// Programs finds the programs of processes that the run starts. They share its files, its
	// limits and its standard streams, and end with its first process. nil: it may start none.
	Programs Programs

	// StartFuel is added what the start-ups use that are begun for this run, which is
	// none where an instance waits, and the ones that replace what it spoilt. They outlive
	// the run, and so does this: the caller takes from it what it has counted. nil: nobody
	// counts.
	StartFuel *atomic.Uint64

	// Begin is called before the run and may add files, which exist for this run only. If it returns an error,
	// the guest does not run and Run returns the error. May be nil.
	Begin func(Files) error

	// Done is called when the guest has ended, before anything of the run is taken
	// away; it may read files, and must not keep them. It may be called on another
	// goroutine, and if it panics, Run does. nil: nothing.
	Done func(Files)

	// Random, Wall and Mono replace chance and clocks; nil means the real ones. See
	// wasi.Config.
	Random io.Reader
	Wall   func() time.Time
	Mono   func() int64

	// KeepState ends the run where the guest would read standard input as it did the first time, and
	// has the outcome tell the state of its memory. State is that of an earlier run, which this one goes
	// on with; nil: it begins anew. Status gives the exit code of a run that ends there; nil: 0.
	KeepState bool
	State     []byte
	Status    func(Files) uint32

	// Record is told of all that the run draws from outside, Replay gives that instead;
	// nil: neither. Stdin is then one that is read directly, and the files are what they
	// were: what a guest sees of other ones is not on the tape. See wasi.Config.
	Record *tape.Recorder
	Replay *tape.Player
}

// Start is what the start-ups of an image see in the place of chance and clocks.
type Start struct {
	Seed [32]byte
	Made time.Time // in whole seconds
}

// NewStart makes one out of chance and the time of day.
func NewStart() Start {
	s := Start{Made: time.Now().Truncate(time.Second)}
	_, _ = rand.Read(s.Seed[:]) // never fails
	return s
}

// ImageOptions configure an [Image]; nil and zero fields mean the defaults.
type ImageOptions struct {
	// Instances is how many may exist at once; 0 means 64. Runs beyond that wait.
	Instances int
	// Spare is how many are kept ready while the image is in use, so that a run that
	// spoils its instance does not make the next one wait; 0 means 2, negative none.
	Spare int
	// Once has every instance serve one run, and keeps none ready: slow, and the same
	// results. For comparisons.
	Once bool
	// Start is what start-ups see; nil: a new one. Two images of one program and one
	// Start begin alike, whatever processes they are in.
	Start *Start
}

// Image is a program that is started once and run many times. A module that reads
// its input from standard input does all its start-up before the first read; there
// its instances wait, and every run begins in a state that holds what the start-up
// made, and nothing of any other run.
//
// What the start-up printed is in the output of each run. It saw a clock and a
// source of chance of the image's own, so that all instances are alike; a run sees
// the real ones. A program that never reads, or whose state cannot be put back,
// has an instance for each run, with the same results; where all of a run is
// start-up, that sees the real clock and real chance.
//
// It is safe for concurrent use.
type Image struct {
	e       *Engine
	program Program
	max     int
	spare   int
	once    bool
	left    leftOut // by a test
	begin   Start

	mu       sync.Mutex
	closed   bool
	idle     []*instance // the latest used last
	waiters  []*waiter
	live     int
	starting int
	starts   int                    // ever
	latest   *instance              // that was launched
	fresh    map[*instance]struct{} // those that start
	warming  int                    // calls of Warm
	took     time.Duration          // the latest start-up
	silent   bool                   // the latest start-up never read its input
	failures int                    // of start-ups that were to be shared
	memory   *image.Memory          // of the first instance, which is that of most
	others   int                    // instances with a memory of their own
	used     time.Time
	all      sync.WaitGroup
	slots    chan struct{} // one for each instance that is started for one run
}

// Image makes an image of a program. Nothing is started before the first run, or
// Warm. Close gives everything back; closing the engine does too.
func (e *Engine) Image(p *Program, opts *ImageOptions) *Image {
	im := &Image{e: e, program: *p}
	if opts != nil {
		im.max, im.spare, im.once = opts.Instances, opts.Spare, opts.Once
	}
	if opts != nil && opts.Start != nil {
		im.begin = *opts.Start
	} else {
		im.begin = NewStart()
	}
	def(&im.max, 64)
	def(&im.spare, 2)
	im.slots, im.fresh = make(chan struct{}, im.max), map[*instance]struct{}{}
	e.images.add(im)
	return im
}

// chance is the source of chance of a start-up: of this image alone, and the same
// for all its instances.
func (im *Image) chance() io.Reader { return mathrand.NewChaCha8(im.begin.Seed) }

// Run runs the program once, from its first read of input. The error is non-nil
// only if the host failed.
func (im *Image) Run(ctx context.Context, r *Call) (*Outcome, error) {
	c := &call{Call: r, limits: r.Limits.withDefaults(), began: time.Now()}
	var cancel context.CancelFunc
	c.ctx, cancel = context.WithTimeout(ctx, c.limits.Timeout)
	defer cancel()
	return im.run(c)
}

func (im *Image) run(c *call) (*Outcome, error) {
	in, err := im.acquire(c.ctx, c.StartFuel) // a start-up outlives the call that it is begun for
	switch {
	case err != nil && c.ctx.Err() != nil: // all of its run was start-up
		return &Outcome{Ended: endOf(c.ctx), Fuel: c.startFuel(), Total: time.Since(c.began)}, nil // a start-up outlives the call that it is begun for
	case err != nil:
		return nil, err
	case in == nil:
		return im.only(c) // a start-up outlives the call that it is begun for
	}
	in.serve(c) // the guest sees the context, and every wait of the host's ends with it
	return c.result()
}

// startFuel takes what start-ups have used for c so far.
func (c *call) startFuel() uint64 {
	if c.StartFuel == nil {
		return 0
	}
	return c.StartFuel.Swap(0)
}

// only runs c on an instance that is started for it: under its limits from the
// beginning, with the real clock and real chance.
func (im *Image) only(c *call) (*Outcome, error) {
	select {
	case im.slots <- struct{}{}:
	case <-c.ctx.Done():
		return &Outcome{Ended: endOf(c.ctx), Total: time.Since(c.began)}, nil
	}
	defer func() { <-im.slots }()
	im.mu.Lock()
	if im.closed {
		im.mu.Unlock()
		return nil, ErrClosed
	}
	im.live++
	im.starts++
	im.all.Add(1)
	in := im.start(c, c.StartFuel)
	im.mu.Unlock()
	select {
	case <-in.parked:
		in.serve(c)
		im.mu.Lock()
		// It asked for input after all: the next start-up may be shared again, unless
		// the program makes a game of it.
		im.silent = im.silent && im.failures > 1
		im.mu.Unlock()
		return c.result()
	case <-in.ended: // as it does when the call's time is over
		return in.alone(c)
	}
}

// alone gives the outcome of an instance that ended without asking for input: all
// of its run was start-up, and it is this call's.
func (in *instance) alone(c *call) (*Outcome, error) {
	switch {
	case in.err != nil && c.ctx.Err() != nil:
		return &Outcome{Ended: endOf(c.ctx), Fuel: in.outcome.Fuel, Total: time.Since(c.began)}, nil
	case in.err != nil:
		return nil, in.err
	}
	out := in.outcome
	if c.Done != nil {
		c.Done(in.files)
	}
	for _, o := range []struct {
		own *[]byte
		w   io.Writer
	}{{&out.Stdout, c.Stdout}, {&out.Stderr, c.Stderr}} {
		if o.w != nil {
			_, _ = o.w.Write(*o.own) // as a guest's own output would be lost too
			*o.own = nil
		}
	}
	out.Total = time.Since(c.began)
	return out, nil
}

// freeze gives a memory with this content: the one that the image has, if it is
// the same. nil: there can be none.
func (im *Image) freeze(content []byte) *image.Memory {
	im.mu.Lock()
	shared := im.memory
	im.mu.Unlock()
	if shared != nil && shared.Size() == uint64(len(content)) && shared.Equal(content) {
		return shared
	}
	m, err := image.New(content)
	if err != nil {
		return nil
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.memory == nil {
		im.memory = m
	} else if im.memory.Size() == m.Size() && im.memory.Equal(content) { // another was faster
		m.Close()
		return im.memory
	} else {
		im.others++
	}
	im.e.images.made.Add(1)
	return m
}

// ErrNoInput is what [Image.Warm] says of a program that ends by itself without asking
// for input: it has no image.
var ErrNoInput = errors.New("wasm: the program ended before it asked for input")

// Warm starts instances until n exist and have read nothing yet, or have served
// runs. It returns when they do.
func (im *Image) Warm(ctx context.Context, n int) error {
	n = min(n, im.max)
	im.mu.Lock()
	im.warming++
	im.mu.Unlock()
	defer func() {
		im.mu.Lock()
		im.warming--
		im.mu.Unlock()
	}()
	for {
		im.mu.Lock()
		im.used = time.Now()
		switch {
		case im.closed:
			im.mu.Unlock()
			return ErrClosed
		case im.live-im.starting >= n:
			im.mu.Unlock()
			return nil
		case im.live < n && im.starting < runtime.GOMAXPROCS(0):
			im.launch(nil) // a start-up outlives the call that it is begun for
		}
		in := im.latest
		for in = range im.fresh { // one that still starts, if there is any
			break
		}
		im.mu.Unlock()
		select {
		case <-in.parked:
		case <-in.ended:
			select {
			case <-in.parked: // it was, and somebody had it run
				continue
			default:
			}
			if in.err != nil {
				return in.err
			}
			if e := in.outcome.Ended; e != Returned && e != Exited {
				return fmt.Errorf("wasm: the start-up did not come to ask for input: %s", e)
			}
			return fmt.Errorf("%w: %s", ErrNoInput, in.outcome.Ended)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close ends the instances that wait and those that start, and waits for the runs
// under way. It may be
// called twice.
func (im *Image) Close() error {
	im.mu.Lock()
	was := im.closed
	im.closed = true
	idle, waiters := im.idle, im.waiters
	im.idle, im.waiters = nil, nil
	for in := range im.fresh { // nobody will have use of them
		in.cancel()
	}
	im.mu.Unlock()
	im.e.images.left(len(idle))
	for _, w := range waiters {
		w.told <- ready{err: ErrClosed}
	}
	for _, in := range idle {
		in.retire()
	}
	im.all.Wait()
	if !was {
		im.e.images.remove(im)
	}
	return nil
}

// retire ends up to n idle instances for which due holds, the longest idle first,
// and tells how many.
func (im *Image) retire(due func(*instance) bool, n int) int {
	im.mu.Lock()
	var out []*instance
	im.idle = slices.DeleteFunc(im.idle, func(in *instance) bool {
		if len(out) == n || !due(in) {
			return false
		}
		out = append(out, in)
		return true
	})
	im.mu.Unlock()
	im.e.images.left(len(out))
	for _, in := range out {
		in.retire()
	}
	return len(out)
}

// settle takes from idle instances the pages that their last run wrote, if that
// was a while ago, and gives the bytes that the image holds.
func (im *Image) settle(now time.Time) uint64 {
	im.mu.Lock()
	for _, in := range im.idle {
		if in.private > 0 && now.Sub(in.since) > settleTime && in.saved.memory.Drop(in.x.mem.space, in.saved.size) {
			in.private = 0
			in.saved.stack.trim()
		}
	}
	im.mu.Unlock()
	return im.held()
}

// held is the memory of the image and of its idle instances, in bytes.
func (im *Image) held() uint64 {
	im.mu.Lock()
	defer im.mu.Unlock()
	n := uint64(0)
	if im.memory != nil {
		n = im.memory.Held()
	}
	for _, in := range im.idle {
		n += instanceCost + in.private + im.program.Module.tables
		if in.saved == nil {
			n += in.x.mem.peak
			continue
		}
		n += in.saved.scratch.bytes
		if in.saved.memory != im.memory {
			n += in.saved.memory.Held()
		}
	}
	return n
}
