package runtimes

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"openskill/wasm/binary"
)

// deriving says what is made of a module. The zero value changes nothing but that
// custom sections and what cannot be reached go.
type deriving struct {
	// exports that stay; nil means all.
	exports []string
	// answers are imports that become functions of the module itself: module.name
	// to the i32 that they return.
	answers map[string]int32
	// cut is the functions between two names, these left out, in the order in which
	// the linker laid them out. What still calls one traps.
	cut [][2]string
	// silenced are functions, by name, that do nothing any more and return zero.
	silenced []string
	// data is the initial data that goes with what is cut.
	data blanking
}

// constructors is the linker's function that calls all static constructors.
const constructors = "__wasm_call_ctors"

// derive makes the module that is run of the one that was fetched: without the
// functions that were cut, their constructors and their data, with answers in the place of
// imports, without the functions that nothing can reach any more, and without
// custom sections. The same input gives the same output. The module must be valid,
// which its pinned hash vouches for: indices are not checked again.
func derive(module []byte, d *deriving) ([]byte, error) {
	m, err := binary.Decode(module, &binary.Limits{Size: maxModule})
	if err != nil {
		return nil, err
	}
	s := &surgeon{m: m, imported: m.Imported(binary.ExternFunc)}
	if s.names, err = functionNames(module); err != nil {
		return nil, err
	}
	s.cut = make([]bool, s.functions())
	for _, c := range d.cut {
		if err := s.markCut(c[0], c[1]); err != nil {
			return nil, err
		}
	}
	if err := s.blank(&d.data); err != nil {
		return nil, err
	}
	for _, name := range d.silenced {
		if err := s.silence(name); err != nil {
			return nil, err
		}
	}
	s.keepExports(d.exports)
	s.redirect = make(map[uint32]uint32)
	s.answer(d.answers)
	if err := s.redirectCut(); err != nil {
		return nil, err
	}
	if err := s.reach(); err != nil {
		return nil, err
	}
	if err := s.renumber(); err != nil {
		return nil, err
	}
	if err := s.dropTags(); err != nil {
		return nil, err
	}
	if err := s.dropTypes(); err != nil {
		return nil, err
	}
	m.Customs = nil
	return m.Encode(), nil
}

// surgeon holds a module while it is derived. Functions have the numbers of the
// module that came in; those that are added follow them.
type surgeon struct {
	m        *binary.Module
	imported uint32
	names    map[uint32]string
	cut      []bool
	redirect map[uint32]uint32 // whose calls go to another function
	dropped  []bool            // imports of functions that became functions
	reached  []bool
}

func (s *surgeon) functions() uint32 { return s.imported + uint32(len(s.m.Funcs)) } // at most 100,000

// typeOf is the index of a function's type.
func (s *surgeon) typeOf(f uint32) uint32 {
	if f >= s.imported {
		return s.m.Funcs[f-s.imported]
	}
	for i := range s.m.Imports {
		if im := &s.m.Imports[i]; im.Kind == binary.ExternFunc {
			if f == 0 {
				return im.Type
			}
			f--
		}
	}
	return 0 // Decode has counted the imports
}

// add appends a function and gives its number.
func (s *surgeon) add(typ uint32, body []byte) uint32 {
	s.m.Funcs = append(s.m.Funcs, typ)
	s.m.Codes = append(s.m.Codes, binary.Code{Body: body})
	return s.functions() - 1
}

// named finds the one function of a name that the module defines.
func (s *surgeon) named(name string) (uint32, error) {
	found, ok := uint32(0), false
	for f, n := range s.names {
		if n == name {
			if ok {
				return 0, fmt.Errorf("two functions are named %q", name)
			}
			found, ok = f, true
		}
	}
	if !ok || found < s.imported || found >= s.functions() {
		return 0, fmt.Errorf("no function is named %q", name)
	}
	return found, nil
}

