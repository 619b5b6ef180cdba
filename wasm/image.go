package wasm

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"openskill/wasm/guestfs"
	"openskill/wasm/image"
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
}

// Files are what stands behind an instance's descriptors.
type Files struct {
	Root    guestfs.FS      // nil: nothing
	Scratch *guestfs.Memory // the part of Root that guests can write; nil: none
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

	// Done is called when the guest has ended, before anything of the run is taken
	// away; it may read files, and must not keep them. nil: nothing.
	Done func(Files)

	// Random, Wall and Mono replace chance and clocks, for replay; nil means the
	// real ones. See wasi.Config.
	Random io.Reader
	Wall   func() time.Time
	Mono   func() int64
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
}

// Image is a program that is started once and run many times. A module that reads
// its input from standard input does all its start-up before the first read; there
// its instances wait, and every run begins in a state that holds what the start-up
// made, and nothing of any other run.
//
// What the start-up printed is in the output of each run. It saw a clock and a
// source of chance of the image's own, so that all instances are alike; a run sees
// the real ones. A module that never reads, or whose state cannot be put back,
// gives the same results from an instance for each run.
//
// It is safe for concurrent use.
type Image struct {
	e       *Engine
	program Program
	max     int
	spare   int
	once    bool
	left    leftOut // by a test
	made    time.Time
	seed    [32]byte

	mu       sync.Mutex
	closed   bool
	idle     []*instance // the latest used last
	waiters  []chan ready
	live     int
	starting int
	starts   int           // ever
	latest   *instance     // that was launched
	took     time.Duration // the latest start-up
	silent   bool          // the latest start-up never read its input
	memory   *image.Memory // of the first instance, which is that of most
	others   int           // instances with a memory of their own
	used     time.Time
	all      sync.WaitGroup
}

// ready is what a run waits for: an instance that waits for it, or one whose
// start-up has ended in another way.
type ready struct {
	in     *instance
	failed *instance
}

// Image makes an image of a program. Nothing is started before the first run, or
// Warm. Close gives everything back; closing the engine does too.
func (e *Engine) Image(p *Program, opts *ImageOptions) *Image {
	im := &Image{e: e, program: *p, made: time.Now().Truncate(time.Second)} //nolint:forbidigo // what all instances see
	if opts != nil {
		im.max, im.spare, im.once = opts.Instances, opts.Spare, opts.Once
	}
	def(&im.max, 64)
	def(&im.spare, 2)
	if im.once {
		im.spare = 0
	}
	_, _ = rand.Read(im.seed[:]) // never fails
	e.images.add(im)
	return im
}

// chance is the source of chance of a start-up: of this image alone, and the same
// for all its instances.
func (im *Image) chance() io.Reader { return mathrand.NewChaCha8(im.seed) }

// Run runs the program once, from its first read of input. The error is non-nil
// only if the host failed.
func (im *Image) Run(ctx context.Context, r *Call) (*Outcome, error) {
	c := &call{Call: r, limits: r.Limits.withDefaults(), began: time.Now(), done: make(chan struct{})} //nolint:forbidigo // a limit of real time
	var cancel context.CancelFunc
	c.ctx, cancel = context.WithTimeout(ctx, c.limits.Timeout)
	defer cancel()
	got, err := im.acquire(c.ctx)
	switch {
	case errors.Is(err, ErrClosed):
		return nil, err
	case err != nil:
		return &Outcome{Ended: endOf(c.ctx), Total: time.Since(c.began)}, nil
	case got.failed != nil:
		return got.failed.alone(c)
	}
	got.in.calls <- c
	<-c.done // the guest sees the context, and every wait of the host's ends with it
	return c.outcome, c.err
}

// alone gives the outcome of an instance that ended without asking for input: all
// of its run was start-up, and it is this call's.
func (in *instance) alone(c *call) (*Outcome, error) {
	if in.err != nil {
		return nil, in.err
	}
	out := in.outcome
	out.Total = time.Since(c.began)
	for _, o := range []struct {
		own *[]byte
		w   io.Writer
	}{{&out.Stdout, c.Stdout}, {&out.Stderr, c.Stderr}} {
		if int64(len(*o.own)) > c.limits.Output {
			*o.own, out.Ended, out.ExitCode = (*o.own)[:c.limits.Output], OutputOverflow, 0
		}
		if o.w != nil {
			_, _ = o.w.Write(*o.own) // as a guest's own output would be lost too
			*o.own = nil
		}
	}
	return out, nil
}

