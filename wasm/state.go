package wasm

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"openskill/internal/state"
	"openskill/wasm/wasi"
)

// A state is the memory of a guest between two runs: what differs from its image. A program that
// serves one request after the other reads its next request where it has read the first one. There
// its stack holds the same values as in the image, so that memory is all that the earlier requests
// have changed. A run that begins with a state is a new run of the image, on any instance in any
// process, whose memory is changed before the first read is answered.
//
// The stack is that of the image, always. Nothing of it comes from a state, and a state is believed
// to be no more than what a guest could have written to its memory itself. Package state has its form.

// ErrState says that a state is damaged, or of another program, runtime or version of the engine.
var ErrState = errors.New("wasm: the state does not belong to this program")

// ErrNoState says that an instance can have no state.
var ErrNoState = errors.New("wasm: this program can have no state on this host")

// base names what states of this instance differ from.
func (s *frozen) base(m *Module) state.Digest {
	content := s.memory.Digest()
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "openskill state 1 %s %s %s %s %d %d\n", m.digest, generation, arch(), CompilerVersion(), s.size, s.depth)
	h.Write(content[:])
	for _, v := range s.values {
		h.Write(binary.LittleEndian.AppendUint64(nil, v))
	}
	return state.Digest(h.Sum(nil))
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
	s, space, files := in.saved, in.x.mem.space, in.x.world.Changes(in.saved.world)
	of := state.State{Base: s.base(in.im.program.Module), Size: in.x.mem.peak, Opened: files.Opened, Closed: files.Closed}
	_, _ = rand.Read(of.Tag[:]) // never fails
	of.Pages = s.memory.Changed(space, of.Size, !in.verified)
	b := of.Append(make([]byte, 0, of.Length()+len(of.Pages)*state.PageSize))
	for _, n := range of.Pages {
		at := uint64(n) * state.PageSize
		b = append(b, space[at:at+state.PageSize]...)
	}
	return b
}

// thaw has an instance that waits for a call go on with the state of an earlier one. It reports
// whether there was room for that.
func (in *instance) thaw(c *call) (room bool, err error) {
	if in.saved == nil {
		return true, ErrNoState
	}
	if c.State == nil {
		return true, nil
	}
	s, err := state.Read(c.State)
	if err != nil || s.Base != in.saved.base(in.im.program.Module) || s.Size < in.saved.size || s.Size%pageSize != 0 {
		return true, errors.Join(ErrState, err)
	}
	if more := s.Size - in.x.mem.peak; more > 0 {
		if _, ok := in.mod.Memory().Grow(uint32(more / pageSize)); !ok { // of at most 4 GiB
			return false, nil
		}
	}
	for i, n := range s.Pages {
		at := uint64(n) * state.PageSize
		copy(in.x.mem.space[at:at+state.PageSize], s.Data[i*state.PageSize:])
	}
	if !in.x.world.Apply(&wasi.Changes{Opened: s.Opened, Closed: s.Closed}) {
		return true, ErrState
	}
	return true, nil
}