func (s *surgeon) markCut(before, behind string) error {
	from, err := s.named(before)
	if err != nil {
		return err
	}
	to, err := s.named(behind)
	if err != nil {
		return err
	}
	if to <= from {
		return fmt.Errorf("%q does not come before %q", before, behind)
	}
	for f := from + 1; f < to; f++ {
		s.cut[f] = true
	}
	return nil
}

// silence empties a function.
func (s *surgeon) silence(name string) error {
	f, err := s.named(name)
	if err != nil {
		return err
	}
	var body []byte
	for _, t := range s.m.Types[s.typeOf(f)].Results {
		if t != binary.I32 {
			return fmt.Errorf("%q returns a %v", name, t)
		}
		body = append(body, byte(binary.OpI32Const), 0)
	}
	s.m.Codes[f-s.imported] = binary.Code{Body: append(body, byte(binary.OpEnd))}
	return nil
}

func (s *surgeon) keepExports(names []string) {
	if names == nil {
		return
	}
	var kept []binary.Export
	for _, name := range names {
		for _, x := range s.m.Exports {
			if x.Name == name {
				kept = append(kept, x)
			}
		}
	}
	s.m.Exports = kept
}

// answer puts functions of the module's own in the place of imports.
func (s *surgeon) answer(answers map[string]int32) {
	s.dropped = make([]bool, s.imported)
	f := uint32(0)
	for i := range s.m.Imports {
		im := &s.m.Imports[i]
		if im.Kind != binary.ExternFunc {
			continue
		}
		if v, ok := answers[im.Module+"."+im.Name]; ok {
			body := binary.AppendS64([]byte{byte(binary.OpI32Const)}, int64(v))
			s.redirect[f] = s.add(im.Type, append(body, byte(binary.OpEnd)))
			s.dropped[f] = true
		}
		f++
	}
}

// redirectCut sends the calls of functions that were cut to a function of the same
// type that traps, one for each type, and takes the calls of their constructors out.
func (s *surgeon) redirectCut() error {
	traps := make(map[uint32]uint32)
	for i, cut := range s.cut {
		if !cut {
			continue
		}
		f := uint32(i) // at most 100,000
		t := s.typeOf(f)
		if _, ok := traps[t]; !ok {
			traps[t] = s.add(t, []byte{byte(binary.OpUnreachable), byte(binary.OpEnd)})
		}
		s.redirect[f] = traps[t]
	}
	if len(traps) == 0 {
		return nil
	}
	f, err := s.named(constructors)
	if err != nil {
		return err
	}
	c := &s.m.Codes[f-s.imported]
	body, err := rewriteCalls(c, func(callee uint32) (uint32, bool) {
		return callee, callee >= uint32(len(s.cut)) || !s.cut[callee] // at most 100,000
	})
	if err != nil {
		return err
	}
	c.Body = body
	return nil
}

// to is where a call of f goes.
func (s *surgeon) to(f uint32) uint32 {
	if other, ok := s.redirect[f]; ok {
		return other
	}
	return f
}

// reach marks every function that the exports, the start function, the tables and
// the global variables lead to.
func (s *surgeon) reach() error {
	s.reached = make([]bool, s.functions())
	var work []uint32
	mark := func(f uint32) {
		if f = s.to(f); int(f) < len(s.reached) && !s.reached[f] {
			s.reached[f] = true
			work = append(work, f)
		}
	}
	for i := range s.m.Exports {
		if x := &s.m.Exports[i]; x.Kind == binary.ExternFunc {
			mark(x.Index)
		}
	}
	if s.m.Start != nil {
		mark(*s.m.Start)
	}
	if err := s.eachConstant(func(f uint32) uint32 { mark(f); return f }); err != nil {
		return err
	}
	for len(work) > 0 {
		f := work[len(work)-1]
		work = work[:len(work)-1]
		if f < s.imported {
			continue
		}
		c := &s.m.Codes[f-s.imported]
		r := binary.NewReader(c.Body, c.Offset)
		for in := (binary.Instr{}); r.Next(&in); {
			if namesFunction(in.Op) {
				mark(in.A)
			}
		}
		if err := r.Err(); err != nil {
			return err
		}
	}
	return nil
}

