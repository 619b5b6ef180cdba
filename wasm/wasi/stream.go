package wasi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"openskill/wasm/guestfs"
)

// output is one of the standard outputs.
type output struct {
	w     io.Writer
	left  int64
	count int64
}

func newOutput(w io.Writer, limit int64) *output {
	switch {
	case limit == 0:
		limit = DefaultOutputLimit
	case limit < 0:
		limit = 0
	}
	return &output{w: w, left: limit}
}

// write writes what the limit allows. Over says that p did not fit.
func (o *output) write(p []byte) (n int, over bool, errno guestfs.Errno) {
	if int64(len(p)) > o.left {
		p, over = p[:o.left], true
	}
	n = len(p)
	if o.w != nil && n > 0 {
		var err error
		if n, err = o.w.Write(p); err != nil || n != len(p) {
			n = max(0, min(n, len(p)))
			errno = guestfs.EIO
		}
	}
	o.left -= int64(n)
	o.count += int64(n)
	return n, over, errno
}

// input is the standard input. A reader in memory is read directly. Any other is
// read by one goroutine at a time, into a buffer that belongs to it until the
// result has come back, never into the guest's memory.
type input struct {
	direct io.Reader

	slow    io.Reader
	pending chan inputResult // of the Read under way
	buf     []byte
	rest    []byte // read, but not yet taken by the guest
	err     error  // the reader's last word
}

type inputResult struct {
	n   int
	err error
}

func newInput(r io.Reader) *input {
	switch r := r.(type) {
	case nil:
		return &input{err: io.EOF}
	case *bytes.Reader, *bytes.Buffer, *strings.Reader:
		return &input{direct: r}
	default:
		return &input{slow: r}
	}
}

// read fills p with what is there. Without wait it answers EAGAIN when that is
// nothing; with it, it returns when something is there or the context ends.
func (in *input) read(ctx context.Context, p []byte, wait bool) (int, guestfs.Errno) {
	if in.direct != nil {
		n, err := in.direct.Read(p)
		if err != nil && !errors.Is(err, io.EOF) {
			return n, guestfs.EIO
		}
		return n, 0
	}
	if !in.ready(ctx, nil, wait) {
		return 0, guestfs.EAGAIN
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	if n == 0 && in.err != nil && !errors.Is(in.err, io.EOF) {
		return 0, guestfs.EIO
	}
	return n, 0
}

// maxEmptyReads is how often a reader may return nothing and no error in a row.
const maxEmptyReads = 100

// ready reports whether a read would return at once. With wait it waits for that,
// for the timer (which may be nil), and for the context.
func (in *input) ready(ctx context.Context, timer <-chan time.Time, wait bool) bool {
	for range maxEmptyReads {
		if in.direct != nil || len(in.rest) > 0 || in.err != nil {
			return true
		}
		in.start()
		var result inputResult
		if wait {
			select {
			case result = <-in.pending:
			case <-timer:
				return false
			case <-ctx.Done():
				return false
			}
		} else {
			select {
			case result = <-in.pending:
			default:
				return false
			}
		}
		in.pending = nil
		in.rest, in.err = in.buf[:max(0, min(result.n, len(in.buf)))], result.err
	}
	if len(in.rest) == 0 && in.err == nil {
		in.err = io.ErrNoProgress
	}
	return true
}

// start reads in the background, unless that is under way.
func (in *input) start() {
	if in.pending != nil {
		return
	}
	if in.buf == nil {
		in.buf = make([]byte, chunk)
	}
	pending, r, buf := make(chan inputResult, 1), in.slow, in.buf
	in.pending = pending
	go func() {
		n, err := r.Read(buf)
		pending <- inputResult{n, err}
	}()
}

// available is how much a read would return at once, as far as that is known.
func (in *input) available() uint64 {
	if memory, ok := in.direct.(interface{ Len() int }); ok {
		return uint64(memory.Len())
	}
	return uint64(len(in.rest))
}
