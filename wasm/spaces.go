package wasm

import (
	"sync"

	"openskill/wasm/guard"
	"openskill/wasm/image"
)

// spaces are the address spaces that a module's memories begin in: the first
// content, and zeros up to a limit. A space is used by one instance at a time. One
// that comes back is emptied by the kernel before it is kept for the next: what an
// instance wrote is gone with its pages.
type spaces struct {
	content *image.Memory // of the first bytes
	guarded bool          // they lie between guard pages

	mu     sync.Mutex
	closed bool
	free   [][]byte
}

// keep is how many emptied spaces a module keeps.
const keep = 8

// take gives a space of the given size; nil if the kernel has none.
func (s *spaces) take(size uint64) []byte {
	if s.guarded {
		size = min(size, guard.Size)
	}
	s.mu.Lock()
	for i := len(s.free) - 1; i >= 0; i-- {
		if b := s.free[i]; uint64(len(b)) == size {
			s.free = append(s.free[:i], s.free[i+1:]...)
			s.mu.Unlock()
			return b
		}
	}
	s.mu.Unlock()
	if !s.guarded {
		return s.content.Reserve(size)
	}
	b := guard.Reserve()
	if b == nil {
		return nil
	}
	if n := s.begins(); n <= size && !(guard.Open(b[:n]) && s.content.Map(b)) {
		guard.Release(b, n)
		return nil
	}
	return b[:size:size]
}

// begins returns how many bytes of a space are accessible when it is taken.
func (s *spaces) begins() uint64 { return s.content.Size() }

// release gives up a space, of which the first opened bytes are accessible.
func (s *spaces) release(b []byte, opened uint64) {
	if s.guarded {
		guard.Release(b, opened)
	} else {
		image.Release(b)
	}
}

// put takes a space back, of which the first used bytes may have been written, and the first
// opened ones can be accessed.
func (s *spaces) put(b []byte, used, opened uint64) {
	if s.content.Drop(b, used) && (!s.guarded || guard.Close(b[s.begins():opened])) {
		opened = s.begins()
		s.mu.Lock()
		if !s.closed && len(s.free) < keep {
			s.free = append(s.free, b)
			b = nil
		}
		s.mu.Unlock()
	}
	if b != nil {
		s.release(b, opened)
	}
}

// close gives everything back. No instance may be left.
func (s *spaces) close() {
	s.mu.Lock()
	s.closed = true
	free := s.free
	s.free = nil
	s.mu.Unlock()
	for _, b := range free {
		s.release(b, s.begins())
	}
	s.content.Close()
}
