package hostile

import (
	"slices"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm/binary"
	"openskill/wasm/wasi"
	asm "openskill/wasm/wasmtest"
)

// plug is a plug-in of Extism in the making, which sets its output by a few functions of
// its host. Its first local is a counter.
type plug struct {
	*asm.Builder
	fn map[string]uint32
}

// answering are what a plug-in needs to answer.
var answering = []string{"alloc", "store_u64", "output_set"}

func newPlug(imports ...string) *plug {
	p := &plug{Builder: asm.New(), fn: map[string]uint32{}}
	for _, name := range append(slices.Clone(answering), imports...) {
		if _, twice := p.fn[name]; !twice {
			p.fn[name] = p.ImportPlugin(name)
		}
	}
	p.Memory(1)
	return p
}

// locals are two counters and an offset.
var locals = []binary.LocalGroup{{Count: 2, Type: asm.TypeI32}, {Count: 1, Type: asm.TypeI64}}

const block = 2 // the local of an offset

// made is the plug-in whose function does this.
func (p *plug) made(body ...asm.Code) []byte {
	p.Export("invoke", p.Func(nil, []binary.ValType{asm.TypeI32}, locals, asm.Code(joined(body))+asm.I32(0)))
	return p.Bytes()
}

func (p *plug) call(name string, args ...asm.Code) asm.Code {
	return asm.Code(joined(args)) + asm.Call(p.fn[name])
}

// word is eight letters as store_u64 stores them.
func word(s string) (v int64) {
	for i := range 8 {
		v |= int64(s[i]) << (8 * i)
	}
	return v
}

// answer sets {} as the output, with blanks.
func (p *plug) answer() asm.Code {
	return p.call("alloc", asm.I64(8)) + asm.Set(block) +
		p.call("store_u64", asm.Get(block), asm.I64(0x20202020_20207d7b)) +
		p.call("output_set", asm.Get(block), asm.I64(8))
}

