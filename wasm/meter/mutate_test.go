package meter_test

import (
	"errors"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/binary"
	"openskill/wasm/meter"
	"openskill/wasm/meter/metertest"
	"openskill/wasm/passtest"
)

// damaged is a metered module whose proof was damaged in one place.
type damage struct {
	name string
	// site damages the body at the instruction at (one of all that the output
	// has), and reports whether there was something to damage.
	site func(d *damaged, at int) bool
	// tight says that every such damage breaks a rule. A charge lowered by one
	// need not: where arms meet, more may be paid than is used.
	tight bool
}

type damaged struct {
	rw    *meter.Rewritten
	fn    int
	ins   []binary.Instr
	body  []byte
	fuel  uint32
	first uint32 // helper
}

// is reports whether the instructions from at on are these.
func (d *damaged) is(at int, ops ...binary.Op) bool {
	if at+len(ops) > len(d.ins) {
		return false
	}
	for i, o := range ops {
		if d.ins[at+i].Op != o {
			return false
		}
	}
	return true
}

// charges reports whether a charge begins at.
func (d *damaged) charges(at int) bool {
	return d.is(at, binary.OpGlobalGet, binary.OpI64Const, binary.OpI64Sub) && d.ins[at].A == d.fuel
}

// cut replaces the instructions [from, to) of the body by bytes, and moves what
// the proof says of those behind them.
func (d *damaged) cut(from, to int, with ...byte) {
	a, b := d.ins[from].Pos, len(d.body)
	if to < len(d.ins) {
		b = d.ins[to].Pos
	}
	by := len(with) - (b - a)
	out := append(append(append([]byte(nil), d.body[:a]...), with...), d.body[b:]...)
	d.rw.Module.Codes[d.fn].Body = out
	var steps []meter.Step
	for _, s := range d.rw.Proof.Steps[d.fn] {
		switch {
		case s.Out < a || s.Out == a && to == from+1 && len(with) > 0: // an instruction that is changed keeps its claim
			steps = append(steps, s)
		case s.Out >= b:
			steps = append(steps, meter.Step{Out: s.Out + by, In: s.In})
		}
	}
	d.rw.Proof.Steps[d.fn] = steps
}

func amount(c int64) []byte { return binary.AppendS64([]byte{0x42}, c) }

