package amend_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"openskill/internal/musttest"
	"openskill/wasm/amend"
	wbin "openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/meter"
	"openskill/wasm/passtest"
	w "openskill/wasm/wasmtest"
)

// TestKeepsResults holds that what is amended gives what it gave, bit by bit, for the
// numbers where it could differ: signed zeros, NaNs with a payload, the smallest number by -1.
func TestKeepsResults(t *testing.T) {
	types := map[byte]wbin.ValType{'i': wbin.I32, 'l': wbin.I64, 'f': wbin.F32, 'd': wbin.F64, 'v': wbin.V128}
	loads := map[byte]w.Code{'i': "\x28\x00\x00", 'l': "\x29\x00\x00", 'f': "\x2a\x00\x00", 'd': "\x2b\x00\x00", 'v': "\xfd\x00\x00\x00"}
	stores := map[byte]w.Code{'i': "\x36\x00\x00", 'l': "\x37\x00\x00", 'f': "\x38\x00\x00", 'd': "\x39\x00\x00", 'v': "\xfd\x0b\x00\x00"}
	numbers := []uint64{
		0, 1, 5, math.MaxUint64, 1 << 63, 1<<63 - 1, 1 << 31, 0xffffffff, 0x80000000_80000000, 0x7fffffff_7fffffff, 0xffffffff_7fa00001,
		math.Float64bits(1.5), math.Float64bits(math.Copysign(0, -1)), 0x7ff4000000000123, 0xfff8000000000001, 0x3fc00000_bfc00000, 0x0102030405060708,
		// Halfway between two floats, and a bit more or less.
		1<<63 | 1<<39, 1<<63 | 1<<39 | 1, 1<<63 | 3<<39, 1<<63 | 1<<10, 1<<63 | 1<<10 | 1, 1<<63 | 3<<10, 1<<63 - 1<<9, 1<<53 | 1, 0xffffff8000000000, 0xffffff7fffffffff, 0xfffffffffffffbff,
	}
	type form struct {
		sig string
		op  w.Code
	}
	list := []form{{"vvv:v", "\xfd\x52"}, {"v:v", "\xfd\x62"}, {"vv:v", "\xfd\xd5\x01"}, {"vf:v", "\xfd\x20\x02"}, {"vd:v", "\xfd\x22\x00"}, {"vd:v", "\xfd\x22\x01"}, {"v:v", "\xfd\xfb\x01"}, {"v:v", "\xfd\xff\x01"}, {"vv:v", "\xfd\xba\x01"}, {"v:i", "\xfd\xc4\x01"}, {"vv:v", "\xfd\x0d" + "\x00\x11\x02\x13\x04\x05\x06\x1f\x08\x19\x0a\x0b\x0c\x0d\x1e\x0f"}}
	extremes := map[w.Code]bool{}
	for _, op := range []byte{0xdc, 0xdd, 0xde, 0xdf, 0xe8, 0xe9, 0xf4, 0xf5} {
		code := w.Code([]byte{0xfd, op, 1})
		extremes[code] = op >= 0xe8
		list = append(list, form{"vv:v", code})
	}
	for op := byte(0x23); op <= 0x40; op++ {
		list = append(list, form{"vv:v", w.Code([]byte{0xfd, op})})
	}
	for op := byte(0xd6); op <= 0xdb; op++ {
		list = append(list, form{"vv:v", w.Code([]byte{0xfd, op, 1})})
	}
	list = append(list, form{"v:i", "\xfd\x64"}, form{"v:i", "\xfd\x84\x01"}, form{"v:i", "\xfd\xa4\x01"})
	for _, op := range []byte{0xf8, 0xf9, 0xfc, 0xfd} {
		list = append(list, form{"v:v", w.Code([]byte{0xfd, op, 1})})
	}
	for n := range byte(10) { // by a number, and then by what is there
		for op := byte(0x6b); op <= 0x6d; op++ {
			list = append(list, form{"v:v", w.Code([]byte{0x41, n, 0xfd, op})})
		}
	}
	list = append(list, form{"vi:v", "\xfd\x6b"}, form{"vi:v", "\xfd\x6c"}, form{"vi:v", "\xfd\x6d"}, form{"i:v", "\xfd\x0f"})
	list = append(list, form{":v", "\x41\x00\xfd\x07\x00\x03"}, form{":v", "\x41\x00\xfd\x07\x00\x88\x00"})
	for _, op := range []byte{0x67, 0x68, 0x6f, 0x70, 0x79, 0x7a, 0x81, 0x82, 0x98, 0xa6, 0xb5, 0xba, 0x49, 0x54} {
		list = append(list, form{wbin.Op(op).Signature(), w.Code([]byte{op})})
	}
	for _, c := range "ilfdv" {
		s := string(c)
		list = append(list, form{s + s + "i:" + s, w.Code([]byte{0x1c, 1, byte(types[byte(c)])})})
		if c != 'v' {
			list = append(list, form{s + s + "i:" + s, "\x1b"})
		}
	}
	list = append(list, form{"vvi:v", "\x1b"})
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	defer func() { _ = r.Close(ctx) }()
	for _, c := range list {
		t.Run(fmt.Sprintf("%x", c.op), func(t *testing.T) {
			params, result, _ := strings.Cut(c.sig, ":")
			b := w.New()
			b.Memory(1)
			body := w.I32(128)
			for i := range params {
				body += w.I32(int64(16*i)) + loads[params[i]]
			}
			b.Export("f", b.Func(nil, nil, nil, body+c.op+stores[result[0]]))
			m := musttest.Get(wbin.Decode(b.Bytes(), nil))(t)
			run := func(m *wbin.Module) (all []string) {
				musttest.Get(check.Module(m.Encode(), nil))(t)
				inst := musttest.Get(r.InstantiateWithConfig(ctx, m.Encode(), wazero.NewModuleConfig().WithName("")))(t)
				defer func() { _ = inst.Close(ctx) }()
				for _, x := range numbers {
					for _, y := range numbers {
						if extremes[c.op] && bothNaN(x, y) {
							continue // which of the two is given is the machine's choice
						}
						for i, n := range []uint64{x, y, y, x, y &^ 1, x} {
							inst.Memory().WriteUint64Le(uint32(8*i), n)
						}
						if len(params) == 3 && params[2] == 'i' {
							inst.Memory().WriteUint64Le(32, x&1)
						}
						_, err := inst.ExportedFunction("f").Call(ctx)
						got, _ := inst.Memory().Read(128, 16)
						end := ""
						if err != nil {
							end = passtest.Trap(err)
						}
						all = append(all, fmt.Sprintf("%x %x: %x %s", x, y, got, end))
					}
				}
				return all
			}
			want := run(m)
			for _, arch := range []string{"amd64", "arm64"} {
				out := musttest.Get(amend.Module(m, arch))(t)
				got := run(out)
				for i := range want {
					if got[i] != want[i] {
						t.Errorf("for %s: %s, want %s", arch, got[i], want[i])
					}
				}
			}
		})
	}
}

