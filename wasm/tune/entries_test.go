package tune_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"openskill/internal/musttest"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/tune"
	"openskill/wasm/wasmtest"
)

// table builds a module whose export f calls entry i of a table; entries 1 and 3 of
// four hold functions that only trap.
func table(extra wasmtest.Code) *binary.Module {
	b := wasmtest.New()
	i32 := []binary.ValType{binary.I32}
	trap := b.Func(nil, i32, nil, wasmtest.Unreachable)
	one := b.Func(nil, i32, nil, wasmtest.I32(11))
	two := b.Func(nil, i32, nil, wasmtest.I32(22))
	b.Export("f", b.Func(i32, i32, nil, extra+wasmtest.Get(0)+wasmtest.CallIndirect(b.Type(nil, i32))))
	b.Table(6)
	b.Elem(0, wasmtest.I32(1), one, trap, two, trap)
	m, err := binary.Decode(b.Bytes(), nil)
	if err != nil {
		panic(err)
	}
	return m
}

func TestEntries(t *testing.T) {
	plain := table("")
	tuned := musttest.Get(tune.Module(plain, &tune.Options{Low: 1024}))(t)
	cut := tuned.Module
	if tuned.Stats.Entries != 2 || len(cut.Elems) != 2 || len(plain.Elems) != 1 {
		t.Fatalf("%+v, %d segments left", tuned.Stats, len(cut.Elems))
	}
	musttest.Get(check.Module(cut.Encode(), nil))(t)
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	for i := range uint64(7) {
		var got [2]uint64
		var failed [2]bool
		for k, m := range []*binary.Module{plain, cut} {
			inst := musttest.Get(r.InstantiateWithConfig(ctx, m.Encode(), wazero.NewModuleConfig().WithName("")))(t)
			res, err := inst.ExportedFunction("f").Call(ctx, i)
			if failed[k] = err != nil; !failed[k] {
				got[k] = res[0]
			}
			_ = inst.Close(ctx)
		}
		if got[0] != got[1] || failed[0] != failed[1] {
			t.Errorf("entry %d: %v %v, with fewer entries %v %v", i, got[0], failed[0], got[1], failed[1])
		}
	}
}

// A module that looks at its table is left alone.
func TestEntriesLookedAt(t *testing.T) {
	for name, code := range map[string]wasmtest.Code{
		"get":  wasmtest.I32(2) + wasmtest.TableGet(0) + wasmtest.Drop,
		"copy": thrice(wasmtest.I32(0)) + wasmtest.TableCopy,
	} {
		tuned, err := tune.Module(table(code), &tune.Options{Low: 1024})
		if err != nil || tuned.Stats.Entries != 0 || len(tuned.Module.Elems) != 1 {
			t.Errorf("%s: %+v, %v", name, tuned, err)
		}
	}
}

// Segments at one place, and those that do not fit, mean more than their entries.
func TestEntriesInTheWay(t *testing.T) {
	for name, change := range map[string]func(m *binary.Module){
		"a segment over another one": func(m *binary.Module) {
			m.Elems = append(m.Elems, binary.Elem{Type: binary.FuncRef, Offset: binary.ConstExpr(wasmtest.I32(3) + "\x0b"), Funcs: []uint32{0}})
		},
		"a segment that does not fit": func(m *binary.Module) { m.Tables[0].Min = 4 },
		"a place that is computed": func(m *binary.Module) {
			m.Elems = append(m.Elems, binary.Elem{
				Type: binary.FuncRef, Offset: binary.ConstExpr(wasmtest.I32(1) + wasmtest.I32(2) + wasmtest.Add + "\x0b"), Funcs: []uint32{0},
			})
		},
	} {
		m := table("")
		change(m)
		musttest.Get(check.Module(m.Encode(), nil))(t)
		tuned, err := tune.Module(m, &tune.Options{Low: 1024})
		if err != nil || tuned.Stats.Entries != 0 || len(tuned.Module.Elems) != len(m.Elems) {
			t.Errorf("%s: %+v, %v", name, tuned.Stats, err)
		}
	}
}

func thrice(c wasmtest.Code) wasmtest.Code { return wasmtest.Code(strings.Repeat(string(c), 3)) }
