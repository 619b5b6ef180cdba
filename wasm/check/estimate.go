package check

import (
	"math"
	"sync/atomic"
	"time"

	"openskill/wasm/binary"
)

// branch counts an edge to a label for the estimate.
func (f *funcValidator) branch(n uint32, table bool) {
	if uint64(n) >= uint64(len(f.ctrls)) || f.cost.cur == dead {
		return
	}
	c := &f.ctrls[len(f.ctrls)-1-int(n)]
	f.cost.edge(c)
	f.cost.linear += priceBranch * int64(len(c.label()))
	c.flow.table = c.flow.table || table
}

// address tells the estimate whose value is the address of a load or store.
func (f *funcValidator) address() {
	at := 0
	if s := &sigs[f.in.Op]; s.n > 1 {
		at = 1 // the value to be stored stands between
	}
	i := dead
	if h := f.recent[at]; h.op == binary.OpLocalGet || h.op == binary.OpLocalTee {
		i = int32(h.local) // at most Limits.BodySize
	}
	if at == 1 && !f.recent[0].pushes {
		i = dead
	}
	f.cost.access(i, uint64(f.in.Const)+uint64(1)<<f.in.Op.MaxAlign()) // not negative
}

// recent is one of the last two instructions.
type recent struct {
	op     binary.Op
	local  uint32
	pushes bool // it takes nothing and gives one value
}

// bill adds up what compiling the functions costs.
type bill struct {
	mutable int          // globals that may change
	types   int          // of functions
	globals int          // all of them
	total   atomic.Int64 // nanoseconds of all functions so far
	slowest atomic.Int64 // nanoseconds of one
	kept    atomic.Int64 // bytes that stay when a function is done
	largest atomic.Int64 // bytes of one while it is compiled
}

// What does not depend on the code of a function.
const (
	perType     = 700 // for each value of a type, and two more: the code that enters it
	typeBytes   = 300
	perGlobal   = 8 // each function looks at all globals
	perTypeUse  = 15
	perLocal    = 15
	perParam    = 25 // more than another local
	localBytes  = 7
	funcBytes   = 300
	bodyFactor  = 8 // bytes of machine code, and of what leads to it, for a byte of a body
	mostCounted = 1 << 60
	hopeless    = 2 // times the cap, at which the rest is not looked at
)

// beginBill puts down what the module costs before any function is looked at, and
// refuses what would be too dear to look at.
func (v *validator) beginBill() error {
	b := &v.bill
	b.types, b.globals = len(v.m.Types), len(v.globals)
	for _, g := range v.globals {
		if g.Mutable {
			b.mutable++
		}
	}
	values := int64(0)
	for i := range v.m.Types {
		values += 2 + int64(len(v.m.Types[i].Params)+len(v.m.Types[i].Results))
	}
	b.total.Store(perType * values)
	b.kept.Store(typeBytes * values)
	locals := int64(0)
	for i := range v.m.Codes {
		for _, g := range v.m.Codes[i].Locals {
			locals += int64(g.Count)
		}
	}
	if n := v.o.CompileMemory / localBytes; locals > n {
		return refuse(ModuleTooComplex, 0, "the module is too complex: the %d locals of all functions would take about %d MiB to compile, at most %d MiB are accepted; build with optimization (-Os)",
			locals, locals*localBytes>>20, v.o.CompileMemory>>20)
	}
	return nil
}

// compiled adds the function i of Codes to the bill, and refuses it if it alone is
// too dear.
func (v *validator) compiled(i, locals, body int, c *cost) error {
	b := &v.bill
	more, bytes := c.end()
	ns := int64(min(more, mostCounted)) + int64(perGlobal*b.globals+perTypeUse*b.types+perLocal*locals+perParam*len(v.m.Types[v.m.Funcs[i]].Params))
	mem := int64(min(bytes, mostCounted))
	raiseTo(&b.slowest, ns)
	raiseTo(&b.largest, mem)
	index := uint32(len(v.funcs)-len(v.m.Codes)) + uint32(i) // below Limits.Functions and Imports
	switch {
	case ns > int64(v.o.CompileFunction):
		return refuse(ModuleTooComplex, v.m.Codes[i].Offset, "the module is too complex: function %d alone would take about %s to compile, at most %s are accepted; split it, or build without inlining (-Os)",
			index, seconds(ns), seconds(int64(v.o.CompileFunction)))
	case mem > v.o.CompileMemory:
		return refuse(ModuleTooComplex, v.m.Codes[i].Offset, "the module is too complex: function %d alone would take about %d MiB to compile, at most %d MiB are accepted; split it, or build without inlining (-Os)",
			index, mem>>20, v.o.CompileMemory>>20)
	}
	if sum := b.total.Add(ns); sum > hopeless*int64(v.o.CompileModule) {
		return refuse(ModuleTooComplex, 0, "the module is too complex: all functions together would take more than %s to compile, at most %s are accepted; leave out code that is not used, or build for size (-Os)",
			seconds(hopeless*int64(v.o.CompileModule)), seconds(int64(v.o.CompileModule)))
	}
	b.kept.Add(funcBytes + bodyFactor*int64(body) + localBytes*int64(locals))
	return nil
}

// payable refuses a module whose functions are too dear together.
func (v *validator) payable() error {
	b := &v.bill
	if ns := b.total.Load(); ns > int64(v.o.CompileModule) {
		return refuse(ModuleTooComplex, 0, "the module is too complex: all functions together would take about %s to compile, at most %s are accepted; leave out code that is not used, or build for size (-Os)",
			seconds(ns), seconds(int64(v.o.CompileModule)))
	}
	if mem := b.kept.Load() + b.largest.Load(); mem > v.o.CompileMemory {
		return refuse(ModuleTooComplex, 0, "the module is too complex: it would take about %d MiB to compile, at most %d MiB are accepted; leave out code that is not used, or build for size (-Os)",
			mem>>20, v.o.CompileMemory>>20)
	}
	return nil
}

// seconds rounds for a message.
func seconds(ns int64) string { return time.Duration(ns).Round(100 * time.Millisecond).String() }

func raiseTo(a *atomic.Int64, n int64) {
	for {
		old := a.Load()
		if n <= old || a.CompareAndSwap(old, n) {
			return
		}
	}
}

// Affordable holds what compiling m would cost against the caps of opts, and
// nothing else. It is for a valid module that a pass has made of one that was
// accepted: passes put in blocks. The error is an [*Error].
func Affordable(m *binary.Module, opts *Options) error {
	o := opts.withDefaults()
	o.AnyImport, o.Reserved = true, ""
	o.Depth, o.Branches, o.BranchTargets = math.MaxInt32, math.MaxInt64, math.MaxUint32
	v := &validator{m: m, o: &o}
	if err := v.module(); err != nil {
		return err
	}
	return v.functions()
}
