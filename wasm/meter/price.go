package meter

// The numbers behind rules 1 to 3. They were tuned on nbody, recursion, sieve, a
// Go program and CPython; see RATIONALE.md.
const (
	slack         = 100    // an arm may be prepaid if it costs at most this much more than its cheapest sibling
	prepaid       = 256    // most that a direct caller prepays
	prepaidTable  = 32     // most that an indirect caller prepays
	untested      = 32_000 // most that is charged without a test
	copies        = 4      // of small innermost loops
	copiesMaxBody = 64     // bytes of such a loop's body
)

// prices sets potentials and charges in the order of the call graph.
type prices struct {
	g     *graph
	typeQ []int64 // prepaid by indirect calls, for each canonical type
	low   []int64
	caps  []int64
}

func (p *prices) run() {
	nf := len(p.g.fns)
	p.typeQ = make([]int64, p.g.types)
	for _, v := range p.g.order {
		if int(v) >= nf {
			for _, w := range p.g.adj[v] {
				p.typeQ[int(v)-nf] = max(p.typeQ[int(v)-nf], p.g.fns[w].q)
			}
			continue
		}
		f := p.g.fns[v]
		most := p.potentials(f)
		switch {
		case f.counted, f.rooted:
			f.q = 0
		case f.taken:
			f.q = min(most, prepaidTable)
		default:
			f.q = min(most, prepaid)
		}
		f.entry = most - f.q
		if f.counted {
			f.entry = max(f.entry, 1)
		}
	}
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

// potentials places the charges of one function and gives the potential of its
// entry. From the last block to the first, a block's potential is its cost plus
// the largest potential behind it; where the arms of a branch differ by more
// than slack, the dearer one pays the rest itself. The arm that leaves a loop
// has no slack, or each iteration would pay for the way out.
func (p *prices) potentials(f *fn) int64 {
	const big = int64(1) << 60
	N := f.nodes
	p.low, p.caps = p.low[:0], p.caps[:0]
	for range N {
		p.low, p.caps = append(p.low, 0), append(p.caps, big)
	}
	cheapest := func(n *node) int64 {
		m := big
		for _, s := range f.succ(n) {
			if N[s].loop {
				return 0
			}
			m = min(m, p.low[s])
		}
		if m == big {
			return 0
		}
		return m
	}
	for i := len(N) - 1; i >= 0; i-- {
		n := &N[i]
		for _, c := range f.call(n) {
			n.cost += p.callee(c)
		}
		p.low[i] = n.cost + cheapest(n)
	}
	for i := range N {
		if n := &N[i]; n.nsuc > 1 {
			m := cheapest(n)
			for _, s := range f.succ(n) {
				if N[s].exit {
					p.caps[s] = min(p.caps[s], m)
				} else {
					p.caps[s] = min(p.caps[s], m+slack)
				}
			}
		}
	}
	for i := len(N) - 1; i >= 0; i-- {
		n := &N[i]
		m := int64(0)
		for _, s := range f.succ(n) {
			if !N[s].loop {
				m = max(m, N[s].p)
			}
		}
		w := n.cost + m
		switch {
		case n.loop:
			n.p, n.chg = 0, max(w, 1)
		case i == 0:
			n.p, n.chg = w, 0
		default:
			n.p = min(w, p.caps[i])
			n.chg = w - n.p
		}
	}
	return N[0].p
}
