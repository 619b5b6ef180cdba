package wasm

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"openskill/wasm/image"
	"openskill/wasm/wasi"
)

// A state is the memory of a guest between two runs: what differs from its image. A program that
// serves one request after the other reads its next request where it has read the first one. There
// its stack holds the same values as in the image, so that memory is all that the earlier requests
// have changed. A run that begins with a state is a new run of the image, on any instance in any
// process, whose memory is changed before the first read is answered.
//
// The stack is that of the image, always. Nothing of it comes from a state, and a state is believed
// to be no more than what a guest could have written to its memory itself.
//
// In bytes, with little-endian numbers: the digest of its image, the size of the memory in bytes (8), the
// number of descriptors opened (4) and closed (4) with their numbers (4 each), the number of pages (4) with
// their numbers (4 each) in order, and the pages.

// ErrState says that a state is damaged, or of another program, runtime or version of the engine.
var ErrState = errors.New("wasm: the state does not belong to this program")

// errNoState says that an instance can have no state.
var errNoState = errors.New("wasm: this program can have no state on this host")

const stateHead = sha256.Size + 8 + 4 + 4

// base names what states of this instance differ from.
func (s *frozen) base(m *Module) [sha256.Size]byte {
	content := s.memory.Digest()
	h := sha256.New()
	fmt.Fprintf(h, "openskill state 1 %s %s %s %s %d %d\n", m.digest, generation, arch(), CompilerVersion(), s.size, s.depth)
	h.Write(content[:])
	for _, v := range s.values {
		h.Write(binary.LittleEndian.AppendUint64(nil, v))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// atFirstRead reports whether a guest that reads standard input does so where it did the first time:
// with the same arguments, as deep in calls on its own stack and the host's.
func (in *instance) atFirstRead(args []uint64) bool {
	s := in.saved
	if s == nil || !s.pending.Same(args) || depth(in.x.top, args) != s.depth || s.touched != nil && s.touched.Get() != 0 {
		return false
	}
	for i, g := range s.globals {
		if g.Get() != s.values[i] {
			return false
		}
	}
	return true
}

// idle is called when the guest reads standard input again. A run that is to leave a state ends
// where it would read its next request.
func (in *instance) idle(args []uint64) {
	c := in.now
	switch {
	case c == nil || !c.KeepState:
	case !c.read:
		c.read = true // the first one, which the run was begun for
	case in.atFirstRead(args):
		c.idle = true
		if c.Status != nil {
			in.x.code = c.Status(in.files)
		}
		in.finish()
	}
}

// capture gives the state of an instance that is idle.
func (in *instance) capture() []byte {
	s, size := in.saved, in.x.mem.peak
	space := in.x.mem.space
	pages := s.memory.Changed(space, size, !in.verified)
	files := in.x.world.Changes(s.world)
	b := make([]byte, 0, stateHead+4*(len(files.Opened)+len(files.Closed)+1+len(pages))+image.PageSize*len(pages))
	base := s.base(in.im.program.Module)
	b = append(b, base[:]...)
	b = binary.LittleEndian.AppendUint64(b, size)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(files.Opened))) // at most Limits.Files
	b = binary.LittleEndian.AppendUint32(b, uint32(len(files.Closed))) // as above
	for _, n := range slices.Concat(files.Opened, files.Closed) {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(pages))) // of at most 4 GiB
	for _, n := range pages {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	for _, n := range pages {
		at := uint64(n) * image.PageSize
		b = append(b, space[at:at+image.PageSize]...)
	}
	return b
}

// state is a state as it was read.
type state struct {
	base  []byte
	size  uint64
	files wasi.Changes
	pages []byte // their numbers
	data  []byte
}

// readState reads a state, and holds it against itself.
func readState(b []byte) (*state, error) {
	if len(b) < stateHead+4 {
		return nil, fmt.Errorf("%w: it is cut off", ErrState)
	}
	s := &state{base: b[:sha256.Size], size: binary.LittleEndian.Uint64(b[sha256.Size:])}
	opened, closed := uint64(binary.LittleEndian.Uint32(b[sha256.Size+8:])), uint64(binary.LittleEndian.Uint32(b[sha256.Size+12:]))
	rest := b[stateHead:]
	if 4*(opened+closed)+4 > uint64(len(rest)) {
		return nil, fmt.Errorf("%w: its files are cut off", ErrState)
	}
	for i := range opened + closed {
		n := binary.LittleEndian.Uint32(rest[4*i:])
		if i < opened {
			s.files.Opened = append(s.files.Opened, n)
		} else {
			s.files.Closed = append(s.files.Closed, n)
		}
	}
	rest = rest[4*(opened+closed):]
	n := uint64(binary.LittleEndian.Uint32(rest))
	if rest = rest[4:]; uint64(len(rest)) != n*(4+image.PageSize) || s.size%pageSize != 0 {
		return nil, fmt.Errorf("%w: its pages are cut off", ErrState)
	}
	s.pages, s.data = rest[:4*n], rest[4*n:]
	for i, last := uint64(0), int64(-1); i < n; i++ {
		page := int64(binary.LittleEndian.Uint32(s.pages[4*i:]))
		if page <= last || uint64(page+1)*image.PageSize > s.size {
			return nil, fmt.Errorf("%w: the order of its pages", ErrState)
		}
		last = page
	}
	return s, nil
}

// thaw has an instance that waits for a call go on with the state of an earlier one. It reports
// whether there was room for that.
func (in *instance) thaw(c *call) (room bool, err error) {
	if in.saved == nil {
		return true, errNoState
	}
	if c.State == nil {
		return true, nil
	}
	s, err := readState(c.State)
	if err != nil {
		return true, err
	}
	if base := in.saved.base(in.im.program.Module); string(s.base) != string(base[:]) || s.size < in.saved.size {
		return true, ErrState
	}
	if more := s.size - in.x.mem.peak; more > 0 {
		if _, ok := in.mod.Memory().Grow(uint32(more / pageSize)); !ok { // of at most 4 GiB
			return false, nil
		}
	}
	for i := 0; i < len(s.pages); i += 4 {
		at := uint64(binary.LittleEndian.Uint32(s.pages[i:])) * image.PageSize
		copy(in.x.mem.space[at:at+image.PageSize], s.data[i/4*image.PageSize:])
	}
	if !in.x.world.Apply(&s.files) {
		return true, ErrState
	}
	return true, nil
}
