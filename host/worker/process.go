package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"openskill/sdk/skill"
)

const (
	// Grace is how long after the end of its time a call is waited for; then it is
	// answered without its worker. Guests are ended by the engine a few milliseconds
	// after their deadline, so this is for a worker that hangs, and for a machine on
	// which it does not get to run.
	Grace = 150 * time.Millisecond
	// linger is how long a call may then go on. Its worker is killed after that, which
	// costs the other calls in it, so it is not done lightly.
	linger = 600 * time.Millisecond
)

// programName is what processes are called, whatever the file is.
const programName = "openskill"

// patience is how long a worker may take to read what it is told; one that does not
// read is one that hangs. Tests lower it.
var patience = 5 * time.Second

// helloTime is how long a worker may take to be ready.
const helloTime = 10 * time.Second

// process is one worker, seen from the host.
type process struct {
	cmd      *exec.Cmd
	ch       *channel
	conn     net.Conn
	view     string // its folder of compiled modules; "" for none
	bound    *bound // of its memory
	stderr   *tail  // the last it said
	hello    Hello  // what it said first
	ended    chan struct{}
	outgoing skill.Outgoing // nil: nothing
	maxReply uint32         // bytes of an answer, whatever the call's limits are

	mu      sync.Mutex
	pending map[uint64]*pending
	next    uint64
	dead    error // why it ends, or nil
	retired bool  // it is to end when its calls have
	served  int   // calls, ever

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

// pending is a call under way.
type pending struct {
	call  *skill.Call
	most  int64           // bytes of what the worker may answer
	reply chan *frame     // one, or it is closed
	ctx   context.Context //nolint:containedctx // that of the call, for what its guest asks the host
	fetch skill.Fetch     // of the call, once it was asked for
	asked bool            // a request is under way
}

// crashedError is the end of a worker that nobody asked for.
type crashedError struct {
	why  string
	hung bool // one call outstayed its time, and the host ended it
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
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("worker: make a channel: %w", err)
	}
	w := &process{
		conn: ours, view: view, stderr: &tail{}, ended: make(chan struct{}), pending: map[uint64]*pending{},
		outgoing: p.o.Outgoing, maxReply: p.o.MaxReply,
	}
	w.ch = newChannel(ours, w.most)
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
	w.cmd = exec.Command(p.o.Command[0], args...) //nolint:gosec,noctx // this program; its end is the channel's or a kill
	w.cmd.Args[0] = programName
	w.cmd.Env = []string{}
	w.cmd.Dir = "/"
	w.cmd.ExtraFiles = []*os.File{theirs}
	w.cmd.Stderr = w.stderr
	w.cmd.WaitDelay = time.Second
	w.cmd.SysProcAttr = attributes()
	err = p.spawner.start(w.cmd)
	_ = theirs.Close()
	if err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("worker: start a process: %w", err)
	}
	if w.bound, err = p.bounds.hold(w.cmd.Process.Pid, p.o.Memory); err != nil {
		p.o.Log.Debug("a worker's memory is not bounded by the kernel", slog.String("reason", err.Error()))
	}
	go w.reap()
	if err := w.greeted(ctx); err != nil {
		w.end(&crashedError{why: "it did not start: " + err.Error()})
		<-w.ended
		return nil, fmt.Errorf("%w: %s", err, w.stderr.text())
	}
	go w.read()
	return w, nil
}

// greeted waits for the hello.
func (w *process) greeted(ctx context.Context) error {
	until := time.Now().Add(helloTime) //nolint:forbidigo // real time
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	_ = w.conn.SetReadDeadline(until)
	stop := context.AfterFunc(ctx, func() { _ = w.conn.SetReadDeadline(time.Unix(1, 0)) })
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
		return fmt.Errorf("worker: it speaks version %d, and this host %d: was the program replaced?", w.hello.Version, protocol)
	}
	return w.conn.SetReadDeadline(time.Time{})
}