var damages = []damage{
	{"a charge is lowered by one", func(d *damaged, at int) bool {
		if !d.charges(at) || d.ins[at+1].Const < 2 {
			return false
		}
		d.cut(at+1, at+2, amount(d.ins[at+1].Const-1)...)
		return true
	}, false},
	{"a charge is left out", func(d *damaged, at int) bool {
		if !d.charges(at) || !d.is(at+3, binary.OpGlobalSet) || d.ins[at+1].Const < 2 {
			return false
		}
		d.cut(at, at+4)
		return true
	}, false},
	{"a charge gives fuel", func(d *damaged, at int) bool {
		if !d.charges(at) {
			return false
		}
		d.cut(at+1, at+2, amount(-5)...)
		return true
	}, true},
	{"a charge does not store", func(d *damaged, at int) bool {
		if !d.charges(at) || !d.is(at+3, binary.OpGlobalSet) {
			return false
		}
		d.cut(at+3, at+4, 0x1a, 0x01)
		return true
	}, true},
	{"a test is dropped", func(d *damaged, at int) bool {
		if !d.is(at, binary.OpLocalGet, binary.OpI64Const, binary.OpI64LtS, binary.OpIf, binary.OpI64Const, binary.OpCall, binary.OpEnd) || d.ins[at+5].A != d.first {
			return false
		}
		d.cut(at, at+7)
		return true
	}, true},
	{"a test that fails asks for less", func(d *damaged, at int) bool {
		if !d.is(at, binary.OpIf, binary.OpI64Const, binary.OpCall, binary.OpEnd) || d.ins[at+2].A != d.first {
			return false
		}
		d.cut(at+1, at+2, amount(-1<<60)...)
		return true
	}, true},
	{"a test asks for nothing", func(d *damaged, at int) bool {
		if !d.is(at, binary.OpI64Const, binary.OpI64LtS) || !d.is(at-1, binary.OpLocalTee) {
			return false
		}
		d.cut(at, at+1, amount(-1<<60)...)
		return true
	}, true},
	{"the slow path asks for less", func(d *damaged, at int) bool {
		if !d.is(at, binary.OpI64Const, binary.OpCall, binary.OpBr) || d.ins[at+1].A != d.first {
			return false
		}
		d.cut(at, at+1, amount(0)...)
		return true
	}, true},
	{"a loop head is removed", func(d *damaged, at int) bool {
		if !d.is(at, binary.OpBlock, binary.OpGlobalGet, binary.OpI64Const, binary.OpI64Sub, binary.OpLocalTee, binary.OpI64Const, binary.OpI64LtS, binary.OpBrIf) {
			return false
		}
		d.cut(at+1, at+10)
		return true
	}, true},
	{"a loop head charges without its test", func(d *damaged, at int) bool {
		if !d.is(at, binary.OpBlock, binary.OpGlobalGet, binary.OpI64Const, binary.OpI64Sub, binary.OpLocalTee, binary.OpI64Const, binary.OpI64LtS, binary.OpBrIf) {
			return false
		}
		d.cut(at+5, at+8)
		return true
	}, true},
	{"a length is not charged", func(d *damaged, at int) bool {
		if !d.is(at, binary.OpLocalTee, binary.OpGlobalGet, binary.OpLocalGet, 0xad, binary.OpI64Const, 0x88) {
			return false
		}
		end := at + 7
		for d.ins[end].Op != binary.OpEnd {
			end++
		}
		d.cut(at, end+1)
		return true
	}, true},
	{"a length is charged at a thousandth", func(d *damaged, at int) bool {
		if !d.is(at, 0xad, binary.OpI64Const, 0x88) {
			return false
		}
		d.cut(at+1, at+2, amount(13)...)
		return true
	}, true},
	{"a helper is not called", func(d *damaged, at int) bool {
		if !d.is(at, binary.OpCall) || d.ins[at].A < d.first+1 {
			return false
		}
		d.cut(at, at+1)
		return true
	}, true},
	{"another helper is called", func(d *damaged, at int) bool {
		if !d.is(at, binary.OpCall) || d.ins[at].A < d.first+1 {
			return false
		}
		other := d.first + 1
		if d.ins[at].A == other {
			other++
		}
		d.cut(at, at+1, binary.AppendU32([]byte{0x10}, other)...)
		return true
	}, true},
	{"a branch goes elsewhere", func(d *damaged, at int) bool {
		if !d.is(at, binary.OpBr) && !d.is(at, binary.OpBrIf) {
			return false
		}
		d.cut(at, at+1, binary.AppendU32([]byte{byte(d.ins[at].Op)}, d.ins[at].A+1)...)
		return true
	}, true},
	{"a branch of a table goes elsewhere", func(d *damaged, at int) bool {
		if !d.is(at, binary.OpBrTable) {
			return false
		}
		b := append([]byte(nil), d.body[d.ins[at].Pos:d.ins[at].End]...)
		b[len(b)-1]++
		d.cut(at, at+1, b...)
		return true
	}, true},
	{"an instruction of the input is lost", func(d *damaged, at int) bool {
		for _, s := range d.rw.Proof.Steps[d.fn] {
			if s.Out == d.ins[at].Pos {
				d.cut(at, at+1)
				return true
			}
		}
		return false
	}, true},
	{"an instruction is put in", func(d *damaged, at int) bool {
		d.cut(at, at, 0x01)
		return true
	}, true},
	{"the input's code reads the fuel", func(d *damaged, at int) bool {
		if d.is(at, binary.OpGlobalGet) && d.ins[at].A != d.fuel {
			d.cut(at, at+1, binary.AppendU32([]byte{0x23}, d.fuel)...)
			return true
		}
		return false
	}, true},
	{"the input's code sets the fuel", func(d *damaged, at int) bool {
		if d.is(at, binary.OpGlobalSet) && d.ins[at].A != d.fuel {
			d.cut(at, at+1, binary.AppendU32([]byte{0x24}, d.fuel)...)
			return true
		}
		return false
	}, true},
	{"another function is called", func(d *damaged, at int) bool {
		if !d.is(at, binary.OpCall) {
			return false
		}
		d.cut(at, at+1, binary.AppendU32([]byte{0x10}, d.ins[at].A-1)...)
		return true
	}, true},
}

