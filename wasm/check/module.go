package check

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"openskill/wasm/binary"
)

// Result is a module that passed, with what validation learned on the way.
type Result struct {
	Module *binary.Module
	// MaxStack is the largest number of operands that each function of Codes
	// holds at once.
	MaxStack []uint32
	Report   Report
}

// Module decodes and validates b. The error is an [*Error]. The report is
// filled as far as the check came, and also given with an error.
func Module(b []byte, opts *Options) (*Result, error) {
	o := opts.withDefaults()
	res := &Result{}
	res.Report.begin(b, o.Digest)
	m, err := binary.Decode(b, o.Limits)
	if err != nil {
		err = verdict(err)
		res.Report.end(err)
		return res, err
	}
	res.Module = m
	v := &validator{m: m, o: &o}
	res.Report.count(m, &o)
	err = v.module()
	if err == nil {
		err = v.functions()
	}
	res.MaxStack = v.maxStack
	res.Report.functions(v)
	res.Report.end(err)
	return res, err
}

// validator holds the index spaces of a module.
type validator struct {
	m        *binary.Module
	o        *Options
	funcs    []uint32 // type of every function, imports first
	tables   []binary.TableType
	globals  []binary.GlobalType
	tags     []uint32
	memories int
	nImpG    int // globals that are imported
	declared []uint64
	maxStack []uint32

	// counts for the report
	depth, targets, locals, body atomic.Uint32
	branches                     atomic.Uint64
	spare                        atomic.Int64 // types that may be moved beyond what each function may
	tail, except                 atomic.Bool

	bill bill
}

func (v *validator) module() error {
	m := v.m
	if err := v.references(); err != nil {
		return err
	}
	if err := v.imports(); err != nil {
		return err
	}
	for _, t := range m.Funcs {
		if int(t) >= len(m.Types) {
			return invalid(0, "unknown type %d of a function", t)
		}
	}
	v.funcs = append(v.funcs, m.Funcs...)
	v.tables = append(v.tables, m.Tables...)
	for _, t := range m.Tags {
		if err := v.tagType(t); err != nil {
			return err
		}
	}
	v.tags = append(v.tags, m.Tags...)
	v.memories += len(m.Memories)
	v.declared = make([]uint64, len(v.funcs)/64+1)
	if err := v.extents(); err != nil {
		return err
	}
	for i := range m.Globals {
		g := &m.Globals[i]
		if err := v.constExpr(g.Init, g.Type); err != nil {
			return err
		}
	}
	for i := range m.Globals {
		v.globals = append(v.globals, m.Globals[i].GlobalType)
	}
	if err := v.exports(); err != nil {
		return err
	}
	if m.Start != nil {
		if int(*m.Start) >= len(v.funcs) {
			return invalid(0, "unknown function %d as start function", *m.Start)
		}
		if t := m.Types[v.funcs[*m.Start]]; len(t.Params)+len(t.Results) > 0 {
			return invalid(0, "start function must take and give nothing")
		}
	}
	return v.segments()
}

// references finds exnref outside of code: a module may use it in types or
// globals alone.
func (v *validator) references() error {
	m := v.m
	found := false
	for i := range m.Types {
		found = found || slices.Contains(m.Types[i].Params, binary.ExnRef) || slices.Contains(m.Types[i].Results, binary.ExnRef)
	}
	for i := range m.Globals {
		found = found || m.Globals[i].Type == binary.ExnRef
	}
	for i := range m.Tables {
		found = found || m.Tables[i].Elem == binary.ExnRef
	}
	for i := range m.Elems {
		found = found || m.Elems[i].Type == binary.ExnRef
	}
	for i := range m.Imports {
		im := &m.Imports[i]
		found = found || im.Kind == binary.ExternGlobal && im.Global.Type == binary.ExnRef || im.Kind == binary.ExternTable && im.Table.Elem == binary.ExnRef
	}
	if found {
		v.except.Store(true)
		if !v.o.Exceptions {
			return disabled(0, binary.FeatureExceptions, "exnref")
		}
	}
	return nil
}

func (v *validator) declare(f uint32) { v.declared[f/64] |= 1 << (f % 64) }

func (v *validator) isDeclared(f uint32) bool { return v.declared[f/64]&(1<<(f%64)) != 0 }

