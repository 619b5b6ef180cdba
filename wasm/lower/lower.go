package lower

import (
	"sync"
	"sync/atomic"

	"openskill/wasm/binary"
)

// Export names the mutable i32 that is not zero when an exported function was
// left by an exception: its results mean nothing then. Only lowered modules have
// it.
const Export = "openskill:exception"

// Options are settings; nil means the defaults.
type Options struct {
	// Workers is how many functions are rewritten at once; 0 means 2.
	Workers int
	// Growth is how many bytes may be added to the code; 0 means as many as it
	// has, and a million. C++ programs grow by a tenth.
	Growth int
}

// Stats says what was found and put in.
type Stats struct {
	Functions, Changed, MayThrow int // all, those with new bodies, those that an exception can leave
	Calls, Checked               int // in changed functions: calls, and calls with a check behind them
	Tries, Throws                int // reachable try_tables, throws and throw_refs
	Before, After                int // bytes of all bodies
}

// Lowered is a module without exceptions.
type Lowered struct {
	Module *binary.Module
	// MaxStack bounds how many operands each function holds at once, as
	// check.Result.MaxStack does.
	MaxStack []uint32
	Stats    Stats
}

type lowerer struct {
	m        *binary.Module
	o        Options
	nimp     uint32   // imported functions
	imports  []uint32 // their types
	canon    []uint32
	nCanon   int
	exnType  []bool // types that name exnref
	globals  []binary.ValType
	tables   []binary.ValType
	fns      []fn
	indirect []uint64 // by canonical type: tags that a call through a table may throw

	thrown, captured []atomic.Bool // by tag: named by a throw; by a clause that gives a reference
	capturedAll      atomic.Bool   // a catch_all_ref
	taken            []atomic.Bool // by defined function: may be called through a table
	called           []atomic.Bool // by type: named by a call through a table
	tried            []atomic.Bool // by type: block type of a try_table with clauses
	rethrown         uint64        // tags that a throw_ref can throw

	tags    []tag
	exn     reference
	plan    plan
	flight  [numClasses]int   // globals of each class
	extraOf map[uint32]uint32 // by global of exnref: the first of its further globals
	added   added

	room  atomic.Int64 // bytes that may still be added
	count struct {
		changed, calls, checked, tries, throws atomic.Int64
	}
}

// fn is what the passes know of one function.
type fn struct {
	throws  uint64 // tags with which it may be left
	rethrow uint64 // tags that no handler around its throw_refs catches
	edges   []edge
	touched bool // uses exceptions, or has an exnref
	isNull  bool // has a ref.is_null
}

// Exceptions lowers a module that package check has accepted with
// check.Options.Exceptions; maxStack is its Result.MaxStack. The input is not
// changed, and the result shares its data. An error is a *check.Error.
func Exceptions(m *binary.Module, maxStack []uint32, opts *Options) (*Lowered, error) {
	l := &lowerer{m: m, nimp: m.Imported(binary.ExternFunc)}
	if opts != nil {
		l.o = *opts
	}
	if l.o.Workers == 0 {
		l.o.Workers = 2
	}
	before := 0
	for i := range m.Codes {
		before += len(m.Codes[i].Body)
	}
	if l.o.Growth == 0 {
		l.o.Growth = before + 1_000_000
	}
	l.room.Store(int64(l.o.Growth))
	if err := l.refuse(); err != nil {
		return nil, err
	}
	l.canonical()
	l.scan()
	l.reach()
	if err := l.represent(); err != nil {
		return nil, err
	}
	out, err := l.frame()
	if err != nil {
		return nil, err
	}
	stack, err := l.bodies(out, maxStack)
	if err != nil {
		return nil, err
	}
	r := &Lowered{Module: out, MaxStack: stack, Stats: l.stats(out)}
	r.Stats.Before = before
	return r, nil
}

