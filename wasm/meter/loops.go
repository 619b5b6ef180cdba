package meter

// loops finds the natural loops of a function: which edges leave one, and which
// headers need a test (rule 3).
//
// Control flow of WebAssembly is reducible: a loop is entered through its header
// only, and loops that share a block are nested. So the loops that a block
// belongs to form a chain, and the innermost of them is the one whose header has
// the largest index. That makes one pass from the last block to the first
// enough: a block is in the loops of its successors, and of the headers that it
// branches back to.
func (g *grapher) loops(f *fn) {
	N := f.nodes
	g.inner, g.outer, g.level = fill(g.inner, len(N), -1), fill(g.outer, len(N), -1), fill(g.level, len(N), 0)
	inner, outer := g.inner, g.outer // innermost loop of a block; loop around a header's loop
	found := false
	budget := nesting * len(N)
	for i := int32(len(N)) - 1; i >= 0 && budget >= 0; i-- {
		for _, s := range f.succ(&N[i]) {
			c := s // a branch back to the header s
			if s > i {
				c = inner[s]
				if c == s {
					c = outer[s]
				}
			}
			if c < 0 {
				continue
			}
			found = true
			// c and inner[i] are on one chain; what lies outside is noted at the inner header.
			switch {
			case inner[i] < c:
				if inner[i] >= 0 {
					budget -= g.nest(c, inner[i])
				}
				inner[i] = c
			case inner[i] > c:
				budget -= g.nest(inner[i], c)
			}
		}
	}
	if !found {
		return
	}
	if budget < 0 { // too much to find out: every loop tests
		for i := range N {
			N[i].test = N[i].loop
		}
		return
	}
	for i := range N {
		if in := inner[i]; in == int32(i) {
			g.level[i] = 1
			if o := outer[i]; o >= 0 {
				g.level[i] = g.level[o] + 1
			}
		} else if in >= 0 {
			g.level[i] = g.level[in]
		}
	}
	g.exits(f)
	g.tests(f)
}

// nest notes that the loop of header c lies in that of header o, and in all that
// o lies in. What is known of c already stays on the chain: an edge may leave
// several loops at once, and be the only one that tells of the outermost.
// It gives the number of steps that it took.
func (g *grapher) nest(c, o int32) (steps int) {
	outer := g.outer
	for ; o >= 0; steps++ {
		switch at := outer[c]; {
		case at == o:
			return steps
		case at < o: // o stands between c and what was known to be around it
			outer[c] = o
			c, o = o, at
		default:
			c = at
		}
	}
	return steps
}

// nesting bounds the steps of nest, times the number of blocks of a function:
// who leaves a thousand loops at once, a thousand times, gets tests.
const nesting = 64

// exits marks the blocks that are reached by leaving a loop.
func (g *grapher) exits(f *fn) {
	N := f.nodes
	g.caller = append(g.caller[:0], make([]bool, len(N))...)
	for i := range N {
		if N[i].ncal > 0 {
			for h := g.inner[i]; h >= 0 && !g.caller[h]; h = g.outer[h] {
				g.caller[h] = true
			}
		}
	}
	for i := range N {
		how := exitTight
		if h := g.inner[i]; h >= 0 && g.caller[h] {
			how = exitCalling
		}
		for _, s := range f.succ(&N[i]) {
			if !N[s].loop && g.level[s] < g.level[i] {
				N[s].exit = max(N[s].exit, how)
			}
		}
	}
}

// visits bounds the search below, for each header and, times the number of
// blocks, for a function: who writes ten thousand nested loops gets tests.
const visits = 256

// tests marks the headers that must test: those with a way back to themselves
// that passes no tested header on the way. Inner loops come first.
func (g *grapher) tests(f *fn) {
	N := f.nodes
	budget := 16 * len(N)
	g.seen = fill(g.seen, len(N), -1)
	for h := int32(len(N)) - 1; h >= 0; h-- {
		if !N[h].loop || g.inner[h] != h {
			continue // not a header, or a loop that is never repeated
		}
		N[h].test = g.untestedWay(f, h, &budget)
	}
	g.seen = fill(g.seen, len(g.seen), -1)
}

func (g *grapher) untestedWay(f *fn, h int32, budget *int) bool {
	N := f.nodes
	g.stack = append(g.stack[:0], h)
	for n := 0; len(g.stack) > 0; n++ {
		if *budget--; n > visits || *budget < 0 {
			return true
		}
		u := g.stack[len(g.stack)-1]
		g.stack = g.stack[:len(g.stack)-1]
		for _, s := range f.succ(&N[u]) {
			if s == h {
				return true
			}
			if s > h && g.seen[s] != h && !(N[s].loop && N[s].test) {
				g.seen[s] = h
				g.stack = append(g.stack, s)
			}
		}
	}
	return false
}

func fill(s []int32, n int, v int32) []int32 {
	if cap(s) < n {
		s = make([]int32, n)
	}
	s = s[:n]
	for i := range s {
		s[i] = v
	}
	return s
}
