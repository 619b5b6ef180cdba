package lower_test

import (
	"openskill/wasm/binary"
)

// link puts what a module imports from others into the module itself: the
// scripts throw between modules, which lowered modules cannot. It serves what
// the scripts need: imported tags, and functions that do nothing but throw.
func link(m *binary.Module, from map[string]*binary.Module) *binary.Module {
	out := *m
	out.Imports, out.Tags, out.Funcs, out.Codes = nil, nil, nil, nil
	out.Types = append([]binary.FuncType(nil), m.Types...)
	type origin struct {
		module string
		index  uint32
	}
	merged := map[origin]uint32{}
	foreign := func(module string, i uint32) uint32 {
		at, ok := merged[origin{module, i}]
		if !ok {
			p := from[module]
			out.Types = append(out.Types, p.Types[p.Tags[i]])
			out.Tags = append(out.Tags, uint32(len(out.Types)-1))
			at = uint32(len(out.Tags) - 1)
			merged[origin{module, i}] = at
		}
		return at
	}
	var tags []uint32
	for _, im := range m.Imports {
		p := from[im.Module]
		if p == nil {
			out.Imports = append(out.Imports, im)
			continue
		}
		for _, e := range p.Exports {
			if e.Name != im.Name || e.Kind != im.Kind {
				continue
			}
			switch im.Kind {
			case binary.ExternTag:
				tags = append(tags, foreign(im.Module, e.Index))
			case binary.ExternFunc:
				out.Funcs = append(out.Funcs, im.Type)
				code := p.Codes[e.Index]
				code.Body = renumber(code.Body, func(t uint32) uint32 { return foreign(im.Module, t) })
				out.Codes = append(out.Codes, code)
			default:
				panic("not in the scripts")
			}
		}
	}
	for _, t := range m.Tags {
		out.Tags = append(out.Tags, t)
		tags = append(tags, uint32(len(out.Tags)-1))
	}
	for i, c := range m.Codes {
		c.Body = renumber(c.Body, func(t uint32) uint32 { return tags[t] })
		out.Codes = append(out.Codes, c)
		out.Funcs = append(out.Funcs, m.Funcs[i])
	}
	return &out
}

// renumber gives a body with other tags.
func renumber(body []byte, tag func(uint32) uint32) []byte {
	var out []byte
	r := binary.NewReader(body, 0)
	for in := (binary.Instr{}); r.Next(&in); {
		switch in.Op {
		case binary.OpThrow:
			out = binary.AppendU32(append(out, byte(in.Op)), tag(in.A))
		case binary.OpTryTable:
			out = binary.AppendS64(append(out, byte(in.Op)), in.Const)
			out = binary.AppendU32(out, in.A)
			for _, c := range r.Catches(&in, nil) {
				out = append(out, c.Kind)
				if c.Kind < 2 {
					out = binary.AppendU32(out, tag(c.Tag))
				}
				out = binary.AppendU32(out, c.Label)
			}
		default:
			out = append(out, body[in.Pos:in.End]...)
		}
	}
	return out
}
