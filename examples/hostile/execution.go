package hostile

import (
	"strings"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/binary"
	"openskill/wasm/wasi"
	asm "openskill/wasm/wasmtest"
)

// The limits of cases that fuel ends, that only the deadline ends, and that something
// else ends.
var (
	byFuel = skill.Limits{Fuel: 100_000_000, Timeout: 30 * time.Second} // of which a machine without other work needs one
	byTime = skill.Limits{Timeout: asm.Short}
	deep   = skill.Limits{Timeout: 30 * time.Second}
)

// ends is how the door tells of what the engine tells of. A guest that ends well
// without printing JSON has not answered.
var ends = map[wasm.Ended]skill.Code{
	wasm.Returned: skill.InvalidOutput, wasm.Trapped: skill.Trap, wasm.OutOfFuel: skill.FuelExhausted,
	wasm.OutOfTime: skill.Timeout, wasm.OutOfMemory: skill.MemoryLimit, wasm.OutOfTable: skill.TableLimit,
	wasm.OutOfStack: skill.StackLimit, wasm.OutputOverflow: skill.OutputLimit,
}

// execution are the E cases.
func execution() []Case {
	return append(fromEngine(), ofOurs()...)
}

// fromEngine are the cases that the engine is held to, as skills.
func fromEngine() []Case {
	var all []Case
	for _, c := range asm.Hostile() {
		if c.Stdin != nil || strings.HasPrefix(c.Name, "E21") || strings.HasPrefix(c.Name, "X") {
			continue // input is always whole at this door; the others are in results and isolation
		}
		promise, limit := about(c.Name)
		s := Case{Name: c.Name, Promise: promise, Limit: limit, Wears: promise == Bounded}
		switch {
		case c.Want == wasm.Exited && c.ExitCode != 0:
			s.Ends = []skill.Code{skill.GuestExit}
		case c.Want == wasm.Exited:
			s.Ends = []skill.Code{skill.InvalidOutput}
		default:
			s.Ends = []skill.Code{ends[c.Want]}
		}
		switch {
		case c.Limits.Fuel == asm.Fuel || c.Want == wasm.OutOfFuel:
			s.Limits = byFuel
		case c.Limits.Timeout == asm.Short:
			s.Limits = byTime
		default:
			s.Limits = deep
		}
		if strings.HasPrefix(c.Name, "E05") {
			s.Refused = []skill.Code{skill.CompileTimeout} // eight seconds of a compiler, and the machine may do other work
		}
		s.Limits.Memory = c.Limits.Memory
		if c.Limits.Memory >= 1<<31 {
			s.Limits.Memory = 0
			s.Ends = append(s.Ends, skill.MemoryLimit) // of a host that gives less than that
		}
		all = append(all, ofModule(s, ready(c.Module)))
	}
	return all
}

// about says what a case of the engine is about.
func about(name string) (promise int, limit string) {
	switch name[:3] {
	case "E07":
		return Bounded, "the stack"
	case "E09", "E10", "E11", "E20":
		return Bounded, "the memory limit"
	case "E12":
		return Ends, "the deadline"
	case "E14", "E15":
		return Bounded, "the output limit"
	case "E16":
		return Contained, "the host's own record of how a run ended"
	case "E17", "E18", "E19":
		return Contained, "the host functions"
	}
	if strings.HasSuffix(name, "deadline") {
		return Ends, "the deadline"
	}
	return Ends, "fuel"
}

