package meter_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	wasm "openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/meter"
)

const mib = 1 << 20

// rep repeats bytes.
func rep(n int, b ...byte) []byte { return bytes.Repeat(b, n) }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// uleb is n in five bytes or fewer.
func uleb(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// many makes a module of n functions of no type, with one memory and one table.
func many(n int, body func(i int) []byte) *wasm.Module {
	m := &wasm.Module{
		Types:    []wasm.FuncType{{}},
		Memories: []wasm.Extent{{Min: 1}},
		Tables:   []wasm.TableType{{Elem: wasm.FuncRef, Extent: wasm.Extent{Min: 1}}},
		Funcs:    make([]uint32, n),
	}
	for i := range n {
		m.Codes = append(m.Codes, wasm.Code{Body: append(body(i), 0x0b)})
	}
	return m
}

// fill makes functions of one body, as many as size bytes hold.
func fill(size int, body []byte) *wasm.Module {
	n := max(1, min(size/(len(body)+6), 100_000))
	return many(n, func(int) []byte { return bytes.Clone(body) })
}

// taken puts all functions of m into segments.
func taken(m *wasm.Module) *wasm.Module {
	e := wasm.Elem{Mode: wasm.Passive, Type: wasm.FuncRef}
	for i := range m.Funcs {
		e.Funcs = append(e.Funcs, uint32(i))
	}
	m.Elems = []wasm.Elem{e}
	return m
}

// hostile are modules that are made to cost much. size says how large one should
// be, in bytes.
var hostile = []struct {
	name  string
	never bool // refused at every size
	large bool // made as large as is accepted, too
	make  func(size int) *wasm.Module
}{
	{name: "empty functions", make: func(int) *wasm.Module { return many(100_000, func(int) []byte { return nil }) }},
	{name: "nested blocks", make: func(size int) *wasm.Module {
		return fill(size, join(rep(4000, 0x02, 0x40), rep(4000, 0x0b)))
	}},
	{name: "as many loops as there may be", large: true, make: func(size int) *wasm.Module {
		n := min(size/7, 990_000) / 10
		return many(n, func(int) []byte { return rep(10, 0x03, 0x40, 0x41, 0, 0x0d, 0, 0x0b) })
	}},
	{name: "as many pairs of loops as there may be", large: true, make: func(size int) *wasm.Module {
		n := min(size/14, 499_000) / 5
		return many(n, func(int) []byte {
			return rep(5, 0x03, 0x40, 0x03, 0x40, 0x41, 0, 0x0d, 0, 0x0b, 0x41, 0, 0x0d, 0, 0x0b)
		})
	}},
	{name: "as many loops as there may be, tables of branches and long code", large: true, make: func(size int) *wasm.Module {
		m := many(min(size/7, 490_000)/1000, func(int) []byte { return rep(1000, 0x03, 0x40, 0x41, 0, 0x0d, 0, 0x0b) })
		var labels []byte
		for i := range 4000 {
			labels = append(labels, uleb(i)...)
		}
		for range min(size/100_000, 50) { // 4 million targets
			b := rep(4000, 0x02, 0x40)
			for range 15 {
				b = join(b, []byte{0x02, 0x40, 0x41, 0, 0x0e}, uleb(3999), labels, []byte{0x0b})
			}
			m.Codes = append(m.Codes, wasm.Code{Body: join(b, rep(4001, 0x0b))})
		}
		for range size / 5 * 3 / 1_000_000 {
			m.Codes = append(m.Codes, wasm.Code{Body: append(rep(330_000, 0x41, 0, 0x1a), 0x0b)})
		}
		m.Funcs = make([]uint32, len(m.Codes))
		return m
	}},
	{name: "as many ifs as there may be", large: true, make: func(size int) *wasm.Module {
		return many(min(size/5, 1_990_000)/19_900, func(int) []byte { return rep(19_900, 0x41, 0, 0x04, 0x40, 0x0b) })
	}},
	{name: "as many calls as there may be", large: true, make: func(size int) *wasm.Module {
		return many(min(size/2, 1_990_000)/19_900, func(int) []byte { return rep(19_900, 0x10, 0) })
	}},
	{name: "as many bulk operations as there may be, and long code", large: true, make: func(size int) *wasm.Module {
		n := min(size/60, 990_000) / 1000
		return many(n, func(int) []byte {
			return rep(1000, join(rep(8, 0x41, 0, 0x1a), []byte{0x41, 0, 0x41, 0, 0x3f, 0, 0xfc, 11, 0, 0x10, 0})...)
		})
	}},
	{name: "nested loops", large: true, make: func(size int) *wasm.Module {
		return fill(size, join(rep(4000, 0x03, 0x40), rep(4000, 0x41, 0, 0x0d, 0, 0x0b)))
	}},
	{name: "nested loops with branches to all", make: func(size int) *wasm.Module {
		b := rep(4000, 0x03, 0x40)
		for i := range 4000 {
			b = join(b, []byte{0x41, 0, 0x0d}, uleb(i))
		}
		return fill(size, join(b, rep(4000, 0x0b)))
	}},
	{name: "loops in a row", make: func(size int) *wasm.Module {
		return fill(size, rep(min(size, 1_000_000)/9, 0x03, 0x40, 0x41, 0, 0x0d, 0, 0x0b))
	}},
	{name: "loops in functions", make: func(size int) *wasm.Module {
		return fill(size, rep(2, 0x03, 0x40, 0x03, 0x40, 0x41, 0, 0x0d, 0, 0x0b, 0x41, 0, 0x0d, 0, 0x0b))
	}},
	{name: "pairs of loops", make: func(size int) *wasm.Module {
		return fill(size, rep(min(size, 1_000_000)/20, 0x03, 0x40, 0x03, 0x40, 0x41, 0, 0x0d, 0, 0x0b, 0x41, 0, 0x0d, 0, 0x0b))
	}},
	{name: "ifs in a row", make: func(size int) *wasm.Module {
		return fill(size, rep(min(size, 1_000_000)/7, 0x41, 0, 0x04, 0x40, 0x0b))
	}},
	{name: "nested ifs", make: func(size int) *wasm.Module {
		return fill(size, join(rep(4000, 0x41, 0, 0x04, 0x40), rep(4000, 0x05, 0x0b)))
	}},
	{name: "branches out of a loop", make: func(size int) *wasm.Module {
		return fill(size, join([]byte{0x03, 0x40}, rep(min(size, 1_000_000)/5, 0x41, 0, 0x0d, 0), []byte{0x0b}))
	}},
	{name: "branches out of a block", make: func(size int) *wasm.Module {
		return fill(size, join([]byte{0x02, 0x40}, rep(min(size, 1_000_000)/5, 0x41, 0, 0x0d, 0), []byte{0x0b}))
	}},
	{name: "tables of branches, one label", large: true, make: func(size int) *wasm.Module {
		return fill(size, join(rep(60, 0x02, 0x40), rep(60, join([]byte{0x41, 0, 0x0e}, uleb(16000), rep(16001, 0), []byte{0x0b})...)))
	}},
	{name: "tables of branches, all labels", make: func(size int) *wasm.Module {
		var b []byte
		var t []byte
		for i := range 4000 {
			t = append(t, uleb(i)...)
		}
		b = rep(4000, 0x02, 0x40)
		for range 100 {
			b = join(b, []byte{0x02, 0x40, 0x41, 0, 0x0e}, uleb(3999), t, []byte{0x0b})
		}
		return fill(size, join(b, rep(4000, 0x0b)))
	}},
	{name: "calls of one function", make: func(size int) *wasm.Module {
		return fill(size, rep(min(size, 1_000_000)/3, 0x10, 0))
	}},
	{name: "calls through a table", make: func(size int) *wasm.Module {
		return taken(fill(size, rep(min(size, 1_000_000)/6, 0x41, 0, 0x11, 0, 0)))
	}},
	{name: "a chain of functions", make: func(int) *wasm.Module {
		return many(100_000, func(i int) []byte { return append([]byte{0x10}, uleb(min(i+1, 99_999))...) })
	}},
	{name: "one cycle of functions", make: func(int) *wasm.Module {
		return many(100_000, func(i int) []byte { return append([]byte{0x10}, uleb((i+1)%100_000)...) })
	}},
	{name: "a tree of calls", make: func(int) *wasm.Module {
		return many(100_000, func(i int) []byte {
			var b []byte
			for range 10 {
				b = append(append(b, 0x10), uleb(min(i+1, 99_999))...)
			}
			return b
		})
	}},
	{name: "cycles of growing weight", make: func(size int) *wasm.Module {
		n := min(size/12, 100_000)
		return many(n, func(i int) []byte {
			b := append([]byte{0x10}, uleb((i+1)%n)...)
			return append(append(b, 0x10), uleb((i+n/2+i%7)%n)...)
		})
	}},
	{name: "a ring, and calls back that grow", make: func(size int) *wasm.Module {
		n := 20_000
		each := max(size/n/5, 1)
		return many(n, func(i int) []byte {
			b := append([]byte{0x10}, uleb((i+1)%n)...)
			for k := range each * i / n * 2 {
				b = append(append(b, 0x10), uleb((i*7+k*k+k)%n)...)
			}
			return b
		})
	}},
	{name: "all functions call all", large: true, make: func(size int) *wasm.Module {
		n := 500
		for n*n*3 < size {
			n += n / 10
		}
		n = min(n, 1400)
		return many(n, func(i int) []byte {
			var b []byte
			for k := range n {
				b = append(append(b, 0x10), uleb((i+k)%n)...)
			}
			return b
		})
	}},
	{name: "two sides and many knots", large: true, make: func(size int) *wasm.Module {
		// Many functions that connect better than the few with most of the calls,
		// so that those are looked at in every round.
		k := 30
		for k*k*3 < size/2 && k*k < 900_000 {
			k++
		}
		knots := min(size/2/300, 12_000)
		n := 2*k + knots
		return many(n, func(i int) []byte {
			var b []byte
			call := func(f int) { b = append(append(b, 0x10), uleb(f)...) }
			switch {
			case i < k:
				for j := range k {
					call(k + j)
				}
			case i < 2*k:
				call(2*k + i%max(knots, 1))
			default:
				for j := range 80 {
					call(2*k + (i*31+j*j*17+j)%knots)
				}
				call(i % k)
			}
			return b
		})
	}},
	{name: "many types, all through tables", make: func(size int) *wasm.Module {
		m := many(min(size/60, 100_000), func(i int) []byte { return nil })
		m.Types = nil
		for i := range 9_000 {
			t := wasm.FuncType{}
			for k := i; k > 0; k /= 7 {
				t.Params = append(t.Params, []wasm.ValType{wasm.I32, wasm.I64, wasm.F32, wasm.F64, wasm.FuncRef, wasm.ExternRef, wasm.V128}[k%7])
			}
			m.Types = append(m.Types, t)
		}
		for i := range m.Funcs {
			m.Funcs[i] = uint32(i % 9_000)
			var b []byte
			for j := range 8 {
				b = join(b, []byte{0x00, 0x11}, uleb((i*13+j*j*101)%9_000), []byte{0})
			}
			m.Codes[i].Body = append(b, 0x0b)
		}
		return taken(m)
	}},
	{name: "types of a thousand, in dead code", never: true, make: func(size int) *wasm.Module {
		t := wasm.FuncType{Params: make([]wasm.ValType, 1000), Results: make([]wasm.ValType, 1000)}
		for i := range t.Params {
			t.Params[i], t.Results[i] = wasm.I32, wasm.I32
		}
		m := many(min(size/40, 100_000), func(int) []byte { return append([]byte{0x00}, rep(9, 0x10, 0, 0x00)...) })
		m.Types = append(m.Types, t)
		m.Codes[0].Body = []byte{0x00, 0x0b}
		m.Funcs[0] = 1
		return m
	}},
	{name: "five thousand locals each", make: func(size int) *wasm.Module {
		m := many(min(size/12, 100_000), func(int) []byte { return nil })
		for i := range m.Codes {
			m.Codes[i].Locals = []wasm.LocalGroup{{Count: 5000, Type: wasm.I32}}
		}
		return m
	}},
	{name: "groups of locals", large: true, make: func(size int) *wasm.Module {
		m := many(max(size/10_000, 1), func(int) []byte { return nil })
		for i := range m.Codes {
			for k := range 4_900 {
				m.Codes[i].Locals = append(m.Codes[i].Locals, wasm.LocalGroup{Count: 1, Type: wasm.I32 - wasm.ValType(k%2)})
			}
		}
		return m
	}},
	{name: "bulk operations", make: func(size int) *wasm.Module {
		return fill(size, rep(min(size, 1_000_000)/11, 0x41, 0, 0x41, 0, 0x3f, 0, 0xfc, 10, 0, 0))
	}},
	{name: "table operations", large: true, make: func(size int) *wasm.Module {
		return fill(size, rep(min(size, 1_000_000)/8, 0xd0, 0x70, 0x41, 0, 0xfc, 15, 0, 0x1a))
	}},
	{name: "expressions in segments", make: func(int) *wasm.Module {
		m := many(1, func(int) []byte { return nil })
		e := wasm.Elem{Mode: wasm.Passive, Type: wasm.FuncRef}
		for range 990_000 {
			e.Exprs = append(e.Exprs, []byte{0xd2, 0, 0x0b})
		}
		m.Elems = []wasm.Elem{e}
		return m
	}},
	{name: "data segments", make: func(int) *wasm.Module {
		m := many(1, func(int) []byte { return nil })
		for range 199_000 {
			m.Datas = append(m.Datas, wasm.Data{Offset: []byte{0x41, 0, 0x0b}})
		}
		return m
	}},
	{name: "long constant expressions", make: func(size int) *wasm.Module {
		m := many(1, func(int) []byte { return nil })
		for range min(size/4100, 9_000) {
			m.Globals = append(m.Globals, wasm.Global{GlobalType: wasm.GlobalType{Type: wasm.I32}, Init: join([]byte{0x41, 0}, rep(1360, 0x41, 0, 0x6a), []byte{0x0b})})
		}
		return m
	}},
	{name: "deep operands", make: func(size int) *wasm.Module {
		n := min(size, 1_000_000) / 4
		return fill(size, join(rep(n, 0x41, 0), rep(n, 0x1a)))
	}},
	{name: "references to everything", make: func(size int) *wasm.Module {
		return taken(fill(size, rep(min(size, 1_000_000)/4, 0xd2, 0, 0x1a)))
	}},
}

// peak watches how much memory is in use while do runs. It does not stop the program to look, as
// runtime.ReadMemStats does.
func peak(do func()) (most uint64) {
	runtime.GC()
	used := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(used)
	before := used[0].Value.Uint64()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			metrics.Read(used)
			most = max(most, used[0].Value.Uint64())
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	do()
	close(stop)
	<-done
	return most - min(before, most)
}

// TestHostileModules checks and meters modules that are made to cost much, of
// 1 MiB and of 24 MiB, where the caps end most of them. They must be refused, or be done within
// 512 MiB of memory, in proportion to their size.
//
// Work is counted, since time says more of the machine than of the algorithms. All
// passes look at each instruction, block and call a fixed number of times, but for
// the one that cuts cycles of calls; that one counts its steps. What comes out bounds
// what the passes behind write and read.
func TestHostileModules(t *testing.T) {
	const (
		most    = 512 * mib
		rounds  = 40 // looks at each call
		growth  = 16 // bytes that come out for each that goes in
		objects = 4  // allocations for each byte
	)
	for _, h := range hostile {
		for _, size := range []int{mib, 24 * mib} {
			if size > mib && (testing.Short() || raceDetector || !h.large) {
				continue
			}
			b := h.make(size).Encode()
			var accepted *check.Result
			var code check.Code
			var out, steps, calls int
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := peak(func() {
				// Metering has to be cheap also for what is too dear to compile.
				res, err := check.Module(b, &check.Options{CompileFunction: 1000 * time.Hour, CompileModule: 1000 * time.Hour, CompileMemory: 1 << 40})
				var e *check.Error
				if errors.As(err, &e) {
					code = e.Code
					return
				}
				accepted = res
				rw, err := meter.Rewrite(res.Module, res.MaxStack, nil)
				if err != nil {
					t.Errorf("%s, %d bytes: %v", h.name, len(b), err)
					return
				}
				out = len(rw.Module.Encode())
			})
			runtime.ReadMemStats(&after)
			if accepted != nil {
				steps, calls = meter.CutSteps(accepted.Module, accepted.MaxStack)
			}
			allocs := int(after.Mallocs - before.Mallocs)
			t.Logf("%-40s %5.1f MiB: %3d MiB, %4.1f rounds, %4.1f times as large, %4.2f allocations a byte %s", h.name,
				float64(len(b))/mib, got/mib, float64(steps)/float64(max(calls, 1)), float64(out)/float64(len(b)), float64(allocs)/float64(len(b)), code)
			if got > most {
				t.Errorf("%s, %d bytes: %d MiB of memory", h.name, len(b), got/mib)
			}
			if steps > rounds*calls {
				t.Errorf("%s, %d bytes: %d looks at %d calls", h.name, len(b), steps, calls)
			}
			if out > growth*len(b) || allocs > objects*len(b) {
				t.Errorf("%s, %d bytes: %d bytes came out, of %d allocations", h.name, len(b), out, allocs)
			}
			if code != "" && (code != check.ModuleTooComplex || size == mib && !h.never) {
				t.Errorf("%s, %d bytes: refused with %s", h.name, len(b), code)
			}
		}
	}
}
