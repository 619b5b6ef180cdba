package wasi

import (
	"context"

	"github.com/tetratelabs/wazero/api"

	"openskill/wasm/wasi/blocks"
)

// PluginModule is what plug-ins of Extism import beside preview1. Its functions are those
// of Extism's kernel and of its hosts (github.com/extism/extism, kernel, and EIP-007 of
// its proposals), over the blocks of package blocks:
//
//   - the input is what is left of Stdin when it is first asked for;
//   - the configuration is Env;
//   - logs go to Stderr, a line each, from info on;
//   - variables are those of the one run, and 1 MiB;
//   - requests go to Fetch, as those of [OutgoingModule] do;
//   - output and error are left in the World: [World.Plugin].
const PluginModule = "extism:host/env"

// plugin is what a World keeps for a plug-in.
type plugin struct {
	mem     blocks.Memory
	asked   bool // for the input
	input   span
	output  span
	failure uint64 // offset of the error's block; 0: none

	vars     map[string][]byte
	varBytes int

	status  int32  // of the last response; 0: there was none
	headers []byte // of it, as JSON
}

// span is a part of the blocks.
type span struct{ at, n uint64 }

// PluginResult is what a plug-in left: nil where it set nothing.
type PluginResult struct {
	Output []byte
	Error  []byte
}

// maxError is how much of an error is given.
const maxError = 64 << 10

// Plugin gives what a plug-in has set so far, the first 64 KiB of the error.
func (w *World) Plugin() PluginResult {
	p := &w.plug
	var r PluginResult
	if p.output.n > 0 {
		b, _ := p.mem.Range(p.output.at, p.output.n)
		r.Output = append([]byte{}, b...)
	}
	if p.failure != 0 {
		if b := p.mem.Block(p.failure); b != nil {
			r.Error = append([]byte{}, b[:min(len(b), maxError)]...)
		}
	}
	return r
}

// unplug gives back what a plug-in had of the host.
func (w *World) unplug() {
	if space := w.plug.mem.Taken(); space != nil && w.cfg.Release != nil {
		w.cfg.Release(space)
	}
	w.plug = plugin{}
}

// pluginFunction is a function of PluginModule. Those that move a few bytes are lean: a
// plug-in calls them for every eight bytes of its input and output, so they look neither
// at the context nor at the memory of the module. Their fuel, and with it the time between
// two looks at the context, is bounded like that of any other instruction.
type pluginFunction struct {
	name   string
	params string // 'i' for i32, 'I' for i64
	result byte   // the same, or 0 for none
	lean   bool
	early  bool // what it answers depends on nothing: a start-up goes on after it
	call   func(w *World, p []uint64) uint64
}

func pluginFunctions() []pluginFunction {
	return []pluginFunction{
		{name: "alloc", params: "I", result: 'I', call: (*World).pluginAlloc},
		{name: "free", params: "I", call: (*World).pluginFree},
		{name: "length", params: "I", result: 'I', lean: true, call: (*World).pluginLength},
		{name: "length_unsafe", params: "I", result: 'I', lean: true, call: (*World).pluginLength},
		{name: "load_u8", params: "I", result: 'i', lean: true, call: (*World).pluginLoad8},
		{name: "load_u64", params: "I", result: 'I', lean: true, call: (*World).pluginLoad64},
		{name: "store_u8", params: "Ii", lean: true, call: (*World).pluginStore8},
		{name: "store_u64", params: "II", lean: true, call: (*World).pluginStore64},
		{name: "memory_bytes", result: 'I', call: (*World).pluginBytes},
		{name: "reset", call: (*World).pluginReset},

		{name: "input_length", result: 'I', call: (*World).pluginInputLength},
		{name: "input_offset", result: 'I', call: (*World).pluginInputOffset},
		{name: "input_load_u8", params: "I", result: 'i', lean: true, call: (*World).pluginInput8},
		{name: "input_load_u64", params: "I", result: 'I', lean: true, call: (*World).pluginInput64},
		{name: "input_set", params: "II", call: (*World).pluginInputSet},
		{name: "output_set", params: "II", call: (*World).pluginOutputSet},
		{name: "output_length", result: 'I', call: (*World).pluginOutputLength},
		{name: "output_offset", result: 'I', call: (*World).pluginOutputOffset},
		{name: "error_set", params: "I", call: (*World).pluginErrorSet},
		{name: "error_get", result: 'I', call: (*World).pluginErrorGet},

		{name: "config_get", params: "I", result: 'I', call: (*World).pluginConfigGet},
		{name: "var_get", params: "I", result: 'I', call: (*World).pluginVarGet},
		{name: "var_set", params: "II", call: (*World).pluginVarSet},
		{name: "http_request", params: "II", result: 'I', call: (*World).pluginHTTPRequest},
		{name: "http_status_code", result: 'i', call: (*World).pluginHTTPStatus},
		{name: "http_headers", result: 'I', call: (*World).pluginHTTPHeaders},
		{name: "get_log_level", result: 'i', early: true, call: func(*World, []uint64) uint64 { return logInfo }},
		{name: "log_trace", params: "I", call: pluginLog(logTrace, "trace")},
		{name: "log_debug", params: "I", call: pluginLog(logDebug, "debug")},
		{name: "log_info", params: "I", call: pluginLog(logInfo, "info")},
		{name: "log_warn", params: "I", call: pluginLog(logWarn, "warn")},
		{name: "log_error", params: "I", call: pluginLog(logError, "error")},
	}
}

