package meter

import "slices"

// The numbers behind rules 1 to 3. They were tuned on nbody, recursion, sieve, a
// Go program and CPython; see docs/decisions/0001.
const (
	slack         = 100    // an arm may be prepaid if it costs at most this much more than its cheapest sibling
	slackCalling  = 6      // the same for the way out of a loop that calls; one that does not has none
	wide          = 4      // successors of a block that chooses among many, as compilers of Go write them
	slackWide     = 24     // the slack of their arms: most of them are dear, and few are taken
	prepaid       = 256    // most that a direct caller prepays
	prepaidTable  = 32     // most that an indirect caller prepays
	unwound       = 256    // most that is prepaid for what follows a call that may recurse
	untested      = 32_000 // most that is charged without a test
	copies        = 4      // of small loops without calls
	copiesMaxBody = 128    // bytes of such a loop's body
)

var slacks = [...]int64{noExit: slack, exitCalling: slackCalling, exitTight: 0}

// prices sets what callers prepay, and then potentials and charges.
type prices struct {
	g     *graph
	typeQ []int64 // prepaid by indirect calls, for each canonical type
}

// run sets what every function is prepaid. That is at most its potential, which
// depends only on what it does before its first loop, and so on its callees
// there: in the order of the graph they are known. What stands behind a loop
// may call back, and is priced afterwards.
func (p *prices) run(workers int) {
	nf := len(p.g.fns)
	p.typeQ = make([]int64, p.g.types)
	s := &pricer{p: p}
	for _, v := range p.g.order {
		if int(v) >= nf {
			for _, w := range p.g.adj[v] {
				p.typeQ[int(v)-nf] = max(p.typeQ[int(v)-nf], p.g.fns[w].q)
			}
			continue
		}
		f := p.g.fns[v]
		switch {
		case f.tested, f.rooted:
			f.q = 0
		case f.taken:
			f.q = min(s.potentials(f, true), prepaidTable)
		default:
			f.q = min(s.potentials(f, true), prepaid)
		}
	}
	each(nf, workers, func() *pricer { return &pricer{p: p} }, func(s *pricer, i int) {
		f := p.g.fns[i]
		f.entry = max(s.potentials(f, false)-f.q, 0)
		s.trim(f)
		if f.tested {
			f.entry = max(f.entry, 1)
		}
	})
}

// callee is what a call prepays.
func (p *prices) callee(c uint32) int64 {
	switch {
	case c&indirect != 0:
		return p.typeQ[c&^indirect]
	case c < p.g.nimp:
		return 0
	}
	return p.g.fns[c-p.g.nimp].q
}

type pricer struct {
	p      *prices
	cost   []int64
	low    []int64
	caps   []int64
	floors []int64 // what is prepaid of a block that costs more than its cap
}

// potentials places the charges of one function and gives the potential of its
// entry. From the last block to the first, a block's potential is its cost plus
// the largest potential behind it; where the arms of a branch differ by more
// than slack, the dearer one pays all that the cheapest does not cost. So in a chain of
// branches to the same error, a charge stands where slack is used up, and not at each branch.
// The arm that leaves a loop has little slack or none, since each iteration pays for the way
// out. With open, only the blocks before the first loop are looked at, and nothing is placed.
func (s *pricer) potentials(f *fn, open bool) int64 {
	const big = int64(1) << 60
	N := f.nodes
	s.cost, s.low, s.caps, s.floors = s.cost[:0], s.low[:0], s.caps[:0], s.floors[:0]
	for range N {
		s.cost, s.low, s.caps, s.floors = append(s.cost, 0), append(s.low, 0), append(s.caps, big), append(s.floors, big)
	}
	cheapest := func(n *node) int64 {
		m := big
		for _, v := range f.succ(n) {
			if N[v].loop {
				return 0
			}
			m = min(m, s.low[v])
		}
		if m == big {
			return 0
		}
		return m
	}
	for i := len(N) - 1; i >= 0; i-- {
		n := &N[i]
		if open && !n.open {
			continue
		}
		c := n.cost
		for _, callee := range f.call(n) {
			c += s.p.callee(callee)
		}
		s.cost[i], s.low[i] = c, c+cheapest(n)
	}
	for i := range N {
		if n := &N[i]; n.nsuc > 1 && (!open || n.open) {
			m := cheapest(n)
			for _, v := range f.succ(n) {
				more := slacks[N[v].exit]
				if n.nsuc >= wide {
					more = min(more, slackWide)
				}
				s.caps[v], s.floors[v] = min(s.caps[v], m+more), min(s.floors[v], m)
			}
		}
	}
	for i := range N {
		for _, c := range f.call(&N[i]) {
			if !s.p.g.recurses(f, c) {
				continue
			}
			for _, v := range f.succ(&N[i]) {
				s.caps[v] = min(s.caps[v], unwound)
			}
		}
	}
	for i := len(N) - 1; i >= 0; i-- {
		n := &N[i]
		if open && !n.open {
			continue
		}
		m := int64(0)
		for _, v := range f.succ(n) {
			if !N[v].loop {
				m = max(m, N[v].p)
			}
		}
		w := s.cost[i] + m
		switch {
		case n.loop:
			n.p, n.chg = 0, max(w, 1)
		case i == 0:
			n.p, n.chg = w, 0
		default:
			n.p = w
			if w > s.caps[i] {
				n.p = min(s.caps[i], s.floors[i])
			}
			n.chg = w - n.p
		}
	}
	return N[0].p
}

// trim lowers charges where more arrives on every path than is needed: a block
// is paid for the dearest of its siblings, too. What is left over is not taken over a call
// that may recurse, or a stack of calls would return through work without a test.
func (s *pricer) trim(f *fn) {
	const unknown = int64(1) << 60
	N := f.nodes
	in := s.low[:0]
	for range N {
		in = append(in, unknown)
	}
	in[0] = N[0].p
	for i := range N {
		n, behind := &N[i], int64(0)
		for _, v := range f.succ(n) {
			if !N[v].loop {
				behind = max(behind, N[v].p)
			}
		}
		switch {
		case n.loop:
			in[i] = 0 // what comes back need not be more
		case i > 0:
			n.chg = min(n.chg, max(0, s.cost[i]+behind-in[i]))
		}
		recurses := slices.ContainsFunc(f.call(n), func(c uint32) bool { return s.p.g.recurses(f, c) })
		for _, v := range f.succ(n) {
			if int(v) > i {
				in[v] = min(in[v], in[i]+n.chg-s.cost[i])
				if recurses {
					in[v] = min(in[v], N[v].p)
				}
			}
		}
	}
	s.low = in
}
