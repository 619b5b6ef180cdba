package wasi

import (
	"errors"
	"sync/atomic"

	"openskill/wasm/guestfs"
)

// descriptor is one entry of the descriptor table: a plain value, so that saving
// the table is copying it.
type descriptor struct {
	kind    fdKind
	rights  uint8  // canRead, canWrite
	preopen bool   // told of by fd_prestat_get
	flags   uint16 // fdflags: append, nonblock
	offset  int64  // of a regular file
	path    string // of a directory, in Root
	h       *handle
	talk    exchange // of a file of guestfs.Exchange
}

type fdKind uint8

const (
	isFree fdKind = iota
	isStdin
	isStdout
	isStderr
	isFile
	isDir
	isPipe
	isNull // reads nothing, and drops what is written
)

const (
	canRead = 1 << iota
	canWrite
)

// handle is an open file, shared by descriptors of saved states and of the processes of a
// group, or one end of a pipe.
type handle struct {
	refs   atomic.Int32 // processes that are ended side by side let go of it
	file   guestfs.File // nil of a pipe
	list   listing
	moved  atomic.Int64 // one more than the offset that a process left it with; 0: none did
	pipe   *pipe        // nil of a file
	writes bool         // the pipe
}

// open gives the handle of a file that was just opened.
func open(file guestfs.File) *handle {
	h := &handle{file: file}
	h.refs.Store(1)
	return h
}

func (h *handle) drop() error {
	if h == nil {
		return nil
	}
	if h.refs.Add(-1) > 0 {
		return nil
	}
	if h.pipe != nil {
		h.pipe.close(h.writes)
		return nil
	}
	return h.file.Close()
}

func retain(fds []descriptor) {
	for i := range fds {
		if h := fds[i].h; h != nil {
			h.refs.Add(1)
		}
	}
}

func release(fds []descriptor) error {
	var errs []error
	for i := range fds {
		if err := fds[i].h.drop(); err != nil {
			errs = append(errs, err)
		}
		fds[i] = descriptor{}
	}
	return errors.Join(errs...)
}

func (w *World) closeAll() error {
	err := release(w.fds)
	w.fds = w.fds[:0]
	return err
}

// fd looks a descriptor up; nil if it is not open.
func (w *World) fd(param uint64) *descriptor {
	n := uint64(uint32(param))
	if n >= uint64(len(w.fds)) || w.fds[n].kind == isFree {
		return nil
	}
	return &w.fds[n]
}

// fdFile is a descriptor of a file or directory with its open file. The preopen is
// opened on first use, so that a run that touches no file costs none.
func (w *World) fdFile(param uint64) (*descriptor, guestfs.File, guestfs.Errno) {
	d := w.fd(param)
	switch {
	case d == nil:
		return nil, nil, guestfs.EBADF
	case d.kind != isFile && d.kind != isDir:
		return d, nil, 0
	case d.h == nil:
		file, errno := w.cfg.Root.Open(d.path, guestfs.Directory)
		if errno != 0 {
			return nil, nil, errno
		}
		d.h = open(file)
	}
	return d, d.h.file, 0
}

// freeFD is the lowest free number, or false at the cap.
func (w *World) freeFD() (int, bool) {
	for i := range w.fds {
		if w.fds[i].kind == isFree {
			return i, true
		}
	}
	return len(w.fds), len(w.fds) < w.cfg.MaxOpenFiles
}

func (w *World) setFD(n int, d descriptor) {
	if n == len(w.fds) {
		w.fds = append(w.fds, d)
		return
	}
	w.fds[n] = d
}

func (w *World) closeFD(d *descriptor) guestfs.Errno {
	h := d.h
	*d = descriptor{}
	if err := h.drop(); err != nil {
		return guestfs.EIO
	}
	return 0
}