// TestVerifyCatchesDamage damages what the rewriter wrote, one instruction at a
// time, and expects every damage that breaks a rule to be named.
func TestVerifyCatchesDamage(t *testing.T) {
	t.Parallel()
	type count struct{ done, caught int }
	counts := make([]count, len(damages))
	for seed := range byte(12) {
		res, rw := traced(t, passtest.Program([]byte{seed, 7 * seed, 201, 9, 77, 5 * seed}), anything)
		musttest.Do(t, metertest.Verify(res.Module, rw))
		for fn := range res.Module.Codes {
			body := rw.Module.Codes[fn].Body
			steps := rw.Proof.Steps[fn]
			d := &damaged{rw: rw, fn: fn, body: body, ins: read(body), fuel: uint32(len(res.Module.Globals)), first: uint32(len(res.Module.Codes)) + 1}
			for i := range damages {
				for at := range d.ins {
					if counts[i].done > 400 || !damages[i].site(d, at) {
						continue
					}
					counts[i].done++
					err := metertest.Verify(res.Module, rw)
					var v *metertest.Violation
					switch {
					case errors.As(err, &v):
						counts[i].caught++
					case damages[i].tight:
						t.Errorf("%s: function %d, byte %d: not noticed", damages[i].name, fn, d.ins[at].Pos)
					}
					rw.Module.Codes[fn].Body, rw.Proof.Steps[fn] = body, steps
				}
			}
		}
	}
	for i, c := range counts {
		t.Logf("%s: %d of %d", damages[i].name, c.caught, c.done)
		if c.caught == 0 {
			t.Errorf("%s: no damage was caught (%d were done)", damages[i].name, c.done)
		}
	}
}

func read(body []byte) []binary.Instr {
	var list []binary.Instr
	r := binary.NewReader(body, 0)
	for in := (binary.Instr{}); r.Next(&in); {
		list = append(list, in)
	}
	return list
}