func ofOurs() []Case {
	ended := newGuest(1, "fd_read")
	list := ended.numbers(512, 256)
	ended.Command(asm.Loop(ended.call("fd_read", asm.I32(0), asm.I32(list), asm.I32(1), asm.I32(0)) + asm.Drop + asm.Br(0)))

	loop := asm.New()
	loop.Command(asm.Loop(asm.Br(0)))
	sleep := newGuest(1, "poll_oneoff")
	subscription := sleep.numbers(1, 0, 0, 0, 1, 0, 0x1a000000, 0x13a, 0, 0, 0, 0) // four days and more on the monotonic clock
	sleep.Command(sleep.call("poll_oneoff", asm.I32(subscription), asm.I32(256), asm.I32(1), asm.I32(0)) + asm.Drop)
	recursion := asm.New()
	recursion.Command(asm.Call(recursion.Next()))

	runaway := skill.Limits{Timeout: 40 * time.Millisecond}
	patient := skill.Limits{Timeout: 10 * time.Second}
	all := []Case{
		ofModule(Case{
			Name: "E13 input that has ended, read for ever", Promise: Ends, Limit: "fuel",
			Limits: byFuel, Ends: []skill.Code{skill.FuelExhausted},
		}, ready(ended.Bytes())),
		ofModule(Case{
			Name: "E07 endless recursion, eight at once", Promise: Bounded, Limit: "the stack", Wears: true,
			Limits: deep, Ends: []skill.Code{skill.StackLimit}, Calls: 8, AtOnce: 8,
		}, ready(recursion.Bytes())),
		ofModule(Case{
			Name: "E24 200 runaway runs in a row", Promise: Ends, Limit: "the deadline, or quarantine",
			Limits: runaway, Ends: []skill.Code{skill.Timeout, "", skill.NotFound}, Calls: 200, Input: mostlyLoops,
		}, harmful),
		ofModule(Case{
			Name: "E25 the client disconnects from a loop", Promise: Ends, Limit: "the caller's leaving",
			Limits: patient, Ends: []skill.Code{skill.Cancelled}, Leave: 100 * time.Millisecond, Calls: 8, AtOnce: 4,
		}, ready(loop.Bytes())),
		ofModule(Case{
			Name: "E25 the client disconnects from a sleep", Promise: Ends, Limit: "the caller's leaving",
			Limits: patient, Ends: []skill.Code{skill.Cancelled}, Leave: 100 * time.Millisecond, Calls: 8, AtOnce: 4,
		}, ready(sleep.Bytes())),
	}
	for seed := range int64(3) {
		c := Case{
			Name: "E23 every host function with random arguments, seed " + string(rune('1'+seed)), Promise: Contained, Limit: "the host functions",
			Limits: skill.Limits{Timeout: time.Second},
		}
		all = append(all, ofModule(c, func() []byte { return randomArguments(0x1e3779b97f4a7c15 * (seed + 1)) }))
	}
	return all
}

// mostlyLoops does well every fifth time: a host may take a skill away that never does.
func mostlyLoops(i int) []byte {
	if i%5 == 4 {
		return HarmOf(Harmless)
	}
	return HarmOf(Loops)
}

// randomArguments calls every function of preview1 with arguments that are small,
// large, or on an edge, over and over.
func randomArguments(seed int64) []byte {
	var names []string
	for _, f := range wasi.Functions() {
		if f.Module == wasi.PluginModule {
			continue // plugins.go has those
		}
		switch f.Name {
		case "proc_exit", "proc_raise", "poll_oneoff": // they end it, or wait
		default:
			names = append(names, f.Name)
		}
	}
	g := newGuest(2, append(names, "poll_oneoff")...)
	g.text("work/x\x00data/a.txt\x00../../etc/passwd\x00/proc/self/environ\x00skill/main.wasm\x00")
	g.numbers(16, 64, 1024, 32, 0, 65536, -1, -1)
	state := g.GlobalOf(asm.TypeI64, asm.I64(seed))
	i32 := []binary.ValType{asm.TypeI32}
	// A linear congruence, of which the upper bits are taken, then one of four shapes.
	next := g.Func(nil, i32, []binary.LocalGroup{{Count: 2, Type: asm.TypeI32}},
		asm.GlobalGet(state)+asm.I64(6364136223846793005)+"\x7e"+asm.I64(1442695040888963407)+asm.Add64+asm.GlobalSet(state)+
			asm.GlobalGet(state)+asm.I64(32)+"\x88\xa7"+asm.Set(0)+
			asm.Get(0)+asm.I32(3)+asm.And+asm.Set(1)+
			asm.Get(0)+asm.I32(2)+"\x76"+asm.Set(0)+
			asm.Get(1)+asm.Eqz+asm.If(asm.Get(0)+asm.I32(7)+asm.And+asm.Set(0))+
			asm.Get(1)+asm.I32(1)+asm.Eq+asm.If(asm.Get(0)+asm.I32(0x7ff)+asm.And+asm.Set(0))+
			asm.Get(1)+asm.I32(2)+asm.Eq+asm.If(asm.Get(0)+asm.I32(0x1f)+asm.And+asm.I32(-32)+asm.Add+asm.Set(0))+
			asm.Get(0))
	calls := func(name string) asm.Code {
		var c asm.Code
		for _, f := range wasi.Functions() {
			if f.Name != name || f.Module == wasi.PluginModule {
				continue
			}
			for _, p := range f.Params {
				c += asm.Call(next)
				if binary.ValType(p) == asm.TypeI64 {
					c += asm.Extend + asm.Call(next) + asm.Extend + asm.I64(32) + "\x86" + asm.Add64
				}
			}
		}
		return c + asm.Call(g.fn[name]) + asm.Drop
	}
	var round asm.Code
	for _, name := range names {
		round += calls(name)
	}
	g.Command(asm.Times(20_000, 0, round) + asm.Times(1000, 0, calls("poll_oneoff")) + g.print("{}"))
	return g.Bytes()
}
