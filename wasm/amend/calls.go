package amend

import "openskill/wasm/binary"

// mostOnStack bounds the parameters and results that a call passes on the stack, in bytes. On arm64
// a place further down takes a register for its address, between the definition of a constant
// argument and its store, and a constant that is an argument twice is defined twice: the callee
// would get what the stack held before. Other calls store it at once.
const mostOnStack = 256

// Callable reports whether the compiler of a processor passes all that the functions of m take and give.
func Callable(m *binary.Module, arch string) bool {
	if arch != "arm64" {
		return true
	}
	for i := range m.Types {
		t := &m.Types[i]
		// Two registers of the parameters are the compiler's own.
		n := onStack(t.Params, 6) + onStack(t.Results, 8)
		if (n+15)/16*16 > mostOnStack {
			return false
		}
	}
	return true
}

// onStack is how many bytes do not fit into so many registers for integers, and eight for others.
func onStack(types []binary.ValType, integers int) (bytes int) {
	others := 8
	for _, t := range types {
		switch t {
		case binary.F32, binary.F64, binary.V128:
			if others--; others >= 0 {
				continue
			}
			if t == binary.V128 {
				bytes += 8
			}
		default:
			if integers--; integers >= 0 {
				continue
			}
		}
		bytes += 8
	}
	return bytes
}
