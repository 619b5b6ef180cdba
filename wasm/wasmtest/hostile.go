package wasmtest

import (
	"encoding/hex"
	"io"
	"time"

	"openskill/wasm"
	"openskill/wasm/binary"
	"openskill/wasm/check"
)

// Case is a module that does harm, or tries to, and what must come of it.
type Case struct {
	Name   string // its number in the list of threats, and what it does
	Module []byte

	// Refused is the verdict of the checker; "" means that it is compiled and run.
	Refused check.Code

	Want     wasm.Ended
	ExitCode uint32
	Trap     string
	Stdout   string // all of it, for runs that returned or exited

	Entry  string // the function to call; "" means _start
	Limits wasm.Limits
	// Compiled says that the interpreter ends it otherwise: it has no more than
	// 2,000 frames.
	Compiled bool
	// Stdin makes the input of one run, and a function that lets go of it; nil
	// means empty.
	Stdin func() (io.Reader, func())
}

// Run is what to run the module with. The function lets go of the input, and is
// called after the run.
func (c *Case) Run() (*wasm.Run, func()) {
	r := &wasm.Run{Entry: c.Entry, Limits: c.Limits}
	if c.Stdin == nil {
		return r, func() {}
	}
	stdin, done := c.Stdin()
	r.Stdin = stdin
	return r, done
}

// Short is a deadline for cases that only a deadline ends, and Fuel a budget for
// those that fuel ends: a second or two of work on a loaded machine.
const (
	Short = 300 * time.Millisecond
	Fuel  = 200_000_000
)

// Hostile gives the cases that a process survives. They are made anew in each
// call, and each may be run any number of times.
func Hostile() []Case {
	var all []Case
	for _, part := range [][]Case{endless(), bulk(), recursion(), memory(), streams(), calls(), isolation()} {
		all = append(all, part...)
	}
	return all
}

// Find gives one case by its name.
func Find(name string) (Case, bool) {
	for _, c := range Hostile() {
		if c.Name == name {
			return c, true
		}
	}
	return Case{}, false
}

var (
	fuel  = wasm.Limits{Fuel: Fuel, Timeout: time.Minute}
	clock = wasm.Limits{Fuel: 1 << 60, Timeout: Short}
)

func endless() []Case {
	loop := New()
	loop.Command(Loop(Br(0)))

	start := New()
	start.Start(start.Void(Loop(Br(0))))

	// Sixty levels, each calling the one below twice: 2^60 calls and no loop.
	tree := New()
	tree.Void("")
	for range 59 {
		tree.Void(Call(tree.Next()-1) + Call(tree.Next()-1))
	}
	tree.Command(Call(tree.Next()-1) + Call(tree.Next()-1))

	// Eight megabytes, 75,000 times, without a branch; in 300 functions, since the
	// compiler takes minutes for one that holds them all (see OneLine).
	line := New()
	line.Memory(256)
	var lines Code
	for range 300 {
		lines += Call(line.Void(copies(250)))
	}
	line.Command(lines)

	// A tree of calls whose leaves fill eight megabytes.
	fill := New()
	fill.Memory(128)
	fill.Void(I32(0) + I32(1) + I32(8<<20) + MemoryFill)
	for range 20 {
		fill.Void(Call(fill.Next()-1) + Call(fill.Next()-1))
	}
	fill.Command(Call(fill.Next() - 1))

	return []Case{
		{Name: "E01 endless loop", Module: loop.Bytes(), Want: wasm.OutOfFuel, Limits: fuel},
		{Name: "E01 endless loop until the deadline", Module: loop.Bytes(), Want: wasm.OutOfTime, Limits: clock},
		{Name: "E02 endless start function", Module: start.Bytes(), Want: wasm.OutOfFuel, Limits: fuel},
		{Name: "E02 endless start function until the deadline", Module: start.Bytes(), Want: wasm.OutOfTime, Limits: clock},
		{Name: "E03 exponential calls without a loop", Module: tree.Bytes(), Want: wasm.OutOfFuel, Limits: fuel},
		{Name: "E03 exponential calls until the deadline", Module: tree.Bytes(), Want: wasm.OutOfTime, Limits: clock},
		{Name: "E03 a tree of calls whose leaves do much", Module: branches("").Bytes(), Want: wasm.OutOfFuel, Limits: fuel},
		{Name: "E03 a tree of calls whose leaves do much, until the deadline", Module: branches("").Bytes(), Want: wasm.OutOfTime, Limits: clock},
		{Name: "E03 a tree of calls that branches leave", Module: branches(I32(1) + BrIf(0)).Bytes(), Want: wasm.OutOfFuel, Limits: fuel},
		{Name: "E05 straight line of memory.copy", Module: line.Bytes(), Want: wasm.OutOfFuel, Limits: fuel},
		{Name: "E05 straight line of memory.copy until the deadline", Module: line.Bytes(), Want: wasm.OutOfTime, Limits: clock},
		{Name: "E06 tree of memory.fill", Module: fill.Bytes(), Want: wasm.OutOfFuel, Limits: fuel},
		{Name: "E06 tree of memory.fill until the deadline", Module: fill.Bytes(), Want: wasm.OutOfTime, Limits: clock},
	}
}

