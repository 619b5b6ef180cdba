package wasm

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero/api"

	"openskill/wasm/guestfs"
	"openskill/wasm/image"
	"openskill/wasm/meter"
	"openskill/wasm/wasi"
)

// scratchSaved is what start-up left in scratch space.
type scratchSaved struct {
	memory *guestfs.Memory // nil: there is none
	saved  *guestfs.MemorySaved
	bytes  uint64 // that it takes, twice: as it was saved, and as a guest finds it
}

// freeze keeps all of the instance's state at its first read of input, if it can
// be put back later. What a guest can reach is: memory, globals, tables, segments,
// the stack, its descriptors, its scratch files, its clocks.
func (in *instance) freeze(ctx context.Context, p wasi.Pending) {
	m := in.im.program.Module
	if !image.Supported || m.unfit != "" || in.only != nil {
		return
	}
	s := &frozen{pending: p, depth: depth(in.x.top, p.InPlace), size: in.x.mem.peak, touched: in.mod.ExportedGlobal(image.ExportTouched)}
	if scratch := in.files.Scratch; scratch != nil {
		saved, ok := scratch.Save()
		if !ok {
			return
		}
		s.scratch = scratchSaved{scratch, saved, 2 * uint64(scratch.Used())} // not negative
	}
	if touched, ok := s.touched.(api.MutableGlobal); ok {
		touched.Set(0) // what start-up changed is the same in all instances
	}
	for i := 0; ; i++ {
		g, ok := in.mod.ExportedGlobal(image.GlobalName(i)).(api.MutableGlobal)
		if !ok {
			break
		}
		s.globals = append(s.globals, g)
		s.values = append(s.values, g.Get())
	}
	if s.stack = newCheckpoint(ctx); s.stack == nil {
		return
	}
	if s.memory = in.im.freeze(in.x.mem.space[:s.size]); s.memory == nil {
		return
	}
	in.x.mem.frozen = true
	if !s.memory.Map(in.x.mem.space) {
		in.err = errors.New("wasm: the memory of an image cannot be mapped")
		panic(errRetired)
	}
	s.world = in.x.world.Save()
	in.saved = s
}

// leftOut are steps that a test has left out.
type leftOut uint

const (
	leaveMemory leftOut = 1 << iota
	leaveGlobals
	leaveTouched
	leaveGrown
	leaveStack
	leaveDescriptors
	leaveScratch
	leaveChance
)

func (im *Image) leaves(l leftOut) bool { return im.left&l != 0 }

// restorable reports whether only that was changed which can be put back.
func (in *instance) restorable() bool {
	s := in.saved
	if s == nil {
		return false
	}
	touched := s.touched != nil && s.touched.Get() != 0
	return (!touched || in.im.leaves(leaveTouched)) && (in.x.mem.peak == s.size || in.im.leaves(leaveGrown))
}

// reset puts the instance back to its first read of input, and lets go of
// everything of the call. It reports whether that worked.
func (in *instance) reset() bool {
	s := in.saved
	if !in.im.leaves(leaveMemory) {
		own, ok := s.memory.Reset(in.x.mem.space)
		if !ok {
			return false
		}
		if !in.verified {
			// Which pages were written is the kernel's word; once it is held against the bytes.
			if !s.memory.Equal(in.x.mem.space) || !s.memory.Drop(in.x.mem.space, s.size) {
				return false
			}
			in.verified, own = true, 0
		}
		in.own = own
	}
	for i, g := range s.globals {
		if !in.im.leaves(leaveGlobals) {
			g.Set(s.values[i])
		}
	}
	if s.scratch.memory != nil && !in.im.leaves(leaveScratch) {
		s.scratch.memory.Restore(s.scratch.saved)
	}
	if !in.im.leaves(leaveStack) {
		s.stack.rewind()
	}
	in.x.tank = meter.Tank{Slice: in.x.tank.Slice}
	if in.im.leaves(leaveDescriptors) {
		return true
	}
	return in.x.world.Restore(s.world, wasi.Config{Root: in.files.Root}) == nil
}
