package meter

import (
	"cmp"
	"slices"
)

// graph is the call graph: functions first, then one node for each type of
// indirect calls, from which edges go to the functions that a table may hold.
type graph struct {
	fns   []*fn
	nimp  uint32
	types int
	adj   [][]int32 // calls that are reached without a test
	order []int32   // callees first, when edges into tested functions are left out
	all   [][]int32 // all calls
	post  []int32   // callees first, as far as cycles allow
	knot  []int32   // of all calls: equal for functions that call each other in a cycle, 0 for the others
}

func (g *graph) typeNode(canon uint32) int32 { return int32(len(g.fns)) + int32(canon) } // at most Limits.Functions + Limits.Types

func newGraph(fns []*fn, nimp uint32, canon []uint32, types int) *graph {
	g := &graph{fns: fns, nimp: nimp, types: types}
	g.adj, g.all = make([][]int32, len(fns)+types), make([][]int32, len(fns)+types)
	free, met := fill(nil, len(g.adj), -1), fill(nil, len(g.adj), -1) // the caller that an edge was last noted for
	for i, f := range fns {
		me := int32(i)
		for n := range f.nodes {
			for _, c := range f.call(&f.nodes[n]) {
				to := int32(c - nimp)
				if c&indirect != 0 {
					to = g.typeNode(c &^ indirect)
				} else if c < nimp {
					continue
				}
				if met[to] != me {
					met[to] = me
					g.all[i] = append(g.all[i], to)
				}
				if f.nodes[n].free && free[to] != me {
					free[to] = me
					g.adj[i] = append(g.adj[i], to)
				}
			}
		}
		if f.taken {
			t := g.typeNode(canon[f.typ])
			g.adj[t] = append(g.adj[t], me)
			g.all[t] = append(g.all[t], me)
		}
	}
	return g
}

// cut chooses the functions that test at their entry: a set without which the
// graph of untested calls has no cycle. It finds the strongly connected components, takes out of each those
// that connect most, and goes on with what is left of it. Taking a sixteenth at
// a time instead of one costs a few functions more and saves most of the rounds.
//
// It is the only pass whose work is not a fixed number of looks at each edge; steps
// counts the looks.
func (g *graph) cut(canon []uint32) (steps int) {
	n := len(g.adj)
	for i, f := range g.fns {
		if !f.taken {
			continue
		}
		// Through its own type it may call itself; only it can be taken out of that cycle.
		t := g.typeNode(canon[f.typ])
		for _, c := range g.adj[i] {
			f.tested = f.tested || c == t
		}
	}
	s := newComponents(n)
	all := make([]int32, 0, n)
	for i := range g.adj {
		if !g.isCut(int32(i)) {
			all = append(all, int32(i))
		}
	}
	work := [][]int32{all}
	for len(work) > 0 {
		set := work[len(work)-1]
		work = work[:len(work)-1]
		for _, scc := range s.find(g, set) {
			g.cutOne(s, scc)
			rest := scc[:0]
			for _, v := range scc {
				if !g.isCut(v) {
					rest = append(rest, v)
				}
			}
			if len(rest) > 0 {
				work = append(work, rest)
			}
		}
	}
	return s.steps
}

func (g *graph) isCut(v int32) bool { return int(v) < len(g.fns) && g.fns[v].tested }

// cutOne takes functions out of one component.
func (g *graph) cutOne(s *components, scc []int32) {
	type ranked struct {
		v     int32
		score int64
	}
	for _, v := range scc {
		s.in[v], s.out[v] = 0, 0
	}
	for _, v := range scc {
		for _, w := range g.adj[v] {
			if s.comp[w] == s.comp[v] {
				s.in[w]++
				s.out[v]++
			}
		}
	}
	best := make([]ranked, 0, len(scc))
	for _, v := range scc {
		if int(v) < len(g.fns) {
			best = append(best, ranked{v, int64(s.in[v]) * int64(s.out[v])})
		}
	}
	slices.SortFunc(best, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.v, b.v))
	})
	for _, r := range best[:min(len(best), len(scc)/16+1)] {
		if r.score*4 >= best[0].score {
			g.fns[r.v].tested = true
		}
	}
}

// components finds strongly connected components by Tarjan's algorithm, without
// recursion.
type components struct {
	comp, idx, low, in, out []int32
	next                    int32
	steps                   int // edges looked at
	on                      []bool
	stack                   []int32
	frames                  []struct{ v, e int32 }
}

func newComponents(n int) *components {
	return &components{
		comp: make([]int32, n), idx: make([]int32, n), low: make([]int32, n),
		in: make([]int32, n), out: make([]int32, n), on: make([]bool, n),
	}
}

