package wasi

import (
	"context"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"openskill/wasm/guestfs"
	"openskill/wasm/tape"
)

// The bounds of a group.
const (
	// MaxAlive is how many processes there may be at once, those included that have ended
	// and that nobody has waited for.
	MaxAlive = 64
	// MaxStarted is how many a run may start in all.
	MaxStarted = 1000

	// maxArguments is how many bytes the arguments and variables of all that live have.
	maxArguments = 8 << 20
)

// sigkill is how a process ends that the host ends.
const sigkill = 9

// Exit is how a process ended.
type Exit struct {
	Code   uint32
	Signal uint8 // that ended it, as Linux counts them; 0: it ended by itself, with Code
}

// Ran is a process that a run started.
type Ran struct {
	ID, Parent int
	Program    string // without arguments
	Exit       Exit
}

// The bounds of what is told of processes afterwards.
const (
	maxRan     = 100
	maxProgram = 64 // bytes of a name
)

// Process is one of a run: a guest with a World of its own.
type Process struct {
	ID   int // 1 is the first of the run
	Args []string
	Env  []string // NAME=value
	Dir  string   // working folder, absolute

	group  *Group        // nil until the first process starts another one or makes a pipe
	parent *Process      // nil: the first, and of those whose parent has ended
	std    [3]descriptor // as it begins; of others than the first

	// A process but the first is a coroutine of the first one's goroutine: between two
	// goroutines a turn would wait until a thread is woken, which takes longer than many a process.
	resume func() // has it go on until it waits or ends
	pause  func() // waits, on whichever goroutine the process has come to, until resume is called

	// Guarded by Group.mu.
	ready  func() bool // whether what it waits for has come; nil: it waits for nothing
	until  int64       // when it goes on without that, by Group.now; 0: never
	timed  bool        // it went on without that
	signal uint8       // that it is to end with; 0: none
	exit   *Exit       // nil: it lives
	slices int         // of fuel since its turn began
	size   int         // of Args and Env, in bytes
	talk   int         // bytes of its requests and responses; see World.mayTalk
}

// Group is the processes of one run. One of them runs at a time, and gives the turn to the next
// one where it waits for another process or a time, and after a while. Who is next follows from
// what the guests did and were told alone, so that a run can be made again.
type Group struct {
	o   GroupOptions
	ctx context.Context //nolint:containedctx // of the processes, which outlive the call that started them
	end context.CancelFunc

	in  *input
	out [2]*output

	began time.Time
	piped atomic.Int64 // bytes in pipes

	mu      sync.Mutex
	order   []*Process // that live, in the order of their last turns
	ended   []*Process // that nobody has waited for
	started int
	told    []Ran
	stopped Stop // what ended the run for all of them
}

// GroupOptions configure a [Group].
type GroupOptions struct {
	// Start finds the program of a process. Not found is ENOENT.
	Start  func(p *Process) (*Started, guestfs.Errno)
	Record *tape.Recorder // as in Config
	Replay *tape.Player
}

// Started is how a process is run.
type Started struct {
	// Run runs the process and returns when it has ended, or soon after the context has. It is
	// called on its own goroutine, while no other process runs. It is not called if the
	// process is killed before its first turn.
	Run  func(ctx context.Context) Exit
	Drop func() // called once, at its end
}

// NewGroup makes the group of a run whose first process is p. It ends with ctx.
func NewGroup(ctx context.Context, p *Process, o GroupOptions) *Group {
	g := &Group{o: o, began: realNow(), order: []*Process{p}, started: 1}
	g.ctx, g.end = context.WithCancel(ctx)
	p.ID, p.group = 1, g
	return g
}

// Close ends all processes but the first, which calls it. It may be called twice.
func (g *Group) Close() {
	g.end()
	for {
		g.mu.Lock()
		i := slices.IndexFunc(g.order, func(p *Process) bool { return p.resume != nil })
		if i < 0 {
			g.mu.Unlock()
			return
		}
		p := g.order[i]
		g.mu.Unlock()
		p.resume()
	}
}

