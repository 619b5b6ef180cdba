package wasi

import (
	"math"

	"openskill/wasm/guestfs"
)

func (w *World) argsGet(p []uint64) guestfs.Errno         { return w.writeStrings(w.cfg.Args, p) }
func (w *World) argsSizesGet(p []uint64) guestfs.Errno    { return w.writeSizes(w.cfg.Args, p) }
func (w *World) environGet(p []uint64) guestfs.Errno      { return w.writeStrings(w.cfg.Env, p) }
func (w *World) environSizesGet(p []uint64) guestfs.Errno { return w.writeSizes(w.cfg.Env, p) }

// size is the length of the strings with a NUL after each.
func size(list []string) (n uint64) {
	for _, s := range list {
		n += uint64(len(s)) + 1
	}
	return n
}

func (w *World) writeSizes(list []string, p []uint64) guestfs.Errno {
	count, ok := w.result(p[0], 4)
	total, ok2 := w.result(p[1], 4)
	if !ok || !ok2 {
		return guestfs.EFAULT
	}
	n := size(list)
	if n > math.MaxUint32 {
		return guestfs.EOVERFLOW
	}
	le.PutUint32(count, uint32(len(list)))
	le.PutUint32(total, uint32(n))
	return 0
}

func (w *World) writeStrings(list []string, p []uint64) guestfs.Errno {
	n := size(list)
	pointers, ok := w.result(p[0], uint64(len(list))*4)
	data, ok2 := w.result(p[1], n)
	if !ok || !ok2 {
		return guestfs.EFAULT
	}
	w.copied(int(n))
	at := uint32(p[1])
	for i, s := range list {
		le.PutUint32(pointers[i*4:], at)
		data[copy(data, s)] = 0
		data = data[len(s)+1:]
		at += uint32(len(s)) + 1
	}
	return 0
}

// The clocks of preview1.
const (
	clockRealtime = iota
	clockMonotonic
	clockProcess
	clockThread
)

func (w *World) clockResGet(p []uint64) guestfs.Errno {
	var grain int64
	switch uint32(p[0]) {
	case clockRealtime:
		grain = int64(WallGrain)
	case clockMonotonic, clockProcess, clockThread:
		grain = int64(MonoGrain)
	default:
		return guestfs.EINVAL
	}
	out, ok := w.result(p[1], 8)
	if !ok {
		return guestfs.EFAULT
	}
	le.PutUint64(out, uint64(grain))
	return 0
}

func (w *World) clockTimeGet(p []uint64) guestfs.Errno {
	now, errno := w.now(uint32(p[0]))
	if errno != 0 {
		return errno
	}
	out, ok := w.result(p[2], 8)
	if !ok {
		return guestfs.EFAULT
	}
	le.PutUint64(out, uint64(now))
	return 0
}

// now is the time on one of the clocks, in nanoseconds.
func (w *World) now(clock uint32) (int64, guestfs.Errno) {
	switch clock {
	case clockRealtime:
		return int64(nanos(w.wall())), 0
	case clockMonotonic, clockProcess, clockThread:
		return w.mono(), 0
	}
	return 0, guestfs.EINVAL
}

// procExit ends the run. It does not return.
func (w *World) procExit(p []uint64) guestfs.Errno {
	if w.cfg.Exit != nil && w.stopped.Reason == 0 {
		w.stopped = Stop{Reason: ReasonExit, ExitCode: uint32(p[0])}
		w.cfg.Exit()
	}
	w.end(ReasonExit, uint32(p[0]))
	return 0
}

func (w *World) procRaise([]uint64) guestfs.Errno  { return guestfs.ENOSYS }
func (w *World) schedYield([]uint64) guestfs.Errno { return 0 }

func (w *World) randomGet(p []uint64) guestfs.Errno {
	buf, ok := w.result(p[0], uint64(uint32(p[1])))
	if !ok {
		return guestfs.EFAULT
	}
	for len(buf) > 0 {
		n := min(len(buf), chunk)
		w.copied(n)
		if w.chance(buf[:n]) != nil {
			return guestfs.EIO
		}
		buf = buf[n:]
	}
	return 0
}

// sock answers for all socket calls: no descriptor here is a socket.
func (w *World) sock(p []uint64) guestfs.Errno {
	if w.fd(p[0]) == nil {
		return guestfs.EBADF
	}
	return guestfs.ENOTSOCK
}
