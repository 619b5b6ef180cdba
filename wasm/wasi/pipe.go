package wasi

import (
	"sync"
	"sync/atomic"

	"openskill/wasm/guestfs"
)

const (
	// pipeSize is how many bytes a pipe holds, as Linux's do.
	pipeSize = 64 << 10
	// maxPiped is how many bytes all pipes of a group hold: 32 full ones.
	maxPiped = 32 * pipeSize
)

// pipe carries bytes from one process of a group to another. Its ends are handles.
type pipe struct {
	mu      sync.Mutex // ends are closed by processes that are ended side by side
	buf     []byte     // nil until something is written
	at      int        // of the first byte that was not read
	writers int        // handles of its ends that are open
	readers int

	all *atomic.Int64 // bytes in all pipes of the group
}

// newPipe makes a pipe with one handle of each end.
func newPipe(g *Group) (reads, writes *handle) {
	p := &pipe{readers: 1, writers: 1, all: &g.piped}
	reads, writes = open(nil), open(nil)
	reads.pipe, writes.pipe, writes.writes = p, p, true
	return reads, writes
}

func (p *pipe) close(writes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if writes {
		p.writers--
		return
	}
	if p.readers--; p.readers == 0 { // nobody will read it
		p.all.Add(-int64(len(p.buf) - p.at))
		p.buf, p.at = nil, 0
	}
}

// readable reports whether a read returns at once, and how many bytes are there.
func (p *pipe) readable() (bool, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.buf) - p.at
	return n > 0 || p.writers == 0, n
}

// writable reports whether a write returns at once, and how many bytes there is room for.
func (p *pipe) writable() (bool, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.room()
	return n > 0 || p.readers == 0, n
}

// room is how many bytes can be written.
func (p *pipe) room() int {
	return max(0, min(pipeSize-(len(p.buf)-p.at), int(maxPiped-p.all.Load())))
}

func (p *pipe) read(b []byte) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := copy(b, p.buf[p.at:])
	p.all.Add(-int64(n))
	if p.at += n; p.at == len(p.buf) {
		p.buf, p.at = p.buf[:0], 0
	}
	return n
}

func (p *pipe) write(b []byte) (int, guestfs.Errno) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readers == 0 {
		return 0, guestfs.EPIPE
	}
	n := min(len(b), p.room())
	p.all.Add(int64(n))
	if len(p.buf)+n > pipeSize { // what was read makes room
		p.buf = p.buf[:copy(p.buf, p.buf[p.at:])]
		p.at = 0
	}
	p.buf = append(p.buf, b[:n]...)
	return n, 0
}

// readPipe waits until there is something, or nobody who could write it.
func (w *World) readPipe(d *descriptor, list []byte) (uint32, guestfs.Errno) {
	p, wait := d.h.pipe, d.flags&flagNonblock == 0
	if ready, _ := p.readable(); !ready {
		if !wait {
			return 0, guestfs.EAGAIN
		}
		w.await(func() bool { ready, _ := p.readable(); return ready })
	}
	return w.each(list, func(b []byte) (int, guestfs.Errno) { return p.read(b), 0 })
}

// writePipe waits until all is written, as a write to a pipe does that may wait.
func (w *World) writePipe(d *descriptor, list []byte) (uint32, guestfs.Errno) {
	p, wait := d.h.pipe, d.flags&flagNonblock == 0
	return w.each(list, func(b []byte) (n int, errno guestfs.Errno) {
		for n < len(b) {
			ready, _ := p.writable()
			switch {
			case ready:
			case wait:
				w.await(func() bool { ready, _ := p.writable(); return ready })
			case n > 0:
				return n, 0
			default:
				return 0, guestfs.EAGAIN
			}
			m, errno := p.write(b[n:])
			if errno != 0 {
				return n, errno
			}
			n += m
		}
		return n, 0
	})
}