// plugins are cases that are about plug-ins: the limits hold for what is theirs alone, and
// for the ways in which they begin.
func plugins() []Case {
	loop := asm.Loop(asm.Br(0))
	starting := func() []byte {
		p := newPlug()
		p.Start(p.Void(loop))
		return p.made(p.answer())
	}
	beginning := func() []byte {
		p := newPlug()
		p.Export("_initialize", p.Void(loop))
		return p.made(p.answer())
	}
	endless := func() []byte { p := newPlug(); return p.made(loop) }
	blocks := newPlug()
	// A loop that goes on until the host has no more, and then fails, as programs do.
	hoards := blocks.made(asm.Loop(blocks.call("alloc", asm.I64(100_000)), asm.I64(0), asm.Ne64, asm.BrIf(0)), "\x00")
	small := newPlug()
	hoardsSmall := small.made(asm.Loop(small.call("alloc", asm.I64(1)), asm.I64(0), asm.Ne64, asm.BrIf(0)), "\x00")
	freed := newPlug("free")
	frees := freed.made(asm.Times(100_000, 0, freed.call("alloc", asm.I64(1000)), asm.Set(block), freed.call("free", asm.Get(block))), freed.answer())
	wide := newPlug()
	shows := wide.made(wide.call("alloc", asm.I64(2<<20)), asm.Set(block), wide.call("output_set", asm.Get(block), asm.I64(2<<20)))
	logs := newPlug("log_error")
	chatters := logs.made(asm.Loop(logs.call("alloc", asm.I64(1000)), asm.Set(block), logs.call("log_error", asm.Get(block)), asm.Br(0)))
	variables := newPlug("var_set")
	keeps := variables.made(asm.Loop(
		variables.call("alloc", asm.I64(8)), asm.Set(block), variables.call("store_u64", asm.Get(block), asm.Get(0)+asm.Extend),
		asm.Get(0), asm.I32(1), asm.Add, asm.Set(0),
		variables.call("var_set", asm.Get(block), variables.call("alloc", asm.I64(10_000))), asm.Br(0)))
	far := newPlug("load_u64")
	reads := far.made(far.call("load_u64", asm.I64(1<<40)), asm.Drop)
	near := newPlug("load_u64")
	peeks := near.made(near.call("alloc", asm.I64(8)), asm.Set(block), near.call("load_u64", asm.Get(block)+asm.I64(8)+asm.Add64), asm.Drop)
	asks := newPlug("http_request", "http_status_code")
	request := []string{`{"url":"`, `http://1`, `27.0.0.1`, `/"}     `}
	sent := asks.call("alloc", asm.I64(32)) + asm.Set(block)
	for i, s := range request {
		sent += asks.call("store_u64", asm.Get(block)+asm.I64(int64(8*i))+asm.Add64, asm.I64(word(s)))
	}
	sends := asks.made(sent, asks.call("http_request", asm.Get(block), asm.I64(0)), asm.Drop,
		asks.call("http_status_code"), asm.If("\x00"), asks.answer())
	grows := newPlug("http_request", "http_status_code")
	const words = 1 << 17 // a MiB, each byte of which is six as JSON is written
	place := asm.Get(block) + asm.Get(0) + asm.Extend + asm.I64(3) + "\x86" + asm.Add64
	swells := grows.made(
		grows.call("alloc", asm.I64(8*words)), asm.Set(block),
		asm.Times(words-1, 0, grows.call("store_u64", place, asm.I64(word("<<<<<<<<")))),
		grows.call("store_u64", asm.Get(block), asm.I64(word(`{"url":"`))),
		grows.call("store_u64", asm.Get(block)+asm.I64(8*(words-1))+asm.Add64, asm.I64(word(`"}      `))),
		grows.call("http_request", asm.Get(block), asm.I64(0)), asm.Drop,
		grows.call("http_status_code"), asm.If("\x00"), grows.answer())

	all := []Case{
		{Name: "E01 a loop of a plug-in, by fuel", Promise: Ends, Limit: "fuel", Limits: byFuel, Ends: []skill.Code{skill.FuelExhausted}},
		{Name: "E01 a loop of a plug-in, by its deadline", Promise: Ends, Limit: "the deadline", Limits: byTime, Ends: []skill.Code{skill.Timeout}},
		{Name: "E02 a start function of a plug-in, by fuel", Promise: Ends, Limit: "fuel", Limits: byFuel, Ends: []skill.Code{skill.FuelExhausted}},
		{Name: "E02 a start function of a plug-in, by its deadline", Promise: Ends, Limit: "the deadline", Limits: byTime, Ends: []skill.Code{skill.Timeout}},
		{Name: "E02 the initialization of a plug-in, by fuel", Promise: Ends, Limit: "fuel", Limits: byFuel, Ends: []skill.Code{skill.FuelExhausted}},
		{Name: "E02 the initialization of a plug-in, by its deadline", Promise: Ends, Limit: "the deadline", Limits: byTime, Ends: []skill.Code{skill.Timeout}},
		{Name: "E10 blocks of a plug-in until there are no more", Promise: Bounded, Limit: "the memory limit", Limits: deep, Wears: true, Ends: []skill.Code{skill.MemoryLimit}},
		{Name: "E10 blocks of one byte until there are no more", Promise: Bounded, Limit: "the memory limit", Limits: deep, Wears: true, Ends: []skill.Code{skill.MemoryLimit}},
		{Name: "E10 100,000 blocks that are freed", Promise: Bounded, Limit: "the memory limit", Limits: deep, Ends: []skill.Code{""}, Data: `{}`},
		{Name: "E14 a plug-in sets 2 MiB as its output", Promise: Bounded, Limit: "the output limit", Limits: deep, Ends: []skill.Code{skill.OutputLimit}},
		{Name: "E14 a plug-in logs without an end", Promise: Bounded, Limit: "the output limit", Limits: deep, Ends: []skill.Code{skill.OutputLimit}},
		{Name: "E20 a plug-in keeps variables without an end", Promise: Bounded, Limit: "1 MiB of variables", Limits: deep, Ends: []skill.Code{skill.Trap}},
		{Name: "E17 a plug-in reads where there are no blocks", Promise: Contained, Limit: "the host functions", Limits: deep, Ends: []skill.Code{skill.Trap}},
		{Name: "E17 a plug-in reads behind its last block", Promise: Contained, Limit: "the host functions", Limits: deep, Ends: []skill.Code{skill.Trap}},
		{Name: "N01 a plug-in asks this machine", Promise: Contained, Limit: "requests go to public addresses, where manifest and operator agree", Limits: skill.Limits{Timeout: 10 * time.Second}, Ends: []skill.Code{""}, Data: `{}`},
		{Name: "N01 a plug-in's request of 1 MiB is one of 6 MiB when it is written", Promise: Contained, Limit: "128 KiB of a request without its body", Limits: deep, Ends: []skill.Code{""}, Data: `{}`},
	}
	modules := []func() []byte{
		endless, endless, starting, starting, beginning, beginning, ready(hoards), ready(hoardsSmall), ready(frees), ready(shows), ready(chatters),
		ready(keeps), ready(reads), ready(peeks), ready(sends), ready(swells),
	}
	for i := range all {
		all[i] = ofPlugin(all[i], modules[i])
	}
	for seed := range int64(2) {
		c := Case{
			Name: "E23 every function of a plug-in with random arguments, seed " + string(rune('1'+seed)), Promise: Contained, Limit: "the host functions",
			Limits: skill.Limits{Timeout: time.Second},
		}
		all = append(all, ofPlugin(c, func() []byte { return randomPlugin(0x2e3779b97f4a7c15 * (seed + 1)) }))
	}
	return all
}

// randomPlugin calls every function of plug-ins with arguments that are near a block, or
// anything, until it reads outside of all blocks.
func randomPlugin(seed int64) []byte {
	p := newPlug("input_length")
	type function struct {
		at     uint32
		params []byte
		result bool
	}
	var all []function
	for _, f := range wasi.Functions() {
		if f.Module != wasi.PluginModule {
			continue
		}
		at, known := p.fn[f.Name]
		if !known {
			at = p.ImportPlugin(f.Name)
		}
		all = append(all, function{at, f.Params, len(f.Results) > 0})
	}
	state := p.GlobalOf(asm.TypeI64, asm.I64(seed))
	next := p.Func(nil, []binary.ValType{asm.TypeI64}, []binary.LocalGroup{{Count: 1, Type: asm.TypeI64}},
		asm.GlobalGet(state)+asm.I64(6364136223846793005)+"\x7e"+asm.I64(1442695040888963407)+asm.Add64+asm.GlobalSet(state)+
			asm.GlobalGet(state)+asm.I64(33)+"\x88"+asm.Set(0)+
			// One in four is any number, the others are near the first blocks.
			asm.Get(0)+asm.I64(3)+"\x83\x50"+"\x04\x7e"+asm.Get(0)+"\x05"+asm.Get(0)+asm.I64(0xff8)+"\x83"+"\x0b")
	var round asm.Code
	for range 8 {
		round += p.call("alloc", asm.I64(512)) + asm.Drop
	}
	for _, f := range all {
		for _, t := range f.params {
			round += asm.Call(next)
			if binary.ValType(t) == asm.TypeI32 {
				round += "\xa7"
			}
		}
		round += asm.Call(f.at)
		if f.result {
			round += asm.Drop
		}
	}
	return p.made(asm.Times(1000, 0, round), p.answer())
}