// TestSecret has a guest select a vector after a call of the host that copied a secret,
// which is still in a register: as it is, the guest gets it.
func TestSecret(t *testing.T) {
	lacking(t)
	secret := []byte("SECRET-OF-HOST!!SECRET-OF-HOST!!SECRET-OF-HOST!!SECRET-OF-HOST!!")
	sink := make([]byte, 64)
	b := w.New()
	h := b.ImportFunc("env", "h", nil, nil)
	b.Memory(1)
	b.Data(64, "AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBB")
	load := func(at int64) w.Code { return w.I32(at) + "\xfd\x00\x00\x00" }
	const c, d, x, y, res = 0, 1, 2, 3, 4
	pick := func(x, y uint32) w.Code { return w.Get(x) + w.Get(y) + w.Get(c) + "\x1b" }
	b.Export("f", b.Func([]wbin.ValType{wbin.I32, wbin.I32}, nil, []wbin.LocalGroup{{Count: 3, Type: wbin.V128}},
		load(64)+w.Set(x)+load(80)+w.Set(y)+w.Call(h)+w.Get(x)+
			w.Get(d)+"\x04\x7b"+pick(x, y)+"\x05"+pick(y, x)+"\x0b"+w.Set(res)+w.Drop+
			w.I32(128)+w.Get(res)+"\xfd\x0b\x00\x00"+w.I32(144)+w.Get(x)+"\xfd\x0b\x00\x00"+w.I32(160)+w.Get(y)+"\xfd\x0b\x00\x00"))
	m, err := wbin.Decode(b.Bytes(), nil)
	musttest.Do(t, err)
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2))
	defer func() { _ = r.Close(ctx) }()
	_, err = r.NewHostModuleBuilder("env").NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(context.Context, []uint64) { copy(sink, secret[:32+len(m.Funcs)-1]) }), nil, nil).Export("h").Instantiate(ctx)
	musttest.Do(t, err)
	inst, err := r.Instantiate(ctx, passtest.Amended(t, m))
	musttest.Do(t, err)
	for c := range uint64(2) {
		for d := range uint64(2) {
			musttest.Get(inst.ExportedFunction("f").Call(ctx, c, d))(t)
			want := "AAAAAAAAAAAAAAAA"
			if c != d {
				want = "BBBBBBBBBBBBBBBB"
			}
			if got, _ := inst.Memory().Read(128, 16); string(got) != want {
				t.Errorf("%d %d: %q, want %q", c, d, got, want)
			}
		}
	}
}

