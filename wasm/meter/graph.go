package meter

import (
	"openskill/wasm/binary"
)

// node is a basic block of reachable code. Nodes are in program order, so edges
// that go forward go to larger indices, and the others go to loop headers.
type node struct {
	at         int32 // byte of the body before which the block begins
	succ, nsuc int32 // its successors: fn.succs[succ:succ+nsuc]
	call, ncal int32 // its calls: fn.calls[call:call+ncal]
	loop       bool  // a loop header
	test       bool  // its charge is tested
	leaf       bool  // the function is left here, always or by a branch
	exit       exit  // whether it is reached by leaving a loop
	free       bool  // reached from the entry without a test on the way
	open       bool  // reached from the entry without a loop header on the way
	cost       int64
	p          int64 // potential: what is paid when it is entered
	chg        int64 // what it charges
}

// exit says how a block is reached by leaving a loop. Where each iteration calls,
// a few units for the way out make it hardly dearer, and save a charge behind it.
type exit byte

const (
	noExit exit = iota
	exitCalling
	exitTight
)

// A call is a function's index, or a canonical type's with this bit.
const indirect = 1 << 31

// fn is what the passes know of one function.
type fn struct {
	index uint32 // in the function index space of the input
	typ   uint32
	nodes []node
	succs []int32
	calls []uint32

	taken  bool // may be called through a table
	rooted bool // may be called by the host
	tested bool // tests at its entry
	back   bool // called by functions that bound looks at before it, or at the end of one that is

	q     int64 // prepaid by its callers
	entry int64 // charged at its entry
	acc   int64 // most that is charged untested when it returns
	in    int64 // most that is charged untested when it is entered
}

// grapher builds control-flow graphs; its slices are reused between functions.
type grapher struct {
	m       *binary.Module
	canon   []uint32 // type index to canonical type
	nimp    uint32   // imported functions
	r       binary.Reader
	nodes   []node
	edges   [][2]int32
	calls   []uint32
	open    []block
	targets []uint32
	inner   []int32
	outer   []int32
	level   []int32
	caller  []bool // by header: the loop calls
	stack   []int32
	seen    []int32
}

// block is an open block, loop or if.
type block struct {
	op   binary.Op
	head int32 // a loop's header
	cond int32 // the node that ends with the if
	els  bool
	from []int32
}

func (g *grapher) node(at int) int32 {
	g.nodes = append(g.nodes, node{at: int32(at), call: int32(len(g.calls))})
	return int32(len(g.nodes) - 1)
}

func (g *grapher) edge(u, v int32) { g.edges = append(g.edges, [2]int32{u, v}) }

func (g *grapher) push(op binary.Op, head, cond int32) {
	if len(g.open) < cap(g.open) {
		g.open = g.open[:len(g.open)+1]
		b := &g.open[len(g.open)-1]
		*b = block{op: op, head: head, cond: cond, from: b.from[:0]}
		return
	}
	g.open = append(g.open, block{op: op, head: head, cond: cond})
}

// branch notes an edge from u to the label d.
func (g *grapher) branch(u int32, d uint32) {
	b := &g.open[len(g.open)-1-int(d)]
	if int(d) == len(g.open)-1 { // the label of the function, to which no edge leads
		g.nodes[u].leaf = true
	}
	if b.op == binary.OpLoop {
		g.edge(u, b.head)
		return
	}
	if n := len(b.from); n == 0 || b.from[n-1] != u {
		b.from = append(b.from, u)
	}
}

// build makes the graph of one function.
func (g *grapher) build(f *fn, c *binary.Code) {
	g.nodes, g.edges, g.calls, g.open = g.nodes[:0], g.edges[:0], g.calls[:0], g.open[:0]
	g.r.Reset(c.Body, c.Offset)
	g.push(binary.OpBlock, -1, -1)
	cur := g.node(0)
	var in binary.Instr
	constant := int64(-1) // the operand on top, if the last instruction was an i32.const
	constAt := int32(-1)  // and the node that it stood in
	for g.r.Next(&in) {
		if cur >= 0 && !structural(in.Op) {
			g.nodes[cur].cost++
			if static(in.Op, constant) && constAt == cur {
				g.nodes[cur].cost += constant >> 3
			}
		}
		constant = -1
		switch in.Op {
		case binary.OpI32Const:
			constant, constAt = in.Const, cur
		case binary.OpBlock:
			g.push(in.Op, -1, -1)
		case binary.OpLoop:
			head := int32(-1)
			if cur >= 0 {
				head = g.node(in.End)
				g.nodes[head].loop = true
				g.edge(cur, head)
				cur = head
			}
			g.push(in.Op, head, -1)
		case binary.OpIf:
			g.push(in.Op, -1, cur)
			cur = g.follow(cur, in.End)
		case binary.OpElse:
			b := &g.open[len(g.open)-1]
			b.els = true
			if cur >= 0 {
				b.from = append(b.from, cur)
			}
			cur = g.follow(b.cond, in.End)
		case binary.OpEnd:
			cur = g.end(cur, in.End)
		case binary.OpBr:
			if cur >= 0 {
				g.branch(cur, in.A)
			}
			cur = -1
		case binary.OpBrIf:
			if cur >= 0 {
				g.branch(cur, in.A)
				cur = g.follow(cur, in.End)
			}
		case binary.OpBrTable:
			if cur >= 0 {
				g.targets = g.r.Targets(&in, g.targets[:0])
				g.table(cur)
			}
			cur = -1
		case binary.OpReturn, binary.OpUnreachable:
			cur = -1
		case binary.OpCall:
			cur = g.called(cur, in.A, in.End)
		case binary.OpCallIndirect:
			cur = g.called(cur, g.canon[in.A]|indirect, in.End)
		case binary.OpReturnCall:
			cur = g.called(cur, in.A, -1)
		case binary.OpReturnCallI:
			cur = g.called(cur, g.canon[in.A]|indirect, -1)
		}
	}
	g.finish(f)
}

