package wasi

import (
	"math"

	"openskill/wasm/guestfs"
)

func (w *World) fdRead(p []uint64) guestfs.Errno {
	d, file, errno := w.fdFile(p[0])
	if errno != 0 {
		return errno
	}
	list, out, errno := w.transfer(d, canRead, p[1], p[2], p[3])
	if errno != 0 {
		return errno
	}
	var n uint32
	if d.kind == isStdin && w.cfg.Begin != nil {
		w.begin(func(w *World, p []uint64) uint64 { return uint64(w.fdRead(p)) }, p)
		return w.fdRead(p) // anew: its descriptors may have been restored
	}
	if d.kind == isStdin {
		if w.cfg.Idle != nil {
			w.cfg.Idle(p)
		}
		n, errno = w.readInput(list, d.flags&flagNonblock == 0)
	} else if _, ok := file.(guestfs.ChanceFile); ok {
		n, errno = w.each(list, w.readChance)
	} else if d.kind == isNull {
		n = 0
	} else if d.kind == isPipe {
		n, errno = w.readPipe(d, list)
	} else if f, ok := file.(guestfs.ExchangeFile); ok {
		if w.cfg.Begin != nil && d.talk.request != nil && f.Device() == guestfs.Processes {
			w.begin(func(w *World, p []uint64) uint64 { return uint64(w.fdRead(p)) }, p)
			return w.fdRead(p) // anew, as above
		}
		n, errno = w.readExchange(p[0], f.Device(), list)
	} else {
		n, errno = w.readFile(file, list, &d.offset)
	}
	if errno != 0 {
		return errno
	}
	le.PutUint32(out, n)
	return 0
}

// readInput waits for the first bytes only: what has come in is handed over, and
// no more is asked of a reader than the guest asked for.
func (w *World) readInput(list []byte, wait bool) (uint32, guestfs.Errno) {
	first := true
	return w.each(list, func(b []byte) (int, guestfs.Errno) {
		if !first && w.in.direct == nil && len(w.in.rest) == 0 {
			return 0, 0
		}
		first = false
		n, errno := w.in.read(w.ctx, b, wait)
		if errno == guestfs.EAGAIN {
			w.checkContext() // that ended the wait
		}
		return n, errno
	})
}

func (w *World) readChance(b []byte) (int, guestfs.Errno) {
	if w.chance(b) != nil {
		return 0, guestfs.EIO
	}
	return len(b), 0
}

// readFile reads at an offset and moves it.
func (w *World) readFile(file guestfs.File, list []byte, offset *int64) (uint32, guestfs.Errno) {
	return w.each(list, func(b []byte) (int, guestfs.Errno) {
		if *offset > math.MaxInt64-int64(len(b)) {
			return 0, 0 // past any end
		}
		n, errno := file.ReadAt(b, *offset)
		*offset += int64(n)
		return n, errno
	})
}

func (w *World) fdPread(p []uint64) guestfs.Errno {
	d, file, errno := w.fdFile(p[0])
	if errno != 0 {
		return errno
	}
	list, out, errno := w.transfer(d, canRead, p[1], p[2], p[4])
	offset := int64(p[3])
	switch {
	case errno != 0:
		return errno
	case file == nil:
		return guestfs.ESPIPE
	case offset < 0:
		return guestfs.EINVAL
	}
	n, errno := w.readFile(file, list, &offset)
	if errno != 0 {
		return errno
	}
	le.PutUint32(out, n)
	return 0
}

func (w *World) fdWrite(p []uint64) guestfs.Errno {
	d, file, errno := w.fdFile(p[0])
	if errno != 0 {
		return errno
	}
	list, out, errno := w.transfer(d, canWrite, p[1], p[2], p[3])
	if errno != 0 {
		return errno
	}
	var n uint32
	switch d.kind {
	case isStdout, isStderr:
		n, errno = w.writeOutput(w.out[d.kind-isStdout], list)
	case isPipe:
		n, errno = w.writePipe(d, list)
	case isNull:
		n, errno = w.each(list, func(b []byte) (int, guestfs.Errno) { return len(b), 0 })
	default:
		if _, ok := file.(guestfs.ExchangeFile); ok {
			n, errno = w.writeExchange(&d.talk, list)
			break
		}
		if d.flags&flagAppend != 0 {
			st, errno := file.Stat()
			if errno != 0 {
				return errno
			}
			d.offset = st.Size
		}
		n, errno = w.writeFile(file, list, &d.offset)
	}
	if errno != 0 {
		return errno
	}
	le.PutUint32(out, n)
	return 0
}

func (w *World) writeOutput(o *output, list []byte) (uint32, guestfs.Errno) {
	return w.each(list, func(b []byte) (int, guestfs.Errno) {
		n, over, errno := o.write(b)
		if over && errno == 0 {
			w.end(ReasonOutputLimit, 0)
		}
		return n, errno
	})
}

func (w *World) writeFile(file guestfs.File, list []byte, offset *int64) (uint32, guestfs.Errno) {
	return w.each(list, func(b []byte) (int, guestfs.Errno) {
		if *offset > math.MaxInt64-int64(len(b)) {
			return 0, guestfs.EFBIG
		}
		n, errno := file.WriteAt(b, *offset)
		*offset += int64(n)
		return n, errno
	})
}

func (w *World) fdPwrite(p []uint64) guestfs.Errno {
	d, file, errno := w.fdFile(p[0])
	if errno != 0 {
		return errno
	}
	list, out, errno := w.transfer(d, canWrite, p[1], p[2], p[4])
	offset := int64(p[3])
	switch {
	case errno != 0:
		return errno
	case file == nil:
		return guestfs.ESPIPE
	case offset < 0:
		return guestfs.EINVAL
	}
	n, errno := w.writeFile(file, list, &offset)
	if errno != 0 {
		return errno
	}
	le.PutUint32(out, n)
	return 0
}

// transfer checks what the four calls have in common: the direction, the vectors,
// and the place for the count.
func (w *World) transfer(d *descriptor, right uint8, iovs, count, result uint64) (list, out []byte, errno guestfs.Errno) {
	switch {
	case d.kind == isDir:
		return nil, nil, guestfs.EISDIR
	case d.rights&right == 0:
		return nil, nil, guestfs.EBADF
	}
	if list, errno = w.vectors(iovs, count); errno != 0 {
		return nil, nil, errno
	}
	out, ok := w.result(result, 4)
	if !ok {
		return nil, nil, guestfs.EFAULT
	}
	return list, out, 0
}
