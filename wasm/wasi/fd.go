package wasi

import (
	"io"
	"math"
	"time"

	"openskill/wasm/guestfs"
)

// Rights of preview1: what fd_fdstat_get tells libc about a descriptor.
const (
	rightDatasync    = 1 << 0
	rightRead        = 1 << 1
	rightSeek        = 1 << 2
	rightSetFlags    = 1 << 3
	rightSync        = 1 << 4
	rightTell        = 1 << 5
	rightWrite       = 1 << 6
	rightAdvise      = 1 << 7
	rightAllocate    = 1 << 8
	rightFilestatGet = 1 << 21
	rightSetSize     = 1 << 22
	rightSetTimes    = 1 << 23
	rightPoll        = 1 << 27

	// Every right on paths (bits 9 to 20 and 24 to 26), readdir among them.
	rightsPath = 0x1ffe00 | 7<<24

	rightsFile = rightDatasync | rightRead | rightSeek | rightSetFlags | rightSync | rightTell |
		rightWrite | rightAdvise | rightAllocate | rightFilestatGet | rightSetSize | rightSetTimes | rightPoll
	rightsDir = rightsPath | rightDatasync | rightSetFlags | rightSync | rightFilestatGet | rightSetTimes
)

// Flags of a descriptor.
const (
	flagAppend   = 1 << 0
	flagDsync    = 1 << 1
	flagNonblock = 1 << 2
	flagRsync    = 1 << 3
	flagSync     = 1 << 4
)

func (w *World) fdAdvise(p []uint64) guestfs.Errno {
	switch {
	case w.fd(p[0]) == nil:
		return guestfs.EBADF
	case uint32(p[3]) > 5:
		return guestfs.EINVAL
	}
	return 0 // advice may be ignored
}

func (w *World) fdAllocate(p []uint64) guestfs.Errno {
	_, file, errno := w.fdFile(p[0])
	switch {
	case errno != 0:
		return errno
	case file == nil:
		return guestfs.ESPIPE
	case p[1] > math.MaxInt64 || p[2] == 0 || p[2] > math.MaxInt64-p[1]:
		return guestfs.EINVAL
	}
	st, errno := file.Stat()
	if errno != 0 {
		return errno
	}
	return file.Truncate(max(st.Size, int64(p[1]+p[2])))
}

func (w *World) fdClose(p []uint64) guestfs.Errno {
	d := w.fd(p[0])
	if d == nil {
		return guestfs.EBADF
	}
	return w.closeFD(d)
}

// fdSync also is fd_datasync. Nothing here outlives the run, so there is nothing
// to wait for.
func (w *World) fdSync(p []uint64) guestfs.Errno {
	if w.fd(p[0]) == nil {
		return guestfs.EBADF
	}
	return 0
}

func (w *World) fdFdstatGet(p []uint64) guestfs.Errno {
	out, ok := w.result(p[1], 24)
	if !ok {
		return guestfs.EFAULT
	}
	d := w.fd(p[0])
	if d == nil {
		return guestfs.EBADF
	}
	kind, base, inheriting := guestfs.KindBlockDevice, uint64(rightsFile&^(rightSeek|rightTell)), uint64(0)
	switch d.kind {
	case isDir:
		// libc masks what it asks of path_open with what is inheritable, so all
		// of it must be there, or a refused write would quietly become a read.
		kind, base, inheriting = guestfs.KindDirectory, rightsDir, rightsDir|rightsFile
	case isFile:
		kind, base = guestfs.KindRegular, rightsFile
	default: // a standard stream
	}
	if d.kind != isDir {
		if d.rights&canRead == 0 {
			base &^= rightRead
		}
		if d.rights&canWrite == 0 {
			base &^= rightWrite
		}
	}
	clear(out)
	out[0] = byte(kind)
	le.PutUint16(out[2:], d.flags)
	le.PutUint64(out[8:], base)
	le.PutUint64(out[16:], inheriting)
	return 0
}

func (w *World) fdFdstatSetFlags(p []uint64) guestfs.Errno {
	flags := uint32(p[1])
	d := w.fd(p[0])
	switch {
	case d == nil:
		return guestfs.EBADF
	case flags&^(flagAppend|flagNonblock) != 0: // the sync flags cannot be changed
		return guestfs.EINVAL
	}
	d.flags = d.flags&^(flagAppend|flagNonblock) | uint16(flags)
	return 0
}

func (w *World) fdFdstatSetRights(p []uint64) guestfs.Errno {
	if w.fd(p[0]) == nil {
		return guestfs.EBADF
	}
	return guestfs.ENOSYS
}

func (w *World) fdFilestatGet(p []uint64) guestfs.Errno {
	out, ok := w.result(p[1], 64)
	if !ok {
		return guestfs.EFAULT
	}
	_, file, errno := w.fdFile(p[0])
	if errno != 0 {
		return errno
	}
	st := guestfs.Stat{Kind: guestfs.KindBlockDevice, Links: 1}
	if file != nil {
		if st, errno = file.Stat(); errno != 0 {
			return errno
		}
	}
	putFilestat(out, st)
	return 0
}

