package lower_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"openskill/internal/musttest"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/lower"
	"openskill/wasm/meter"
	"openskill/wasm/passtest"
	w "openskill/wasm/wasmtest"
)

// Instructions for exceptions, and others that the cases need.
const (
	throwRef  w.Code = "\x0a"
	nullExn   w.Code = "\xd0\x69"
	selectExn w.Code = "\x1c\x01\x69"
	end       w.Code = "\x0b"
)

func num(o byte, ns ...int) w.Code {
	b := []byte{o}
	for _, n := range ns {
		b = binary.AppendU32(b, uint32(n))
	}
	return w.Code(b)
}

func throw(tag int) w.Code { return num(0x08, tag) }

// on is one clause: kind, tag unless it takes all, label.
type on struct{ kind, tag, label int }

// try is a try_table without parameters; result is a block type's byte.
func try(result byte, clauses []on, body ...w.Code) w.Code {
	c := w.Code(binary.AppendU32([]byte{0x1f, result}, uint32(len(clauses))))
	for _, x := range clauses {
		c += num(byte(x.kind))
		if x.kind < 2 {
			c += num(0, x.tag)[1:]
		}
		c += num(0, x.label)[1:]
	}
	for _, b := range body {
		c += b
	}
	return c + end
}

// block is a block of a type with an index.
func block(typ uint32, body ...w.Code) w.Code {
	c := w.Code(binary.AppendS64([]byte{0x02}, int64(typ)))
	for _, b := range body {
		c += b
	}
	return c + end
}

// source builds a module with tags; edit adds what the builder has no words for.
func source(t testing.TB, b *w.Builder, edit func(*binary.Module), tags ...[]binary.ValType) []byte {
	t.Helper()
	var types []uint32
	for _, p := range tags {
		types = append(types, b.Type(p, nil))
	}
	m := musttest.Get(binary.Decode(b.Bytes(), nil))(t)
	m.Tags = types
	if edit != nil {
		edit(m)
	}
	return m.Encode()
}

// call runs an exported function of a lowered and metered module.
func call(t *testing.T, wasm []byte, name string, args ...uint64) ([]uint64, error) {
	t.Helper()
	_, metered, _, err := lowered(t, wasm)
	musttest.Do(t, err)
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(base))
	defer func() { _ = rt.Close(ctx) }()
	passtest.Provide(&meter.Tank{Budget: 1 << 50, Slice: 1000})(ctx, rt)
	inst := musttest.Get(rt.InstantiateWithConfig(ctx, metered, wazero.NewModuleConfig().WithStartFunctions()))(t)
	flight, ok := inst.ExportedGlobal(lower.Export).(api.MutableGlobal)
	if !ok {
		t.Fatalf("no mutable global %s", lower.Export)
	}
	if f := inst.ExportedFunction(meter.ExportStart); f != nil {
		musttest.Get(f.Call(ctx))(t)
		if flight.Get() != 0 {
			return nil, errUncaught
		}
	}
	res, err := inst.ExportedFunction(name).Call(ctx, args...)
	if err == nil && flight.Get() != 0 {
		return res, errUncaught
	}
	return res, err
}

var errUncaught = errors.New("uncaught")

var (
	noTypes []binary.ValType
	one32   = []binary.ValType{i32}
	one64   = []binary.ValType{i64}
)

// TestTwoAlive throws two exceptions of one tag, keeps references to both, and
// throws them again in the order of the argument: each has its own values,
// however many these are, and though a third was thrown while a handler ran.
func TestTwoAlive(t *testing.T) {
	for name, params := range map[string][]binary.ValType{"one i64": one64, "wide": {f64, i32, i64, i32}} {
		t.Run(name, func(t *testing.T) {
			b := w.New()
			value := func(v int64) w.Code {
				var c w.Code
				for _, p := range params {
					switch p {
					case i64:
						c += w.I64(v << 33)
					case f64:
						c += "\x44\x00\x00\x00\x00\x00\x00\x00\x40"
					default:
						c += w.I32(v)
					}
				}
				return c
			}
			gives := append(append([]binary.ValType(nil), params...), exnref)
			caught := b.Type(nil, gives)
			keep := func(v int64, local uint32) w.Code { // throw, and keep the reference
				c := block(caught, try(0x40, []on{{1, 0, 0}}, value(v), throw(0)), w.Unreachable) + w.Set(local)
				for range params {
					c += w.Drop
				}
				return c
			}
			last := b.Type(nil, params)
			body := keep(5, 1) + keep(7, 2) + keep(9, 3)
			// the argument chooses which one is thrown again
			body += block(last, try(0x40, []on{{0, 0, 0}},
				w.Get(1), w.Get(2), w.Get(0), selectExn, throwRef), w.Unreachable)
			// of what comes back only the i64 counts
			switch len(params) {
			case 1:
			default:
				body += w.Drop + w.Set(4) + w.Drop + w.Drop + w.Get(4)
			}
			f := b.Func(one32, one64, []binary.LocalGroup{{Count: 3, Type: exnref}, {Count: 1, Type: i64}}, body)
			b.Export("f", f)
			wasm := source(t, b, nil, params)
			for arg, want := range map[uint64]uint64{1: 5 << 33, 0: 7 << 33} {
				if got, err := call(t, wasm, "f", arg); err != nil || got[0] != want {
					t.Errorf("f(%d) = %v, %v, want %d", arg, got, err, want)
				}
			}
		})
	}
}

