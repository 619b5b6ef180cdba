package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"openskill/host/internal/gate"
	"openskill/host/internal/tracing"
	"openskill/sdk/skill"
)

// Options configure a [Pool]. Command and Dir are required; other zero fields mean
// the defaults.
type Options struct {
	Command []string // the program that is a worker, and its arguments
	Dir     string   // for folders of workers; made with mode 0700
	Modules *Modules // nil: workers compile for themselves
	// Folders are all that any worker may read, its own folder beside them; FoldersOf
	// are those that one of this key may, nil for all.
	Folders   []string
	FoldersOf func(key string, call *skill.Call) []string
	// Key is the isolation key of a call: calls of two keys never share a process. nil:
	// the tenant.
	Key func(call *skill.Call) string

	Max    int  // workers at once; 0: as many as fit into half of the machine's memory
	Alone  bool // all callers are one tenant, which may have all of them
	Spares int  // workers that are ready for a key that comes; 0: 1, negative: none
	// Brief pools end after the calls at hand: nothing is started or compiled for later ones.
	Brief bool
	Idle  time.Duration // how long a worker is kept without a call; 0: 5 minutes
	// Preparing is how long a call waits for a worker that has its module; 0: skill.Preparing.
	Preparing time.Duration
	Calls     int    // calls after which a worker is replaced; 0: 10,000
	Memory    uint64 // bytes that a worker may have; 0: 2 GiB
	Growth    uint64 // bytes from which on a worker is replaced when it can be; 0: three quarters of Memory

	MaxReply uint32          // bytes of what a call may leave, beside the call's own limits; 0: 256 MiB
	Outgoing skill.Outgoing  // does what a guest asks of the host while it runs; nil: nothing
	Log      *slog.Logger    // nil: slog.Default()
	Trace    *tracing.Tracer // spans of what workers do; nil: none
}

// Pool has the workers of a host. It is safe for concurrent use.
type Pool struct {
	o       Options
	spawner *spawner
	bounds  *bounds
	places  *gate.Gate // for workers that are a key's, by the tenant that they were started for

	mu      sync.Mutex
	closed  bool
	slots   map[string]*slot
	spares  []*process
	coming  int // spares that are being started
	begun   int // workers that are being started, spares included
	live    map[*process]struct{}
	loads   []*wireCall // runtimes that spares are to have loaded
	all     sync.WaitGroup
	stop    chan struct{}
	crashes uint64
	gone    Images // of workers that have ended
	starts  uint64
	cold    uint64 // workers that were given to a key
	evicted evictions
	short   func() bool // whether the machine is short of memory
	hello   *Hello      // of the latest worker
}

// slot is the worker of one key.
type slot struct {
	key      string
	w        *process
	cost     time.Duration // see [Pool.worth]
	worth    time.Duration // the same, at its last use
	starting chan struct{} // closed when w or err is there
	err      error
	used     time.Time
	failures int       // crashes in a row
	not      time.Time // before then no new one is started
}

// New makes a pool. No process is started yet.
func New(o Options) (*Pool, error) {
	if len(o.Command) == 0 || o.Dir == "" {
		return nil, errors.New("worker.New: Command and Dir are required")
	}
	if o.Key == nil {
		o.Key = func(c *skill.Call) string { return c.Tenant }
	}
	defInt(&o.Max, fitting(machine()))
	defInt(&o.Calls, 10_000)
	if o.Spares == 0 {
		o.Spares = 1
	}
	if o.Spares < 0 || o.Brief {
		o.Spares = 0
	}
	if o.Preparing <= 0 {
		o.Preparing = skill.Preparing
	}
	if o.Idle <= 0 {
		o.Idle = 5 * time.Minute
	}
	if o.Memory == 0 {
		o.Memory = 2 << 30
	}
	if o.Growth == 0 {
		o.Growth = o.Memory / 4 * 3
	}
	if o.MaxReply == 0 {
		o.MaxReply = 256 << 20
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("worker.New: %w", err)
	}
	p := &Pool{
		o: o, spawner: newSpawner(), bounds: newBounds(), places: gate.New(gate.Options{Places: o.Max, Alone: o.Alone}), slots: map[string]*slot{}, live: map[*process]struct{}{},
		stop: make(chan struct{}), short: memoryShort,
	}
	p.all.Add(1)
	go p.maintain()
	return p, nil
}