// acquire waits for an instance, and starts one where that is quicker.
func (im *Image) acquire(ctx context.Context) (ready, error) {
	im.mu.Lock()
	if im.closed {
		im.mu.Unlock()
		return ready{}, ErrClosed
	}
	im.used = time.Now() //nolint:forbidigo // compared with the same clock
	if n := len(im.idle); n > 0 {
		in := im.idle[n-1]
		im.idle = im.idle[:n-1]
		im.mu.Unlock()
		im.e.images.left(im, 1)
		return ready{in: in}, nil
	}
	w := make(chan ready, 1)
	im.waiters = append(im.waiters, w)
	im.grow(false)
	patience := max(2*im.took, 20*time.Millisecond)
	im.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case r, ok := <-w:
			if !ok {
				return ready{}, ErrClosed
			}
			return r, nil
		case <-timer.C:
			// Those that run take longer than another one takes to start.
			im.mu.Lock()
			im.grow(true)
			im.mu.Unlock()
			timer.Reset(patience)
		case <-ctx.Done():
			im.mu.Lock()
			i := slices.Index(im.waiters, w)
			if i >= 0 {
				im.waiters = slices.Delete(im.waiters, i, i+1)
			}
			im.mu.Unlock()
			if r, ok := <-orNone(w, i < 0); ok && r.in != nil { // just now
				im.put(r.in, false)
			}
			return ready{}, context.Cause(ctx)
		}
	}
}

// orNone is w if something was sent to it, else a channel that is closed.
func orNone(w chan ready, sent bool) chan ready {
	if !sent {
		close(w)
	}
	return w
}

// grow starts an instance if runs wait for one and it would be of use. Im.mu is held.
func (im *Image) grow(impatient bool) {
	enough := max(im.spare, runtime.GOMAXPROCS(0))
	switch {
	case im.closed || im.live >= im.max || im.starting >= len(im.waiters):
		return
	case im.silent: // each run is a start-up
	case im.starting >= runtime.GOMAXPROCS(0):
		return // there are no processors for more
	case im.live >= enough && !impatient:
		return // one of them is soon free
	}
	im.launch()
}

// launch starts an instance. Im.mu is held.
func (im *Image) launch() {
	im.live++
	im.starting++
	im.starts++
	im.all.Add(1)
	im.latest = im.start()
}

// put offers an instance that waits for a call.
func (im *Image) put(in *instance, first bool) {
	im.mu.Lock()
	in.since = time.Now() //nolint:forbidigo // compared with the same clock
	if first {
		im.starting--
		im.silent = false
		im.took = in.since.Sub(in.began)
	}
	in.private = in.own
	switch {
	case im.closed:
		im.mu.Unlock()
		close(in.calls)
		return
	case len(im.waiters) > 0:
		w := im.waiters[0]
		im.waiters = im.waiters[1:]
		w <- ready{in: in}
		im.mu.Unlock()
		return
	}
	im.idle = append(im.idle, in)
	im.mu.Unlock()
	im.e.images.came(im)
}

// gone is called when an instance is about to end.
func (im *Image) gone(in *instance) {
	im.mu.Lock()
	defer im.all.Done()
	defer im.mu.Unlock()
	im.live--
	select {
	case <-in.parked:
		if in.saved != nil && in.saved.memory != im.memory {
			im.others--
			in.saved.memory.Close()
		}
	default: // its start-up ended otherwise
		im.starting--
		im.silent = true
		if len(im.waiters) > 0 {
			w := im.waiters[0]
			im.waiters = im.waiters[1:]
			w <- ready{failed: in}
		}
	}
	if im.live == 0 && im.memory != nil {
		im.memory.Close()
		im.memory = nil
	}
	if im.closed {
		return
	}
	for range im.waiters {
		im.grow(true)
	}
	if !im.silent && !im.once && im.live < im.spare && len(im.waiters) == 0 && time.Since(im.used) < idleTime {
		im.launch()
	}
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
	return m
}

// Warm starts instances until n exist and have read nothing yet, or have served
// runs. It returns when they do.
func (im *Image) Warm(ctx context.Context, n int) error {
	n = min(n, im.max)
	for {
		im.mu.Lock()
		im.used = time.Now() //nolint:forbidigo // compared with the same clock
		switch {
		case im.closed:
			im.mu.Unlock()
			return ErrClosed
		case im.live-im.starting >= n:
			im.mu.Unlock()
			return nil
		case im.live < n && im.starting < runtime.GOMAXPROCS(0):
			im.launch()
		}
		in := im.latest
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
			return errors.New("wasm: the program ended before it asked for input: " + in.outcome.Ended.String())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close ends the instances that wait, and waits for the runs under way. It may be
// called twice.
func (im *Image) Close() error {
	im.mu.Lock()
	was := im.closed
	im.closed = true
	idle, waiters := im.idle, im.waiters
	im.idle, im.waiters = nil, nil
	im.mu.Unlock()
	im.e.images.left(im, len(idle))
	for _, w := range waiters {
		close(w)
	}
	for _, in := range idle {
		close(in.calls)
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
	im.e.images.left(im, len(out))
	for _, in := range out {
		close(in.calls)
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
		n += instanceCost + in.private
		switch {
		case in.saved == nil:
			n += in.x.mem.peak
		case in.saved.memory != im.memory:
			n += in.saved.memory.Held()
		}
	}
	return n
}

func byUse(all []*Image) []*Image {
	used := make(map[*Image]time.Time, len(all))
	for _, im := range all {
		im.mu.Lock()
		used[im] = im.used
		im.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b *Image) int { return used[a].Compare(used[b]) })
	return all
}
