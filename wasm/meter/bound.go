package meter

// bound puts in tests where untested charges would add up (rule 3): along the
// paths of one function, through calls that return without a test, and down
// chains of calls. A tree of functions that call each other ten times has no
// cycle, and would otherwise run for an hour untested.
func (g *graph) bound() {
	nf := len(g.fns)
	acc := make([]int64, g.types) // at the return from an indirect call
	var in []int64
	for _, v := range g.order {
		if int(v) >= nf {
			for _, w := range g.adj[v] {
				acc[int(v)-nf] = max(acc[int(v)-nf], g.exitOf(g.fns[w]))
			}
			continue
		}
		in = g.paths(g.fns[v], acc, in)
	}
	// Callers first: what may already be charged when a function is entered.
	entered := make([]int64, g.types)
	for i := len(g.order) - 1; i >= 0; i-- {
		v := int(g.order[i])
		if v >= nf {
			for _, w := range g.adj[v] {
				g.fns[w].in = max(g.fns[w].in, entered[v-nf])
			}
			continue
		}
		f := g.fns[v]
		if f.counted {
			f.in = 0
		} else if f.in+f.entry > 2*untested {
			f.tested, f.in = true, 0
		}
		in = g.sites(f, acc, entered, in)
	}
}

// exitCounted is what a counted function may leave untested at its return: its
// callers may have been looked at before it.
const exitCounted = untested / 40

func (g *graph) exitOf(f *fn) int64 {
	if f.counted {
		return exitCounted
	}
	return f.acc
}

func (g *graph) callAcc(c uint32, acc []int64) int64 {
	switch {
	case c&indirect != 0:
		return acc[c&^indirect]
	case c < g.nimp:
		return 0
	}
	return g.exitOf(g.fns[c-g.nimp])
}

// flow carries untested charges along the paths of f, twice: what comes back to
// a header that is not tested is known only then. visit is called for each
// block with what is charged when it is entered, and may put in a test.
func (g *graph) flow(f *fn, first int64, acc, in []int64, visit func(n *node, entered int64) (left int64)) []int64 {
	N := f.nodes
	var back []int64
	in = in[:0]
	for range N {
		in = append(in, 0)
	}
	for pass := range 2 {
		if pass == 1 {
			if back == nil {
				break
			}
			copy(in, back)
		}
		in[0] = max(in[0], first)
		for i := range N {
			left := visit(&N[i], in[i])
			for _, c := range f.call(&N[i]) {
				left += g.callAcc(c, acc)
			}
			for _, s := range f.succ(&N[i]) {
				if int(s) > i {
					in[s] = max(in[s], left)
					continue
				}
				if back == nil {
					back = make([]int64, len(N))
				}
				back[s] = max(back[s], left)
			}
			if N[i].leaf || i == len(N)-1 {
				f.acc = max(f.acc, left)
			}
		}
	}
	return in
}

// paths bounds the charges inside f.
func (g *graph) paths(f *fn, acc, in []int64) []int64 {
	first := f.entry
	if f.counted {
		first = 0
	}
	f.acc = 0
	most := int64(untested)
	atExit := int64(untested / 8)
	if f.counted || f.taken {
		atExit = exitCounted
	}
	N := f.nodes
	return g.flow(f, first, acc, in, func(n *node, entered int64) int64 {
		if n.test {
			return 0
		}
		limit := most
		if n.leaf || n == &N[len(N)-1] {
			limit = atExit
		}
		if entered+n.chg > limit {
			n.test = true
			return 0
		}
		return entered + n.chg
	})
}

// sites notes what is charged at each call of f, for its callees.
func (g *graph) sites(f *fn, acc, entered, in []int64) []int64 {
	first := f.in + f.entry
	if f.counted || f.tested {
		first = 0
	}
	keep := f.acc
	in = g.flow(f, first, acc, in, func(n *node, e int64) int64 {
		left := e + n.chg
		if n.test {
			left = 0
		}
		at := left
		for _, c := range f.call(n) {
			switch {
			case c&indirect != 0:
				entered[c&^indirect] = max(entered[c&^indirect], at)
			case c >= g.nimp:
				callee := g.fns[c-g.nimp]
				callee.in = max(callee.in, at)
			}
			at += g.callAcc(c, acc)
		}
		return left
	})
	f.acc = keep
	return in
}
