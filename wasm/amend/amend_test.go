package amend_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero/api"

	"openskill/internal/musttest"
	"openskill/wasm/amend"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/passtest"
	w "openskill/wasm/wasmtest"
)

const (
	and   w.Code = "\x71"
	ltU   w.Code = "\x49"
	or0   w.Code = "\x41\x00\x72"
	and64 w.Code = "\x83"
	gtS64 w.Code = "\x55"
	or064 w.Code = "\x42\x00\x84"
)

// branch is one comparison, and what becomes of it.
var branches = []struct {
	name     string
	in, want w.Code // want "": as it was
}{
	{"zero and the result of and", w.I32(0) + w.Get(0) + w.Get(1) + and + ltU, w.I32(0) + w.Get(0) + w.Get(1) + and + or0 + ltU},
	{"of 64 bits", w.I64(0) + w.Get(4) + w.Get(4) + and64 + gtS64, w.I64(0) + w.Get(4) + w.Get(4) + and64 + or064 + gtS64},
	{"through locals", w.Get(0) + w.Get(1) + and + w.Set(2) + w.Get(3) + w.Get(2) + ltU, w.Get(0) + w.Get(1) + and + w.Set(2) + w.Get(3) + w.Get(2) + or0 + ltU},
	{
		"through locals, set further down", w.Loop(w.Get(3)+w.Get(2)+ltU+w.Drop+w.Get(0)+w.Get(1)+and+w.Tee(1)+w.Set(2)) + w.I32(1),
		w.Loop(w.Get(3)+w.Get(2)+or0+ltU+w.Drop+w.Get(0)+w.Get(1)+and+w.Tee(1)+w.Set(2)) + w.I32(1),
	},
	{"as what a block gives", w.I32(0) + "\x02\x7f" + w.Get(0) + w.Get(1) + and + "\x0b" + ltU, w.I32(0) + "\x02\x7f" + w.Get(0) + w.Get(1) + and + "\x0b" + or0 + ltU},
	{"shifted by nothing", w.I32(0) + w.Get(0) + w.Get(1) + and + w.I32(0) + "\x74" + ltU, w.I32(0) + w.Get(0) + w.Get(1) + and + w.I32(0) + "\x74" + or0 + ltU},
	{"another number", w.I32(1) + w.Get(0) + w.Get(1) + and + ltU, ""},
	{"the other way round", w.Get(0) + w.Get(1) + and + w.I32(0) + ltU, ""},
	{"a sum", w.I32(0) + w.Get(0) + w.Get(1) + w.Add + ltU, ""},
	{"equality, which has no sides", w.I32(0) + w.Get(0) + w.Get(1) + and + w.Eq, ""},
	{"a local that is no result of and", w.Get(3) + w.Get(2) + ltU, ""},
}

func module(t *testing.T, c w.Code) *binary.Module {
	t.Helper()
	b := w.New()
	b.Memory(1)
	// 63 and 5 cannot be told from what they are by the compiler.
	g := b.Global(63)
	b.Export("f", b.Func(nil, nil, []binary.LocalGroup{{Count: 4, Type: binary.I32}, {Count: 1, Type: binary.I64}},
		w.GlobalGet(g)+w.Tee(0)+w.Set(1)+w.I64(63)+w.Set(4)+c+w.If(w.I32(0)+w.I32(1)+w.Store)))
	return musttest.Get(binary.Decode(b.Bytes(), nil))(t)
}

func TestModule(t *testing.T) {
	for _, c := range branches {
		t.Run(c.name, func(t *testing.T) {
			m := module(t, c.in)
			out := musttest.Get(amend.Module(m, "amd64"))(t)
			want := c.want
			if want == "" {
				want = c.in
			}
			if d := cmp.Diff(module(t, want).Codes[0].Body, out.Codes[0].Body); d != "" {
				t.Errorf("body (-want +got):\n%s", d)
			}
			if d := cmp.Diff(module(t, c.in).Codes[0].Body, m.Codes[0].Body); d != "" {
				t.Errorf("the module that was given changed:\n%s", d)
			}
			musttest.Get(check.Module(out.Encode(), nil))(t)
			engines := passtest.Engines(api.CoreFeaturesV2)
			right := passtest.Run(t, engines[0], m.Encode(), m, nil)
			passtest.Same(t, "amended, on the compiler", right, passtest.Run(t, engines[1], out.Encode(), m, nil))
		})
	}
}

// TestManyLocals hands a value on from local to local, backwards, so often that it is
// not followed to its end.
func TestManyLocals(t *testing.T) {
	const n = 40
	var c w.Code
	for l := uint32(1); l < n; l++ {
		c += w.Get(l) + w.Set(l-1)
	}
	c += w.I32(5) + w.I32(7) + and + w.Set(n-1)
	b := w.New()
	b.Func(nil, nil, []binary.LocalGroup{{Count: n + 1, Type: binary.I32}}, w.Loop(w.Get(n)+w.Get(0)+ltU+w.Drop+c))
	m := musttest.Get(binary.Decode(b.Bytes(), nil))(t)
	out := musttest.Get(amend.Module(m, "amd64"))(t)
	if got := len(out.Codes[0].Body) - len(m.Codes[0].Body); got != len(or0) {
		t.Errorf("%d bytes more, want %d", got, len(or0))
	}
}

// TestReferences holds that what takes references to functions does the same with a table
// of its own, in which they are made once.
func TestReferences(t *testing.T) {
	b := w.New()
	b.Memory(1)
	at := uint32(0)
	one := b.Func(nil, []binary.ValType{binary.I32}, nil, w.I32(1))
	two := b.Func(nil, []binary.ValType{binary.I32}, nil, w.I32(2))
	b.Table(4, one, two)
	typ := b.Type(nil, []binary.ValType{binary.I32})
	call := func(slot int64) w.Code { return w.I32(slot) + w.CallIndirect(typ) }
	b.Export("f", b.Func(nil, nil, []binary.LocalGroup{{Count: 1, Type: binary.FuncRef}},
		w.I32(2)+w.RefFunc(two)+w.TableSet(at)+w.RefFunc(one)+w.Set(0)+w.I32(3)+w.Get(0)+w.TableSet(at)+
			w.Loop(w.RefFunc(two)+w.Drop)+
			w.I32(0)+call(2)+w.I32(10)+w.Mul+call(3)+w.Add+w.Store+
			w.I32(4)+w.RefFunc(one)+w.IsNull+w.Store+w.I32(8)+w.TableSize(at)+w.Store))
	m := musttest.Get(binary.Decode(b.Bytes(), nil))(t)
	in := musttest.Get(check.Module(m.Encode(), nil))(t)
	out := musttest.Get(amend.References(m))(t)
	again := musttest.Get(check.Module(out.Encode(), nil))(t)
	for i := range out.Codes {
		if again.MaxStack[i] > in.MaxStack[i] {
			t.Errorf("function %d: %d operands, %d were announced", i, again.MaxStack[i], in.MaxStack[i])
		}
		r := binary.NewReader(out.Codes[i].Body, 0)
		var x binary.Instr
		for r.Next(&x) {
			if x.Op == binary.OpRefFunc {
				t.Errorf("function %d still makes a reference", i)
			}
		}
	}
	if n := len(out.Elems); n != len(m.Elems)+1 || len(out.Elems[n-1].Funcs) != 2 {
		t.Errorf("segments: %+v", out.Elems)
	}
	for _, e := range passtest.Engines(api.CoreFeaturesV2) {
		passtest.Same(t, "with a table", passtest.Run(t, e, m.Encode(), m, nil), passtest.Run(t, e, out.Encode(), m, nil))
	}
}
