package tune_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"openskill/internal/musttest"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/spectest"
	"openskill/wasm/tune"
)

const (
	get, set, tee    = 0x20, 0x21, 0x22
	load, store      = 0x28, 0x36
	i32, add         = 0x41, 0x6a
	block, loop, end = 0x02, 0x03, 0x0b
	void, brIf       = 0x40, 0x0d
)

// module has one function (i32 i32 i32) -> i32 with the body, and a memory of a page.
func module(body ...byte) *binary.Module {
	return &binary.Module{
		Types:    []binary.FuncType{{Params: []binary.ValType{binary.I32, binary.I32, binary.I32}, Results: []binary.ValType{binary.I32}}},
		Funcs:    []uint32{0},
		Memories: []binary.Extent{{Min: 1}},
		Exports:  []binary.Export{{Name: "f", Kind: binary.ExternFunc}, {Name: "m", Kind: binary.ExternMemory}},
		Codes:    []binary.Code{{Body: append(body, end)}},
	}
}

var cases = []struct {
	name     string
	in, want []byte // nil: as it was
	stats    tune.Stats
}{
	{
		name:  "an addition becomes an offset",
		in:    []byte{get, 0, i32, 8, add, load, 2, 4},
		want:  []byte{get, 0, load, 2, 12},
		stats: tune.Stats{Direct: 1},
	},
	{
		name:  "of a store too, whose value comes between",
		in:    []byte{get, 0, i32, 8, add, get, 1, i32, 4, add, load, 2, 0, store, 2, 0, get, 0},
		want:  []byte{get, 0, get, 1, load, 2, 4, store, 2, 8, get, 0},
		stats: tune.Stats{Direct: 2},
	},
	{
		name:  "a local that was computed from another one",
		in:    []byte{get, 0, i32, 8, add, set, 1, get, 1, load, 2, 4},
		want:  []byte{get, 0, i32, 8, add, set, 1, get, 0, load, 2, 12},
		stats: tune.Stats{Shared: 1},
	},
	{
		name:  "and what is kept at once",
		in:    []byte{get, 0, i32, 8, add, tee, 1, load, 2, 4},
		want:  []byte{get, 0, i32, 8, add, set, 1, get, 0, load, 2, 12},
		stats: tune.Stats{Shared: 1},
	},
	{
		name:  "an addition to such a local",
		in:    []byte{get, 0, i32, 8, add, set, 1, get, 1, i32, 8, add, load, 2, 0},
		want:  []byte{get, 0, i32, 8, add, set, 1, get, 0, load, 2, 16},
		stats: tune.Stats{Direct: 1, Shared: 1},
	},
	{
		name:  "a fact holds in blocks inside",
		in:    []byte{get, 0, i32, 8, add, set, 1, block, 0x7f, get, 1, load, 2, 0, end},
		want:  []byte{get, 0, i32, 8, add, set, 1, block, 0x7f, get, 0, load, 2, 8, end},
		stats: tune.Stats{Shared: 1},
	},
	{name: "but not behind a block that it may not have been learnt in", in: []byte{block, void, get, 2, brIf, 0, get, 0, i32, 8, add, set, 1, end, get, 1, load, 2, 0}},
	{name: "nor in a loop, which comes again", in: []byte{
		get, 0, i32, 8, add, set, 1, loop, 0x7f, get, 1, load, 2, 0, get, 1, i32, 4, add, set, 1, get, 2, i32, 1, add, tee, 2, brIf, 0, end,
	}},
	{name: "nor when the base was set", in: []byte{get, 0, i32, 8, add, set, 1, i32, 0, set, 0, get, 1, load, 2, 0}},
	{name: "nor when the local was set", in: []byte{get, 0, i32, 8, add, set, 1, get, 2, set, 1, i32, 0, set, 2, get, 1, load, 2, 0}},
	{name: "nor when the base was set between get and set", in: []byte{get, 0, i32, 8, add, i32, 0, set, 0, set, 1, get, 1, load, 2, 0}},
	{name: "a local that is added to itself is no base", in: []byte{get, 0, i32, 8, add, tee, 0, load, 2, 0}},
	{
		name:  "an offset up to the bound",
		in:    []byte{get, 0, i32, 0xff, 0, add, load, 2, 0x81, 7}, // 127 + 897
		want:  []byte{get, 0, load, 2, 0x80, 8},
		stats: tune.Stats{Direct: 1},
	},
	{name: "and none beyond", in: []byte{get, 0, i32, 0xff, 0, add, load, 2, 0x82, 7}},
	{name: "negative numbers stay", in: []byte{get, 0, i32, 0x7c, add, load, 2, 4}},
	{name: "the constant must be what is added", in: []byte{i32, 8, get, 0, add, load, 2, 0}},
	{name: "what leaves a block as its result stays", in: []byte{get, 0, i32, 8, add, block, void, end, load, 2, 0}},
	{name: "an address that br_if may take along stays", in: []byte{
		block, 0x7f, get, 0, i32, 8, add, get, 2, brIf, 0, load, 2, 0, end,
	}},
}

