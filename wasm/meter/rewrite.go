package meter

import (
	"errors"
	"sync"
	"sync/atomic"

	"openskill/wasm/binary"
)

// The names that rewriting adds. A module that uses names with this prefix must
// be refused before.
const (
	// ImportModule and ImportRefuel name the function (i64 fuel, i64 need) -> (i64)
	// that the host provides; it answers with [Tank.Refuel]. It must change nothing else of the
	// module, neither its memory nor a global: code that the edited compiler makes does not
	// load them again after it, and a memory that had moved would be an escape.
	ImportModule = "openskill"
	ImportRefuel = "refuel"
	// ExportFuel names the fuel that is left of the slice, a mutable i64, for
	// [Tank.Used].
	ExportFuel = "openskill:fuel"
	// ExportStart names the start function, which the host calls first: a metered
	// module has none of its own.
	ExportStart = "openskill:start"
	// ExportMain names the function that Options.Main asks for.
	ExportMain = "openskill:main"
	// Reserved is the prefix of names that guests may not use.
	Reserved = "openskill"
)

// FrameUnit is how many bytes of the host's stack one unit of fuel pays for when
// a function is called, so that the stack cannot grow by more than about
// FrameUnit times a slice before the host can measure it.
const FrameUnit = 64

// Options say what the host adds to what the module says.
type Options struct {
	// TableCap is the number of entries beyond which table.grow ends the run;
	// 0 means 250,000. Tables that declare a smaller maximum keep it.
	TableCap uint32
	// Workers is how many functions are examined at once; 0 means 2.
	Workers int
	// Main are functions of the input, without parameters and with at most an i32 as
	// result, that one run calls in this order. They get a function of their own, the
	// export [ExportMain], which tells the host of each return by [Visit], so that the
	// host is inside a call of the guest's when the run ends. Empty: none.
	Main []uint32
	// Trace keeps, for [Verify], where each instruction of the input went.
	Trace bool
}

// Stats says what was put in.
type Stats struct {
	Functions, Tested     int // all; those with a test at their entry
	EntryCharges, Charges int // functions and blocks that charge
	Loops, TestedLoops    int
	LargestCharge         int64
}

// Step says that the instruction at byte In of a function's body came to stand
// at byte Out of the rewritten body.
type Step struct{ Out, In int }

// Proof is what [Verify] needs to know beside the bytes: it is not believed, but
// checked.
type Proof struct {
	Steps    [][]Step // for each function of the input
	Prepaid  []int64  // for each function of the input, what it expects to be paid
	Indirect []int64  // for each type of the input, the same for calls through a table
	Main     []uint32 // Options.Main
}

// Rewritten is a metered module.
type Rewritten struct {
	Module *binary.Module
	Stats  Stats
	Proof  *Proof // if Options.Trace
}

type rewriter struct {
	m       *binary.Module // the input
	out     *binary.Module
	o       Options
	fns     []*fn
	nimp    uint32
	fuel    uint32 // index of the counter of fuel among the globals
	refuel  uint32 // helper (need i64) -> ()
	trace   [][]Step
	canon   []uint32
	nCanon  int
	types   map[string]uint32 // types of the output, by their keys
	helpers struct {
		entries, pages uint32            // (n i32) -> (n i32)
		grow           map[uint32]uint32 // the same for table.grow, by table
	}
}

// Rewrite meters a module that package check has accepted; maxStack is its
// Result.MaxStack. The input is not changed, and the result shares its data.
// Exceptions must have been lowered before.
func Rewrite(m *binary.Module, maxStack []uint32, opts *Options) (*Rewritten, error) {
	w := &rewriter{m: m, nimp: m.Imported(binary.ExternFunc)}
	if opts != nil {
		w.o = *opts
	}
	if w.o.TableCap == 0 {
		w.o.TableCap = 250_000
	}
	if w.o.Workers == 0 {
		w.o.Workers = 2
	}
	if len(m.Tags) > 0 {
		return nil, errors.New("meter: exceptions must be lowered before metering")
	}
	w.canonical()
	w.graphs(maxStack)
	w.reached()
	g := newGraph(w.fns, w.nimp, w.canon, w.nCanon)
	g.cut(w.canon)
	g.arrange()
	g.knots()
	p := &prices{g: g}
	p.run(w.o.Workers)
	g.bound()
	w.frame()
	w.bodies()
	r := &Rewritten{Module: w.out, Stats: w.stats()}
	if w.o.Trace {
		r.Proof = w.proof(p)
	}
	return r, nil
}

// canonical numbers the types so that equal types have equal numbers: a call
// through a table compares types by shape.
func (w *rewriter) canonical() {
	seen := make(map[string]uint32, len(w.m.Types))
	for _, t := range w.m.Types {
		k := t.Key()
		n, ok := seen[k]
		if !ok {
			n = uint32(len(seen)) // at most Limits.Types
			seen[k] = n
		}
		w.canon = append(w.canon, n)
	}
	w.nCanon = len(seen)
}

