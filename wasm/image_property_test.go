package wasm_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/fstest"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/binary"
	"openskill/wasm/guestfs"
	"openskill/wasm/image"
	"openskill/wasm/wasmtest"
)

// A random guest is a command of three parts: a start-up that makes some state, a
// loop that reads a byte and does what it says, and an end. What a byte does is
// random too: it changes state of some kind, or tells of it. State is told by adding
// it up in a global, which is printed at the end.
//
// Every guest has the same state to play with, at the addresses and numbers below.
const (
	rIOV, rCount, rNumber, rInput, rSum = 64, 72, 76, 128, 136
	rPath                               = 16   // "work/a", "work/b", …
	rPaths                              = 4    // of them, of six bytes each
	rHeap                               = 4096 // to be marked
	rOps                                = 8    // what bytes of input do
)

type guestState struct {
	*wasmtest.Builder

	rng                                                      *rand.Rand
	themes                                                   []int // what it is about
	exit, open, read, write, seek, closeFD, unlink, renumber uint32
	setTimes, stat, random, clock                            uint32
	sum, small, wide, float, double                          uint32 // globals
	nothing, data, elems                                     uint32
}

func i32(v ...int64) (c wasmtest.Code) {
	for _, x := range v {
		c += wasmtest.I32(x)
	}
	return c
}

// add adds what is on the operand stack to the sum, so that order counts.
func (g *guestState) add(value wasmtest.Code) wasmtest.Code {
	return wasmtest.GlobalGet(g.sum) + wasmtest.I32(31) + wasmtest.Mul + value + wasmtest.Add + wasmtest.GlobalSet(g.sum)
}

const (
	wrap      wasmtest.Code = "\xa7" // i64 to i32
	bitsOf32  wasmtest.Code = "\xbc" // f32 to i32
	bitsOf64  wasmtest.Code = "\xbd" // f64 to i64
	floatOf32 wasmtest.Code = "\xbe"
	floatOf64 wasmtest.Code = "\xbf"
)

func (g *guestState) path() int64    { return rPath + 6*int64(g.rng.IntN(rPaths)) }
func (g *guestState) address() int64 { return rHeap + 13_000*int64(g.rng.IntN(8)) }
func (g *guestState) value() int64   { return int64(int32(g.rng.Uint32())) }

// opening opens a path of six bytes in the only preopen.
func (g *guestState) opening(path, oflags int64) wasmtest.Code {
	const readWrite = 1<<6 | 1<<1 | 1<<2
	return i32(3, 0, path, 6, oflags) + wasmtest.I64(readWrite) + wasmtest.I64(0) + i32(0, rNumber) + wasmtest.Call(g.open)
}

// fd is the descriptor that was opened last, or one of a few.
func (g *guestState) fd() wasmtest.Code {
	if g.rng.IntN(2) == 0 {
		return i32(rNumber) + wasmtest.Load
	}
	return i32(int64(4 + g.rng.IntN(3)))
}

// vector is a list of one buffer.
func vector(at, n int64) wasmtest.Code {
	return i32(rIOV, at) + wasmtest.Store + i32(rIOV+4, n) + wasmtest.Store
}

