package check

import "openskill/wasm/binary"

// What the steps cost, in nanoseconds and bytes.
const (
	perNode   = 900
	perWalk   = 8
	perLook   = 3
	perStep   = 4 // of perLook, for a block that is asked and not skipped
	perCopy   = 25
	perLive   = 10
	perPhi    = 60
	perPhi2   = 0.8
	nodeBytes = 3_500
	copyBytes = 24
	liveBytes = 16
	// Memory beyond what the functions before have left in the compiler's pools is
	// new, and touching and scanning it costs a nanosecond a byte.
	pooled = 8 << 20
	// copiedLoop is the size of body, in bytes, up to which metering lays out a loop
	// three times.
	copiedLoop = 128
)

// cost estimates what wazero's compiler will spend on the function under
// validation, after metering: nanoseconds and bytes. Most of the compiler is
// linear in the instructions; what is not, and what an attacker would feed, is:
//
//   - every block and every edge walks up the tree of dominators, to the loop
//     around it and to the entry: a straight line of n blocks costs n² steps;
//   - a local that is read asks block after block for its definition, and every
//     merge and loop header on the way gets a parameter for it. Parameters that
//     turn out to be needless are removed one by one, and for each of them all
//     arguments of all branches to the block are looked at;
//   - the addresses that are known to lie inside the memory are copied from
//     block to block.
//
// So the validator, which walks over the same structure anyway, keeps the tree of
// dominators and the stretch of blocks over which each local is alive. The
// constants were fitted to measured compilations; see wasmtest.Shapes.
type cost struct {
	nodes  []block
	cur    int32 // the block under way, or dead
	loop   int32 // header of the innermost loop, or dead
	safe   int32 // addresses known at this point
	base   int32 // where the place of the memory was loaded
	called int32 // the last call, after which all globals are loaded
	global []life
	deep   int // nesting of loops at this point, and the deepest
	depth  int
	locals []life
	round  uint32  // which function this is: the lives of others do not count
	read   int     // locals that are read at all
	linear int64   // nanoseconds of the instructions
	memory int64   // bytes of the instructions
	walked float64 // steps up the tree of dominators
	looked float64 // steps of looking for definitions
	copied float64 // known addresses copied from block to block
	own    int     // blocks, without those that metering adds as copies
}

// dead stands for no block: code that cannot be reached is not compiled.
const dead int32 = -1

// block is a node of the tree of dominators, in program order.
type block struct {
	up, jump int32 // the immediate dominator, and a dominator further up
	depth    int32
	chain    int32 // blocks since one that has several predecessors
	preds    int32
	loop     int32 // header of the loop around it, or dead
	delta    int32 // locals that begin to be alive here, less those that end
	values   int32 // operands on the stack, and parameters
	live     int32
	fresh    int32 // depth above which addresses were forgotten
}

// life is where a local was defined and last mentioned.
type life struct {
	def, seen int32
	round     uint32
	read      bool
	tested    int32  // where it was tested as an address, or dead
	bound     uint64 // the bytes behind it that were tested then
}

func (c *cost) begin(locals int) {
	if n := locals - len(c.locals); n > 0 {
		c.locals = append(c.locals, make([]life, n)...)
	}
	*c = cost{nodes: c.nodes[:0], locals: c.locals, global: c.global, round: c.round + 1, loop: dead, base: dead, called: dead}
	c.node(dead, 1, 0)
	c.node(c.cur, 2, 0) // the header and the test that metering puts in front
	c.node(c.cur, 1, 0)
}

// life gives what is known of a local. Functions may declare thousands, and
// mention none, so each is made ready when it is.
func (c *cost) life(i uint32) *life {
	l := &c.locals[i]
	if l.round != c.round {
		*l = life{round: c.round, tested: dead}
	}
	return l
}

// node begins a block below its immediate dominator.
func (c *cost) node(up int32, preds, values int) {
	i := int32(len(c.nodes))                                                     // fewer than the bytes of a body
	n := block{up: up, preds: int32(preds), loop: c.loop, values: int32(values)} // at most Limits.BodySize
	if up == dead {
		n.up, n.jump = i, i
	} else {
		p := &c.nodes[up]
		n.depth = p.depth + 1
		n.jump, n.fresh = up, p.fresh
		if j := &c.nodes[p.jump]; p.depth-j.depth == j.depth-c.nodes[j.jump].depth {
			n.jump = j.jump
		}
		if preds == 1 {
			n.chain = p.chain + 1
		}
		inside := n.depth
		if n.loop != dead {
			inside -= c.nodes[n.loop].depth
		}
		c.walked += float64(inside)
	}
	c.own++
	c.copied += float64(c.safe)
	c.nodes = append(c.nodes, n)
	c.cur = i
}

