package passtest

import "openskill/wasm/binary"

// expr writes code that leaves one value of type t.
func (g *program) expr(t binary.ValType) {
	g.budget--
	if g.budget <= 0 || g.one(3) {
		g.atom(t)
		return
	}
	switch k := g.n(12); {
	case k < 6:
		g.operator(t)
	case k == 6 && len(g.labels) < 9:
		g.op(0x02)
		g.valBlock(t)
		g.push(target{types: []binary.ValType{t}, open: true})
		g.statements(g.n(3))
		g.expr(t)
		g.pop()
		g.op(0x0b)
	case k == 7 && len(g.labels) < 9:
		g.expr(i32)
		g.op(0x04)
		g.valBlock(t)
		g.push(target{types: []binary.ValType{t}, open: true})
		g.expr(t)
		g.op(0x05)
		g.statements(g.n(2))
		g.expr(t)
		g.pop()
		g.op(0x0b)
	case k == 8:
		g.expr(t)
		g.expr(t)
		g.expr(i32)
		g.op(0x1b)
	case k == 9:
		if d := g.pick([]binary.ValType{t}, false); d >= 0 {
			g.expr(t)
			g.expr(i32)
			g.opu(0x0d, d)
			return
		}
		g.atom(t)
	case k == 10:
		at := g.n(len(g.m.Funcs))
		for i := range g.m.Funcs {
			f := (i + at) % len(g.m.Funcs)
			ft := g.m.Types[g.m.Funcs[f]]
			if len(ft.Results) == 1 && ft.Results[0] == t {
				g.values(ft.Params)
				g.opu(0x10, f)
				return
			}
		}
		g.atom(t)
	case t == f32 || t == f64:
		g.atom(t) // none is loaded: a NaN's bits are the machine's choice
	default:
		g.address()
		op := map[binary.ValType]byte{i32: 0x28, i64: 0x29}[t]
		g.op(op, 0)
		g.out = binary.AppendU32(g.out, uint32(g.n(64))) // below 64
	}
}

func (g *program) operator(t binary.ValType) {
	switch t {
	case i32:
		switch g.n(5) {
		case 0:
			g.expr(i64)
			g.op(0xa7) // wrap
		case 1:
			g.expr(f64)
			g.op(0xfc, 2) // trunc_sat
		case 2:
			g.expr(i64)
			g.op(0x50)
		default:
			g.expr(i32)
			g.expr(i32)
			g.op([]byte{0x6a, 0x6b, 0x6c, 0x46, 0x49, 0x71, 0x73, 0x6d, 0x70}[g.n(9)]) // the last two may trap
		}
	case i64:
		if g.one(3) {
			g.expr(i32)
			g.op(0xad)
			return
		}
		g.expr(i64)
		g.expr(i64)
		g.op([]byte{0x7c, 0x7d, 0x7e, 0x83, 0x85, 0x89}[g.n(6)])
	case f64:
		if g.one(2) {
			g.expr(i64)
			g.op(0xb9)
			return
		}
		g.expr(f64)
		g.op(0x9c) // floor: bits of NaN are the same everywhere
	case f32:
		g.expr(i32)
		g.op(0xb2)
	}
}

func (g *program) atom(t binary.ValType) {
	if g.one(2) {
		g.opu(0x20, g.local(t))
		return
	}
	switch t {
	case i32:
		switch g.n(6) {
		case 0:
			g.op(0x3f, 0)
		case 1:
			g.op(0xfc, 16, 0)
		default:
			g.i32c(int64(g.n(256)) - 8)
		}
	case i64:
		g.out = binary.AppendS64(append(g.out, 0x42), int64(g.n(256))<<g.n(40))
	case f32:
		g.op(0x43, 0, 0, byte(g.n(256)), 0x40)
	default:
		g.op(0x44, 0, 0, 0, 0, 0, byte(g.n(256)), byte(g.n(256)), 0x40)
	}
}