// TestLocalsKeepTheirValues sets locals in the body of a try_table that is left
// by an exception of a callee, in a loop: what wazero's own support loses.
func TestLocalsKeepTheirValues(t *testing.T) {
	b := w.New()
	thrower := b.Func(one32, nil, nil, w.Get(0)+throw(0))
	f := b.Func(one32, one32, []binary.LocalGroup{{Count: 3, Type: i32}},
		// for n = 10 down to 1: sum += n before the throw, and the value of the exception behind it
		w.I32(10)+w.Set(1)+w.Loop(
			w.I32(0)+w.Set(3)+
				block(b.Type(nil, one32), try(0x40, []on{{0, 0, 0}},
					w.Get(2)+w.Get(1)+w.Add+w.Set(2)+w.I32(100)+w.Set(3)+w.Get(1)+w.Call(thrower)+w.I32(-1000)+w.Set(2)), w.Unreachable)+
				w.Get(2)+w.Add+w.Get(3)+w.Add+w.Set(2)+
				w.Get(1)+w.I32(1)+w.Sub+w.Tee(1)+w.BrIf(0))+w.Get(2))
	b.Export("f", f)
	got, err := call(t, source(t, b, nil, one32), "f", 0)
	if want := uint64(55 + 55 + 1000); err != nil || got[0] != want {
		t.Errorf("got %v, %v, want %d", got, err, want)
	}
}

