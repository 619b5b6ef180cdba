package meter

// bound puts in tests where untested charges would add up (rule 3): along the
// paths of one function, through calls that return without a test, and down
// chains of calls. A tree of functions that call each other ten times has no
// cycle, and would otherwise run for an hour untested.
func (g *graph) bound() {
	b := &bounds{g: g, acc: make([]int64, g.types), entered: make([]int64, g.types), done: make([]bool, len(g.adj))}
	nf := len(g.fns)
	for _, v := range g.post {
		if int(v) >= nf {
			for _, w := range g.all[v] {
				acc := int64(exitBack) // of a function that is looked at later
				if b.done[w] {
					acc = g.fns[w].acc
				}
				b.acc[int(v)-nf] = max(b.acc[int(v)-nf], acc)
			}
		} else {
			b.paths(g.fns[v])
		}
		b.done[v] = true
	}
	// Callers first: what may already be charged when a function is entered. What
	// stands behind a test does not depend on that, so it is noted before.
	for _, f := range g.fns {
		b.sites(f, false)
	}
	for i := len(g.order) - 1; i >= 0; i-- {
		v := int(g.order[i])
		if v >= nf {
			for _, w := range g.adj[v] {
				g.fns[w].in = max(g.fns[w].in, b.entered[v-nf])
			}
			continue
		}
		f := g.fns[v]
		if f.in+f.entry > 2*untested {
			f.tested = true
		}
		b.sites(f, true)
	}
}

type bounds struct {
	g       *graph
	acc     []int64 // by type: most that is untested at the return from an indirect call
	entered []int64 // by type: most that is untested when a function is called through a table
	done    []bool  // nodes of the graph whose acc is known
	in      []int64
	back    []int64
}

// The most that a function may leave untested when it returns: less for those
// whose callers were looked at before them, which take it for granted.
const (
	exitMost = untested / 8
	exitBack = untested / 40
)

func (b *bounds) callAcc(c uint32) int64 {
	g := b.g
	switch {
	case c&indirect != 0:
		if t := c &^ indirect; b.done[g.typeNode(t)] {
			return b.acc[t]
		}
		return exitBack
	case c < g.nimp:
		return 0
	}
	if !b.done[c-g.nimp] {
		return exitBack
	}
	return g.fns[c-g.nimp].acc
}

// passes is how often flow goes along the paths of a function before it tests where they
// come back with more each time: those are loops in loops in loops, none of them tested.
const passes = 4

// flow carries untested charges along the paths of f, until no more comes back to a header
// that is not tested than it began with: a path may come back to one loop, leave that,
// and come back to the next one around it. visit is called for each block with what is
// charged when it is entered, and gives what is charged before its calls.
func (b *bounds) flow(f *fn, first int64, visit func(n *node, entered int64) (left int64)) (acc int64) {
	N := f.nodes
	b.in, b.back = b.in[:0], b.back[:0]
	for range N {
		b.in, b.back = append(b.in, 0), append(b.back, 0)
	}
	for pass, again := 0, true; again; pass++ {
		again, acc = false, 0
		copy(b.in, b.back)
		b.in[0] = max(b.in[0], first)
		for i := range N {
			left := visit(&N[i], b.in[i])
			for _, c := range f.call(&N[i]) {
				left += b.callAcc(c)
			}
			for _, s := range f.succ(&N[i]) {
				switch n := &N[s]; {
				case int(s) > i:
					b.in[s] = max(b.in[s], left)
				case left > b.in[s]:
					b.back[s] = max(b.back[s], left)
					n.test = n.test || pass >= passes
					again = again || !n.test
				}
			}
			if N[i].leaf {
				acc = max(acc, left)
			}
		}
	}
	return acc
}

// paths bounds the charges inside f.
func (b *bounds) paths(f *fn) {
	atExit := int64(exitMost)
	if f.granted() {
		atExit = exitBack
	}
	limitOf := func(n *node) int64 {
		if n.leaf {
			return atExit
		}
		return untested
	}
	// The first block has no charge of its own: what it costs is charged at the entry,
	// and so only the entry can test it.
	first := f.entry
	f.tested = f.tested || first > limitOf(&f.nodes[0])
	if f.tested {
		first = 0
	}
	f.acc = b.flow(f, first, func(n *node, entered int64) int64 {
		if n.test {
			return 0
		}
		left := entered + n.chg
		// What the callee of a tail call leaves is left by f as well. That callee is bound as
		// f is (see tails), so a test in front of the call is enough.
		behind := int64(0)
		if n.leaf && left > 0 && n != &f.nodes[0] {
			for _, c := range f.call(n) {
				behind += b.callAcc(c)
			}
		}
		if left+behind > limitOf(n) {
			n.test = true
			return 0
		}
		return left
	})
}

// granted reports whether callers that are looked at before f take for granted that it
// leaves little untested.
func (f *fn) granted() bool { return f.tested || f.taken || f.back }

// tails has what such a function calls at its very end leave as little as itself, or a
// stack of calls would add that up on its way back.
func (g *graph) tails() {
	var open []*fn
	for _, f := range g.fns {
		if f.granted() {
			open = append(open, f)
		}
	}
	for len(open) > 0 {
		f := open[len(open)-1]
		open = open[:len(open)-1]
		for i := range f.nodes {
			if !f.nodes[i].leaf { // only a tail call is made where the function is left
				continue
			}
			for _, c := range f.call(&f.nodes[i]) {
				if c&indirect != 0 || c < g.nimp {
					continue
				}
				if to := g.fns[c-g.nimp]; !to.granted() {
					to.back = true
					open = append(open, to)
				}
			}
		}
	}
}

// sites notes what is charged at each call of f, for its callees: for those
// that are reached from the entry without a test, or for the others.
func (b *bounds) sites(f *fn, free bool) {
	if f.calls == nil {
		return
	}
	first := f.in + f.entry
	if f.tested || !free {
		first = 0
	}
	b.flow(f, first, func(n *node, entered int64) int64 {
		left := entered + n.chg
		if n.test {
			left = 0
		}
		if n.free != free {
			return left
		}
		at := left
		for _, c := range f.call(n) {
			switch {
			case c&indirect != 0:
				b.entered[c&^indirect] = max(b.entered[c&^indirect], at)
			case c >= b.g.nimp:
				callee := b.g.fns[c-b.g.nimp]
				callee.in = max(callee.in, at)
			}
			at += b.callAcc(c)
		}
		return left
	})
}
