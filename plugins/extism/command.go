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
					"the function %s of the plug-in takes or gives something else than Extism's do: nothing, and nothing or one i32", skill.CleanText(function, 80))}
			}
			found = true
			exports = append(exports, binary.Export{Name: run, Kind: e.Kind, Index: e.Index})
		}
	}
	if !found {
		return nil, &check.Error{Code: check.InvalidModule, Msg: fmt.Sprintf(
			"the plug-in exports no function %s; entry names another one as in plugin.wasm#name", skill.CleanText(function, 80))}
	}
	if at, ok := beginning(m); ok {
		exports = append(exports, binary.Export{Name: initialize, Kind: binary.ExternFunc, Index: at})
	}
	m.Exports = exports
	return m.Encode(), nil
}

// beginning is the function that begins a module: that of a reactor, or of one whose
// constructors are to be called by the host.
func beginning(m *binary.Module) (uint32, bool) {
	for _, name := range []string{initialize, "__wasm_call_ctors"} {
		for _, e := range m.Exports {
			if e.Name != name || e.Kind != binary.ExternFunc {
				continue
			}
			if t := m.FuncType(e.Index); len(t.Params)+len(t.Results) == 0 {
				return e.Index, true
			}
		}
	}
	return 0, false
}

func callable(t binary.FuncType) bool {
	return len(t.Params) == 0 && (len(t.Results) == 0 || len(t.Results) == 1 && t.Results[0] == binary.I32)
}