func TestModule(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := module(c.in...)
			if _, err := check.Module(m.Encode(), nil); err != nil {
				t.Fatalf("the case is no valid module: %v", err)
			}
			got := musttest.Get(tune.Module(m, &tune.Options{Low: 1024}))(t)
			want := c.want
			if want == nil {
				want = c.in
			}
			if d := cmp.Diff(append(want[:len(want):len(want)], end), got.Module.Codes[0].Body); d != "" {
				t.Errorf("body (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.stats, got.Stats); d != "" {
				t.Errorf("stats (-want +got):\n%s", d)
			}
			if _, err := check.Module(got.Module.Encode(), nil); err != nil {
				t.Errorf("not valid any more: %v", err)
			}
			if d := cmp.Diff(append(c.in[:len(c.in):len(c.in)], end), m.Codes[0].Body); d != "" {
				t.Errorf("the module that was given changed:\n%s", d)
			}
		})
	}
}

func TestNothingKnown(t *testing.T) {
	m := module(cases[0].in...)
	for _, o := range []*tune.Options{nil, {}} {
		got := musttest.Get(tune.Module(m, o))(t)
		if d := cmp.Diff(m, got.Module); d != "" {
			t.Errorf("%v changed something:\n%s", o, d)
		}
	}
}

// TestSameResults runs each case as it was and tuned, for addresses at all edges
// but those that wrap into what was said to be unused.
func TestSameResults(t *testing.T) {
	edges := []uint64{0, 1, 4, 1020, 1024, 60_000, 65_508, 65_520, 65_524, 65_528, 65_532, 65_535, 65_536, 1 << 20, 1 << 31, 0xffff_f000}
	ctx := t.Context()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := module(c.in...)
			tuned := musttest.Get(tune.Module(m, &tune.Options{Low: 1024}))(t)
			type outcome struct {
				Results []uint64
				Failed  bool
				Memory  uint32
			}
			run := func(m *binary.Module, a, b, flag uint64) outcome {
				in := musttest.Get(r.InstantiateWithConfig(ctx, m.Encode(), wazero.NewModuleConfig().WithName("")))(t)
				defer in.Close(ctx)
				for i := uint32(0); i < 1<<16; i += 4 {
					in.Memory().WriteUint32Le(i, i*2654435761)
				}
				res, err := in.ExportedFunction("f").Call(ctx, a, b, flag)
				var sum uint32
				mem, _ := in.Memory().Read(0, 1<<16)
				for _, x := range mem {
					sum = sum*31 + uint32(x)
				}
				return outcome{res, err != nil, sum}
			}
			for i, a := range edges {
				b := edges[(i*7+3)%len(edges)]
				for _, flag := range []uint64{0, 0xffff_ffff} {
					if d := cmp.Diff(run(m, a, b, flag), run(tuned.Module, a, b, flag)); d != "" {
						t.Errorf("f(%#x, %#x, %d) (-was +is):\n%s", a, b, flag, d)
					}
				}
			}
		})
	}
}

// TestWrapTraps: the one thing that may change, and how.
func TestWrapTraps(t *testing.T) {
	ctx := t.Context()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	m := module(get, 0, i32, 8, add, load, 2, 0)
	tuned := musttest.Get(tune.Module(m, &tune.Options{Low: 1024}))(t)
	for i, x := range []*binary.Module{m, tuned.Module} {
		in, err := r.InstantiateWithConfig(ctx, x.Encode(), wazero.NewModuleConfig().WithName(""))
		musttest.Do(t, err)
		if _, err = in.ExportedFunction("f").Call(ctx, 0xffff_fffc, 0, 0); (err != nil) != (i == 1) {
			t.Errorf("tuned %t: %v", i == 1, err)
		}
	}
}

// TestSpecScripts plays the specification's scripts, tuned.
func TestSpecScripts(t *testing.T) {
	anything := &check.Options{AnyImport: true, TableMin: 1 << 40, BranchTargets: 30_000, Limits: &binary.Limits{Locals: 100_000, Tables: 1000, Exports: 10_000}}
	played, changed := 0, 0
	for _, sc := range spectest.Load(t, spectest.V2) {
		stage := spectest.NewStage(t.Context(), t, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2|experimental.CoreFeaturesExtendedConst),
			func(b []byte) ([]byte, error) {
				in, err := check.Module(b, anything)
				if err != nil {
					return nil, err
				}
				out, err := tune.Module(in.Module, &tune.Options{Low: 1024})
				if err != nil {
					return nil, err
				}
				changed += out.Stats.Direct + out.Stats.Shared
				again := out.Module.Encode()
				if _, err := check.Module(again, anything); err != nil {
					t.Errorf("not valid any more: %v", err)
				}
				return again, nil
			}, "", func(context.Context, wazero.Runtime) {})
		for i := range sc.Commands {
			c := &sc.Commands[i]
			o, ran := stage.Play(t, sc, i)
			if !ran {
				continue
			}
			switch c.Type {
			case "assert_return":
				played++
				if o.Err != nil || !c.Matches(t, o.Results) {
					t.Errorf("%s: %v, %v", sc.Where(c), o.Results, o.Err)
				}
			case "assert_trap", "assert_exhaustion":
				played++
				if o.Err == nil {
					t.Errorf("%s: no trap", sc.Where(c))
				}
			}
		}
		stage.Close()
	}
	t.Logf("%d commands, %d accesses changed", played, changed)
	if played < 10_000 || changed == 0 {
		t.Errorf("%d commands and %d changes are too few to say anything", played, changed)
	}
}
