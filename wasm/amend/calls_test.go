package amend_test

import (
	"slices"
	"testing"

	"openskill/wasm/amend"
	wbin "openskill/wasm/binary"
)

// TestCallable: what a call passes on the stack is bounded on arm64 alone.
func TestCallable(t *testing.T) {
	many := func(typ wbin.ValType, n int) []wbin.ValType { return slices.Repeat([]wbin.ValType{typ}, n) }
	for name, c := range map[string]struct {
		params, results []wbin.ValType
		ok              bool
	}{
		"in registers":            {many(wbin.I64, 6), many(wbin.F64, 8), true},
		"256 bytes":               {many(wbin.I32, 6+32), nil, true},
		"one more":                {many(wbin.I32, 6+33), nil, false},
		"vectors":                 {many(wbin.V128, 8+16), nil, true},
		"one vector more":         {many(wbin.V128, 8+17), nil, false},
		"results":                 {nil, many(wbin.I64, 8+33), false},
		"parameters with results": {many(wbin.I64, 6+16), many(wbin.F32, 8+17), false},
	} {
		m := &wbin.Module{Types: []wbin.FuncType{{}, {Params: c.params, Results: c.results}}}
		if got := amend.Callable(m, "arm64"); got != c.ok {
			t.Errorf("%s: %v", name, got)
		}
		if !amend.Callable(m, "amd64") {
			t.Errorf("%s: refused on amd64", name)
		}
	}
}