// follow opens a node behind u, if u is reachable.
func (g *grapher) follow(u int32, at int) int32 {
	if u < 0 {
		return -1
	}
	n := g.node(at)
	g.edge(u, n)
	return n
}

// called notes a call. What follows it is a block of its own, so that a test can
// stand there when the callee returns with much that is untested.
func (g *grapher) called(cur int32, callee uint32, at int) int32 {
	if cur < 0 {
		return -1
	}
	g.calls = append(g.calls, callee)
	g.nodes[cur].ncal++
	if at < 0 {
		return -1
	}
	if callee < g.nimp {
		return cur
	}
	return g.follow(cur, at)
}

// table notes the edges of a br_table, one for each label that it names.
func (g *grapher) table(cur int32) {
	for len(g.seen) < len(g.open) {
		g.seen = append(g.seen, -1)
	}
	for _, t := range g.targets {
		at := len(g.open) - 1 - int(t)
		if g.seen[at] != cur {
			g.seen[at] = cur
			g.branch(cur, t)
		}
	}
	for _, t := range g.targets {
		g.seen[len(g.open)-1-int(t)] = -1
	}
}

func (g *grapher) end(cur int32, at int) int32 {
	b := &g.open[len(g.open)-1]
	g.open = g.open[:len(g.open)-1]
	if b.op == binary.OpLoop || len(g.open) == 0 {
		return cur // what follows a loop's end is still the block before it
	}
	if b.op == binary.OpIf && !b.els && b.cond >= 0 {
		b.from = append(b.from, b.cond)
	}
	if len(b.from) == 0 {
		return cur
	}
	n := g.node(at)
	for _, u := range b.from {
		g.edge(u, n)
	}
	if cur >= 0 {
		g.edge(cur, n)
	}
	return n
}

// finish copies the graph into f, edges grouped by their origin.
func (g *grapher) finish(f *fn) {
	f.nodes = append(make([]node, 0, len(g.nodes)), g.nodes...)
	f.succs = make([]int32, len(g.edges))
	f.calls = append(make([]uint32, 0, len(g.calls)), g.calls...)
	N := f.nodes
	for _, e := range g.edges {
		N[e[0]].nsuc++
	}
	at := int32(0)
	for i := range N {
		N[i].succ = at
		at += N[i].nsuc
		N[i].leaf = N[i].leaf || N[i].nsuc == 0
		N[i].nsuc = 0
	}
	for _, e := range g.edges {
		u := &N[e[0]]
		f.succs[u.succ+u.nsuc] = e[1]
		u.nsuc++
	}
	g.loops(f)
	g.reach(f)
}

// reach marks what is reached from the entry without a test, and without a loop.
func (g *grapher) reach(f *fn) {
	N := f.nodes
	N[0].free, N[0].open = true, true
	for i := range N { // forward edges only: a way that comes back has passed a header
		u := &N[i]
		if u.loop && u.test {
			continue
		}
		for _, s := range f.succ(u) {
			v := &N[s]
			v.free = v.free || u.free
			v.open = v.open || u.open && !v.loop
		}
	}
	for i := range N {
		if N[i].loop && N[i].test {
			N[i].free = false // its charge and all that it does stand behind its test
		}
	}
}

func (f *fn) succ(n *node) []int32  { return f.succs[n.succ : n.succ+n.nsuc] }
func (f *fn) call(n *node) []uint32 { return f.calls[n.call : n.call+n.ncal] }

// structural instructions cost nothing: they make no machine code.
func structural(o binary.Op) bool {
	switch o {
	case binary.OpNop, binary.OpBlock, binary.OpLoop, binary.OpElse, binary.OpEnd:
		return true
	}
	return false
}

// maxStatic bounds constant lengths that are priced as part of their block: a block is
// charged and tested as a whole, and may have thousands of them.
const maxStatic = 4 << 10

// static reports whether a bulk operation on memory has a constant length that
// its block can pay for.
func static(o binary.Op, length int64) bool {
	switch o {
	case binary.OpMemoryCopy, binary.OpMemoryFill, binary.OpMemoryInit:
		return length >= 0 && length < maxStatic
	}
	return false
}