// Stop ends the run for all processes.
func (g *Group) Stop(reason Reason, what string) {
	g.mu.Lock()
	if g.stopped.Reason == 0 {
		g.stopped = Stop{Reason: reason, What: what}
	}
	g.mu.Unlock()
	g.end()
}

// Ran gives the first of the processes that were started, and how many there were. Those that
// have not ended are told as killed.
func (g *Group) Ran() (first []Ran, started int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.told), g.started - 1
}

// now is the time since the group began, in nanoseconds. False: the recording has none.
func (g *Group) now() (int64, bool) {
	if p := g.o.Replay; p != nil {
		n, err := p.Mono()
		return n, err == nil
	}
	n := g.elapsed()
	if r := g.o.Record; r != nil {
		r.Mono(n)
	}
	return n, true
}

func (g *Group) elapsed() int64 { return int64(realNow().Sub(g.began).Truncate(MonoGrain)) }

// start adds a process. Its turn comes when the others wait.
func (g *Group) start(p *Process) guestfs.Errno {
	g.mu.Lock()
	size := p.size
	for _, o := range g.order {
		size += o.size
	}
	if len(g.order)+len(g.ended) >= MaxAlive || g.started >= MaxStarted {
		g.mu.Unlock()
		return guestfs.EAGAIN
	}
	g.mu.Unlock()
	if size > maxArguments {
		return guestfs.E2BIG
	}
	program, errno := g.o.Start(p)
	if errno != 0 {
		return errno
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.started++
	p.ID, p.group = g.started, g
	g.order = append(g.order, p)
	if len(g.told) < maxRan {
		g.told = append(g.told, Ran{ID: p.ID, Parent: p.parent.ID, Program: programName(p), Exit: Exit{Signal: sigkill}})
	}
	next, _ := iter.Pull(func(yield func(struct{}) bool) {
		p.pause = func() { yield(struct{}{}) }
		exit := Exit{Signal: sigkill}
		defer func() {
			program.Drop()
			g.exited(p, exit)
		}()
		if p.signal == 0 && g.ctx.Err() == nil {
			exit = program.Run(g.ctx)
		}
	})
	p.resume = func() { next() }
	return 0
}

func programName(p *Process) string {
	name := path.Base(p.Args[0])
	return strings.ToValidUTF8(name[:min(len(name), maxProgram)], "")
}

// exited notes the end of a process, whose descriptors are closed.
func (g *Group) exited(p *Process, exit Exit) {
	_ = release(p.std[:]) // of one that did not begin
	g.mu.Lock()
	if p.signal != 0 {
		exit = Exit{Signal: p.signal}
	}
	p.exit, p.Args, p.Env, p.talk = &exit, nil, nil, 0
	if i := p.ID - 2; i < len(g.told) {
		g.told[i].Exit = exit
	}
	for i, o := range g.order {
		if o == p {
			g.order = append(g.order[:i], g.order[i+1:]...)
			break
		}
	}
	for _, o := range g.order {
		if o.parent == p {
			o.parent = nil
		}
	}
	kept := g.ended[:0]
	for _, o := range g.ended {
		if o.parent != p {
			kept = append(kept, o)
		}
	}
	g.ended = kept
	if p.parent != nil {
		g.ended = append(g.ended, p)
	}
	g.mu.Unlock()
}

// next takes the process whose turn it is, and waits for the time that comes first where each
// one waits. nil: the run has ended.
func (g *Group) next(ctx context.Context) *Process {
	for ctx.Err() == nil {
		p, wait := g.pick()
		if p != nil || wait == 0 {
			return p
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// pick gives the process whose turn it is, or how long it is until one's time has come.
func (g *Group) pick() (*Process, time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ready, sleeper *Process
	for _, p := range g.order {
		if ready == nil && (p.signal != 0 || p.until == 0 && p.ready == nil || p.ready != nil && p.ready()) {
			ready = p
		}
		if p.until != 0 && (sleeper == nil || p.until < sleeper.until) {
			sleeper = p
		}
	}
	switch {
	case ready == nil && sleeper == nil:
		return nil, g.stop(ReasonFault, "deadlock: each process of the run waits for another one")
	case ready == nil:
		// It is the next one whatever the time is, which a recording need not say.
		if left := time.Duration(sleeper.until - g.elapsed()); left > 0 && g.o.Replay == nil {
			return nil, left
		}
		ready = sleeper
	case sleeper != nil && sleeper != ready:
		now, ok := g.now()
		switch {
		case !ok:
			return nil, g.stop(ReasonReplay, "")
		case now >= sleeper.until:
			ready = sleeper
		}
	}
	ready.timed = ready == sleeper && ready.signal == 0 && (ready.ready == nil || !ready.ready())
	ready.ready, ready.until, ready.slices = nil, 0, 0
	for i, p := range g.order {
		if p == ready {
			g.order = append(append(g.order[:i], g.order[i+1:]...), p)
			break
		}
	}
	return ready, 0
}

// stop is Stop with the lock held. It gives 0.
func (g *Group) stop(reason Reason, what string) time.Duration {
	if g.stopped.Reason == 0 {
		g.stopped = Stop{Reason: reason, What: what}
	}
	g.end()
	return 0
}

// wait gives the turn to others until ready holds, or the time has come; see Process. It
// returns when p has the turn again, or the run has ended.
func (g *Group) wait(ctx context.Context, p *Process, ready func() bool, until int64) {
	g.mu.Lock()
	p.ready, p.until = ready, until
	g.mu.Unlock()
	if p.pause != nil {
		if ctx.Err() == nil && g.ctx.Err() == nil {
			p.pause()
		}
		return
	}
	for next := g.next(ctx); next != nil && next != p; next = g.next(ctx) {
		next.resume()
	}
}

// await waits in the group, and ends the run of w where it has ended meanwhile.
func (w *World) await(ready func() bool) { w.awaitUntil(w.ctx, ready, 0) }

// awaitUntil is await with an end, of Group.now; 0: none. It reports whether that came first.
func (w *World) awaitUntil(ctx context.Context, ready func() bool, until int64) bool {
	p := w.cfg.Process
	p.group.wait(ctx, p, ready, until)
	w.checkGroup(ctx)
	for i := range w.fds {
		if d := &w.fds[i]; d.kind == isFile {
			if n := d.h.moved.Swap(0); n > 0 {
				d.offset = n - 1
			}
		}
	}
	return p.timed
}

// checkGroup ends the run of w if its group has ended, or its process was.
func (w *World) checkGroup(ctx context.Context) {
	if err := ctx.Err(); err != nil {
		w.endContext(err)
	}
	p := w.cfg.Process
	p.group.mu.Lock()
	stopped, signal := p.group.stopped, p.signal
	p.group.mu.Unlock()
	switch {
	case stopped.Reason != 0:
		if w.stopped.Reason == 0 {
			w.stopped = stopped
		}
		w.end(0, 0)
	case signal != 0 || p.group.ctx.Err() != nil:
		w.end(ReasonCancelled, 0)
	}
}

// turnSlices is how many slices of fuel a process uses before others have a turn.
const turnSlices = 16

// Yield is called with each slice of fuel that the guest uses, and lets others have their turn
// now and then. Like a host function, it ends the run of a process that is to end.
func (w *World) Yield(ctx context.Context) {
	p := w.cfg.Process
	if p == nil || p.group == nil {
		return
	}
	g := p.group
	g.mu.Lock()
	p.slices++
	due := p.slices >= turnSlices && len(g.order) > 1
	g.mu.Unlock()
	if due {
		w.awaitUntil(ctx, nil, 0)
	}
}

// Leave closes what a process has of its group, at its end: others see the ends of its pipes.
func (w *World) Leave() {
	for i := range w.fds {
		switch d := &w.fds[i]; {
		case d.kind == isPipe:
			_ = w.closeFD(d) // a pipe's end
		case d.kind == isFile && i < 3: // its parent goes on where it has come to
			d.h.moved.Store(d.offset + 1)
		}
	}
}