func (f *pluginFunction) types() (params, results []api.ValueType) {
	params = valueTypes(f.params)
	if f.result != 0 {
		results = valueTypes(string(f.result))
	}
	return params, results
}

// pluginGo is a function as the runtime calls it.
func pluginGo(f pluginFunction) api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		w, ok := ctx.Value(worldKey{}).(*World)
		if !ok {
			panic(ErrNoWorld)
		}
		if f.lean {
			if w.stopped.Reason != 0 {
				w.end(0, 0)
			}
			w.charge(costCall)
		} else {
			w.enter(ctx, mod)
			w.charge(costCall)
			if f.result != 0 && !f.early {
				w.begin(f.call, stack[:len(f.params)])
			}
		}
		answer := f.call(w, stack)
		if f.result != 0 {
			stack[0] = answer
		}
	}
}

// allocate makes a block of n bytes, charged as if they were written; 0: there is no
// memory for it.
func (w *World) allocate(n uint64) uint64 {
	m, most := &w.plug.mem, ^uint64(0)
	m.Space = w.cfg.Space
	before := m.Held()
	if w.cfg.Hold != nil {
		most = w.cfg.Hold(before)
	}
	at := m.Alloc(n, most)
	if at == 0 {
		if n > 0 && w.cfg.Hold != nil && most < ^uint64(0) {
			w.cfg.Hold(most + 1) // so that it is known as a refusal
		}
		return 0
	}
	if now := m.Held(); now != before {
		if w.cfg.Hold != nil {
			w.cfg.Hold(now)
		}
		w.copied(int(now - before))
	}
	return at
}

// put makes a block with this content. No content is no block.
func (w *World) put(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	at := w.allocate(uint64(len(b)))
	if at == 0 {
		w.end(ReasonMemory, 0)
	}
	w.copied(copy(w.plug.mem.Block(at), b))
	return at
}

// block is the content of the block at an offset, for a function that takes one.
func (w *World) block(at uint64) []byte {
	b := w.plug.mem.Block(at)
	w.copied(len(b))
	return b
}

func (w *World) pluginAlloc(p []uint64) uint64 { return w.allocate(p[0]) }

func (w *World) pluginFree(p []uint64) uint64 {
	g := &w.plug
	g.mem.Free(p[0])
	if p[0] == g.input.at {
		g.input = span{}
	}
	return 0
}

func (w *World) pluginLength(p []uint64) uint64 { return w.plug.mem.Length(p[0]) }
func (w *World) pluginBytes([]uint64) uint64    { return w.plug.mem.Held() }

// outside ends a run that reads or writes where there are no blocks, as Extism's Go host
// does. In Extism's kernel such a read gives whatever is there.
const outside = "out of bounds access of the memory of an Extism plug-in"

func (w *World) pluginLoad8(p []uint64) uint64 {
	v, ok := w.plug.mem.Load8(p[0])
	if !ok {
		w.fault(outside)
	}
	return uint64(v)
}

func (w *World) pluginLoad64(p []uint64) uint64 {
	v, ok := w.plug.mem.Load64(p[0])
	if !ok {
		w.fault(outside)
	}
	return v
}

func (w *World) pluginStore8(p []uint64) uint64 {
	if !w.plug.mem.Store8(p[0], byte(p[1])) {
		w.fault(outside)
	}
	return 0
}

func (w *World) pluginStore64(p []uint64) uint64 {
	if !w.plug.mem.Store64(p[0], p[1]) {
		w.fault(outside)
	}
	return 0
}

// pluginReset forgets all blocks. The memory that they had is counted on, so that a loop
// of this is no way to have the host allocate without an end.
func (w *World) pluginReset([]uint64) uint64 {
	g := &w.plug
	g.mem.Reset()
	g.input, g.output, g.failure = span{}, span{}, 0
	return 0
}