// copies is n times eight megabytes in a straight line.
func copies(n int) Code {
	return I32(8<<20) + Set(1) + Repeat(n, Get(0)+Get(1)+Get(1)+MemoryCopy)
}

// OneLine is a command of one function with n times memory.copy in a row: a valid
// module for whose compilation time there is no good bound.
func OneLine(n int) []byte {
	b := New()
	b.Memory(256)
	b.Command(copies(n))
	return b.Bytes()
}

func recursion() []Case {
	plain := New()
	plain.Command(Call(plain.Next()))

	mutual := New()
	mutual.Void(Call(mutual.Next() + 1))
	mutual.Void(Call(mutual.Next() + 1))
	mutual.Command(Call(0))

	indirect := New()
	indirect.Table(1, 0)
	indirect.Command(I32(0) + CallIndirect(indirect.Type(nil, nil)))

	// A start function that recurses, before anything is exported.
	start := New()
	start.Start(start.Void(Call(0)))

	return []Case{
		{Name: "E07 endless recursion", Module: plain.Bytes(), Want: wasm.OutOfStack, Limits: deep},
		{Name: "E07 endless mutual recursion", Module: mutual.Bytes(), Want: wasm.OutOfStack, Limits: deep},
		{Name: "E07 endless recursion through a table", Module: indirect.Bytes(), Want: wasm.OutOfStack, Limits: deep},
		{Name: "E07 endless recursion in the start function", Module: start.Bytes(), Want: wasm.OutOfStack, Limits: deep},
		{Name: "E07 endless recursion with 5,000 locals", Module: frames(1 << 30), Want: wasm.OutOfStack, Limits: deep},
		{Name: "E07 endless recursion with instructions that are rewritten", Module: rewritten(), Want: wasm.OutOfStack, Limits: deep},
		{Name: "E07 recursion that unwinds", Module: unwinds(), Want: wasm.Exited, ExitCode: 20_000, Limits: deep, Compiled: true},
		{Name: "E07 recursion that works on its way back, for what it paid before", Module: paidBefore(), Want: wasm.OutOfTime, Limits: clock, Compiled: true},
	}
}

var deep = wasm.Limits{Fuel: 1 << 60, Timeout: 20 * time.Second}

// frames recurses n deep with 5,000 locals, which stay alive across the call:
// each is the result of a call before it and is read after it, so that the
// compiler has to keep every one of them in the frame.
func frames(n int64) []byte {
	b := New()
	b.Global(n)
	b.Global(1)
	i32 := []binary.ValType{TypeI32}
	one := b.Func(nil, i32, nil, GlobalGet(1))
	var before, after Code
	for i := range uint32(5000) {
		before += Call(one) + Set(i)
		after += Get(i) + Add
	}
	self := b.Next()
	b.Func(nil, i32, []binary.LocalGroup{{Count: 5000, Type: TypeI32}},
		GlobalGet(0)+I32(1)+Sub+GlobalSet(0)+
			GlobalGet(0)+Eqz+If(I32(0)+Return)+
			before+Call(self)+after)
	b.Command(Call(self) + Drop)
	return b.Bytes()
}