func namesFunction(op binary.Op) bool {
	return op == binary.OpCall || op == binary.OpReturnCall || op == binary.OpRefFunc
}

// eachConstant replaces the functions that element segments and the initial values
// of globals name.
func (s *surgeon) eachConstant(replace func(uint32) uint32) error {
	constant := func(e *binary.ConstExpr) error {
		body, err := rewriteCalls(&binary.Code{Body: *e}, func(f uint32) (uint32, bool) { return replace(f), true })
		*e = body
		return err
	}
	for i := range s.m.Elems {
		e := &s.m.Elems[i]
		for k, f := range e.Funcs {
			e.Funcs[k] = replace(f)
		}
		for k := range e.Exprs {
			if err := constant(&e.Exprs[k]); err != nil {
				return err
			}
		}
	}
	for i := range s.m.Globals {
		if err := constant(&s.m.Globals[i].Init); err != nil {
			return err
		}
	}
	return nil
}

// renumber takes out what was not reached and gives every function its new number.
func (s *surgeon) renumber() error {
	number := make([]uint32, s.functions())
	next := uint32(0)
	var imports []binary.Import
	f := uint32(0)
	for _, im := range s.m.Imports {
		if im.Kind == binary.ExternFunc {
			// Imports stay even where nothing calls them: which there are is the
			// module's agreement with the host.
			if f++; s.dropped[f-1] {
				continue
			}
			number[f-1] = next
			next++
		}
		imports = append(imports, im)
	}
	var funcs []uint32
	var codes []binary.Code
	for i := range s.m.Funcs {
		if at := s.imported + uint32(i); s.reached[at] { // at most 100,000
			number[at] = next
			next++
			funcs, codes = append(funcs, s.m.Funcs[i]), append(codes, s.m.Codes[i])
		}
	}
	final := func(f uint32) uint32 { return number[s.to(f)] }
	for i := range codes {
		body, err := rewriteCalls(&codes[i], func(f uint32) (uint32, bool) { return final(f), true })
		if err != nil {
			return err
		}
		codes[i].Body = body
	}
	if err := s.eachConstant(final); err != nil {
		return err
	}
	for i := range s.m.Exports {
		if x := &s.m.Exports[i]; x.Kind == binary.ExternFunc {
			x.Index = final(x.Index)
		}
	}
	if s.m.Start != nil {
		start := final(*s.m.Start)
		s.m.Start = &start
	}
	s.m.Imports, s.m.Funcs, s.m.Codes = imports, funcs, codes
	return nil
}

// dropTags takes the tags of exceptions out of a module in which nothing throws or
// catches any more: it needs no exceptions then.
func (s *surgeon) dropTags() error {
	for i := range s.m.Imports {
		if s.m.Imports[i].Kind == binary.ExternTag {
			return nil
		}
	}
	for i := range s.m.Exports {
		if s.m.Exports[i].Kind == binary.ExternTag {
			return nil
		}
	}
	for i := range s.m.Codes {
		c := &s.m.Codes[i]
		r := binary.NewReader(c.Body, c.Offset)
		for in := (binary.Instr{}); r.Next(&in); {
			if in.Op == binary.OpThrow || in.Op == binary.OpThrowRef || in.Op == binary.OpTryTable {
				return nil
			}
		}
		if err := r.Err(); err != nil {
			return err
		}
	}
	s.m.Tags = nil
	return nil
}

