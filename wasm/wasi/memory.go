package wasi

import (
	"encoding/binary"

	"openskill/wasm/guestfs"
)

var le = binary.LittleEndian

// bytes is a window on the guest's memory; false if any byte of it is outside, or
// if there is no memory. wazero checks the bounds, but where a window ends at 4 GiB
// exactly its own sum wraps around, so the last byte of such a memory is out of
// reach.
func (w *World) bytes(ptr, n uint64) ([]byte, bool) {
	const last = 1<<32 - 1
	if w.mem == nil || ptr > last || n > last-ptr {
		return nil, false
	}
	return w.mem.Read(uint32(ptr), uint32(n))
}

// result is the window that a function writes its answer to. It is looked up
// before anything happens, so that a call with a bad pointer has no effect.
func (w *World) result(param, n uint64) ([]byte, bool) {
	return w.bytes(uint64(uint32(param)), n)
}

// Caps on one call with vectors.
const (
	maxVectors = 1024
	maxBytes   = 16 << 20
)

// vectors is the array of (pointer, length) pairs of a call, checked whole
// before a byte is moved.
func (w *World) vectors(ptr, count uint64) ([]byte, guestfs.Errno) {
	ptr, count = uint64(uint32(ptr)), uint64(uint32(count))
	if count > maxVectors {
		return nil, guestfs.EINVAL
	}
	list, ok := w.bytes(ptr, count*8)
	if !ok {
		return nil, guestfs.EFAULT
	}
	for v := list; len(v) > 0; v = v[8:] {
		if _, ok := w.bytes(uint64(le.Uint32(v)), uint64(le.Uint32(v[4:]))); !ok {
			return nil, guestfs.EFAULT
		}
	}
	return list, 0
}

// each calls move for the pieces of a vector list, none larger than chunk, until
// one is moved short, move fails, or the cap of one call is reached. It returns
// how much was moved; an error after the first byte is left for the next call.
func (w *World) each(list []byte, move func(p []byte) (int, guestfs.Errno)) (uint32, guestfs.Errno) {
	total := 0
	for ; len(list) > 0; list = list[8:] {
		ptr, n := uint64(le.Uint32(list)), uint64(le.Uint32(list[4:]))
		for n > 0 {
			if total >= maxBytes {
				return uint32(total), 0
			}
			size := min(n, chunk, uint64(maxBytes-total))
			// Looked up again: a vector list may lie in the data that a read
			// overwrites.
			p, ok := w.bytes(ptr, size)
			if !ok {
				return uint32(total), guestfs.EFAULT
			}
			done, errno := move(p)
			total += done
			if errno != 0 {
				if total > 0 {
					return uint32(total), 0
				}
				return 0, errno
			}
			w.copied(done)
			if uint64(done) < size {
				return uint32(total), 0
			}
			ptr += size
			n -= size
		}
	}
	return uint32(total), 0
}