// each runs do for every function, on a few workers.
func each[T any](n, workers int, state func() T, do func(T, int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, n/64+1) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			s := state()
			for {
				at := int(next.Add(32)) - 32
				if at >= n {
					return
				}
				for i := at; i < min(at+32, n); i++ {
					do(s, i)
				}
			}
		}()
	}
	wg.Wait()
}

func (w *rewriter) graphs(maxStack []uint32) {
	w.fns = make([]*fn, len(w.m.Codes))
	store := make([]fn, len(w.m.Codes))
	each(len(w.fns), w.o.Workers,
		func() *grapher { return &grapher{m: w.m, canon: w.canon, nimp: w.nimp} },
		func(g *grapher, i int) {
			f, c := &store[i], &w.m.Codes[i]
			f.index, f.typ = w.nimp+uint32(i), w.m.Funcs[i] // at most Limits.Functions
			g.build(f, c)
			values := int64(len(w.m.Types[f.typ].Params))
			for _, l := range c.Locals {
				values += int64(l.Count)
			}
			if i < len(maxStack) {
				values += int64(maxStack[i])
			}
			// What the compiler keeps in a frame is not known here: values that live
			// across calls are spilled, each to a place of its own.
			frame := 8*values + int64(len(c.Body))/4
			f.nodes[0].cost += frame / FrameUnit
			w.fns[i] = f
		})
}

// reached marks the functions that can be called other than by a direct call.
func (w *rewriter) reached() {
	taken := func(i uint32) {
		if i >= w.nimp {
			w.fns[i-w.nimp].taken = true
		}
	}
	rooted := func(i uint32) {
		if i >= w.nimp {
			w.fns[i-w.nimp].rooted = true
		}
	}
	for i := range w.m.Elems {
		for _, f := range w.m.Elems[i].Funcs {
			taken(f)
		}
		for _, x := range w.m.Elems[i].Exprs {
			refs(x, taken)
		}
	}
	for i := range w.m.Globals {
		refs(w.m.Globals[i].Init, taken)
	}
	for i := range w.m.Exports {
		// The host may also put an exported function into a table of another module.
		if w.m.Exports[i].Kind == binary.ExternFunc {
			rooted(w.m.Exports[i].Index)
			taken(w.m.Exports[i].Index)
		}
	}
	if w.m.Start != nil {
		rooted(*w.m.Start)
	}
	for _, f := range w.o.Main {
		rooted(f)
	}
}

func refs(x binary.ConstExpr, f func(uint32)) {
	r := binary.NewReader(x, 0)
	var in binary.Instr
	for r.Next(&in) {
		if in.Op == binary.OpRefFunc {
			f(in.A)
		}
	}
}

// moved gives the index of a function of the input in the output, where one
// import was added behind the imports.
func (w *rewriter) moved(i uint32) uint32 {
	if i >= w.nimp {
		return i + 1
	}
	return i
}

func (w *rewriter) movedExpr(x binary.ConstExpr) binary.ConstExpr {
	var out binary.ConstExpr
	r := binary.NewReader(x, 0)
	var in binary.Instr
	found := false
	for r.Next(&in) {
		if in.Op == binary.OpRefFunc {
			found = true
			out = binary.AppendU32(append(out, byte(in.Op)), w.moved(in.A))
		} else {
			out = append(out, x[in.Pos:in.End]...)
		}
	}
	if !found {
		return x
	}
	return out
}

// params counts what a block of the input takes.
func (w *rewriter) params(c int64) int {
	if c < 0 {
		return 0
	}
	return len(w.m.Types[c].Params)
}

func (w *rewriter) bodies() {
	codes := w.out.Codes
	if w.o.Trace {
		w.trace = make([][]Step, len(w.fns))
	}
	each(len(w.fns), w.o.Workers,
		func() *emitter { return &emitter{w: w} },
		func(e *emitter, i int) {
			codes[i] = e.function(w.fns[i], &w.m.Codes[i])
			if w.trace != nil {
				w.trace[i] = append([]Step(nil), e.trace...)
			}
		})
}

func (w *rewriter) stats() Stats {
	s := Stats{Functions: len(w.fns)}
	for _, f := range w.fns {
		if f.tested {
			s.Tested++
		}
		if f.entry > 0 {
			s.EntryCharges++
		}
		s.LargestCharge = max(s.LargestCharge, f.entry)
		for i := range f.nodes {
			n := &f.nodes[i]
			s.LargestCharge = max(s.LargestCharge, n.chg)
			switch {
			case n.loop:
				s.Loops++
				if n.test {
					s.TestedLoops++
				}
			case n.chg > 0 || n.test:
				s.Charges++
			}
		}
	}
	return s
}

func (w *rewriter) proof(p *prices) *Proof {
	pr := &Proof{Steps: w.trace, Main: w.o.Main}
	for _, f := range w.fns {
		pr.Prepaid = append(pr.Prepaid, f.q)
	}
	for _, c := range w.canon {
		pr.Indirect = append(pr.Indirect, p.typeQ[c])
	}
	return pr
}