// change is code that changes some state, or sees some.
func (g *guestState) change(started bool) wasmtest.Code {
	transfer := func(f uint32, fd wasmtest.Code, n int64) wasmtest.Code {
		return vector(g.address(), n) + g.add(fd+i32(rIOV, 1, rCount)+wasmtest.Call(f)) + g.add(i32(rCount)+wasmtest.Load)
	}
	small := func() int64 { return int64(g.rng.IntN(4)) }
	themes := [][]func() wasmtest.Code{
		{ // memory
			func() wasmtest.Code { return i32(g.address(), g.value()) + wasmtest.Store },
			func() wasmtest.Code { return i32(g.address(), g.value()&255, small()*2000) + wasmtest.MemoryFill },
			func() wasmtest.Code { return g.add(i32(g.address()) + wasmtest.Load) },
			func() wasmtest.Code { return g.add(i32(g.address()) + wasmtest.Load) },
		},
		{ // globals
			func() wasmtest.Code { return i32(g.value()) + wasmtest.GlobalSet(g.small) },
			func() wasmtest.Code { return wasmtest.I64(g.value()<<20) + wasmtest.GlobalSet(g.wide) },
			func() wasmtest.Code { return i32(g.value()) + floatOf32 + wasmtest.GlobalSet(g.float) },
			func() wasmtest.Code { return wasmtest.I64(g.value()<<30) + floatOf64 + wasmtest.GlobalSet(g.double) },
			func() wasmtest.Code {
				return g.add(wasmtest.GlobalGet(g.small)) + g.add(wasmtest.GlobalGet(g.wide)+wrap) +
					g.add(wasmtest.GlobalGet(g.float)+bitsOf32) + g.add(wasmtest.GlobalGet(g.double)+bitsOf64+wrap)
			},
		},
		{ // the stack
			func() wasmtest.Code { return i32(g.value()) + wasmtest.Set(uint32(1+g.rng.IntN(3))) },
			func() wasmtest.Code { return g.add(wasmtest.Get(uint32(1 + g.rng.IntN(3)))) },
			func() wasmtest.Code { return wasmtest.I64(g.value()) + wasmtest.Set(4) },
			func() wasmtest.Code { return g.add(wasmtest.Get(4) + wrap) },
		},
		{ // tables
			func() wasmtest.Code { return i32(small()) + wasmtest.RefFunc(g.nothing) + wasmtest.TableSet(0) },
			func() wasmtest.Code { return i32(small()) + wasmtest.NullFunc + wasmtest.TableSet(0) },
			func() wasmtest.Code { return wasmtest.NullFunc + i32(1) + wasmtest.TableGrow(0) + wasmtest.Drop },
			func() wasmtest.Code { return g.add(wasmtest.TableSize(0)) },
			func() wasmtest.Code { return g.add(i32(small()) + wasmtest.TableGet(0) + wasmtest.IsNull) },
		},
		{ // segments
			func() wasmtest.Code { return when(started, wasmtest.DataDrop(g.data)) },
			func() wasmtest.Code { return when(started, wasmtest.ElemDrop(g.elems)) },
			func() wasmtest.Code { return i32(g.address(), 0, 7) + wasmtest.MemoryInit(g.data) },
			func() wasmtest.Code { return i32(0, 0, 1) + wasmtest.TableInit(g.elems) },
		},
		{ // the size of memory
			func() wasmtest.Code { return g.add(i32(int64(g.rng.IntN(2))) + wasmtest.MemoryGrow) },
			func() wasmtest.Code { return g.add(wasmtest.MemorySize) },
		},
		{ // files and descriptors
			func() wasmtest.Code {
				return g.add(g.opening(g.path(), int64(g.rng.IntN(2)))) + g.add(i32(rNumber)+wasmtest.Load)
			},
			func() wasmtest.Code { return g.add(i32(3, g.path(), 6) + wasmtest.Call(g.unlink)) },
			func() wasmtest.Code { return g.add(g.fd() + wasmtest.Call(g.closeFD)) },
			func() wasmtest.Code { return transfer(g.write, g.fd(), int64(1+g.rng.IntN(100))) },
			func() wasmtest.Code { return transfer(g.read, g.fd(), int64(1+g.rng.IntN(100))) },
			func() wasmtest.Code {
				return g.add(g.fd()+wasmtest.I64(int64(g.rng.IntN(50)))+i32(int64(g.rng.IntN(3)), 160)+wasmtest.Call(g.seek)) +
					g.add(i32(160)+wasmtest.Load)
			},
			func() wasmtest.Code { return g.add(g.fd() + g.fd() + wasmtest.Call(g.renumber)) },
		},
		{ // times of a file, or of the scratch folder itself
			func() wasmtest.Code {
				return g.add(i32(3, 0, rPath, int64(6-2*g.rng.IntN(2))) + wasmtest.I64(g.value()&0xffff) + wasmtest.I64(77) + i32(5) + wasmtest.Call(g.setTimes))
			},
			func() wasmtest.Code {
				return g.add(i32(3, 0, rPath, int64(6-2*g.rng.IntN(2)), 2048)+wasmtest.Call(g.stat)) + g.add(i32(2048+40)+wasmtest.Load)
			},
			func() wasmtest.Code { // made, and closed again
				return g.opening(rPath, 1) + wasmtest.Drop + i32(rNumber) + wasmtest.Load + wasmtest.Call(g.closeFD) + wasmtest.Drop
			},
		},
		{ // chance and clocks
			func() wasmtest.Code {
				return g.add(i32(2048, 8)+wasmtest.Call(g.random)) + g.add(i32(2048)+wasmtest.Load)
			},
			func() wasmtest.Code {
				return g.add(i32(int64(g.rng.IntN(2)))+wasmtest.I64(1)+i32(168)+wasmtest.Call(g.clock)) + g.add(i32(168)+wasmtest.Load)
			},
		},
	}
	ends := []wasmtest.Code{
		i32(g.value()&31) + wasmtest.Call(g.exit),
		wasmtest.Unreachable,
		wasmtest.Loop(wasmtest.Br(0)),
		wasmtest.Return,
		vector(rHeap, 3000) + i32(1, rIOV, 1, rCount) + wasmtest.Call(g.write) + wasmtest.Drop,
	}
	if started && g.rng.IntN(12) == 0 { // a start-up has none of these, or there would be no image
		return ends[g.rng.IntN(len(ends))]
	}
	if g.themes == nil {
		g.themes = g.rng.Perm(len(themes))[:2]
	}
	theme := themes[g.themes[g.rng.IntN(2)]]
	return theme[g.rng.IntN(len(theme))]()
}