// find gives the components of set that hold a cycle. Only edges inside set
// count; afterwards comp numbers them.
func (s *components) find(g *graph, set []int32) [][]int32 {
	s.next++
	mine := s.next
	for _, v := range set {
		s.comp[v], s.idx[v] = mine, -1
	}
	var found [][]int32
	cnt := int32(0)
	enter := func(v int32) {
		s.idx[v], s.low[v] = cnt, cnt
		cnt++
		s.stack = append(s.stack, v)
		s.on[v] = true
		s.frames = append(s.frames, struct{ v, e int32 }{v, 0})
	}
	for _, root := range set {
		if s.idx[root] >= 0 {
			continue
		}
		enter(root)
		for len(s.frames) > 0 {
			f := &s.frames[len(s.frames)-1]
			if int(f.e) < len(g.adj[f.v]) {
				w := g.adj[f.v][f.e]
				f.e++
				s.steps++
				switch {
				case s.comp[w] != mine || g.isCut(w):
				case s.idx[w] < 0:
					enter(w)
				case s.on[w]:
					s.low[f.v] = min(s.low[f.v], s.idx[w])
				}
				continue
			}
			v := f.v
			s.frames = s.frames[:len(s.frames)-1]
			if len(s.frames) > 0 {
				u := s.frames[len(s.frames)-1].v
				s.low[u] = min(s.low[u], s.low[v])
			}
			if s.low[v] == s.idx[v] {
				if scc := s.pop(g, v); scc != nil {
					found = append(found, scc)
				}
			}
		}
	}
	for _, scc := range found {
		s.next++
		for _, v := range scc {
			s.comp[v] = s.next
		}
	}
	return found
}

// pop takes the component of v off the stack; nil if it holds no cycle.
func (s *components) pop(g *graph, v int32) []int32 {
	at := len(s.stack) - 1
	for s.stack[at] != v {
		at--
	}
	part := s.stack[at:]
	for _, w := range part {
		s.on[w] = false
	}
	s.stack = s.stack[:at]
	if len(part) == 1 {
		self := false
		for _, w := range g.adj[v] {
			self = self || w == v
		}
		if !self {
			return nil
		}
	}
	return append([]int32(nil), part...)
}

// arrange orders the graph of untested calls, callees first, which is possible
// once it is cut; and that of all calls, where the functions that are called
// before they could come are marked.
func (g *graph) arrange() {
	g.order = postorder(g.adj, g.isCut, nil)
	g.post = postorder(g.all, func(int32) bool { return false }, func(v int32) {
		if int(v) < len(g.fns) {
			g.fns[v].back = true
		}
	})
	g.tails()
}

// knots numbers the cycles of all calls.
func (g *graph) knots() {
	whole := &graph{adj: g.all}
	all := make([]int32, len(g.all))
	for i := range all {
		all[i] = int32(i)
	}
	g.knot = make([]int32, len(g.all))
	for n, scc := range newComponents(len(all)).find(whole, all) {
		for _, v := range scc {
			g.knot[v] = int32(n) + 1 // at most one a node
		}
	}
}

// recurses reports whether a call of c by f may come back to f before it returns.
func (g *graph) recurses(f *fn, c uint32) bool {
	to := int32(c - g.nimp)
	switch {
	case c&indirect != 0:
		to = g.typeNode(c &^ indirect)
	case c < g.nimp:
		return false
	}
	k := g.knot[f.index-g.nimp]
	return k != 0 && k == g.knot[to]
}

// postorder visits a graph in depth, without recursion. Edges to nodes that skip
// names are left out; back hears of edges to nodes that are still open.
func postorder(adj [][]int32, skip func(int32) bool, back func(int32)) []int32 {
	const (
		open = 1
		done = 2
	)
	order := make([]int32, 0, len(adj))
	state := make([]byte, len(adj))
	var frames []struct{ v, e int32 }
	for root := range adj {
		if state[root] != 0 {
			continue
		}
		state[root] = open
		frames = append(frames, struct{ v, e int32 }{int32(root), 0})
		for len(frames) > 0 {
			f := &frames[len(frames)-1]
			if int(f.e) < len(adj[f.v]) {
				w := adj[f.v][f.e]
				f.e++
				switch {
				case skip(w):
				case state[w] == 0:
					state[w] = open
					frames = append(frames, struct{ v, e int32 }{w, 0})
				case state[w] == open && back != nil:
					back(w)
				}
				continue
			}
			state[f.v] = done
			order = append(order, f.v)
			frames = frames[:len(frames)-1]
		}
	}
	return order
}