// meet gives the lowest block that dominates both.
func (c *cost) meet(a, b int32) int32 {
	if a == dead || a == b {
		return b
	}
	N := c.nodes
	if N[a].depth < N[b].depth {
		a, b = b, a
	}
	for N[a].depth > N[b].depth {
		if N[N[a].jump].depth >= N[b].depth {
			a = N[a].jump
		} else {
			a = N[a].up
		}
	}
	for a != b {
		if N[a].jump != N[b].jump {
			a, b = N[a].jump, N[b].jump
		} else {
			a, b = N[a].up, N[b].up
		}
	}
	return a
}

// flow is what a frame of the validator knows for the estimate.
type flow struct {
	head  int32 // the block before an if, or the header of a loop
	table bool  // a branch table leads to the end
	join  int32 // dominates all that branch to the end
	preds int32
	safe  int32 // addresses known at the end, at most; and at the else
	safes int32
	outer int32 // header of the loop around a loop
	at    int   // byte of the body
	own   int   // blocks before it
}

// edge is a branch from the current block to a frame.
func (c *cost) edge(f *frame) {
	if c.cur == dead {
		return
	}
	d := c.nodes[c.cur].depth
	if f.op == binary.OpLoop {
		if f.flow.head != dead {
			c.nodes[f.flow.head].preds++
			c.walked += float64(d - c.nodes[f.flow.head].depth)
		}
		return
	}
	c.walked += float64(d)
	f.flow.join = c.meet(f.flow.join, c.cur)
	if f.flow.preds == 0 || c.safe < f.flow.safe {
		f.flow.safe = c.safe
	}
	f.flow.preds++
}

func (c *cost) open(f *frame, at, values int) {
	f.flow = flow{head: c.cur, join: dead, at: at, own: c.own}
	switch {
	case c.cur == dead:
	case f.op == binary.OpLoop:
		f.flow.outer = c.loop
		c.node(c.cur, 1, values)
		c.nodes[c.cur].chain = 0
		f.flow.head = c.cur
		c.loop = c.cur
		c.deep++
		c.depth = max(c.depth, c.deep)
		c.node(c.cur, 1, values) // behind the test of its fuel
	case f.op == binary.OpIf:
		f.flow.safes = c.safe
		c.node(c.cur, 1, values)
	}
}

// otherwise goes from the end of a then to the else.
func (c *cost) otherwise(f *frame, values int) {
	c.edge(f)
	c.cur = dead
	if f.flow.head != dead {
		c.safe = f.flow.safes
		c.node(f.flow.head, 1, values)
	}
}

func (c *cost) close(f *frame, at, values int) {
	switch {
	case f.flow.head == dead: // nothing of it was reached
	case f.op == binary.OpLoop:
		c.loop = f.flow.outer
		c.deep--
		if c.cur == dead {
			return
		}
		own := c.own
		if at-f.flow.at <= copiedLoop {
			// Metering lays a small loop out three times, one behind the other.
			for range 2 * (own - f.flow.own) {
				c.node(c.cur, 1, values)
			}
		}
		c.own = own
		c.node(c.cur, 1, values)
		return
	case f.op == binary.OpIf:
		c.otherwise(f, values)
	}
	c.edge(f)
	c.cur = dead
	if f.flow.preds > 0 {
		c.safe = f.flow.safe
		c.node(f.flow.join, int(f.flow.preds), values)
		if f.flow.table {
			c.safe = 0
			c.nodes[c.cur].fresh = c.nodes[c.cur].depth
		}
	}
}

// next begins the block behind a conditional branch.
func (c *cost) next(values int) {
	if c.cur != dead {
		c.node(c.cur, 1, values)
	}
}

// table counts the targets of a branch table, each of which gets a block.
func (c *cost) table(targets int) {
	if c.cur != dead {
		n := int64(targets)
		c.linear += priceTarget * n
		c.memory += nodeBytes * n
		c.walked += float64(targets) * float64(c.nodes[c.cur].depth)
	}
}

// call counts what a call moves, and the globals that may have changed after it.
func (c *cost) call(values, globals int) {
	if c.cur != dead {
		c.base, c.called = c.cur, c.cur
		c.linear += priceArgument*int64(values) + priceReload*int64(globals)
		c.memory += bytesArgument*int64(values) + bytesReload*int64(globals)
	}
}

// choose counts what package amend makes of a select.
func (c *cost) choose(t binary.ValType) {
	if c.cur == dead {
		return
	}
	var p price
	switch t {
	case binary.F32, binary.F64:
		p = priceChoice
	case binary.V128:
		p = priceChoiceVector
	default:
	}
	c.linear += int64(p.ns)
	c.memory += int64(p.bytes)
}

func (c *cost) returns(values int) {
	if c.cur != dead {
		c.linear += priceArgument * int64(values)
		c.memory += bytesArgument * int64(values)
	}
}