// TestUncaught leaves exported functions by exceptions: through recursion, and
// out of the start function. The results are zeros, and nothing runs after it.
func TestUncaught(t *testing.T) {
	b := w.New()
	g := b.Global(0)
	at := b.Next()
	b.Func(one32, one32, nil, w.Get(0)+Eqz(w.I32(77)+w.Drop+throw(0))+
		w.Get(0)+w.I32(1)+w.Sub+w.Call(at)+w.I32(1)+w.GlobalSet(g)+w.Drop+w.I32(3))
	b.Export("down", at)
	check := b.Func(nil, one32, nil, w.GlobalGet(g))
	b.Export("g", check)
	wasm := source(t, b, nil, noTypes)
	if got, err := call(t, wasm, "down", 40); !errors.Is(err, errUncaught) || got[0] != 0 {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := call(t, wasm, "g"); err != nil || got[0] != 0 {
		t.Errorf("got %v, %v", got, err)
	}

	b = w.New()
	b.Start(b.Void(throw(0)))
	b.Export("g", b.Func(nil, one32, nil, w.I32(1)))
	if _, err := call(t, source(t, b, nil, noTypes), "g"); !errors.Is(err, errUncaught) {
		t.Errorf("a start function that throws: %v", err)
	}
}

// Eqz runs code if the number on the stack is zero.
func Eqz(c w.Code) w.Code { return w.Eqz + w.If(c) }

// TestTypesStayApart calls through a table a function that takes an i64 as one
// that takes an exnref. If both became the same type, the call would succeed.
func TestTypesStayApart(t *testing.T) {
	b := w.New()
	plain := b.Func(one64, one32, nil, w.I32(1))
	exn := b.Func([]binary.ValType{exnref}, one32, nil, w.Get(0)+w.IsNull)
	b.Table(4, plain, exn)
	wants := b.Type([]binary.ValType{exnref}, one32)
	b.Export("f", b.Func(one32, one32, nil, nullExn+w.Get(0)+w.CallIndirect(wants)))
	wasm := source(t, b, nil, noTypes)
	if got, err := call(t, wasm, "f", 1); err != nil || got[0] != 1 {
		t.Errorf("the right function: %v, %v", got, err)
	}
	if _, err := call(t, wasm, "f", 0); err == nil || !strings.Contains(err.Error(), "indirect call type mismatch") {
		t.Errorf("the wrong function: %v", err)
	}
}

// TestThrowsThroughTables catches what a function throws that only a table
// names, and a passive segment.
func TestThrowsThroughTables(t *testing.T) {
	b := w.New()
	thrower := b.Func(one32, one32, nil, w.Get(0)+throw(0))
	b.Table(4, thrower)
	f := b.Func(one32, one32, nil, block(b.Type(nil, one32), try(0x7f, []on{{0, 0, 0}}, w.I32(5), w.Get(0), w.I32(0), w.CallIndirect(b.Type(one32, one32)), w.Add)))
	b.Export("f", f)
	if got, err := call(t, source(t, b, nil, one32), "f", 30); err != nil || got[0] != 30 {
		t.Errorf("got %v, %v, want 30", got, err)
	}
}

// TestChecksOnlyWhereNeeded counts the checks: none stands behind a call that
// throws nothing, and functions without one keep their bodies.
func TestChecksOnlyWhereNeeded(t *testing.T) {
	b := w.New()
	quiet := b.Void("")
	loud := b.Void(throw(0))
	caught := b.Void(w.Block(try(0x40, []on{{2, 0, 0}}, w.Call(loud))))
	b.Command(w.Call(quiet) + w.Call(caught) + w.Call(quiet))
	wasm := source(t, b, nil, noTypes)
	_, _, st, err := lowered(t, wasm)
	if err != nil || st.Checked != 1 || st.MayThrow != 1 || st.Changed != 2 {
		t.Errorf("%+v, %v; want one check, one function that may throw, and two that change", st, err)
	}
}

// TestRefused lists what cannot be lowered, with the words that say so.
func TestRefused(t *testing.T) {
	wide := make([]binary.ValType, 17)
	for i := range wide {
		wide[i] = i64
	}
	command := func(c w.Code) *w.Builder {
		b := w.New()
		b.Command(c)
		return b
	}
	captured := func(values int) *w.Builder {
		b := w.New()
		give := b.Type(nil, []binary.ValType{exnref})
		b.Command(block(give, try(0x40, []on{{3, 0, 0}}, w.Repeat(values, w.I64(0))+throw(0)), w.Unreachable) + w.Drop)
		return b
	}
	locals := func() *w.Builder {
		b := captured(15)
		b.Func(nil, nil, []binary.LocalGroup{{Count: 5000, Type: exnref}}, "")
		return b
	}
	for name, c := range map[string]struct {
		b    *w.Builder
		edit func(*binary.Module)
		tag  []binary.ValType
		code check.Code
		says string
	}{
		"imported tag": {command(""), func(m *binary.Module) {
			m.Imports = append(m.Imports, binary.Import{Module: "a", Name: "b", Kind: binary.ExternTag, Type: m.Tags[0]})
		}, nil, check.FeatureDisabled, "a tag is imported"},
		"table of exnref": {command(""), func(m *binary.Module) {
			m.Tables = append(m.Tables, binary.TableType{Elem: exnref})
		}, nil, check.FeatureDisabled, "table 0 holds exnref"},
		"segment of exnref": {command(""), func(m *binary.Module) {
			m.Elems = append(m.Elems, binary.Elem{Mode: binary.Passive, Type: exnref, Exprs: []binary.ConstExpr{{0xd0, 0x69, 0x0b}}})
		}, nil, check.FeatureDisabled, "element segment 0 holds exnref"},
		"tag with exnref": {command(""), nil, []binary.ValType{exnref}, check.FeatureDisabled, "tag 0 carries an exnref"},
		"too wide a reference": {
			captured(17), nil, wide, check.FeatureDisabled,
			"catch_all_ref catches tag 0, whose values take 17 places of 64 bits",
		},
		"too many locals": {locals(), nil, wide[:15], check.ModuleTooComplex, "locals of exnref"},
		"too many globals": {captured(15), func(m *binary.Module) {
			for range 2000 {
				m.Globals = append(m.Globals, binary.Global{GlobalType: binary.GlobalType{Type: exnref}, Init: binary.ConstExpr{0xd0, 0x69, 0x0b}})
			}
		}, wide[:15], check.ModuleTooComplex, "globals of exnref"},
		"too many parameters": {captured(15), func(m *binary.Module) {
			p := make([]binary.ValType, 900)
			for i := range p {
				p[i] = exnref
			}
			m.Types = append(m.Types, binary.FuncType{Params: p})
		}, wide[:15], check.ModuleTooComplex, "takes or gives more than 1000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			wasm := source(t, c.b, c.edit, c.tag)
			in, err := check.Module(wasm, anything)
			musttest.Do(t, err)
			_, err = lower.Exceptions(in.Module, in.MaxStack, nil)
			var v *check.Error
			if !errors.As(err, &v) || v.Code != c.code || !strings.Contains(v.Msg, c.says) {
				t.Errorf("got %v, want %s: …%s…", err, c.code, c.says)
			}
		})
	}
}

