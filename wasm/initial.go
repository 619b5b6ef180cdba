package wasm

import (
	wbin "openskill/wasm/binary"
)

// maxInitial is the size up to which the first content of a memory is laid out
// ahead, in bytes. Beyond it wazero copies the data segments at each start.
const maxInitial = 64 << 20

// Content beyond denseInitial bytes must be data to a sparseInitial-th at least: laid
// out, a byte at the end of 64 MiB takes as much memory, and space in the cache, as a
// large program, and there is nothing to copying it at each start. A program with its
// stack of 8 MiB in front of its data is laid out with 128 KiB of data or more.
const (
	denseInitial  = 2 << 20
	sparseInitial = 64
)

// initialMemory takes the active data segments out of a module and gives the
// memory that they make. A Go program has tens of thousands of them, and copying
// them is most of what its instantiation takes. trap is set if one does not fit.
//
// The segments stay in their places, empty and passive, where instructions name
// them: that is what an active segment is once the instance has started.
func initialMemory(m *wbin.Module) (out *wbin.Module, content []byte, trap bool) {
	size, data := uint64(0), uint64(0)
	for i := range m.Datas {
		s := &m.Datas[i]
		if s.Mode != wbin.Active {
			continue
		}
		end := uint64(constI32(s.Offset)) + uint64(len(s.Init))
		if len(m.Memories) == 0 || end > uint64(m.Memories[0].Min)*pageSize {
			return m, nil, true
		}
		size, data = max(size, end), data+uint64(len(s.Init))
	}
	if size == 0 || size > maxInitial || size > max(denseInitial, sparseInitial*data) {
		return m, nil, false
	}
	content = make([]byte, size)
	changed := *m
	changed.Datas = make([]wbin.Data, len(m.Datas))
	for i, s := range m.Datas {
		if s.Mode == wbin.Active {
			copy(content[constI32(s.Offset):], s.Init)
			s = wbin.Data{Mode: wbin.Passive}
		}
		changed.Datas[i] = s
	}
	if m.DataCount == nil {
		changed.Datas = nil // then no instruction can name one
	}
	return &changed, content, false
}