// bothNaN reports whether two numbers are none, as one of 64 bits or as one of two.
func bothNaN(x, y uint64) bool {
	nan := func(n uint64, shift int) bool {
		f := math.Float32frombits(uint32(n >> shift))
		return f != f
	}
	f, g := math.Float64frombits(x), math.Float64frombits(y)
	return f != f && g != g || nan(x, 0) && nan(y, 0) || nan(x, 32) && nan(y, 32)
}

// TestMeteringAddsNothing holds that metering adds no instruction that is amended: fuel is
// counted before, so it is the same on every processor, and what is amended is the guest's.
func TestMeteringAddsNothing(t *testing.T) {
	count := func(m *wbin.Module) (n int) {
		for _, arch := range []string{"amd64", "arm64"} {
			out := musttest.Get(amend.Module(m, arch))(t)
			for i := range m.Codes {
				if !slices.Equal(out.Codes[i].Body, m.Codes[i].Body) {
					n++
				}
			}
		}
		return n
	}
	for seed := range uint64(50) {
		data := binary.LittleEndian.AppendUint64(nil, seed)
		res := musttest.Get(check.Module(passtest.Program(data), nil))(t)
		rw := musttest.Get(meter.Rewrite(res.Module, res.MaxStack, nil))(t)
		if got, want := count(rw.Module), count(res.Module); got != want {
			t.Errorf("seed %d: %d functions are amended, without metering %d", seed, got, want)
		}
	}
}

// TestShapesAreGone holds that the compiler for amd64 gets none of the instructions of which it
// makes sequences that need registers in between; TestFewRegisters of lab/regcheck finds them.
func TestShapesAreGone(t *testing.T) {
	ops := []wbin.Op{
		0x98, 0xa6, 0xb5, 0xba, 0x207, 0x20d, 0x20f, 0x222, 0x224, 0x226, 0x228, 0x229, 0x22b, 0x22e, 0x230, 0x232, 0x233, 0x235, 0x238, 0x23a, 0x23c, 0x23d, 0x23f, 0x2d7, 0x2da, 0x2db,
		0x252, 0x262, 0x26b, 0x26c, 0x26d, 0x2d5, 0x2dc, 0x2dd, 0x2de, 0x2df,
		0x2e8, 0x2e9, 0x2f4, 0x2f5, 0x2f8, 0x2f9, 0x2fb, 0x2fc, 0x2fd, 0x2ff,
	}
	seen := map[wbin.Op]int{}
	count := func(m *wbin.Module, counted func(op wbin.Op)) {
		for i := range m.Codes {
			r := wbin.NewReader(m.Codes[i].Body, 0)
			for in := (wbin.Instr{}); r.Next(&in); {
				if slices.Contains(ops, in.Op) {
					counted(in.Op)
				}
			}
		}
	}
	for seed := range uint64(200) {
		res := musttest.Get(check.Module(passtest.Pressure(passtest.Bytes(seed, 8)), nil))(t)
		count(res.Module, func(op wbin.Op) { seen[op]++ })
		out := musttest.Get(amend.Module(res.Module, "amd64"))(t)
		count(out, func(op wbin.Op) { t.Errorf("seed %d: %v is left", seed, op) })
	}
	if len(seen) != len(ops) {
		t.Errorf("%d of %d instructions were there: %v", len(seen), len(ops), seen)
	}
}
