package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"time"

	"openskill/sdk/skill"
)

// Grace is how long after the end of its time a call is waited for; then it is
// answered without its worker. Guests are ended by the engine a few milliseconds
// after their deadline, so this is for a worker that hangs, and for a machine on
// which it does not get to run.
const Grace = 150 * time.Millisecond

// ProgramName is what processes of a host are called, whatever the file is.
const ProgramName = "openskill"

// patience is how long a worker may take to read what it is told; one that does not
// read is one that hangs. Tests lower it.
var patience = 5 * time.Second

// helloTime is how long a worker may take to be ready.
const helloTime = 10 * time.Second

// process is one worker, seen from the host.
type process struct {
	cmd      *exec.Cmd
	link     *link
	ch       *channel // what the host tells it beside calls
	view     string   // its folder of compiled modules; "" for none
	bound    *bound   // of its memory
	stderr   *tail    // the last it said
	hello    Hello    // what it said first
	ended    chan struct{}
	life     context.Context //nolint:containedctx // ends with it
	died     context.CancelFunc
	outgoing skill.Outgoing // does what its guests ask of the host; nil: nothing
	memory   uint64         // bytes that it may have
	states   states         // that the worker has, as far as the host knows
	maxReply uint32         // bytes of an answer, whatever the call's limits are

	// Guarded by Pool.mu.
	tenant string // that it was started for
	leave  func() // gives back its place; nil: it has none, as a spare one

	mu      sync.Mutex
	lanes   map[*lane]struct{} // all
	free    []*lane            // those without a call
	busy    int                // calls under way
	asked   int                // calls that have it, or are about to; Pool.mu is held
	next    uint64             // calls, ever
	dead    error              // why it ends, or nil
	retired bool               // it is to end when its calls have
	images  Images             // as it said at the end of its latest call
	modules map[given]bool     // those in its folder

	// Of watch alone.
	looked   look
	restless int // looks in a row
}

// look is what a worker was found at.
type look struct {
	at   time.Time
	next uint64        // calls, ever
	took time.Duration // of processors
}

// crashedError is the end of a worker that nobody asked for.
type crashedError struct {
	why  string
	hung bool // one call endOverdue its time, and the host ended it
}

func (e *crashedError) Error() string { return "worker: " + e.why }

var (
	// errRetired is the end of a worker whose time was over.
	errRetired = errors.New("worker: retired")
	// errGone is what a call is told that came too late for a worker: it was not begun.
	errGone = errors.New("worker: it has ended")
)

// begin starts a worker and waits until it is ready.
func (p *Pool) begin(ctx context.Context, view string, folders []string) (*process, error) {
	link, theirs, err := newLink()
	if err != nil {
		return nil, fmt.Errorf("worker: make a channel: %w", err)
	}
	w := &process{
		link: link, ch: newChannel(link.conn, besideCalls), view: view, stderr: &tail{}, ended: make(chan struct{}),
		lanes: map[*lane]struct{}{}, modules: map[given]bool{}, outgoing: p.o.Outgoing, maxReply: p.o.MaxReply, memory: p.o.Memory,
	}
	w.life, w.died = context.WithCancel(context.Background())
	args := append([]string{}, p.o.Command[1:]...)
	if view != "" {
		args = append(args, "--modules", view)
	}
	if folders == nil {
		folders = p.o.Folders
	}
	for _, dir := range folders {
		args = append(args, "--read", dir)
	}
	w.ch.patience = patience
	w.cmd = exec.Command(p.o.Command[0], args...) //nolint:noctx // ends with its channel, or is killed
	w.cmd.Args[0] = ProgramName
	w.cmd.Env = []string{}
	w.cmd.Dir = "/"
	w.cmd.ExtraFiles = theirs
	w.cmd.Stderr = w.stderr
	w.cmd.WaitDelay = time.Second
	err = p.spawner.start(w.cmd)
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		w.died()
		link.close()
		return nil, fmt.Errorf("worker: start a process: %w", err)
	}
	if w.bound, err = p.bounds.hold(w.cmd.Process.Pid, p.o.Memory); err != nil {
		p.o.Log.Debug("the kernel does not limit worker memory", slog.String("reason", err.Error()))
	}
	go w.reap()
	if err := w.handshake(ctx); err != nil {
		w.end(&crashedError{why: "it did not start: " + err.Error()})
		<-w.ended
		return nil, fmt.Errorf("%w: %s", err, w.stderr.text())
	}
	return w, nil
}