func when(ok bool, c wasmtest.Code) wasmtest.Code {
	if !ok {
		return ""
	}
	return c
}

// randomGuest is a guest that is all determined by the seed.
func randomGuest(seed uint64) []byte {
	g := &guestState{Builder: wasmtest.New(), rng: rand.New(rand.NewPCG(seed, 1))}
	g.exit, g.open, g.read, g.write = g.Import("proc_exit"), g.Import("path_open"), g.Import("fd_read"), g.Import("fd_write")
	g.seek, g.closeFD, g.unlink, g.renumber = g.Import("fd_seek"), g.Import("fd_close"), g.Import("path_unlink_file"), g.Import("fd_renumber")
	g.setTimes, g.stat = g.Import("path_filestat_set_times"), g.Import("path_filestat_get")
	g.random, g.clock = g.Import("random_get"), g.Import("clock_time_get")
	g.Memory(4)
	g.Data(rPath, "work/awork/bwork/cwork/d")
	g.sum, g.small = g.Global(0), g.Global(1)
	g.wide = g.GlobalOf(wasmtest.TypeI64, wasmtest.I64(2))
	g.float = g.GlobalOf(binary.F32, wasmtest.Code("\x43\x00\x00\x80\x3f"))
	g.double = g.GlobalOf(binary.F64, wasmtest.Code("\x44\x00\x00\x00\x00\x00\x00\xf0\x3f"))
	g.nothing = g.Void("")
	g.Export("nothing", g.nothing)
	g.Table(4, g.nothing)
	g.data, g.elems = g.PassiveData("segment"), g.PassiveElem(g.nothing)

	some := func(n int, started bool) (c wasmtest.Code) {
		for range g.rng.IntN(n) + 1 {
			c += g.change(started)
		}
		return c
	}
	load := i32(rInput) + wasmtest.Load8
	var ops wasmtest.Code
	for op := range int64(rOps) {
		ops += load + i32(op) + wasmtest.Eq + wasmtest.If(some(4, true))
	}
	g.Command(some(8, false) +
		// While there is input: local 0 is not used by what is random.
		wasmtest.Loop(vector(rInput, 1)+i32(0, rIOV, 1, rCount)+wasmtest.Call(g.read)+wasmtest.Drop+
			i32(rCount)+wasmtest.Load+wasmtest.Set(0)+
			wasmtest.Get(0)+wasmtest.If(ops+i32(rSum)+wasmtest.GlobalGet(g.sum)+wasmtest.Store+
			vector(rSum, 4)+i32(1, rIOV, 1, rCount)+wasmtest.Call(g.write)+wasmtest.Drop)+
			wasmtest.Get(0)+wasmtest.BrIf(0)))
	return g.Bytes()
}

func propertyFiles() (wasm.Files, error) {
	still := func() time.Time { return time.Unix(1_700_000_000, 0) }
	scratch := guestfs.NewMemory(guestfs.Limits{Now: still})
	root, err := guestfs.NewTree(
		guestfs.Mount{Path: "/data", FS: guestfs.FromFS(fstest.MapFS{"f": {Data: []byte("content")}})},
		guestfs.Mount{Path: "/work", FS: scratch})
	return wasm.Files{Root: root, Scratch: scratch}, err
}

// seen is what a caller sees of a run, without times of the machine.
func seen(out *wasm.Outcome, files string) string {
	return fmt.Sprintf("%v, exit code %d, trap %q, fuel %d and %d, memory %d, output %x, files %s",
		out.Ended, out.ExitCode, out.Trap, out.StartFuel, out.Fuel, out.MemoryPeak, out.Stdout, files)
}

