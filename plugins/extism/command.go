package extism

import (
	"fmt"
	"strings"

	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/binary"
	"openskill/wasm/check"
)

// Function is the one that is called where the entry names none.
const Function = "invoke"

// Split takes an entry apart: plugin.wasm#count is the function count of plugin.wasm.
func Split(entry string) (file, function string) {
	return skill.WasmExtism.File(entry), functionOf(entry)
}

func functionOf(entry string) string {
	if _, function, ok := strings.Cut(entry, "#"); ok {
		return function
	}
	return Function
}

// How a reactor is begun and what is called of it, as package wasm has it.
const (
	initialize = "_initialize"
	run        = "run"
)

// Command gives the reactor that calls one function of a plug-in: the same module, with
// nothing exported but what begins it, its memory, and the function under the name that
// the engine calls. The error is a *check.Error.
func Command(module []byte, function string) ([]byte, error) {
	if _, err := wasm.Check(module, nil); err != nil {
		return nil, err
	}
	m, err := binary.Decode(module, nil)
	if err != nil {
		return nil, &check.Error{Code: check.InvalidModule, Msg: err.Error()}
	}
	var exports []binary.Export
	found := false
	for _, e := range m.Exports {
		switch {
		case e.Kind == binary.ExternMemory:
			exports = append(exports, e)
		case e.Kind != binary.ExternFunc:
		case e.Name == function:
			if !callable(m.FuncType(e.Index)) {
				return nil, &check.Error{Code: check.InvalidModule, Msg: fmt.Sprintf(
					"the function %s of the plug-in has the wrong type: Extism functions take nothing and return nothing or one i32", skill.CleanText(function, 80))}
			}
			found = true
			exports = append(exports, binary.Export{Name: run, Kind: e.Kind, Index: e.Index})
		}
	}
	if !found {
		return nil, &check.Error{Code: check.InvalidModule, Msg: fmt.Sprintf(
			"the plug-in exports no function %s; set entry to an exported one, as in plugin.wasm#name", skill.CleanText(function, 80))}
	}
	// A _start begins the module itself, and _initialize is what would be called before.
	if function != "_start" && function != initialize {
		if at, ok := beginning(m); ok {
			exports = append(exports, binary.Export{Name: initialize, Kind: binary.ExternFunc, Index: at})
		}
	}
	m.Exports = exports
	return m.Encode(), nil
}

// beginning is the function that begins a module, as Extism's own hosts do: _initialize of a
// reactor and then hs_init, which Haskell's runtime wants; or constructors that are to be called by
// the host, which neither of both leaves to it.
func beginning(m *binary.Module) (uint32, bool) {
	reactor, isReactor := exported(m, initialize, nothing)
	haskell, isHaskell := exported(m, "hs_init", argcArgv)
	switch {
	case isHaskell:
		return haskellBeginning(m, reactor, isReactor, haskell), true
	case isReactor:
		return reactor, true
	}
	return exported(m, "__wasm_call_ctors", nothing)
}

// haskellBeginning adds the function that calls both, without arguments of a command line.
func haskellBeginning(m *binary.Module, reactor uint32, isReactor bool, haskell uint32) uint32 {
	var body []byte
	if isReactor {
		body = binary.AppendU32(append(body, byte(binary.OpCall)), reactor)
	}
	body = append(body, byte(binary.OpI32Const), 0, byte(binary.OpI32Const), 0)
	body = binary.AppendU32(append(body, byte(binary.OpCall)), haskell)
	for range m.FuncType(haskell).Results {
		body = append(body, byte(binary.OpDrop))
	}
	index := m.Imported(binary.ExternFunc) + uint32(len(m.Funcs)) // bounded by the decoder
	m.Types = append(m.Types, binary.FuncType{})
	m.Funcs = append(m.Funcs, uint32(len(m.Types)-1)) // bounded by the decoder
	m.Codes = append(m.Codes, binary.Code{Body: append(body, byte(binary.OpEnd))})
	return index
}

// exported finds a function by its name, if it has the type that is called.
func exported(m *binary.Module, name string, called func(binary.FuncType) bool) (uint32, bool) {
	for _, e := range m.Exports {
		if e.Name == name && e.Kind == binary.ExternFunc && called(m.FuncType(e.Index)) {
			return e.Index, true
		}
	}
	return 0, false
}

func nothing(t binary.FuncType) bool { return len(t.Params)+len(t.Results) == 0 }

func argcArgv(t binary.FuncType) bool {
	return len(t.Params) == 2 && t.Params[0] == binary.I32 && t.Params[1] == binary.I32
}

func callable(t binary.FuncType) bool {
	return len(t.Params) == 0 && (len(t.Results) == 0 || len(t.Results) == 1 && t.Results[0] == binary.I32)
}