func defInt(v *int, d int) {
	if *v <= 0 {
		*v = d
	}
}

// Close ends all workers. Calls under way end as crashed; the host waits for its
// calls before. It may be called twice.
func (p *Pool) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	close(p.stop)
	for w := range p.live {
		w.end(errRetired)
	}
	p.mu.Unlock()
	p.all.Wait()
	p.spawner.close()
	p.bounds.close()
	return nil
}

var errPoolClosed = errors.New("worker: the pool is closed")

// acquire returns the worker of a key, and starts one if there is none. The caller must call release.
func (p *Pool) acquire(ctx context.Context, key string, call *skill.Call) (*process, error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, errPoolClosed
		}
		s := p.slots[key]
		if s == nil {
			s = &slot{key: key}
			p.slots[key] = s
		}
		s.used = time.Now()
		if s.w != nil && s.w.cause() == nil {
			w := s.w
			p.worth(s, 0)
			w.asked++
			p.mu.Unlock()
			return w, nil
		}
		p.remove(s)
		if wait := s.not.Sub(s.used); wait > 0 {
			failures, cause := s.failures, s.err
			p.mu.Unlock()
			if err := pause(ctx, wait, failures, cause); err != nil {
				return nil, err
			}
			continue
		}
		if s.starting == nil {
			leave, err := p.place(call.Tenant)
			if err != nil {
				p.mu.Unlock()
				return nil, err
			}
			s.w, s.err, s.starting = nil, nil, make(chan struct{})
			p.begun++
			p.all.Add(1)
			go p.fill(s, call, leave) // the worker is for later calls as well
		}
		starting := s.starting
		p.mu.Unlock()
		select {
		case <-starting:
			p.mu.Lock()
			w, err := s.w, s.err
			use := err == nil && w != nil && w.cause() == nil
			if use {
				w.asked++
			}
			p.mu.Unlock()
			if err != nil {
				return nil, err
			}
			if use {
				return w, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// release says that a call does not need its worker any more.
func (p *Pool) release(w *process) {
	p.mu.Lock()
	w.asked--
	p.mu.Unlock()
}

// pause waits until a key whose workers crash may have another one; not for long.
func pause(ctx context.Context, wait time.Duration, failures int, cause error) error {
	const patience = time.Second
	switch {
	case wait > patience && cause != nil:
		return cause
	case wait > patience:
		return &skill.Error{
			Op: "worker.acquire", Code: skill.WorkerCrashed, Details: map[string]any{"retry_after_ms": wait.Milliseconds()},
			Message: fmt.Sprintf("the worker process crashed %d times in a row; retry in %d s", failures, 1+int(wait/time.Second)),
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cannotStart is what a call is told that needs a process where none can be started:
// the host is short of something, which passes.
func cannotStart(err error) error {
	return &skill.Error{
		Op: "worker.start", Code: skill.RateLimited, Err: err,
		Message: "no worker process available; retry",
	}
}

// fill gives a slot its worker: a spare one, or a new one. leave gives back its place.
func (p *Pool) fill(s *slot, call *skill.Call, leave func()) {
	defer p.all.Done()
	w, err := p.ready(s.key, call)
	p.mu.Lock()
	p.begun--
	s.w, s.err = w, err
	s.cost, s.worth = 0, p.evicted.age+mostCost // until its first call has ended
	if _, lives := p.live[w]; lives {
		p.cold++
		w.tenant, w.leave = call.Tenant, leave
	} else {
		leave()
	}
	if err != nil {
		p.failed(s)
		s.err = cannotStart(err)
		if !p.closed {
			p.o.Log.Warn("cannot start a worker process", slog.String("reason", err.Error()))
		}
	}
	close(s.starting)
	s.starting = nil
	if p.closed && w != nil {
		w.end(errRetired)
	}
	p.mu.Unlock()
	p.restock()
}

func (p *Pool) ready(key string, call *skill.Call) (*process, error) {
	ctx, cancel := context.WithTimeout(context.Background(), helloTime)
	defer cancel()
	var folders []string
	if p.o.FoldersOf != nil {
		folders = p.o.FoldersOf(key, call)
	}
	for {
		w := p.spare(folders != nil)
		if w == nil {
			return p.start(ctx, folders)
		}
		if folders == nil {
			return w, nil
		}
		err := w.assign(ctx, append(folders[:len(folders):len(folders)], w.view))
		if err == nil {
			return w, nil
		}
		w.end(&crashedError{why: "it could not be assigned: " + err.Error()}) // or it has died while it waited
	}
}

// spare takes one of the workers that wait; nil if there is none, or none that can
// still give up folders where it must.
func (p *Pool) spare(narrows bool) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.spares)
	if n == 0 || narrows && !p.spares[n-1].hello.Narrows {
		return nil
	}
	w := p.spares[n-1]
	p.spares = p.spares[:n-1]
	return w
}

// start begins a worker, with a folder of its own, that may read these folders; nil:
// all that any may.
func (p *Pool) start(ctx context.Context, folders []string) (*process, error) {
	view := ""
	if p.o.Modules != nil {
		var err error
		if view, err = os.MkdirTemp(p.o.Dir, "w-"); err != nil {
			return nil, fmt.Errorf("worker: make a folder for a process: %w", err)
		}
	}
	w, err := p.begin(ctx, view, folders)
	if err != nil {
		_ = os.RemoveAll(view)
		return nil, err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		w.end(errRetired)
		<-w.ended
		_ = os.RemoveAll(view)
		return nil, errPoolClosed
	}
	p.live[w] = struct{}{}
	p.starts++
	if p.hello == nil {
		p.tell(&w.hello) // a line in the log
	}
	p.hello = &w.hello
	p.all.Add(1)
	p.mu.Unlock()
	go p.onExit(w)
	return w, nil
}

// tell logs what holds workers here: once, since it is the same for all.
func (p *Pool) tell(h *Hello) {
	var on []string
	for _, held := range append(h.Protections[:len(h.Protections):len(h.Protections)], p.bounds.protection(p.o.Memory)) {
		if held.On {
			on = append(on, held.Name)
			continue
		}
		p.o.Log.Warn("worker protection missing", slog.String("what", held.Name), slog.String("detail", held.Detail))
	}
	p.o.Log.Info("worker protections", slog.String("what", strings.Join(on, ", ")))
}

// onExit sees to what a worker leaves behind.
func (p *Pool) onExit(w *process) {
	defer p.all.Done()
	<-w.ended
	if w.view != "" {
		_ = os.RemoveAll(w.view) // what is left is removed at the next start
	}
	var crash *crashedError
	crashed := errors.As(w.cause(), &crash)
	p.mu.Lock()
	p.forget(w)
	p.gone.count(w, true)
	for i, spare := range p.spares {
		if spare == w {
			p.spares = append(p.spares[:i], p.spares[i+1:]...)
			break
		}
	}
	if crashed {
		p.crashes++
		for _, s := range p.slots {
			if s.w == w {
				p.remove(s)
			}
		}
	}
	p.mu.Unlock()
	if crashed {
		p.o.Log.Warn("a worker process exited", slog.Int("pid", w.cmd.Process.Pid), slog.String("why", crash.why), slog.String("said", w.stderr.text()))
	}
}

// remove takes a worker that has ended from its slot, and counts how. P.mu is held.
func (p *Pool) remove(s *slot) {
	if s.w == nil {
		return
	}
	var crash *crashedError
	if errors.As(s.w.cause(), &crash) {
		p.failed(s)
	}
	s.w = nil
}

// failed counts a crash: the first ones cost nothing, more and more the later ones. P.mu is held.
func (p *Pool) failed(s *slot) {
	s.failures++
	if n := s.failures - 3; n > 0 {
		s.not = time.Now().Add(min(50*time.Millisecond<<min(n, 10), 10*time.Second))
	}
}

// callEnded is called when a worker ended a call by itself, which had waited for the worker and its start-ups.
func (p *Pool) callEnded(key string, w *process, prepared time.Duration) {
	w.mu.Lock()
	n := w.next
	w.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[key]
	if s == nil || s.w != w {
		return
	}
	s.failures = 0
	p.worth(s, prepared)
	if n >= uint64(p.o.Calls) || n%64 == 0 && resident(w.cmd.Process.Pid) > p.o.Growth {
		s.w = nil // the next call has another one; those under way end here
		w.retire()
	}
}

// suspect is called when a call in w was answered without w: later calls have another
// worker, and this one ends with the call, or is ended.
func (p *Pool) suspect(key string, w *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.slots[key]; s != nil && s.w == w {
		s.w = nil
	}
	w.retire()
}

// maintain ends workers that nobody calls, and keeps spares.
func (p *Pool) maintain() {
	defer p.all.Done()
	over := min(p.o.Idle/4, 10*time.Second)
	every := over
	if !p.bounds.held() { // then this is what bounds memory
		every = min(every, 500*time.Millisecond)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case now := <-tick.C:
			p.mu.Lock()
			for key, s := range p.slots {
				switch {
				case now.Sub(s.used) < p.o.Idle || s.starting != nil:
				case s.w == nil || s.w.cause() != nil:
					delete(p.slots, key)
				case s.w.idle():
					delete(p.slots, key)
					s.w.retire()
				}
			}
			p.relieve()
			live := slices.Collect(maps.Keys(p.live))
			p.mu.Unlock()
			for _, w := range live {
				w.watch(now, over, p.o.Memory)
			}
		}
	}
}

// restock starts spares in the background until there are enough.
func (p *Pool) restock() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && len(p.spares)+p.coming < p.o.Spares && len(p.live)+p.begun < p.o.Max {
		p.coming++
		p.begun++
		p.all.Add(1)
		go func() {
			defer p.all.Done()
			ctx, cancel := context.WithTimeout(context.Background(), helloTime)
			defer cancel()
			w, err := p.start(ctx, nil)
			if err == nil {
				p.preload(w)
			}
			p.mu.Lock()
			p.coming--
			p.begun--
			switch {
			case err != nil || p.closed:
			case len(p.live)+p.begun > p.o.Max: // a key was faster
				p.forget(w)
				w.retire()
			default:
				p.spares = append(p.spares, w)
			}
			p.mu.Unlock()
			if err != nil && !errors.Is(err, errPoolClosed) && !errors.Is(err, net.ErrClosed) {
				p.o.Log.Warn("cannot start a spare worker process", slog.String("reason", err.Error()))
			}
		}()
	}
}

// preload has a spare load the runtimes that were asked for.
func (p *Pool) preload(w *process) {
	p.mu.Lock()
	loads := append([]*wireCall(nil), p.loads...)
	p.mu.Unlock()
	for _, l := range loads {
		p.load(w, l)
	}
}

// Stats is what an operator wants to know of the workers.
type Stats struct {
	Live    int          `json:"live"`
	Max     int          `json:"max"`
	Busy    int          `json:"busy"` // calls under way
	Spares  int          `json:"spares"`
	Starts  uint64       `json:"starts"`
	Cold    uint64       `json:"cold_starts"` // workers that were started, or taken from the spares, for a call
	Evicted uint64       `json:"evictions"`   // workers that made room for one of another key
	Crashes uint64       `json:"crashes"`
	Images  Images       `json:"images"`
	Held    []Protection `json:"protections"` // what holds the latest one
	Pids    []int        `json:"pids"`
}

// Stats counts.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Live: len(p.live), Max: p.o.Max, Spares: len(p.spares), Starts: p.starts, Cold: p.cold, Evicted: p.evicted.count, Crashes: p.crashes, Images: p.gone}
	for w := range p.live {
		s.Pids = append(s.Pids, w.cmd.Process.Pid)
		w.mu.Lock()
		s.Busy += w.busy
		w.mu.Unlock()
		s.Images.count(w, false)
	}
	if p.hello != nil {
		s.Held = append(append(s.Held, p.hello.Protections...), p.bounds.protection(p.o.Memory))
	}
	return s
}

// Probe starts a worker, asks what holds it, and ends it.
func (p *Pool) Probe(ctx context.Context) ([]Protection, error) {
	w, err := p.start(ctx, nil)
	if err != nil {
		return nil, err
	}
	w.retire()
	<-w.ended
	return append(w.hello.Protections, p.bounds.protection(p.o.Memory)), nil
}
