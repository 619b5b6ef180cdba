package hostile

import (
	"fmt"

	"openskill/sdk/skill"
	"openskill/wasm/amend"
	"openskill/wasm/binary"
)

// compiler is what wazero's compiler gets wrong if nobody rewrites it: a guest of these that
// computes wrongly has read what is not its own, or an address that nothing has tested.
func compiler() []Case {
	var list []Case
	for i, k := range amend.Programs() {
		list = append(list, ofModule(Case{
			Name: fmt.Sprintf("M%02d what compilers get wrong: %s", i+1, k.Name), Promise: Contained, Limit: "programs are rewritten before they are compiled",
			// One that is right ends without a word; one that is wrong traps.
			Ends: []skill.Code{skill.InvalidOutput},
		}, func() []byte { return compared(&k) }))
	}
	return list
}

// compared is a command that traps if the program gives something else than it should.
func compared(k *amend.Known) []byte {
	m := *k.Module
	m.Types = append(m.Types[:len(m.Types):len(m.Types)], binary.FuncType{})
	m.Funcs = append(m.Funcs[:len(m.Funcs):len(m.Funcs)], uint32(len(m.Types)-1))
	m.Exports = append(m.Exports[:len(m.Exports):len(m.Exports)], binary.Export{Name: "_start", Index: uint32(len(m.Funcs) - 1)})
	f := m.Types[m.Funcs[0]]
	var b []byte
	for i, t := range f.Params {
		b = constant(b, t, k.Args[i])
	}
	b = append(b, byte(binary.OpCall), 0)
	for i := len(f.Results) - 1; i >= 0; i-- {
		ne := byte(0x52) // i64.ne
		switch f.Results[i] {
		case binary.I32:
			ne = 0x47
		case binary.F64:
			b = append(b, 0xbd) // i64.reinterpret_f64
		default:
		}
		if ne == 0x47 {
			b = constant(b, binary.I32, k.Want[i])
		} else {
			b = constant(b, binary.I64, k.Want[i])
		}
		b = append(b, ne, byte(binary.OpIf), 0x40, byte(binary.OpUnreachable), byte(binary.OpEnd))
	}
	m.Codes = append(m.Codes[:len(m.Codes):len(m.Codes)], binary.Code{Body: append(b, byte(binary.OpEnd))})
	return m.Encode()
}

// constant puts a number on the stack.
func constant(b []byte, t binary.ValType, bits uint64) []byte {
	switch t {
	case binary.I32:
		return binary.AppendS64(append(b, byte(binary.OpI32Const)), int64(int32(bits)))
	case binary.F64:
		return append(constant(b, binary.I64, bits), 0xbf) // f64.reinterpret_i64
	default:
		return binary.AppendS64(append(b, byte(binary.OpI64Const)), int64(bits))
	}
}
