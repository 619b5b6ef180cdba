package tune

import (
	"cmp"
	"slices"

	"openskill/wasm/binary"
)

const opAdd = binary.Op(0x6a) // i32.add

// operand is what is known of a value on the operand stack: where the output made
// it, and how an access to memory can do without a part of that.
type operand struct {
	kind       kind
	start, end int    // bytes of the output that can be replaced
	own        uint32 // of a constant or sum: what it adds
	base, c    uint32 // the value was base, a local, plus c where it was made
	hasBase    bool   // and still is
	get        [2]int // of a sum: the bytes of the local.get or local.tee before it; none if equal
}

type kind uint8

const (
	unknown  kind = iota
	constant      // i32.const own at [start, end)
	local         // local.get, or local.tee, of a local that is base + c, at [start, end)
	sum           // i32.const own and i32.add at [start, end)
)

// fact is that a local holds base + c, as long as depth blocks are open.
type fact struct {
	local, base, c uint32
	depth          int
}

// edit replaces bytes of the output.
type edit struct {
	start, end int
	by         []byte
}

// folder turns additions into offsets, function by function.
type folder struct {
	m     *binary.Module
	types []*binary.FuncType
	low   uint64
	stats *Stats

	out   []byte
	stack []operand // the top of the operand stack; below it nothing is known
	facts []fact
	edits []edit
	depth int
}