func (v *validator) tagType(t uint32) error {
	if !v.o.Exceptions {
		return disabled(0, binary.FeatureExceptions, "a tag")
	}
	if int(t) >= len(v.m.Types) {
		return invalid(0, "unknown type %d of a tag", t)
	}
	if len(v.m.Types[t].Results) > 0 {
		return invalid(0, "non-empty tag result type")
	}
	return nil
}

func (v *validator) imports() error {
	m := v.m
	for i := range m.Imports {
		im := &m.Imports[i]
		switch im.Kind {
		case binary.ExternFunc:
			if int(im.Type) >= len(m.Types) {
				return invalid(0, "unknown type %d of an imported function", im.Type)
			}
			v.funcs = append(v.funcs, im.Type)
		case binary.ExternTable:
			v.tables = append(v.tables, im.Table)
		case binary.ExternMemory:
			v.memories++
		case binary.ExternGlobal:
			v.globals = append(v.globals, im.Global)
			v.nImpG++
		case binary.ExternTag:
			if err := v.tagType(im.Type); err != nil {
				return err
			}
			v.tags = append(v.tags, im.Type)
		}
		if v.o.AnyImport {
			continue
		}
		if im.Kind != binary.ExternFunc {
			return refuse(ImportDenied, 0, "the import %s is a %s; only functions can be imported", importName(im), im.Kind)
		}
		if v.o.Imports == nil {
			return refuse(ImportDenied, 0, "the import %s does not exist here", importName(im))
		}
		want, ok := v.o.Imports(im.Module, im.Name)
		if !ok {
			return refuse(ImportDenied, 0, "the import %s does not exist here; a module may import wasi_snapshot_preview1, and http_request and http_read of openskill_v1", importName(im))
		}
		if got := m.Types[im.Type]; !got.Equal(want) {
			return refuse(ImportDenied, 0, "the import %s has the type %v, and here it is %v", importName(im), got, want)
		}
	}
	return nil
}

// importName gives module.name of an import, cleaned for a message.
func importName(im *binary.Import) string { return cleanName(im.Module) + "." + cleanName(im.Name) }

