package main

import (
	"context"
	"io"
	"time"
)

// liveWriter passes a guest's output on as it comes, but does not wait for a
// reader that reads nothing longer than ctx: a deadline wins against a full pipe.
// It is used by one goroutine at a time.
type liveWriter struct {
	ctx  context.Context //nolint:containedctx // of the one run that it serves
	w    io.Writer
	work chan []byte
	done chan written
	buf  []byte
	last byte // that was written
	any  bool
	dead bool // a write never came back
}

type written struct {
	n   int
	err error
}

func newLiveWriter(ctx context.Context, w io.Writer) *liveWriter {
	l := &liveWriter{ctx: ctx, w: w, work: make(chan []byte), done: make(chan written, 1)}
	go func() {
		for p := range l.work {
			n, err := l.w.Write(p)
			l.done <- written{n, err}
		}
	}()
	return l
}

// Write implements io.Writer.
func (l *liveWriter) Write(p []byte) (int, error) {
	if l.dead || l.ctx.Err() != nil {
		return 0, context.Canceled
	}
	if len(p) == 0 {
		return 0, nil
	}
	l.buf = append(l.buf[:0], p...) // it belongs to the goroutine until done
	l.work <- l.buf
	select {
	case r := <-l.done:
		if r.n > 0 {
			l.last, l.any = p[min(r.n, len(p))-1], true
		}
		return r.n, r.err
	case <-l.ctx.Done():
		// A write that is only slow still counts as output.
		t := time.NewTimer(lastWrite)
		defer t.Stop()
		select {
		case r := <-l.done:
			if r.n > 0 {
				l.last, l.any = p[min(r.n, len(p))-1], true
			}
			return r.n, r.err
		case <-t.C:
			l.dead = true
			return 0, l.ctx.Err()
		}
	}
}

// lastWrite is how long an output gets to take its last bytes.
const lastWrite = 50 * time.Millisecond

// midLine reports whether the output ended within a line.
func (l *liveWriter) midLine() bool { return l.any && l.last != '\n' }

// Close ends the goroutine, unless it hangs in a write.
func (l *liveWriter) Close() { close(l.work) }