func putFilestat(out []byte, st guestfs.Stat) {
	clear(out)
	le.PutUint64(out, st.Dev)
	le.PutUint64(out[8:], st.Inode)
	out[16] = byte(st.Kind)
	le.PutUint64(out[24:], st.Links)
	le.PutUint64(out[32:], uint64(st.Size))
	atime, mtime := st.Atime, nanos(st.Mtime)
	if atime.IsZero() {
		atime = st.Mtime
	}
	le.PutUint64(out[40:], nanos(atime))
	le.PutUint64(out[48:], mtime)
	le.PutUint64(out[56:], mtime)
}

// nanos is a time as preview1 counts it: from 1970, held at the ends of the range.
func nanos(t time.Time) uint64 {
	const last = math.MaxInt64 / int64(time.Second)
	switch s := t.Unix(); {
	case s < 0:
		return 0
	case s >= last:
		return math.MaxInt64
	}
	return uint64(t.UnixNano())
}

func (w *World) fdFilestatSetSize(p []uint64) guestfs.Errno {
	_, file, errno := w.fdFile(p[0])
	switch {
	case errno != 0:
		return errno
	case file == nil || p[1] > math.MaxInt64:
		return guestfs.EINVAL
	}
	return file.Truncate(int64(p[1]))
}

func (w *World) fdFilestatSetTimes(p []uint64) guestfs.Errno {
	_, file, errno := w.fdFile(p[0])
	if errno != 0 {
		return errno
	}
	atime, mtime, errno := w.times(p[1], p[2], uint32(p[3]))
	switch {
	case errno != 0:
		return errno
	case file == nil:
		return guestfs.EPERM
	}
	return file.SetTimes(atime, mtime)
}

// times reads the arguments of the two calls that set times; nil leaves a time as
// it is.
func (w *World) times(atim, mtim uint64, flags uint32) (atime, mtime *time.Time, errno guestfs.Errno) {
	const setA, nowA, setM, nowM = 1, 2, 4, 8
	if flags > 15 || flags&(setA|nowA) == setA|nowA || flags&(setM|nowM) == setM|nowM {
		return nil, nil, guestfs.EINVAL
	}
	pick := func(set, now uint32, nanos uint64) *time.Time {
		var t time.Time
		switch {
		case flags&now != 0:
			t = w.wall()
		case flags&set != 0:
			t = time.Unix(int64(nanos/1e9), int64(nanos%1e9))
		default:
			return nil
		}
		return &t
	}
	return pick(setA, nowA, atim), pick(setM, nowM, mtim), 0
}

const preopenName = "/"

func (w *World) fdPrestatGet(p []uint64) guestfs.Errno {
	d := w.fd(p[0])
	if d == nil || !d.preopen {
		return guestfs.EBADF
	}
	out, ok := w.result(p[1], 8)
	if !ok {
		return guestfs.EFAULT
	}
	le.PutUint64(out, uint64(len(preopenName))<<32)
	return 0
}

func (w *World) fdPrestatDirName(p []uint64) guestfs.Errno {
	d := w.fd(p[0])
	switch {
	case d == nil || !d.preopen:
		return guestfs.EBADF
	case uint32(p[2]) < uint32(len(preopenName)):
		return guestfs.ENAMETOOLONG
	}
	out, ok := w.result(p[1], uint64(len(preopenName)))
	if !ok {
		return guestfs.EFAULT
	}
	copy(out, preopenName)
	return 0
}

// fdRenumber moves a descriptor onto another open one, whatever the two are.
func (w *World) fdRenumber(p []uint64) guestfs.Errno {
	from, to := w.fd(p[0]), w.fd(p[1])
	switch {
	case from == nil || to == nil:
		return guestfs.EBADF
	case from == to:
		return 0
	}
	moved := *from
	*from = descriptor{}
	errno := w.closeFD(to)
	*to = moved
	return errno
}

func (w *World) fdSeek(p []uint64) guestfs.Errno {
	d, file, errno := w.fdFile(p[0])
	if errno != 0 {
		return errno
	}
	out, ok := w.result(p[3], 8)
	switch {
	case file == nil:
		return guestfs.ESPIPE
	case d.kind == isDir:
		return guestfs.EISDIR
	case !ok:
		return guestfs.EFAULT
	}
	var base int64
	switch uint32(p[2]) {
	case io.SeekStart:
	case io.SeekCurrent:
		base = d.offset
	case io.SeekEnd:
		st, errno := file.Stat()
		if errno != 0 {
			return errno
		}
		base = st.Size
	default:
		return guestfs.EINVAL
	}
	// base is never negative, so only a positive delta can overflow.
	delta := int64(p[1])
	if delta > math.MaxInt64-base || base+delta < 0 {
		return guestfs.EINVAL
	}
	d.offset = base + delta
	le.PutUint64(out, uint64(d.offset))
	return 0
}

func (w *World) fdTell(p []uint64) guestfs.Errno {
	d := w.fd(p[0])
	switch {
	case d == nil:
		return guestfs.EBADF
	case d.kind == isDir:
		return guestfs.EISDIR
	case d.kind != isFile:
		return guestfs.ESPIPE
	}
	out, ok := w.result(p[1], 8)
	if !ok {
		return guestfs.EFAULT
	}
	le.PutUint64(out, uint64(d.offset))
	return 0
}