// propertyRun is a run with chance and clocks that are its own and always the same.
func propertyRun(im *wasm.Image, input []byte) (string, error) {
	now := int64(0)
	var files string
	out, err := im.Run(context.Background(), &wasm.Call{
		Stdin: bytes.NewReader(input), Limits: wasm.Limits{Fuel: 300_000, Output: 2000, Memory: 1 << 20},
		Random: rand.NewChaCha8([32]byte{1}),
		Wall:   func() time.Time { return time.Unix(1_700_000_001, 0) },
		Mono:   func() int64 { now += 1000; return now },
		Done: func(f wasm.Files) {
			for _, info := range f.Scratch.Files() {
				b, _ := f.Scratch.ReadFile(info.Name)
				files += fmt.Sprintf("%s=%x ", info.Name, b)
			}
		},
	})
	if err != nil {
		return "", err
	}
	return seen(out, files), nil
}

// inputs are what a guest is given in turn: few kinds, so that each comes again
// after others.
func inputs(rng *rand.Rand, n int) [][]byte {
	kinds := make([][]byte, 4)
	for i := range kinds {
		kinds[i] = make([]byte, 1+rng.IntN(5))
		for j := range kinds[i] {
			kinds[i][j] = byte(rng.IntN(rOps))
		}
	}
	all := make([][]byte, n)
	for i := range all {
		all[i] = kinds[rng.IntN(len(kinds))]
	}
	return all
}

// propertyHolds runs a random guest many times from one image, and each of its inputs
// once on an instance that nothing else ran on. It tells the first difference; "" if
// there is none. left are the steps of putting back that are left out of the former.
func propertyHolds(e *wasm.Engine, seed uint64, runs int, left wasm.Left) (string, error) {
	m, err := e.Compile(context.Background(), randomGuest(seed), nil)
	if err != nil {
		return "", err
	}
	p := &wasm.Program{Module: m, Open: propertyFiles, Limits: wasm.Limits{Fuel: 1_000_000, Memory: 1 << 20}}
	im := e.Image(p, &wasm.ImageOptions{Spare: -1})
	defer im.Close()
	im.Leave(left)
	fresh := map[string]string{}
	rng := rand.New(rand.NewPCG(seed, 2))
	for i, input := range inputs(rng, runs) {
		got, err := propertyRun(im, input)
		if err != nil {
			return "", err
		}
		want, ok := fresh[string(input)]
		if !ok {
			once := e.Image(p, &wasm.ImageOptions{Spare: -1, Instances: 1})
			once.LikeStart(im)
			want, err = propertyRun(once, input)
			once.Close()
			if err != nil {
				return "", err
			}
			fresh[string(input)] = want
		}
		if got != want {
			return fmt.Sprintf("guest %d, run %d with input %x:\n got %s\nwant %s", seed, i, input, got, want), nil
		}
	}
	return "", nil
}

// TestImageProperty holds for random guests and random inputs that a run from an
// image that has served others is the same as the first run of an image of its own:
// how it ends, what it prints, what it leaves in its files, and what it costs.
func TestImageProperty(t *testing.T) {
	e := open(t, nil)
	guests := uint64(150)
	if testing.Short() || raceDetector {
		guests = 25
	}
	for seed := range guests {
		if different, err := propertyHolds(e, seed, 25, 0); err != nil {
			t.Fatalf("guest %d: %v", seed, err)
		} else if different != "" {
			t.Error(different)
		}
	}
}

// TestImagePropertyNotices leaves out one step of putting back at a time: the
// property must fail within a bounded number of guests. The stack is no step to leave
// out here: a guest that does anything at all then goes on in the wreck of another's
// frames, and may take the process down.
func TestImagePropertyNotices(t *testing.T) {
	if !image.Supported {
		t.Skip("instances are used once on this platform")
	}
	e := open(t, nil)
	for name, left := range map[string]wasm.Left{
		"memory": wasm.LeaveMemory, "globals": wasm.LeaveGlobals, "tables and segments": wasm.LeaveTouched,
		"grown memory": wasm.LeaveGrown, "descriptors": wasm.LeaveDescriptors,
		"scratch": wasm.LeaveScratch, "chance": wasm.LeaveChance,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(200) {
				different, err := propertyHolds(e, seed, 25, left)
				if err != nil || different != "" {
					t.Logf("after %d guests: %.300s %v", seed+1, different, err)
					return
				}
			}
			t.Error("without this step no guest of 200 shows a difference: the property proves nothing of it")
		})
	}
}

// FuzzImageProperty looks for a guest that shows a difference.
func FuzzImageProperty(f *testing.F) {
	e := musttest.Get(wasm.Open(asWorkers(nil)))(f)
	defer e.Close()
	for _, seed := range []uint64{0, 1, math.MaxUint64} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		if different, err := propertyHolds(e, seed, 15, 0); err != nil || different != "" {
			t.Error(different, err)
		}
	})
}