// refuse finds what cannot be lowered in any form.
func (l *lowerer) refuse() error {
	for i := range l.m.Imports {
		im := &l.m.Imports[i]
		switch {
		case im.Kind == binary.ExternTag:
			return unsupported("a tag is imported; exceptions cannot pass between modules")
		case im.Kind == binary.ExternTable && im.Table.Elem == binary.ExnRef,
			im.Kind == binary.ExternGlobal && im.Global.Type == binary.ExnRef,
			im.Kind == binary.ExternFunc && names(&l.m.Types[im.Type], binary.ExnRef):
			return unsupported("an exnref passes an import; exceptions cannot pass between modules")
		}
	}
	for i := range l.m.Tables {
		if l.m.Tables[i].Elem == binary.ExnRef {
			return unsupported("table %d holds exnref; keep references to exceptions in locals and globals", i)
		}
	}
	for i := range l.m.Elems {
		if l.m.Elems[i].Type == binary.ExnRef {
			return unsupported("element segment %d holds exnref", i)
		}
	}
	for i, t := range l.m.Tags {
		if names(&l.m.Types[t], binary.ExnRef) {
			return unsupported("tag %d carries an exnref; an exception may carry numbers, vectors, funcref and externref", i)
		}
	}
	return nil
}

func names(t *binary.FuncType, v binary.ValType) bool {
	for _, s := range [][]binary.ValType{t.Params, t.Results} {
		for _, p := range s {
			if p == v {
				return true
			}
		}
	}
	return false
}

// canonical numbers the types so that equal types have equal numbers, and notes
// which ones name exnref.
func (l *lowerer) canonical() {
	seen := make(map[string]uint32, len(l.m.Types))
	for i := range l.m.Types {
		t := &l.m.Types[i]
		k := t.Key()
		n, ok := seen[k]
		if !ok {
			n = uint32(len(seen)) // at most Limits.Types
			seen[k] = n
		}
		l.canon = append(l.canon, n)
		l.exnType = append(l.exnType, names(t, binary.ExnRef))
	}
	l.nCanon = len(seen)
	for i := range l.m.Imports {
		switch im := &l.m.Imports[i]; im.Kind {
		case binary.ExternFunc:
			l.imports = append(l.imports, im.Type)
		case binary.ExternGlobal:
			l.globals = append(l.globals, im.Global.Type)
		case binary.ExternTable:
			l.tables = append(l.tables, im.Table.Elem)
		case binary.ExternMemory, binary.ExternTag:
		}
	}
	for i := range l.m.Tables {
		l.tables = append(l.tables, l.m.Tables[i].Elem)
	}
	for i := range l.m.Globals {
		l.globals = append(l.globals, l.m.Globals[i].Type)
	}
}

// typeOf gives the index of a function's type.
func (l *lowerer) typeOf(f uint32) uint32 {
	if f < l.nimp {
		return l.imports[f]
	}
	return l.m.Funcs[f-l.nimp]
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

func (l *lowerer) bodies(out *binary.Module, maxStack []uint32) ([]uint32, error) {
	n := len(l.fns)
	stack := make([]uint32, n)
	errs := make([]error, n)
	var failed atomic.Bool
	each(n, l.o.Workers,
		func() *emitter { return newEmitter(l) },
		func(e *emitter, i int) {
			if i < len(maxStack) {
				stack[i] = maxStack[i]
			}
			if failed.Load() || !l.changes(i) {
				return
			}
			var more uint32
			out.Codes[i], more, errs[i] = e.function(i)
			if errs[i] != nil {
				failed.Store(true)
			}
			if l.fns[i].touched {
				stack[i] *= uint32(len(l.exn.types)) // at most maxValues
			}
			stack[i] += more
		})
	for _, err := range errs { // what is refused does not depend on scheduling, but for which function is named
		if err != nil {
			return nil, err
		}
	}
	return stack, nil
}

func (l *lowerer) stats(out *binary.Module) Stats {
	s := Stats{
		Functions: len(l.fns), Changed: int(l.count.changed.Load()), Calls: int(l.count.calls.Load()),
		Checked: int(l.count.checked.Load()), Tries: int(l.count.tries.Load()), Throws: int(l.count.throws.Load()),
	}
	for i := range l.fns {
		if l.fns[i].throws != 0 {
			s.MayThrow++
		}
		s.After += len(out.Codes[i].Body)
	}
	return s
}