// test counts tests of fuel that metering puts in, each with a call.
func (c *cost) test(n, values int) {
	for range n {
		if c.cur != dead {
			c.walked += float64(c.nodes[c.cur].depth)
			c.node(c.cur, 2, values)
		}
	}
}

func (c *cost) get(i uint32) {
	if c.cur == dead || int(i) >= len(c.locals) {
		return
	}
	l, n := c.life(i), &c.nodes[c.cur]
	if !l.read {
		l.read = true
		c.read++
	}
	if d := n.depth - c.nodes[l.def].depth; d > 0 {
		c.looked += float64(d) + perStep*float64(min(d, n.chain))
	}
	if l.seen < c.cur {
		c.nodes[l.seen].delta++ // alive from the next block on
		n.delta--
		l.seen = c.cur
	}
}

func (c *cost) set(i uint32) {
	if c.cur != dead && int(i) < len(c.locals) {
		l := c.life(i)
		l.def, l.seen, l.tested = c.cur, c.cur, dead
	}
}

// access counts a test of an address. The compiler leaves it out when the value,
// the local i, was tested before for as much; i is dead when it is no local.
func (c *cost) access(i int32, bound uint64) {
	if c.cur == dead {
		return
	}
	if i != dead && int(i) < len(c.locals) {
		l := c.life(uint32(i)) // not negative
		if l.tested != dead && bound <= l.bound && c.above(l.tested) {
			return
		}
		l.tested, l.bound = c.cur, bound
	}
	c.safe++
	for range 2 { // its place and its length
		c.base = c.path(c.base, c.base)
	}
	c.linear += priceTest
	c.memory += priceTest
}

// path counts the search for a value that is loaded anew where it is not found: back
// through blocks of one predecessor. It was last defined at a or at b, and the result
// is where it is afterwards.
func (c *cost) path(a, b int32) int32 {
	if a == c.cur || b == c.cur {
		return c.cur
	}
	if a == dead || b != dead && c.nodes[b].depth > c.nodes[a].depth {
		a = b
	}
	n := &c.nodes[c.cur]
	if a != dead {
		if d := n.depth - c.nodes[a].depth; d <= n.chain && c.under(a) {
			c.looked += perStep * float64(d)
			return a
		}
	}
	c.looked += perStep * float64(n.chain)
	return c.cur
}

// read counts a global that is read, of n, and wrote one that is written.
func (c *cost) readGlobal(i uint32, n int) {
	if l := c.globalLife(i, n); l != nil {
		l.def = c.path(l.def, c.called)
	}
}

func (c *cost) wroteGlobal(i uint32, n int) {
	if l := c.globalLife(i, n); l != nil {
		l.def = c.cur
	}
}

func (c *cost) globalLife(i uint32, n int) *life {
	if c.cur == dead {
		return nil
	}
	if len(c.global) < n {
		c.global = make([]life, n)
	}
	l := &c.global[i]
	if l.round != c.round {
		*l = life{round: c.round, def: dead}
	}
	return l
}

// above reports whether a dominates the current block, and no branch table leads
// to a block between.
func (c *cost) above(a int32) bool {
	N, b := c.nodes, c.cur
	return N[a].depth >= N[b].fresh && c.under(a)
}

// under reports whether a dominates the current block.
func (c *cost) under(a int32) bool {
	N, b := c.nodes, c.cur
	for N[b].depth > N[a].depth {
		if N[N[b].jump].depth >= N[a].depth {
			b = N[b].jump
		} else {
			b = N[b].up
		}
	}
	return a == b
}

// end gives the estimate, in nanoseconds and bytes.
//
// The locals that are alive in a block are those between whose mentions it lies,
// and those that are carried around the loops that it is in. Each merge takes them
// as parameters, whether they changed or not, and the needless ones are removed in
// rounds, of which nested loops need the more.
func (c *cost) end() (ns, bytes float64) {
	live, phi, lives := int32(0), 0.0, 0.0
	most := int32(c.read) + 2 // below Limits.Locals and Values
	for i := range c.nodes {
		n := &c.nodes[i]
		n.live = live
		if n.loop != dead {
			n.live += c.nodes[n.loop].live
		}
		n.live = min(n.live, most)
		live += n.delta
		p := float64(n.live + 1)
		v := float64(n.live + n.values)
		lives += v
		if n.preds > 1 {
			phi += (v*v*perPhi2 + p*perPhi) * float64(n.preds)
		}
	}
	phi *= 1 + float64(c.depth)/4
	nodes := float64(len(c.nodes))
	ns = float64(c.linear) + nodes*perNode + c.walked*perWalk + c.looked*perLook + c.copied*perCopy + lives*perLive + phi
	bytes = float64(c.memory) + nodes*nodeBytes + c.copied*copyBytes + lives*liveBytes
	return ns + max(0, bytes-pooled), bytes
}
