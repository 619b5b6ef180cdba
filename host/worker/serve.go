package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"sync"

	"openskill/sdk/skill"
)

// Duty is what a worker is for.
type Duty struct {
	Runners []skill.Runner // one of each kind that is run here
	// Narrow gives up all folders but these, for good; nil: there is no way to do
	// that, and a worker has its folders from its start.
	Narrow      func(folders []string) error
	Protections []Protection // what holds this process
	// Outside is what Runners were given for what a guest asks of the host; nil: they
	// have nothing of the kind.
	Outside *Outside
}

// largestCall bounds the frames that a worker accepts: the host bounds inputs long before.
const largestCall = 256 << 20

// starter is a runner that can get ready for calls.
type starter interface {
	Start(ctx context.Context, call *skill.Call) error
}

// warmer is one that has a runtime to load.
type warmer interface {
	WarmWith(ctx context.Context, requires []string) error
}

// Serve is the life of a worker: it says hello on conn, runs the calls that come,
// and ends when the channel does. A panic ends the process, with all its calls:
// whose state is in doubt serves nobody.
func Serve(ctx context.Context, conn net.Conn, d *Duty) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := &served{ch: newChannel(conn, func(kind, uint64) int64 { return largestCall }), d: d, calls: map[uint64]context.CancelFunc{}}
	if d.Outside != nil {
		d.Outside.ch = w.ch
	}
	if err := w.ch.send(kindHello, 0, &Hello{Version: protocol, Narrows: d.Narrow != nil, Protections: d.Protections}, nil); err != nil {
		return fmt.Errorf("worker: say hello: %w", err)
	}
	for {
		f, err := w.ch.receive()
		if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
			return nil // the host is done with this worker, or gone
		}
		if err == nil {
			err = w.handle(ctx, f)
		}
		if err != nil {
			return err
		}
	}
}

// served is a worker at work.
type served struct {
	ch *channel
	d  *Duty

	mu    sync.Mutex
	calls map[uint64]context.CancelFunc
}

func (w *served) handle(ctx context.Context, f *frame) error {
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
		return w.ch.send(kindAssigned, f.call, refusalOf(err), nil)
	case kindRun, kindStart:
		var c wireCall
		if err := f.decode(&c); err != nil {
			return err
		}
		c.Call.Stdin = f.body
		ctx, cancel := context.WithCancel(ctx)
		w.mu.Lock()
		w.calls[f.call] = cancel
		w.mu.Unlock()
		go w.work(ctx, f.kind, f.call, &c)
		return nil
	case kindCancel:
		w.mu.Lock()
		cancel := w.calls[f.call]
		w.mu.Unlock()
		if cancel != nil {
			cancel()
		}
		return nil
	case kindAnswer:
		if w.d.Outside != nil {
			return w.d.Outside.answered(f)
		}
	case kindHello, kindAssigned, kindReply, kindRequest:
	}
	return errFrame
}

// work does one call and answers it. That an answer of any size cannot be written means
// that the channel has ended, which the reader sees as well.
func (w *served) work(ctx context.Context, k kind, id uint64, c *wireCall) {
	if w.d.Outside != nil {
		w.d.Outside.began(&c.Call, id)
		defer w.d.Outside.ended(&c.Call)
	}
	head, body := w.do(ctx, k, c)
	w.mu.Lock()
	w.calls[id]()
	delete(w.calls, id)
	w.mu.Unlock()
	if err := w.ch.send(kindReply, id, head, body); errors.Is(err, errTooLarge) {
		_ = w.ch.send(kindReply, id, &wireReply{Refused: refusalOf(err)}, nil)
	}
}

func (w *served) do(ctx context.Context, k kind, c *wireCall) (*wireReply, []byte) {
	for _, r := range w.d.Runners {
		if r.Kind() != c.Kind {
			continue
		}
		if k == kindStart {
			err := ready(ctx, r, &c.Call)
			// Loading a runtime leaves more than it keeps, and a worker may wait for long.
			debug.FreeOSMemory()
			return &wireReply{Refused: refusalOf(err)}, nil
		}
		reply, err := r.Run(ctx, &c.Call)
		if err == nil && reply == nil {
			err = errors.New("neither a reply nor an error")
		}
		if err != nil {
			return &wireReply{Refused: refusalOf(err)}, nil
		}
		return encodeReply(reply)
	}
	return &wireReply{Refused: refusalOf(fmt.Errorf("no runner for %s in a worker", c.Kind))}, nil
}

// ready loads the runtime that a call needs; and where the call says of which skill,
// starts that.
func ready(ctx context.Context, r skill.Runner, c *skill.Call) error {
	if c.Folder == "" {
		switch r := r.(type) {
		case warmer:
			return r.WarmWith(ctx, c.Requires)
		case interface {
			Warm(ctx context.Context) error
		}:
			return r.Warm(ctx)
		}
		return nil
	}
	if r, ok := r.(starter); ok {
		return r.Start(ctx, c)
	}
	return nil
}