// dropTypes makes types that nothing uses empty ones, in their places: one with a
// reference to an exception would ask for a feature that nothing needs.
func (s *surgeon) dropTypes() error {
	used := make([]bool, len(s.m.Types))
	mark := func(t uint32) {
		if int(t) < len(used) {
			used[t] = true
		}
	}
	for i := range s.m.Imports {
		if k := s.m.Imports[i].Kind; k == binary.ExternFunc || k == binary.ExternTag {
			mark(s.m.Imports[i].Type)
		}
	}
	for _, t := range append(s.m.Tags[:len(s.m.Tags):len(s.m.Tags)], s.m.Funcs...) {
		mark(t)
	}
	for i := range s.m.Codes {
		c := &s.m.Codes[i]
		r := binary.NewReader(c.Body, c.Offset)
		for in := (binary.Instr{}); r.Next(&in); {
			switch imm := in.Op.Imm(); {
			case in.Op == binary.OpCallIndirect || in.Op == binary.OpReturnCallI:
				mark(in.A)
			case (imm == binary.ImmBlock || imm == binary.ImmTryTable) && in.Const >= 0:
				mark(uint32(in.Const))
			}
		}
		if err := r.Err(); err != nil {
			return err
		}
	}
	for i := range s.m.Types {
		if !used[i] {
			s.m.Types[i] = binary.FuncType{}
		}
	}
	return nil
}

// rewriteCalls gives the body with other functions in the place of those that it
// names, and without the calls for which to says so: those must neither take nor
// give values.
func rewriteCalls(c *binary.Code, to func(uint32) (f uint32, keep bool)) ([]byte, error) {
	out := make([]byte, 0, len(c.Body))
	done := 0
	r := binary.NewReader(c.Body, c.Offset)
	for in := (binary.Instr{}); r.Next(&in); {
		if !namesFunction(in.Op) {
			continue
		}
		out = append(out, c.Body[done:in.Pos]...)
		done = in.End
		if f, keep := to(in.A); keep {
			out = binary.AppendU32(append(out, byte(in.Op)), f)
		}
	}
	return append(out, c.Body[done:]...), r.Err()
}

var errNames = errors.New("the name section is malformed")

// functionNames reads the names of functions from the name section of a module, as
// https://webassembly.github.io/spec/core/appendix/custom.html#name-section has it.
func functionNames(module []byte) (map[uint32]string, error) {
	names := make(map[uint32]string)
	r := bytes.NewReader(module)
	r.Seek(8, io.SeekStart) //nolint:errcheck // Decode has read the header
	for r.Len() > 0 {
		id, _ := r.ReadByte()
		section, err := sized(r)
		if err != nil {
			return nil, err
		}
		if id != 0 {
			continue
		}
		c := bytes.NewReader(section)
		if name, err := sized(c); err != nil || string(name) != "name" {
			continue
		}
		if err := readNames(c, names); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// readNames takes the names of functions out of a name section.
func readNames(r *bytes.Reader, names map[uint32]string) error {
	for r.Len() > 0 {
		id, _ := r.ReadByte()
		part, err := sized(r)
		if err != nil {
			return err
		}
		if id != 1 { // the names of functions
			continue
		}
		p := bytes.NewReader(part)
		count, err := leb(p)
		if err != nil {
			return err
		}
		for ; count > 0; count-- {
			f, err := leb(p)
			if err != nil {
				return err
			}
			name, err := sized(p)
			if err != nil {
				return err
			}
			names[f] = string(name)
		}
	}
	return nil
}

func leb(r *bytes.Reader) (v uint32, err error) {
	for shift := 0; shift < 35; shift += 7 {
		c, err := r.ReadByte()
		if err != nil {
			return 0, errNames
		}
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v, nil
		}
	}
	return 0, errNames
}

func sized(r *bytes.Reader) ([]byte, error) {
	n, err := leb(r)
	if err != nil || int64(n) > int64(r.Len()) {
		return nil, errNames
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}

// maxModule is the size in bytes up to which a module is derived.
const maxModule = 128 << 20