// assign gives a worker to an isolation key, with the folders that it may go on reading.
func (w *process) assign(ctx context.Context, folders []string) error {
	reply, err := w.send(ctx, kindAssign, &Assignment{Folders: folders}, &skill.Call{}, nil, helloTime)
	if err != nil {
		return err
	}
	defer w.forget(reply.id)
	timer := time.NewTimer(helloTime)
	defer timer.Stop()
	select {
	case f, ok := <-reply.reply:
		if !ok {
			return w.cause()
		}
		var r *Refusal
		if err := f.decode(&r); err != nil {
			return err
		}
		return r.error()
	case <-timer.C:
		return errors.New("worker: it does not answer")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sent is a call that the worker was given.
type sent struct {
	*pending
	id uint64
}

// send gives a worker a call, and ends one that has not taken it when the call's time
// is over. The error is why it cannot take any.
func (w *process) send(ctx context.Context, k kind, head any, call *skill.Call, body []byte, left time.Duration) (*sent, error) {
	s := &sent{pending: &pending{call: call, most: maxHead, reply: make(chan *frame, 1), ctx: ctx}}
	if k == kindRun {
		s.most = mostOf(call, w.maxReply)
	}
	w.mu.Lock()
	if w.dead != nil {
		w.mu.Unlock()
		return nil, errGone
	}
	w.next++
	w.served++
	s.id = w.next
	w.pending[s.id] = s.pending
	w.mu.Unlock()
	late := time.AfterFunc(left+Grace, func() { w.end(&crashedError{why: "it did not take a call in time", hung: true}) })
	defer late.Stop()
	if err := w.ch.send(k, s.id, head, body); err != nil {
		w.end(&crashedError{why: "a call could not be handed over: " + err.Error()})
		w.forget(s.id)
		return nil, w.cause()
	}
	return s, nil
}

// do runs one call to its end; left is what it has of its time. The error is a
// *crashedError where the worker died of anything, or why there is no reply.
func (w *process) do(ctx context.Context, k kind, of skill.Kind, call *skill.Call, left time.Duration) (*skill.Reply, error) {
	wire := wireCall{Kind: of, Call: *call}
	wire.Call.Stdin, wire.Call.Limits.Timeout = nil, left
	s, err := w.send(ctx, k, &wire, call, call.Stdin, left)
	if err != nil {
		return nil, err
	}
	watchdog := time.NewTimer(left + Grace)
	defer watchdog.Stop()
	gone := ctx.Done()
	for {
		select {
		case f, ok := <-s.reply:
			w.forget(s.id)
			if !ok {
				return nil, w.cause()
			}
			reply, err := decodeReply(f, call)
			if errors.Is(err, errFrame) { // nothing else that it says is worth more
				w.end(&crashedError{why: err.Error()})
				return nil, w.cause()
			}
			return reply, err
		case <-gone:
			gone = nil
			go func() { _ = w.ch.send(kindCancel, s.id, nil, nil) }() // if not, the watchdog sees to it
			watchdog.Reset(Grace)
		case <-watchdog.C:
			go w.outstayed(s)
			return nil, errHung
		}
	}
}

// outstayed waits a little for a call that nobody waits for any more, and then ends
// its worker.
func (w *process) outstayed(s *sent) {
	defer w.forget(s.id)
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-s.reply:
	case <-timer.C:
		w.end(&crashedError{why: "it did not end a call in time", hung: true})
	}
}

// errHung is what a call is told whose time is over, though its worker did not say so.
var errHung = errors.New("worker: the call did not end in time")

func (w *process) forget(id uint64) {
	w.mu.Lock()
	delete(w.pending, id)
	last := w.retired && len(w.pending) == 0
	w.mu.Unlock()
	if last {
		w.end(errRetired)
	}
}

// cause is why the worker ended.
func (w *process) cause() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

// retire lets the worker end when its calls have.
func (w *process) retire() {
	w.mu.Lock()
	w.retired = true
	idle := len(w.pending) == 0
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
	_ = w.conn.Close()
	_ = w.cmd.Process.Kill()
	for id, p := range w.pending {
		delete(w.pending, id)
		close(p.reply)
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

// read takes what the worker says until it ends.
func (w *process) read() {
	for {
		f, err := w.ch.receive()
		switch {
		case err == nil:
			err = w.handle(f)
		case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed):
			// It ends, and how is for reap to say; but not without end.
			select {
			case <-w.ended:
			case <-time.After(200 * time.Millisecond):
				w.end(&crashedError{why: "it closed its channel"})
			}
			return
		}
		if err != nil {
			w.end(&crashedError{why: err.Error()})
			return
		}
	}
}

// most is what a worker may say at once: something of a call that it was given and
// has not answered, and of that no more than the call can leave. Whoever says anything
// else has not got anything to say that could be believed, and would keep the host busy
// with it for as long as he likes.
func (w *process) most(k kind, call uint64) int64 {
	if k == kindHello {
		return maxHead
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch p := w.pending[call]; {
	case p == nil:
	case k == kindReply || k == kindAssigned:
		return p.most
	case k == kindRequest && !p.asked:
		return maxRequest
	}
	return -1
}

// maxRequest bounds what a guest asks of the host, in bytes: the engine takes 4 MiB
// from it.
const maxRequest = 5 << 20

func (w *process) handle(f *frame) error {
	switch f.kind {
	case kindReply, kindAssigned:
		w.mu.Lock()
		p := w.pending[f.call]
		delete(w.pending, f.call)
		w.mu.Unlock()
		if p != nil { // or nobody waits any more
			p.reply <- f
		}
		return nil
	case kindRequest:
		return w.request(f)
	case kindHello, kindAssign, kindRun, kindStart, kindCancel, kindAnswer:
	}
	return errFrame
}

// request does for a guest what only the host can, by the host's own copy of the
// call. A guest waits for an answer before it asks again.
func (w *process) request(f *frame) error {
	var number uint64
	if err := f.decode(&number); err != nil {
		return err
	}
	w.mu.Lock()
	p := w.pending[f.call]
	ok := p != nil && w.outgoing != nil
	if ok {
		p.asked = true
		if p.fetch == nil {
			p.fetch = w.outgoing.For(p.call)
		}
	}
	w.mu.Unlock()
	if !ok {
		return w.ch.send(kindAnswer, number, false, nil)
	}
	go func() {
		answer := p.fetch(p.ctx, f.body)
		w.mu.Lock()
		p.asked = false
		w.mu.Unlock()
		_ = w.ch.send(kindAnswer, number, true, answer) // a worker that is gone needs none
	}()
	return nil
}

// watch ends a worker that goes on working though it has no call: a start-up ahead of
// calls takes some seconds, and more is nothing that anybody asked for. It is looked at
// over that time. Where no control group holds its memory, a worker is ended that has
// more than it may.
func (w *process) watch(now time.Time, over time.Duration, memory uint64) {
	if w.bound == nil && resident(w.cmd.Process.Pid) > memory {
		w.end(&crashedError{why: "it took more memory than it may"})
		return
	}
	before := w.looked
	if now.Sub(before.at) < over*9/10 { // ticks come early, too
		return
	}
	w.mu.Lock()
	w.looked = look{at: now, next: w.next, took: processorTime(w.cmd.Process.Pid)}
	same := len(w.pending) == 0 && before.next == w.next && !before.at.IsZero()
	w.mu.Unlock()
	if !same || w.looked.took-before.took < now.Sub(before.at)/10 {
		w.restless = 0
		return
	}
	if w.restless++; w.restless > 1 {
		w.end(&crashedError{why: "it went on working without a call"})
	}
}

// idle reports whether no call is under way.
func (w *process) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending) == 0
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
