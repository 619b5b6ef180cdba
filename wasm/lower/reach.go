package lower

// reach works out with which tags each function may be left: the smallest sets
// for which every function has what its own throws and its callees let out of
// it. A call through a table may call every function of its type that can stand
// in one.
func (l *lowerer) reach() {
	l.limits()
	n := len(l.fns)
	sets := make([]uint64, n+l.nCanon)
	heads, backs := l.callers()
	work := make([]uint32, 0, n)
	queued := make([]bool, len(sets))
	raise := func(v uint32, m uint64) {
		if sets[v]|m == sets[v] {
			return
		}
		sets[v] |= m
		if !queued[v] {
			queued[v] = true
			work = append(work, v)
		}
	}
	for i := range l.fns {
		raise(uint32(i), l.fns[i].throws) // at most Limits.Functions
	}
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		queued[v] = false
		for _, b := range backs[heads[v]:heads[v+1]] {
			raise(b.to, sets[v]&b.mask)
		}
	}
	for i := range l.fns {
		l.fns[i].throws = sets[i]
	}
	l.indirect = sets[n:]
}

// limits resolves what each throw_ref can throw: what some clause caught with a
// reference, and some throw threw.
func (l *lowerer) limits() {
	for t := range l.m.Tags {
		if l.thrown[t].Load() && (l.captured[t].Load() || l.capturedAll.Load()) {
			l.rethrown |= bit(uint32(t)) // at most Limits.Tags
		}
	}
	for i := range l.fns {
		l.fns[i].throws |= l.fns[i].rethrow & l.rethrown
	}
}

// callers turns the edges around: those of node v are backs[heads[v]:heads[v+1]].
// Nodes are the functions, then the canonical types.
func (l *lowerer) callers() (heads []uint32, backs []edge) {
	n := len(l.fns)
	node := func(e edge) uint32 {
		if e.to&throughTable != 0 {
			return uint32(n) + e.to&^throughTable // at most Limits.Functions
		}
		return e.to
	}
	heads = make([]uint32, n+l.nCanon+1)
	total := uint32(0)
	for i := range l.fns {
		for _, e := range l.fns[i].edges {
			heads[node(e)+1]++
			total++
		}
		if l.taken[i].Load() {
			heads[i+1]++
			total++
		}
	}
	for i := 1; i < len(heads); i++ {
		heads[i] += heads[i-1]
	}
	backs = make([]edge, total)
	at := append([]uint32(nil), heads[:len(heads)-1]...)
	put := func(v uint32, e edge) {
		backs[at[v]] = e
		at[v]++
	}
	for i := range l.fns {
		me := uint32(i) // at most Limits.Functions
		for _, e := range l.fns[i].edges {
			put(node(e), edge{me, e.mask})
		}
		if l.taken[i].Load() {
			put(me, edge{uint32(n) + l.canon[l.m.Funcs[i]], everyTag})
		}
	}
	return heads, backs
}

// throwsOf gives the tags that a call may throw.
func (l *lowerer) throwsOf(e edge) uint64 {
	if e.to&throughTable != 0 {
		return l.indirect[e.to&^throughTable]
	}
	return l.fns[e.to].throws
}

// changes reports whether a function gets a new body.
func (l *lowerer) changes(i int) bool {
	f := &l.fns[i]
	if f.touched {
		return true
	}
	for _, e := range f.edges {
		if l.throwsOf(e) != 0 {
			return true
		}
	}
	return false
}