func (f *folder) function(c *binary.Code) ([]byte, error) {
	f.out = make([]byte, 0, len(c.Body)+16)
	f.stack, f.facts, f.edits, f.depth = f.stack[:0], f.facts[:0], f.edits[:0], 1
	r := binary.NewReader(c.Body, c.Offset)
	var in binary.Instr
	for r.Next(&in) {
		f.instr(&in, c.Body[in.Pos:in.End])
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return f.edited(), nil
}

// edited is the output with all edits made.
func (f *folder) edited() []byte {
	if len(f.edits) == 0 {
		return f.out
	}
	slices.SortFunc(f.edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	b, at := make([]byte, 0, len(f.out)), 0
	for _, e := range f.edits {
		b = append(append(b, f.out[at:e.start]...), e.by...)
		at = e.end
	}
	return append(b, f.out[at:]...)
}

func (f *folder) push(o operand) { f.stack = append(f.stack, o) }

func (f *folder) pop() operand {
	n := len(f.stack)
	if n == 0 {
		return operand{}
	}
	o := f.stack[n-1]
	f.stack = f.stack[:n-1]
	return o
}

func (f *folder) call(t *binary.FuncType) {
	for range t.Params {
		f.pop()
	}
	for range t.Results {
		f.push(operand{})
	}
}

func (f *folder) instr(in *binary.Instr, raw []byte) {
	start := len(f.out)
	if in.Op.Imm() == binary.ImmMem && in.Op < 0x100 {
		f.access(in)
		return
	}
	f.out = append(f.out, raw...)
	end := len(f.out)
	switch in.Op {
	case binary.OpI32Const:
		f.push(operand{kind: constant, start: start, end: end, own: uint32(in.Const)})
	case binary.OpLocalGet:
		f.push(f.get(in.A, start, end))
	case binary.OpLocalSet:
		f.set(in.A, f.pop())
	case binary.OpLocalTee:
		f.tee(in.A, start, end)
	case opAdd:
		f.add(start, end)
	case binary.OpCall:
		f.call(f.types[in.A])
	case binary.OpCallIndirect:
		f.pop()
		f.call(&f.m.Types[in.A])
	case binary.OpGlobalGet:
		f.push(operand{})
	case binary.OpGlobalSet, binary.OpDrop:
		f.pop()
	case binary.OpSelect:
		f.pop()
		f.pop()
		f.pop()
		f.push(operand{})
	default:
		if !f.plain(in.Op) {
			f.control(in.Op)
		}
	}
}

// plain follows an instruction that has a type of its own.
func (f *folder) plain(op binary.Op) bool {
	sig, results := op.Signature(), false
	if sig == "" {
		return false
	}
	for i := range len(sig) {
		switch {
		case sig[i] == ':':
			results = true
		case results:
			f.push(operand{})
		default:
			f.pop()
		}
	}
	return true
}

// control follows all other instructions. What lies on the stack may be the result
// of a block from here on, so that it must stay as it is: nothing is known of it.
func (f *folder) control(op binary.Op) {
	f.stack = f.stack[:0]
	switch op {
	case binary.OpBlock, binary.OpIf, binary.OpTryTable:
		f.depth++
	case binary.OpLoop:
		// A later turn comes here with other values.
		f.depth++
		f.facts = f.facts[:0]
	case binary.OpElse:
		f.forget(f.depth)
	case binary.OpEnd:
		// Who left the block by a branch did not come past what was learnt in it.
		f.forget(f.depth)
		f.depth--
	}
}

// forget drops what was learnt at depth or deeper.
func (f *folder) forget(depth int) {
	f.facts = slices.DeleteFunc(f.facts, func(x fact) bool { return x.depth >= depth })
}

// get says what a local holds. Without a fact it is its own base.
func (f *folder) get(l uint32, start, end int) operand {
	o := operand{kind: local, start: start, end: end, base: l, hasBase: true}
	for i := range f.facts {
		if f.facts[i].local == l {
			o.base, o.c = f.facts[i].base, f.facts[i].c
		}
	}
	return o
}

// set forgets what was known by means of a local, and learns what it holds now.
func (f *folder) set(l uint32, o operand) {
	f.facts = slices.DeleteFunc(f.facts, func(x fact) bool { return x.local == l || x.base == l })
	for i := range f.stack {
		if f.stack[i].base == l {
			f.stack[i].hasBase = false
		}
	}
	if o.hasBase && o.base != l && uint64(o.c) <= f.low {
		f.facts = append(f.facts, fact{local: l, base: o.base, c: o.c, depth: f.depth})
	}
}

// tee is a set and a get; an access behind it may get the base instead.
func (f *folder) tee(l uint32, start, end int) {
	o := f.pop()
	f.set(l, o)
	if !o.hasBase || o.base == l {
		o = operand{base: l}
	}
	f.push(operand{kind: local, start: start, end: end, base: o.base, c: o.c, hasBase: true})
}

// add knows x + c if the constant was the last thing that was written.
func (f *folder) add(start, end int) {
	c, x := f.pop(), f.pop()
	if c.kind != constant || c.end != start {
		f.push(operand{})
		return
	}
	o := operand{kind: sum, start: c.start, end: end, own: c.own}
	if x.hasBase {
		o.base, o.c, o.hasBase = x.base, x.c+c.own, true
		if x.kind == local && x.c != 0 {
			o.get = [2]int{x.start, x.end}
		}
	}
	f.push(o)
}

// access writes a load or store, with an addition put into its offset if that can
// be.
func (f *folder) access(in *binary.Instr) {
	sig := in.Op.Signature()
	if sig[1] != ':' {
		f.pop() // the value of a store
	}
	offset := uint64(in.Const)
	offset += f.folded(f.pop(), offset)
	f.out = binary.AppendU32(append(f.out, byte(in.Op)), in.A)
	f.out = binary.AppendU32(f.out, uint32(offset)) // at most low, or as it was
	if sig[len(sig)-1] != ':' {
		f.push(operand{})
	}
}

// folded takes an addition out of an address, and gives what was added.
func (f *folder) folded(a operand, offset uint64) uint64 {
	fits := func(c uint32) bool { return c != 0 && uint64(c)+offset <= f.low }
	switch {
	case a.kind == sum && a.get[0] < a.get[1] && fits(a.c):
		f.edits = append(f.edits, edit{a.start, a.end, nil}, edit{a.get[0], a.get[1], f.through(a.get, a.base)})
		f.stats.Direct++
		f.stats.Shared++
		return uint64(a.c)
	case a.kind == sum && fits(a.own):
		f.edits = append(f.edits, edit{a.start, a.end, nil})
		f.stats.Direct++
		return uint64(a.own)
	case a.kind == local && fits(a.c):
		f.edits = append(f.edits, edit{a.start, a.end, f.through([2]int{a.start, a.end}, a.base)})
		f.stats.Shared++
		return uint64(a.c)
	}
	return 0
}

// through gets the base in the place of a get or tee.
func (f *folder) through(at [2]int, base uint32) []byte {
	var b []byte
	if f.out[at[0]] == byte(binary.OpLocalTee) {
		b = append(append(b, byte(binary.OpLocalSet)), f.out[at[0]+1:at[1]]...) //nolint:gosec // a tee has an index behind its byte
	}
	return binary.AppendU32(append(b, byte(binary.OpLocalGet)), base)
}
