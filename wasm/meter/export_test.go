package meter

import "openskill/wasm/binary"

// CutSteps is how often [Rewrite] looks at a call while it chooses the functions
// that test, and how many different calls there are.
func CutSteps(m *binary.Module, maxStack []uint32) (steps, calls int) {
	w := &rewriter{m: m, nimp: m.Imported(binary.ExternFunc), o: Options{Workers: 2}}
	w.canonical()
	w.graphs(maxStack)
	w.reached()
	g := newGraph(w.fns, w.nimp, w.canon, w.nCanon)
	for _, to := range g.adj {
		calls += len(to)
	}
	return g.cut(w.canon), calls
}