// handshake waits for the hello.
func (w *process) handshake(ctx context.Context) error {
	until := time.Now().Add(helloTime)
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	_ = w.link.conn.SetReadDeadline(until)
	stop := context.AfterFunc(ctx, func() { _ = w.link.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	f, err := w.ch.receive()
	if err != nil {
		return fmt.Errorf("worker: no hello: %w", err)
	}
	if f.kind != kindHello {
		return errFrame
	}
	if err := f.decode(&w.hello); err != nil {
		return err
	}
	if w.hello.Version != protocol {
		return fmt.Errorf("worker: protocol version %d, but this host has %d: was the program replaced?", w.hello.Version, protocol)
	}
	return w.link.conn.SetReadDeadline(time.Time{})
}

// besideCalls is how many bytes a worker may say that are of no call.
func besideCalls(k kind, _ uint64) int64 {
	if k == kindHello || k == kindAssigned {
		return maxHead
	}
	return -1
}

// assign gives a worker to an isolation key, with the folders that it may go on reading.
func (w *process) assign(ctx context.Context, folders []string) error {
	_ = w.link.conn.SetReadDeadline(time.Now().Add(helloTime))
	defer context.AfterFunc(ctx, func() { _ = w.link.conn.SetReadDeadline(time.Unix(1, 0)) })()
	if err := w.ch.send(kindAssign, 0, &Assignment{Folders: folders}, nil); err != nil {
		return err
	}
	f, err := w.ch.receive()
	if err != nil {
		return err
	}
	if f.kind != kindAssigned {
		return errFrame
	}
	var r *Refusal
	if err := f.decode(&r); err != nil {
		return err
	}
	return r.error()
}

// cause is why the worker ended.
func (w *process) cause() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

// given names what was compiled of a module.
type given struct {
	digest  string
	trusted bool
}

// has reports whether a module is in the worker's folder.
func (w *process) has(of *skill.Module) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.modules[given{of.Digest, of.Trusted}]
}

// gave notes that it is.
func (w *process) gave(of *skill.Module) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.modules[given{of.Digest, of.Trusted}] = true
}

// retire lets the worker end when its calls have.
func (w *process) retire() {
	w.mu.Lock()
	w.retired = true
	idle := w.busy == 0
	w.mu.Unlock()
	if idle {
		w.end(errRetired)
	}
}

// end kills the worker and tells its calls.
func (w *process) end(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead != nil {
		return
	}
	w.dead = why
	w.died()
	// Before the link is closed: then the worker would cancel its calls and reply to them.
	_ = w.cmd.Process.Kill()
	w.link.close()
	for l := range w.lanes {
		_ = l.conn.Close()
	}
}

// reap waits for the process, so that none is left behind.
func (w *process) reap() {
	err := w.cmd.Wait()
	how := "it exited"
	if err != nil {
		how = err.Error()
	}
	w.end(&crashedError{why: how})
	w.bound.release()
	close(w.ended)
}

// watch ends a worker that goes on working though it has no call: a start-up ahead of
// calls takes some seconds, and more is nothing that anybody asked for. It is looked at
// over that time. Where no control group holds its memory, a worker is ended that has
// more than it may.
func (w *process) watch(now time.Time, over time.Duration, memory uint64) {
	if w.bound == nil && resident(w.cmd.Process.Pid) > memory {
		w.end(&crashedError{why: "it exceeded its memory limit"})
		return
	}
	before := w.looked
	if now.Sub(before.at) < over*9/10 { // ticks come early, too
		return
	}
	w.mu.Lock()
	w.looked = look{at: now, next: w.next, took: processorTime(w.cmd.Process.Pid)}
	same := w.busy == 0 && before.next == w.next && !before.at.IsZero()
	w.mu.Unlock()
	if !same || w.looked.took-before.took < now.Sub(before.at)/20 {
		w.restless = 0
		return
	}
	if w.restless++; w.restless > 1 {
		w.end(&crashedError{why: "it kept working without a call"})
	}
}

// idle reports whether no call is under way.
func (w *process) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.busy == 0
}

// tail keeps the last of what a process wrote to standard error, and takes only so much.
type tail struct {
	mu   sync.Mutex
	b    []byte
	said int
}

const (
	tailBytes = 8 << 10
	// maxSaid is more than a program of ours says when it breaks.
	maxSaid = 1 << 20
)

var errSaidEnough = errors.New("worker: a process says too much")

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.said += len(p); t.said > maxSaid {
		return 0, errSaidEnough // nobody reads from there any more
	}
	t.b = append(t.b, p...)
	if over := len(t.b) - tailBytes; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

// text is the end of what was written, fit for a log.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return skill.CleanText(string(t.b), tailBytes)
}