// TestGrowth reaches the cap on what is added to the code.
func TestGrowth(t *testing.T) {
	b := w.New()
	loud := b.Void(throw(0))
	b.Command(w.Repeat(100, w.Call(loud)))
	wasm := source(t, b, nil, noTypes)
	in := musttest.Get(check.Module(wasm, anything))(t)
	for growth, want := range map[int]check.Code{100: check.ModuleTooComplex, 500: ""} {
		_, err := lower.Exceptions(in.Module, in.MaxStack, &lower.Options{Growth: growth})
		var v *check.Error
		if errors.As(err, &v); err != nil && v.Code != want || err == nil && want != "" {
			t.Errorf("with room for %d bytes: %v, want %q", growth, err, want)
		}
	}
}

// TestExports drops exports that mean nothing outside, and keeps the others.
func TestExports(t *testing.T) {
	b := w.New()
	b.Command(throw(0))
	g := b.Global(1)
	wasm := source(t, b, func(m *binary.Module) {
		m.Globals = append(m.Globals, binary.Global{GlobalType: binary.GlobalType{Type: exnref}, Init: binary.ConstExpr{0xd0, 0x69, 0x0b}})
		m.Exports = append(m.Exports, binary.Export{Name: "tag", Kind: binary.ExternTag}, binary.Export{Name: "exn", Kind: binary.ExternGlobal, Index: g + 1},
			binary.Export{Name: "g", Kind: binary.ExternGlobal, Index: g})
	}, noTypes)
	in := musttest.Get(check.Module(wasm, anything))(t)
	low := musttest.Get(lower.Exceptions(in.Module, in.MaxStack, nil))(t)
	names := ""
	for _, e := range low.Module.Exports {
		names += e.Name + " "
	}
	if names != "_start g "+lower.Export+" " {
		t.Errorf("exports: %s", names)
	}
	if len(in.Module.Exports) != 4 || len(in.Module.Tags) != 1 {
		t.Error("the input was changed")
	}
}

// TestDeepTries nests as many try_tables as the validator accepts around one
// throw, each of which catches another tag: the last one catches it.
func TestDeepTries(t *testing.T) {
	const depth = 4000
	body := throw(0)
	for i := range depth {
		body = try(0x40, []on{{0, 1 + i%99, 0}}, body) // to the label of the next one, or of the block
	}
	b := w.New()
	b.Export("f", b.Func(nil, one32, nil, w.Block(try(0x40, []on{{0, 0, 0}}, body))+w.I32(7)))
	tags := make([][]binary.ValType, 100)
	if got, err := call(t, source(t, b, nil, tags...), "f"); err != nil || got[0] != 7 {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestManyClauses writes three bytes for each clause of a tag that carries many
// values. Of each tag only the first clause counts; tags that share a bit of the
// masks are not told apart, and there the cap on growth ends it.
func TestManyClauses(t *testing.T) {
	wide := make([]binary.ValType, 500)
	for i := range wide {
		wide[i] = f32
	}
	for name, c := range map[string]struct {
		first int
		want  check.Code
	}{"told apart": {0, ""}, "not told apart": {70, check.ModuleTooComplex}} {
		t.Run(name, func(t *testing.T) {
			many := make([]on, 400)
			for i := range many {
				many[i].tag = c.first + i%2
			}
			b := w.New()
			give := b.Type(nil, wide)
			values := w.Repeat(len(wide), "\x43\x00\x00\x00\x00")
			one, two := b.Void(values+throw(c.first)), b.Void(values+throw(c.first+1))
			b.Func(nil, wide, nil, block(give, try(0x40, many, w.Call(one), w.Call(two)), w.Unreachable))
			tags := make([][]binary.ValType, c.first, c.first+2)
			in := musttest.Get(check.Module(source(t, b, nil, append(tags, wide, wide)...), anything))(t)
			low, err := lower.Exceptions(in.Module, in.MaxStack, &lower.Options{Growth: 200_000})
			var v *check.Error
			switch errors.As(err, &v); {
			case c.want != "" && (v == nil || v.Code != c.want):
				t.Errorf("got %v, want %s", err, c.want)
			case c.want == "" && (err != nil || low.Stats.After > low.Stats.Before+20_000):
				t.Errorf("got %v", err)
			}
		})
	}
}