// TestVerifyCatchesFalseClaims damages what stands around the code, and the
// claims of the proof.
func TestVerifyCatchesFalseClaims(t *testing.T) {
	t.Parallel()
	start := func(m *binary.Module) { z := uint32(0); m.Start = &z }
	cases := []struct {
		name string
		do   func(in *binary.Module, rw *meter.Rewritten) bool // false if there is nothing to damage
	}{
		{"no proof", func(_ *binary.Module, rw *meter.Rewritten) bool { rw.Proof = nil; return true }},
		{"a proof that is too short", func(_ *binary.Module, rw *meter.Rewritten) bool {
			rw.Proof.Steps = rw.Proof.Steps[1:]
			return true
		}},
		{"an exported function that is prepaid", func(_ *binary.Module, rw *meter.Rewritten) bool { rw.Proof.Prepaid[0] = 1; return true }},
		{"a function that claims more than callers pay", func(_ *binary.Module, rw *meter.Rewritten) bool {
			for i, q := range rw.Proof.Prepaid {
				if q > 0 {
					rw.Proof.Prepaid[i] = q + 1
					return true
				}
			}
			return false
		}},
		{"a function that claims less than it needs", func(_ *binary.Module, rw *meter.Rewritten) bool {
			for i, q := range rw.Proof.Prepaid {
				if q > 0 {
					rw.Proof.Prepaid[i] = 0
					return true
				}
			}
			return false
		}},
		{"claims that are swapped", func(_ *binary.Module, rw *meter.Rewritten) bool {
			p := rw.Proof.Prepaid
			for i := range p {
				if p[i] != p[0] {
					p[i], p[0] = p[0], p[i]
					return true
				}
			}
			return false
		}},
		{"a negative claim", func(in *binary.Module, rw *meter.Rewritten) bool {
			rw.Proof.Prepaid[len(in.Codes)-1] = -1
			return true
		}},
		{"a type that pays too little", func(in *binary.Module, rw *meter.Rewritten) bool {
			for t, q := range rw.Proof.Indirect {
				for f, ft := range in.Funcs {
					if q > 0 && int(ft) == t && rw.Proof.Prepaid[f] == q {
						rw.Proof.Indirect[t]--
						return true
					}
				}
			}
			return false
		}},
		{"a start function", func(_ *binary.Module, rw *meter.Rewritten) bool { start(rw.Module); return true }},
		{"fuel to begin with", func(_ *binary.Module, rw *meter.Rewritten) bool {
			g := rw.Module.Globals
			g[len(g)-1].Init = append(amount(1000), 0x0b)
			return true
		}},
		{"fuel that cannot be seen", func(_ *binary.Module, rw *meter.Rewritten) bool {
			rw.Module.Exports = rw.Module.Exports[:len(rw.Module.Exports)-1]
			return true
		}},
		{"fuel under a second name", func(_ *binary.Module, rw *meter.Rewritten) bool {
			e := rw.Module.Exports
			rw.Module.Exports = append(e, binary.Export{Name: "mine", Kind: binary.ExternGlobal, Index: e[len(e)-1].Index})
			return true
		}},
		{"another import", func(_ *binary.Module, rw *meter.Rewritten) bool {
			rw.Module.Imports[len(rw.Module.Imports)-1].Name = "free"
			return true
		}},
		{"a table that holds a helper", func(in *binary.Module, rw *meter.Rewritten) bool {
			rw.Module.Elems[0].Funcs[0] = uint32(len(in.Codes)) + 1
			return true
		}},
		{"a table without a maximum", func(in *binary.Module, rw *meter.Rewritten) bool {
			rw.Module.Tables[0].HasMax = false
			return in.Tables[0].HasMax
		}},
		{"a memory that is larger", func(_ *binary.Module, rw *meter.Rewritten) bool {
			rw.Module.Memories = []binary.Extent{{Min: 2}}
			return true
		}},
		{"other data", func(_ *binary.Module, rw *meter.Rewritten) bool {
			rw.Module.Datas = []binary.Data{{Mode: binary.Passive, Init: []byte("x")}}
			return true
		}},
		{"another global", func(_ *binary.Module, rw *meter.Rewritten) bool {
			rw.Module.Globals[0].Init = []byte{0x41, 1, 0x0b}
			return true
		}},
		{"a function of another type", func(in *binary.Module, rw *meter.Rewritten) bool {
			rw.Module.Funcs[0] = (in.Funcs[0] + 1) % 3
			return true
		}},
		{"a helper that does nothing", func(in *binary.Module, rw *meter.Rewritten) bool {
			rw.Module.Codes[len(in.Codes)].Body = []byte{0x0b}
			return true
		}},
		{"a helper too many", func(_ *binary.Module, rw *meter.Rewritten) bool {
			rw.Module.Funcs = append(rw.Module.Funcs, 0)
			rw.Module.Codes = append(rw.Module.Codes, binary.Code{Body: []byte{0x0b}})
			return true
		}},
		{"a local of another type", func(_ *binary.Module, rw *meter.Rewritten) bool {
			for i := range rw.Module.Codes {
				if l := rw.Module.Codes[i].Locals; len(l) > 0 {
					rw.Module.Codes[i].Locals = append([]binary.LocalGroup{{Count: 1, Type: binary.V128}}, l[1:]...)
					return true
				}
			}
			return false
		}},
		{"a body that ends early", func(_ *binary.Module, rw *meter.Rewritten) bool {
			b := rw.Module.Codes[0].Body
			rw.Module.Codes[0].Body = b[:len(b)-1]
			return true
		}},
		{"a body that goes on", func(_ *binary.Module, rw *meter.Rewritten) bool {
			rw.Module.Codes[0].Body = append(rw.Module.Codes[0].Body, 0x01)
			return true
		}},
		{"steps that are not there", func(_ *binary.Module, rw *meter.Rewritten) bool {
			rw.Proof.Steps[0] = append(rw.Proof.Steps[0], meter.Step{Out: 1 << 20})
			return true
		}},
	}
	for _, c := range cases {
		done := false
		for seed := byte(0); seed < 200 && !done; seed++ {
			res, rw := traced(t, passtest.Program([]byte{seed, 3, seed, 90}), anything)
			if done = c.do(res.Module, rw); !done {
				continue
			}
			if err := metertest.Verify(res.Module, rw); err == nil {
				t.Errorf("%s: not noticed", c.name)
			} else {
				t.Logf("%s: %v", c.name, err)
			}
		}
		if !done {
			t.Errorf("%s: no module has what it takes", c.name)
		}
	}
}
