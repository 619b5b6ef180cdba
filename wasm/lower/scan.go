package lower

import (
	"math"
	"sync/atomic"

	"openskill/wasm/binary"
)

// A set of tags is a mask of 64 bits: the last one stands for all tags from the
// 64th on. They are told apart when an exception is dispatched, only not when it
// is worked out which calls need a check: modules with so many are not known.
const (
	everyTag uint64 = math.MaxUint64
	lastBit         = 63
)

func bit(tag uint32) uint64 { return 1 << min(tag, lastBit) }

// caught is what a clause for one tag takes out of a set.
func caught(tag uint32) uint64 {
	if tag >= lastBit {
		return 0
	}
	return 1 << tag
}

// catches is what the clauses of a try_table take out of a set.
func catches(cs []binary.Catch) uint64 {
	var m uint64
	for _, c := range cs {
		if c.Kind >= 2 {
			return everyTag
		}
		m |= caught(c.Tag)
	}
	return m
}

// edge is a call: what it throws out of the mask leaves the caller.
type edge struct {
	to   uint32 // a defined function, or the canonical type of a call through a table with the bit throughTable
	mask uint64
}

const throughTable = 1 << 31

// scanner looks at the bodies once, before anything is decided.
type scanner struct {
	l       *lowerer
	r       binary.Reader
	clauses []binary.Catch
	escapes []uint64 // by open block: tags that no handler around it catches
	met     []int32  // the function that an unguarded call was last noted for, by callee
}

func (l *lowerer) scan() {
	m := l.m
	l.fns = make([]fn, len(m.Codes))
	l.thrown, l.captured = make([]atomic.Bool, len(m.Tags)), make([]atomic.Bool, len(m.Tags))
	l.taken = make([]atomic.Bool, len(m.Codes))
	l.called, l.tried = make([]atomic.Bool, len(m.Types)), make([]atomic.Bool, len(m.Types))
	for i := range m.Elems {
		for _, f := range m.Elems[i].Funcs {
			l.take(f)
		}
		for _, x := range m.Elems[i].Exprs {
			l.takeExpr(x)
		}
	}
	for i := range m.Globals {
		l.takeExpr(m.Globals[i].Init)
	}
	each(len(l.fns), l.o.Workers,
		func() *scanner {
			s := &scanner{l: l, met: make([]int32, len(l.fns)+l.nCanon)}
			for i := range s.met {
				s.met[i] = -1
			}
			return s
		},
		(*scanner).function)
}

// take notes that a function may stand in a table.
func (l *lowerer) take(f uint32) {
	if f >= l.nimp {
		set(&l.taken[f-l.nimp])
	}
}

func (l *lowerer) takeExpr(x binary.ConstExpr) {
	r := binary.NewReader(x, 0)
	var in binary.Instr
	for r.Next(&in) {
		if in.Op == binary.OpRefFunc {
			l.take(in.A)
		}
	}
}

// set does not write what is there already: the workers share the line.
func set(b *atomic.Bool) {
	if !b.Load() {
		b.Store(true)
	}
}

func (s *scanner) function(i int) {
	l, f, c := s.l, &s.l.fns[i], &s.l.m.Codes[i]
	f.touched = l.exnType[l.m.Funcs[i]]
	for _, g := range c.Locals {
		f.touched = f.touched || g.Type == binary.ExnRef
	}
	s.escapes = append(s.escapes[:0], everyTag)
	s.r.Reset(c.Body, c.Offset)
	var in binary.Instr
	for s.r.Next(&in) {
		switch in.Op {
		case binary.OpBlock, binary.OpLoop, binary.OpIf:
			s.block(f, in.Const)
			s.escapes = append(s.escapes, s.top())
		case binary.OpTryTable:
			f.touched = true
			s.try(&in)
		case binary.OpEnd:
			s.escapes = s.escapes[:len(s.escapes)-1]
		case binary.OpThrow:
			f.touched = true
			set(&l.thrown[in.A])
			f.throws |= bit(in.A) & s.top()
		case binary.OpThrowRef:
			f.touched = true
			f.rethrow |= s.top()
		case binary.OpCall:
			s.call(f, i, in.A, s.top())
		case binary.OpReturnCall: // the callee runs when the handlers here are left
			s.call(f, i, in.A, everyTag)
		case binary.OpCallIndirect:
			s.callIndirect(f, i, in.A, s.top())
		case binary.OpReturnCallI:
			s.callIndirect(f, i, in.A, everyTag)
		case binary.OpGlobalGet, binary.OpGlobalSet:
			f.touched = f.touched || l.globals[in.A] == binary.ExnRef
		case binary.OpRefNull:
			f.touched = f.touched || in.A == uint32(binary.ExnRef)
		case binary.OpSelectT:
			f.touched = f.touched || in.B == uint32(binary.ExnRef)
		case binary.OpRefIsNull:
			f.isNull = true
		case binary.OpRefFunc:
			l.take(in.A)
		}
	}
}

func (s *scanner) top() uint64 { return s.escapes[len(s.escapes)-1] }

func (s *scanner) block(f *fn, c int64) {
	if c >= 0 {
		f.touched = f.touched || s.l.exnType[c]
	} else if c != binary.BlockEmpty {
		f.touched = f.touched || binary.BlockValue(c) == binary.ExnRef
	}
}

func (s *scanner) try(in *binary.Instr) {
	s.clauses = s.r.Catches(in, s.clauses[:0])
	for _, c := range s.clauses {
		switch c.Kind {
		case 1:
			set(&s.l.captured[c.Tag])
		case 3:
			set(&s.l.capturedAll)
		}
	}
	if in.Const >= 0 {
		set(&s.l.tried[in.Const])
	}
	s.escapes = append(s.escapes, s.top()&^catches(s.clauses))
}

func (s *scanner) call(f *fn, i int, callee uint32, mask uint64) {
	if callee < s.l.nimp {
		f.touched = f.touched || s.l.exnType[s.l.typeOf(callee)]
		return
	}
	callee -= s.l.nimp
	f.touched = f.touched || s.l.exnType[s.l.m.Funcs[callee]]
	s.edge(f, i, int(callee), edge{callee, mask})
}

func (s *scanner) callIndirect(f *fn, i int, typ uint32, mask uint64) {
	f.touched = f.touched || s.l.exnType[typ]
	set(&s.l.called[typ])
	c := s.l.canon[typ]
	s.edge(f, i, len(s.l.fns)+int(c), edge{c | throughTable, mask})
}

func (s *scanner) edge(f *fn, i, at int, e edge) {
	if e.mask != everyTag {
		// The function has a try_table, and is looked at again in any case.
		if e.mask != 0 {
			f.edges = append(f.edges, e)
		}
		return
	}
	if s.met[at] != int32(i) { // at most Limits.Functions
		s.met[at] = int32(i)
		f.edges = append(f.edges, e)
	}
}
