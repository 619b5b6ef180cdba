package wasm

import (
	"context"
	"sync"
	"time"

	"openskill/wasm/guestfs"
	"openskill/wasm/meter"
	"openskill/wasm/wasi"
)

// Process is one of the processes of a run; see [Call.Programs].
type Process = wasi.Process

// Programs finds the program that a process of a run is to run, by its arguments, and gives it
// its files; first are those of the run's first process. guestfs.ENOENT: there is none.
type Programs func(first Files, p *Process) (*Found, guestfs.Errno)

// Found is a program for one process.
type Found struct {
	// Image has what is the same for all processes of the program; arguments, environment and
	// working folder it asks for.
	Image *Image
	// Files are the process's. Scratch is nil: what the run may write is its first process's.
	Files Files
}

// group is the processes of one run, which have its limits together.
type group struct {
	*wasi.Group

	of     *call     // the run
	first  *instance // of its first process
	fuel   meter.Pool
	memory memoryPool

	mu  sync.Mutex
	err error // of the host's, which ended a process
}

// process says who the guest of a call is.
func (in *instance) process(c *call, cfg *wasi.Config) {
	switch {
	case c.self != nil: // of a group
		cfg.Process = c.self
		return
	case c.Self == nil && c.Programs == nil:
		return
	}
	self := wasi.Process{}
	if c.Self != nil {
		self = wasi.Process{Args: c.Self.Args, Env: c.Self.Env, Dir: c.Self.Dir}
	}
	c.self = &self
	cfg.Process = c.self
	if c.Programs != nil {
		cfg.Group = func(first *wasi.Process) { in.gather(c, first) }
	}
}

// gather makes a group of a run that begins to start processes.
func (in *instance) gather(c *call, first *wasi.Process) {
	g := &group{of: c, first: in}
	in.x.tank.Join(&g.fuel)
	in.x.mem.join(&g.memory, in.x.mem.limit)
	g.Group = wasi.NewGroup(c.ctx, first, wasi.GroupOptions{Start: g.start, Record: c.Record, Replay: c.Replay})
	c.group = g
}

// start finds the program of a process.
func (g *group) start(p *wasi.Process) (*wasi.Started, guestfs.Errno) {
	found, errno := g.of.Programs(g.first.files, p)
	if errno != 0 {
		return nil, errno
	}
	drop := found.Files.Close
	if drop == nil {
		drop = func() {}
	}
	return &wasi.Started{Run: func(ctx context.Context) wasi.Exit { return g.run(ctx, p, found) }, Drop: drop}, 0
}

// run runs a process to its end.
func (g *group) run(ctx context.Context, p *wasi.Process, found *Found) wasi.Exit {
	of := g.of
	c := &call{
		Call: &Call{
			Fetch: of.Fetch, StartFuel: of.StartFuel, Random: of.Random, Wall: of.Wall, Mono: of.Mono, Record: of.Record, Replay: of.Replay,
		},
		ctx: ctx, limits: of.limits, began: time.Now(), self: p, group: g, files: &found.Files,
	}
	out, err := found.Image.run(c)
	if err != nil {
		g.mu.Lock()
		g.err = err
		g.mu.Unlock()
		g.Stop(wasi.ReasonCancelled, "")
		return wasi.Exit{}
	}
	switch out.Ended {
	case Returned:
		return wasi.Exit{}
	case Exited:
		return wasi.Exit{Code: out.ExitCode}
	case Trapped, OutOfTable, OutOfStack:
		return wasi.Exit{Signal: 11} // as where memory is touched that is not there
	case OutOfMemory, Cancelled:
		return wasi.Exit{Signal: 9} // as where a kernel has none left
	case OutOfFuel:
		g.Stop(wasi.ReasonFuel, "")
	case OutOfTime:
		g.Stop(wasi.ReasonDeadline, "")
	case OutputOverflow:
		g.Stop(wasi.ReasonOutputLimit, "")
	case Diverged:
		g.Stop(wasi.ReasonReplay, "")
	}
	return wasi.Exit{}
}

// root gives what a call's guest sees, which is the instance's own but of processes.
func (in *instance) root(c *call) guestfs.FS {
	if c.files != nil {
		return c.files.Root
	}
	return in.files.Root
}

// join has a call's guest use the limits of its group, if it has one.
func (in *instance) join(c *call) {
	if c.group != nil {
		in.x.tank.Join(&c.group.fuel)
		in.x.mem.join(&c.group.memory, in.x.mem.limit)
	}
}

// leave ends the part of a call's guest in its group: that of the first process ends the
// group, and what the run has used is what all of it has.
func (in *instance) leave(c *call, out *Outcome) error {
	g := c.group
	if g == nil {
		return nil
	}
	in.x.world.Leave()
	if c != g.of {
		in.x.tank.Leave(in.x.fuelLeft())
		in.x.mem.leave()
		return nil
	}
	g.Close()
	in.x.tank.Leave(in.x.fuelLeft())
	out.Fuel, out.MemoryPeak = g.fuel.Used(), g.memory.most
	out.Ran, out.Started = g.Ran()
	in.x.mem.leave()
	return g.err
}

// memoryPool is the memory of all processes of a run.
type memoryPool struct {
	mu    sync.Mutex
	limit uint64
	used  uint64
	most  uint64 // that was used at once
}

// room is what there may be of one process's memory, which is noted.
func (p *memoryPool) room(noted uint64) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	others := p.used - noted
	return p.limit - min(others, p.limit)
}

// note has the memory of one process count as so much.
func (p *memoryPool) note(noted *uint64, now uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used += now - *noted
	*noted = now
	p.most = max(p.most, p.used)
}

// join has a memory count in a pool, which has the limit if it has none.
func (m *memory) join(p *memoryPool, limit uint64) {
	if p.limit == 0 {
		p.limit = limit
	}
	m.pool, m.noted = p, 0
	m.count()
}

// leave takes it out again.
func (m *memory) leave() {
	if m.pool != nil {
		m.pool.note(&m.noted, 0)
		m.pool = nil
	}
}
