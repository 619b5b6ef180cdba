package lower

import (
	"openskill/wasm/binary"
)

// maxLocals is how many locals a function may have that exnref made.
const maxLocals = 20_000

// local is where a local of the input lies: its first value, and how far apart
// the further ones are.
type local struct {
	at, step uint32
	exn      bool
}

// locals are those of one function. Parameters keep their order, so that those
// of an exnref stand side by side; of a group of locals all first values come
// first, then all second ones, which needs no more groups than there are values.
type locals struct {
	x      []binary.ValType
	moved  bool // the places are not those of the input
	of     []local
	next   uint32 // the first index behind all locals
	temp   bool   // one i64 was added
	choice bool   // the values of an exnref were added
}

func (s *locals) set(l *lowerer, i int) error {
	c, t := &l.m.Codes[i], &l.m.Types[l.m.Funcs[i]]
	*s = locals{x: l.exn.types, of: s.of[:0]}
	if l.several() && l.fns[i].touched {
		s.moved = l.exnType[l.m.Funcs[i]] && names(&binary.FuncType{Params: t.Params}, binary.ExnRef)
		for _, g := range c.Locals {
			s.moved = s.moved || g.Type == binary.ExnRef
		}
	}
	n := uint32(len(s.x)) // at most maxValues
	if !s.moved {
		s.next = uint32(len(t.Params)) // at most Limits.Values
		for _, g := range c.Locals {
			s.next += g.Count
		}
		return nil
	}
	made := uint32(0)
	for _, p := range t.Params {
		if p == binary.ExnRef {
			s.of = append(s.of, local{s.next, 1, true})
			s.next += n
			made += n
		} else {
			s.of = append(s.of, local{at: s.next})
			s.next++
		}
	}
	for _, g := range c.Locals {
		if made > maxLocals {
			break
		}
		exn := g.Type == binary.ExnRef
		for k := range g.Count {
			s.of = append(s.of, local{s.next + k, g.Count, exn})
		}
		if exn {
			s.next += g.Count * n
			made += g.Count * n
		} else {
			s.next += g.Count
		}
	}
	if made > maxLocals {
		return tooComplex("the locals of exnref of a function would become more than %d", maxLocals)
	}
	return nil
}

// write appends an instruction for all values of a local.
func (s *locals) write(b []byte, o binary.Op, i uint32) []byte {
	p, n := s.of[i], uint32(len(s.x)) // at most maxValues
	if !p.exn {
		return index(b, o, p.at)
	}
	if o != binary.OpLocalGet {
		for k := n; k > 0; k-- {
			b = index(b, binary.OpLocalSet, p.at+(k-1)*p.step)
		}
	}
	if o != binary.OpLocalSet {
		for k := range n {
			b = index(b, binary.OpLocalGet, p.at+k*p.step)
		}
	}
	return b
}

// temporary gives the index of a local of our own, an i64.
func (s *locals) temporary() uint32 {
	s.temp = true
	return s.next
}

// several gives the first of our own locals that hold an exnref of several values.
func (s *locals) several() uint32 {
	s.choice = true
	return s.next + 1
}

// groups declares the locals of the output.
func (s *locals) groups(c *binary.Code) []binary.LocalGroup {
	out := make([]binary.LocalGroup, 0, len(c.Locals)+1)
	for _, g := range c.Locals {
		if g.Type != binary.ExnRef {
			out = append(out, g)
			continue
		}
		for _, t := range s.x {
			out = append(out, binary.LocalGroup{Count: g.Count, Type: t})
		}
	}
	if s.temp || s.choice {
		out = append(out, binary.LocalGroup{Count: 1, Type: binary.I64})
	}
	if s.choice {
		for _, t := range s.x {
			out = append(out, binary.LocalGroup{Count: 1, Type: t})
		}
	}
	return out
}
