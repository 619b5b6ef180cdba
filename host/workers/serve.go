package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"openskill/sdk/skill"
)

// WorkerConfig is what a worker is for.
type WorkerConfig struct {
	Runners []skill.Runner // one of each kind that is run here
	// Narrow gives up all folders but these, for good; nil: there is no way to do
	// that, and a worker has its folders from its start.
	Narrow      func(folders []string) error
	Protections []Protection // what holds this process
	// Images tells of the images in this process, of which replies tell the host; nil: there
	// are none.
	Images func() Images
	// HostServices is what Runners were given for what a guest asks of the host; nil: they
	// have nothing of the kind.
	HostServices *HostServices
}

// largestCall bounds the frames that a worker accepts: the host bounds inputs long before.
const largestCall = 256 << 20

// anySize takes any frame of the host.
func anySize(kind, uint64) int64 { return largestCall }

// Serve is the life of a worker: it says hello, runs the calls that come, and ends
// when the host does. A panic ends the process, with all its calls: whose state is in
// doubt serves nobody.
func Serve(ctx context.Context, link *Link, d *WorkerConfig) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := &server{link: link, ch: newChannel(link.conn, anySize), d: d, calls: map[uint64]context.CancelFunc{}, early: map[uint64]bool{}}
	w.idle = time.AfterFunc(restAfter, w.rest)
	defer w.idle.Stop()
	if err := w.ch.send(kindHello, 0, &Hello{Version: protocol, Narrows: d.Narrow != nil, Protections: d.Protections}, nil); err != nil {
		return fmt.Errorf("worker: say hello: %w", err)
	}
	go w.accept(ctx)
	for {
		f, err := w.ch.receive()
		if err == nil {
			err = w.handle(f)
		}
		if err == nil {
			continue
		}
		w.mu.Lock()
		cause := w.err
		w.mu.Unlock()
		switch {
		case cause != nil:
			return cause
		case errors.Is(err, io.EOF):
			return nil // the host is done with this worker, or gone
		}
		return err
	}
}

// server is a worker at work.
type server struct {
	link *Link
	ch   *channel
	d    *WorkerConfig
	idle *time.Timer

	mu    sync.Mutex
	calls map[uint64]context.CancelFunc
	kept  states
	early map[uint64]bool // cancelled before they were read from their lanes
	err   error           // why it ends, where the host does not say
}

// restAfter is how long a worker waits for a call before it gives memory back to the system: what a start-up leaves
// for the garbage collector would stay for as long as no call comes.
const restAfter = 5 * time.Second

func (w *server) rest() {
	w.mu.Lock()
	busy := len(w.calls) > 0
	w.mu.Unlock()
	if !busy { // else the end of the call sets the timer again
		debug.FreeOSMemory()
	}
}

// fail ends the worker.
func (w *server) fail(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.mu.Unlock()
	_ = w.link.Close()
}

func (w *server) handle(f *frame) error {
	switch f.kind {
	case kindAssign:
		var a Assignment
		if err := f.decode(&a); err != nil {
			return err
		}
		err := errors.New("it cannot give up folders")
		if w.d.Narrow != nil {
			err = w.d.Narrow(a.Folders)
		}
		return w.ch.send(kindAssigned, 0, refusalOf(err), nil)
	case kindCancel:
		w.cancel(f.call)
		return nil
	case kindHello, kindAssigned, kindRun, kindReply, kindRequest, kindAnswer:
	}
	return errFrame
}

// mostEarly bounds what is kept of calls that were cancelled and are not there: most
// have ended.
const mostEarly = 1000

func (w *server) cancel(id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cancel := w.calls[id]; cancel != nil {
		cancel()
		return
	}
	if len(w.early) >= mostEarly {
		clear(w.early)
	}
	w.early[id] = true
}

// accept takes lanes, each with a goroutine that lives as long as it does.
func (w *server) accept(ctx context.Context) {
	for {
		conn, err := w.link.accept()
		if err != nil {
			w.fail(err)
			return
		}
		go func() {
			defer conn.Close()
			if err := w.follow(ctx, newChannel(conn, anySize)); !errors.Is(err, io.EOF) {
				w.fail(err)
			}
		}()
	}
}

// follow runs the calls of a lane, one after the other.
func (w *server) follow(ctx context.Context, ch *channel) error {
	for {
		f, err := ch.receive()
		if err != nil {
			return err
		}
		switch f.kind {
		case kindRun:
		case kindAnswer:
			continue // to a guest that did not wait for it
		default:
			return errFrame
		}
		c := &wireCall{}
		if err := c.read(f.head); err != nil {
			return err
		}
		if err := c.cut(f.body); err != nil {
			return err
		}
		head, body := w.work(ctx, ch, f, c)
		w.idle.Reset(restAfter)
		if w.d.Images != nil {
			head.Images = w.d.Images()
		}
		err = ch.send(kindReply, f.call, head, body)
		if errors.Is(err, errTooLarge) {
			err = ch.send(kindReply, f.call, &wireReply{Refused: refusalOf(err)}, nil)
		}
		if err != nil {
			return err
		}
	}
}

// work does one call.
func (w *server) work(ctx context.Context, ch *channel, f *frame, c *wireCall) (*wireReply, []byte) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	w.calls[f.call] = cancel
	if w.early[f.call] {
		delete(w.early, f.call)
		cancel()
	}
	w.mu.Unlock()
	if w.d.HostServices != nil {
		w.d.HostServices.began(&c.Call, ch, f.call)
		defer w.d.HostServices.ended(&c.Call)
	}
	defer func() {
		w.mu.Lock()
		delete(w.calls, f.call)
		w.mu.Unlock()
	}()
	return w.do(ctx, c)
}

func (w *server) do(ctx context.Context, c *wireCall) (*wireReply, []byte) {
	if !w.kept.resolve(c) {
		return &wireReply{Unknown: true}, nil
	}
	for _, r := range w.d.Runners {
		if r.Kind() != c.Kind {
			continue
		}
		began := time.Now()
		reply, err := r.Run(ctx, &c.Call)
		if c.Call.Ahead { // loading a runtime leaves more than it keeps, and a worker may wait for long
			debug.FreeOSMemory()
		}
		if err == nil && reply == nil {
			err = errors.New("neither a reply nor an error")
		}
		if err != nil {
			return &wireReply{Refused: refusalOf(err)}, nil
		}
		out, body := encodeReply(&c.Call, reply, &w.kept)
		out.Usage.Began, out.Usage.Took = began.UnixNano(), time.Since(began)
		return out, body
	}
	return &wireReply{Refused: refusalOf(fmt.Errorf("no runner for %s in a worker", c.Kind))}, nil
}