func cleanName(s string) string {
	const most = 64
	var b strings.Builder
	for _, r := range s {
		if b.Len() > most {
			return b.String() + "…"
		}
		if r < 0x21 || r > 0x7e || r == utf8.RuneError {
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (v *validator) extents() error {
	var entries uint64
	for _, t := range v.tables {
		entries += uint64(t.Min)
		if t.HasMax && t.Max < t.Min {
			return invalid(0, "size minimum must not be greater than maximum (a table)")
		}
	}
	if entries > v.o.TableMin {
		return refuse(TableLimit, 0, "the tables begin with %d entries; at most %d are accepted", entries, v.o.TableMin)
	}
	mems := v.m.Memories
	for i := range v.m.Imports {
		if v.m.Imports[i].Kind == binary.ExternMemory {
			mems = append(mems[:len(mems):len(mems)], v.m.Imports[i].Memory)
		}
	}
	for _, e := range mems {
		if e.Min > 65536 || e.HasMax && e.Max > 65536 {
			return invalid(0, "memory size must be at most 65536 pages (4GiB)")
		}
		if e.HasMax && e.Max < e.Min {
			return invalid(0, "size minimum must not be greater than maximum (a memory)")
		}
		if uint64(e.Min) > v.o.MemoryPages {
			return refuse(MemoryLimit, 0, "the memory begins with %d pages of 64 KiB; at most %d are accepted", e.Min, v.o.MemoryPages)
		}
	}
	if v.memories > 1 {
		return disabled(0, binary.FeatureMultiMemory, "more than one memory")
	}
	return nil
}

func (v *validator) exports() error {
	seen := make(map[string]struct{}, len(v.m.Exports))
	for i := range v.m.Exports {
		e := &v.m.Exports[i]
		if _, dup := seen[e.Name]; dup {
			return invalid(0, "duplicate export name")
		}
		seen[e.Name] = struct{}{}
		if v.o.Reserved != "" && strings.HasPrefix(e.Name, v.o.Reserved) {
			return invalid(0, "an export's name begins with %s, which is reserved", v.o.Reserved)
		}
		n := 0
		switch e.Kind {
		case binary.ExternFunc:
			n = len(v.funcs)
		case binary.ExternTable:
			n = len(v.tables)
		case binary.ExternMemory:
			n = v.memories
		case binary.ExternGlobal:
			n = len(v.globals)
		case binary.ExternTag:
			n = len(v.tags)
		}
		if int(e.Index) >= n {
			return invalid(0, "unknown %s %d in an export", e.Kind, e.Index)
		}
		if e.Kind == binary.ExternFunc {
			v.declare(e.Index)
		}
	}
	return nil
}

func (v *validator) segments() error {
	for i := range v.m.Elems {
		s := &v.m.Elems[i]
		if s.Mode == binary.Active {
			if int(s.Table) >= len(v.tables) {
				return invalid(0, "unknown table %d in an element segment", s.Table)
			}
			if v.tables[s.Table].Elem != s.Type {
				return invalid(0, "type mismatch: element segment of %v for a table of %v", s.Type, v.tables[s.Table].Elem)
			}
			if err := v.constExpr(s.Offset, binary.I32); err != nil {
				return err
			}
		}
		for _, f := range s.Funcs {
			if int(f) >= len(v.funcs) {
				return invalid(0, "unknown function %d in an element segment", f)
			}
			v.declare(f)
		}
		for _, x := range s.Exprs {
			if err := v.constExpr(x, s.Type); err != nil {
				return err
			}
		}
	}
	for i := range v.m.Datas {
		s := &v.m.Datas[i]
		if s.Mode != binary.Active {
			continue
		}
		if int(s.Memory) >= v.memories {
			return invalid(0, "unknown memory %d in a data segment", s.Memory)
		}
		if err := v.constExpr(s.Offset, binary.I32); err != nil {
			return err
		}
	}
	return nil
}

// constExpr validates a constant expression: constants, references, immutable
// imported globals, and + - * on integers (extended constant expressions).
func (v *validator) constExpr(e binary.ConstExpr, want binary.ValType) error {
	r := binary.NewReader(e, 0)
	var in binary.Instr
	var stack []binary.ValType
	ended := false
	for r.Next(&in) {
		switch in.Op {
		case binary.OpI32Const, binary.OpI64Const, binary.OpF32Const, binary.OpF64Const, binary.OpV128Const:
			stack = append(stack, letters[in.Op.Signature()[1]])
		case binary.OpRefNull:
			stack = append(stack, binary.ValType(in.A))
		case binary.OpRefFunc:
			if int(in.A) >= len(v.funcs) {
				return invalid(0, "unknown function %d in a constant expression", in.A)
			}
			v.declare(in.A)
			stack = append(stack, binary.FuncRef)
		case binary.OpGlobalGet:
			if int(in.A) >= v.nImpG {
				return invalid(0, "unknown global %d in a constant expression: only imported ones may be read", in.A)
			}
			if v.globals[in.A].Mutable {
				return invalid(0, "constant expression required: global %d is mutable", in.A)
			}
			stack = append(stack, v.globals[in.A].Type)
		case binary.OpI32Add, binary.OpI32Sub, binary.OpI32Mul, binary.OpI64Add, binary.OpI64Sub, binary.OpI64Mul:
			t := letters[in.Op.Signature()[0]]
			n := len(stack)
			if n < 2 || stack[n-1] != t || stack[n-2] != t {
				return invalid(0, "type mismatch in a constant expression")
			}
			stack = stack[:n-1]
		case binary.OpEnd:
			ended = true
		default:
			return invalid(0, "constant expression required")
		}
	}
	if err := r.Err(); err != nil {
		return verdict(err)
	}
	if !ended || len(stack) != 1 || stack[0] != want {
		return invalid(0, "type mismatch in a constant expression")
	}
	return nil
}

// functions validates all bodies, a few at a time: 26 MB of CPython would take
// twice as long on one core.
func (v *validator) functions() error {
	n := len(v.m.Codes)
	v.spare.Store(workSpare)
	if err := v.beginBill(); err != nil {
		return err
	}
	v.maxStack = make([]uint32, n)
	workers := min(v.o.Workers, n/64+1)
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, n/chunk+1)
	var failed atomic.Bool
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f := newFuncValidator(v)
			for !failed.Load() {
				c := int(next.Add(1)) - 1
				if c*chunk >= n {
					return
				}
				for i := c * chunk; i < min((c+1)*chunk, n); i++ {
					if err := f.function(i); err != nil {
						errs[c] = err
						failed.Store(true)
						break
					}
				}
			}
		}()
	}
	wg.Wait()
	for _, err := range errs { // the first by place, so that the message does not depend on scheduling
		if err != nil {
			return err
		}
	}
	return v.payable()
}

// chunk is how many functions a worker takes at once.
const chunk = 32