// rewritten recurses with values that stay alive across the call and come of instructions
// which package amend rewrites: the locals that it adds, and the values that these hold, are
// in no price of a call.
func rewritten() []byte {
	const vectors, floats = 300, 300
	b := New()
	b.Global(1)
	i32 := []binary.ValType{TypeI32}
	one := b.Func(nil, i32, nil, GlobalGet(0))
	var before, after Code
	for i := range uint32(vectors) {
		before += Get(i) + Get((i+1)%vectors) + Call(one) + "\x1b" + Set(i) // select
		after += Get(i) + "\xfd\x53" + Add                                  // v128.any_true
	}
	for i := range uint32(floats) {
		x := vectors + i
		before += Get(x) + Get(vectors+(i+1)%floats) + "\xa6" + Call(one) + "\x67\xad\xba\xa0" + Set(x) // copysign, clz, extend, convert, add
		after += Get(x) + "\xbd\xa7" + Add                                                              // reinterpret, wrap
	}
	self := b.Next()
	b.Func(nil, i32, []binary.LocalGroup{{Count: vectors, Type: binary.V128}, {Count: floats, Type: binary.F64}},
		GlobalGet(0)+Eqz+If(I32(0)+Return)+before+Call(self)+after)
	b.Command(Call(self) + Drop)
	return b.Bytes()
}

// unwinds goes 20,000 calls deep and gives the depth back on the way up.
func unwinds() []byte {
	b := New()
	exit := b.Import("proc_exit")
	i32 := []binary.ValType{TypeI32}
	self := b.Next()
	b.Func(i32, i32, nil, Get(0)+Eqz+If(I32(0)+Return)+Get(0)+I32(1)+Sub+Call(self)+I32(1)+Add)
	b.Command(I32(20_000) + Call(self) + Call(exit))
	return b.Bytes()
}

// paidBefore goes 120,000 calls deep, and divides 10,000 times behind each of them. An arm
// that is never taken costs as much and a little more: what is paid for it on the way down
// must not pay for the divisions, or nothing is charged on the way back, for seconds.
func paidBefore() []byte {
	b := New()
	g := b.GlobalOf(TypeI64, I64(1<<62))
	work := func(n int) Code { return GlobalGet(g) + Repeat(n, I64(1)+DivU64) + GlobalSet(g) }
	self := b.Next()
	b.Func([]binary.ValType{TypeI32}, nil, nil, Get(0)+Eqz+If(Return)+
		Get(0)+Eqz+If(work(10_100)+Return)+
		Get(0)+I32(1)+Sub+Call(self)+work(10_000))
	b.Command(Loop(I32(120_000) + Call(self) + Br(0)))
	return b.Bytes()
}

// branches is a tree of calls without a cycle: only the sum of what its functions charge
// makes them visit the host. Each of them ends with left.
func branches(left Code) *Builder {
	b := New()
	g := b.Global(0)
	f := b.Void(Repeat(1100, GlobalGet(g)+I32(1)+Add+GlobalSet(g)) + left)
	for range 4 {
		f = b.Void(Repeat(200, Call(f)) + left)
	}
	b.Command(Call(f))
	return b
}

func memory() []Case {
	// One page more each time, every byte of it written, as long as it is given.
	grow := New()
	grow.Memory(0)
	grow.Command(Loop(
		I32(1) + MemoryGrow + Tee(0) + I32(-1) + Eq + If(Unreachable) +
			Get(0) + I32(1<<16) + Mul + I32(7) + I32(1<<16) + MemoryFill + Br(0)))

	huge := New()
	huge.Memory(65536)
	huge.Command("")

	beyond := New()
	beyond.Memory(1)
	beyond.Data(1<<16-1, "ab")
	beyond.Command("")

	table, err := hex.DecodeString("0061736d01000000010401600000030201000404016f00000503010001071302065f73746172740000066d656d6f727902000a0c010a00d06f417efc0f001a0b")
	if err != nil {
		panic(err)
	}

	refs := New()
	refs.Command(Loop(RefFunc(refs.Next()) + Drop + Br(0)))

	return []Case{
		{
			Name: "E10 references to functions without end", Module: refs.Bytes(), Want: wasm.OutOfFuel,
			Limits: wasm.Limits{Fuel: 60_000_000, Memory: 16 << 20, Timeout: time.Minute},
		},
		{
			Name: "E09 memory grown and touched page by page", Module: grow.Bytes(), Want: wasm.OutOfMemory,
			Limits: wasm.Limits{Memory: 64 << 20, Timeout: 20 * time.Second},
		},
		{Name: "E10 minimum over the limit", Module: huge.Bytes(), Want: wasm.OutOfMemory, Limits: wasm.Limits{Memory: 64 << 20}},
		{Name: "E10 data beyond the memory", Module: beyond.Bytes(), Want: wasm.Trapped, Trap: "out of bounds memory access"},
		{Name: "E11 table.grow 2^32-2", Module: table, Want: wasm.OutOfTable, Limits: deep},
		{Name: "E11 table.grow 2^32-2 on little fuel", Module: table, Want: wasm.OutOfTable, Limits: fuel},
	}
}
