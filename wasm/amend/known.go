package amend

import (
	"math"
	"slices"

	"openskill/wasm/binary"
)

// Known is a program that wazero v1.12.0 computes wrongly on amd64 if it is not amended.
type Known struct {
	Name   string
	Module *binary.Module // exports the function f
	Args   []uint64
	Want   []uint64
	// Feature is the feature of the processor, as GODEBUG names it, without which alone
	// it is computed wrongly; "" if it always is.
	Feature string
}

// Programs gives one for each kind of fault. Registers are few, and what a program must
// do to have a value in the wrong one is much: no form of these is there by chance.
func Programs() []Known {
	f64 := math.Float64bits
	list := []Known{
		{Name: "select of a float", Module: chosen(binary.F64, get(nil, 2), byte(binary.OpSelect)), Args: []uint64{f64(1.5), f64(2.5), 0}, Want: []uint64{f64(2.5), f64(1.5)}},
		{Name: "select of a vector", Module: chosen(binary.V128, get(nil, 2), byte(binary.OpSelect)), Args: []uint64{15, 25, 0}, Want: []uint64{25, 15}},
		{Name: "copysign", Module: chosen(binary.F64, nil, 0xa6), Args: []uint64{f64(1.5), f64(2.5), 0}, Want: []uint64{f64(1.5), f64(1.5)}},
		{Name: "conversion of an unsigned number", Module: crowded(binary.I64, 11, 0xba), Args: []uint64{7}, Want: []uint64{8}},
		{Name: "conversion that gives an address of the host's", Module: crowded(binary.I64, 11, 0xba, 4), Args: []uint64{7}, Want: []uint64{8}},
	}
	for _, op := range []byte{0x67, 0x68} {
		list = append(list, Known{
			Name: map[byte]string{0x67: "clz", 0x68: "ctz"}[op], Module: crowded(binary.I32, 12, op),
			Args: []uint64{0, 7}, Want: []uint64{0}, Feature: "bmi1",
		})
	}
	return append(list, Known{Name: "0 below the result of and", Module: compared(), Args: []uint64{63}, Want: []uint64{1}})
}

// program has a memory, a function that does nothing, one that takes many values, and f.
func program(f binary.FuncType, locals []binary.LocalGroup, body []byte) *binary.Module {
	i64 := binary.I64
	return &binary.Module{
		Types: []binary.FuncType{
			f,
			{Results: []binary.ValType{binary.F64, binary.F64}},
			{Params: []binary.ValType{i64, i64, i64, i64, i64, i64, i64}},
		},
		Funcs:    []uint32{0, 1, 2},
		Memories: []binary.Extent{{Min: 1}},
		Exports:  []binary.Export{{Name: "f", Kind: binary.ExternFunc}, {Name: "memory", Kind: binary.ExternMemory}},
		Codes: []binary.Code{
			{Locals: locals, Body: append(body, byte(binary.OpEnd))},
			{Body: append(number(number(nil, 7), 9), byte(binary.OpEnd))},
			{Body: []byte{byte(binary.OpEnd)}},
		},
	}
}

func number(b []byte, v float64) []byte {
	b = append(b, byte(binary.OpF64Const))
	n := math.Float64bits(v)
	for range 8 {
		b = append(b, byte(n))
		n >>= 8
	}
	return b
}

// chosen is a function of a, b and c, which gives a, or the result of an instruction on a
// and b if c is 0, and a once more: a call has a and b put on the stack, one way loads a
// into the first register, and the other way has to, in the middle of the instruction.
func chosen(t binary.ValType, third []byte, op ...byte) *binary.Module {
	a, b := uint32(0), uint32(1)
	outer := t
	var body []byte
	var locals []binary.LocalGroup
	if t == binary.V128 {
		outer, a, b = binary.I64, 3, 4
		locals = []binary.LocalGroup{{Count: 2, Type: t}}
		for i := range uint32(2) {
			body = set(append(get(body, i), 0xfd, 18), a+i) // i64x2.splat
		}
	}
	body = append(body, byte(binary.OpCall), 1, byte(binary.OpDrop), byte(binary.OpDrop))
	body = append(get(body, 2), byte(binary.OpIf), byte(t))
	body = append(get(body, a), byte(binary.OpElse))
	body = append(append(get(get(body, a), b), third...), op...)
	body = append(body, byte(binary.OpEnd))
	if t == binary.V128 {
		last := uint32(5)
		locals = append(locals, binary.LocalGroup{Count: 1, Type: t})
		body = set(get(body, a), last)
		body = append(body, 0xfd, 29, 0)            // i64x2.extract_lane
		body = append(get(body, last), 0xfd, 29, 0) // of a
	} else {
		body = get(body, a)
	}
	return program(binary.FuncType{Params: []binary.ValType{outer, outer, binary.I32}, Results: []binary.ValType{outer, outer}}, locals, body)
}

// crowded has an instruction between more values than there are registers, n and some: its
// operand, which is used last, is loaded where the instruction needs it. With an i64 it is
// a function of p, and gives the operand, p + 1; with an i32 of x and p, and the operand is
// x, an address that was tested before, and is loaded from afterwards. Among the values
// there may be loads, for which the address of the memory is in a register.
func crowded(t binary.ValType, n uint32, op byte, loads ...uint32) *binary.Module {
	const x = 0
	p, first, params := uint32(1), uint32(2), []binary.ValType{t, binary.I64}
	if t == binary.I64 {
		p, first, params = 0, 1, params[1:]
	}
	result, more, u := first+n, first+n+1, first+n+2
	locals := []binary.LocalGroup{{Count: n, Type: binary.I64}, {Count: 1, Type: binary.F64}, {Count: 1, Type: binary.I32}, {Count: 1, Type: binary.I32}, {Count: 2, Type: binary.I64}}
	y := u + 1
	i32c := func(b []byte, v int64) []byte { return binary.AppendS64(append(b, byte(binary.OpI32Const)), v) }
	plus := func(b []byte, v int64) []byte {
		return append(binary.AppendS64(append(get(b, p), byte(binary.OpI64Const)), v), byte(binary.OpI64Add))
	}
	var b []byte
	if t == binary.I32 {
		b = append(get(get(b, x), x), 0x28, 0, 0, 0x36, 0, 20) // load, store: the address is tested
		b = append(b, byte(binary.OpCall), 1, byte(binary.OpDrop), byte(binary.OpDrop))
	}
	for i := range n {
		for range slices.Index(loads, i) + 1 {
			b = set(append(i32c(b, 0), 0x29, 0, 0), y+1)
		}
		b = set(plus(b, 0x1000000*int64(i+1)), first+i)
	}
	if t == binary.I64 {
		b = set(plus(b, 1), y)
		b = set(append(get(b, y), op), result)
		b = append(get(i32c(b, 0), y), 0x37, 0, 8)
	} else {
		b = set(append(plus(b, 5), 0xb9), result) // f64.convert_i64_s
		b = set(append(get(b, x), op), u)
		b = set(append(get(b, x), 0x28, 0, 0), more)
	}
	for range 6 {
		b = get(b, p)
	}
	if t == binary.I64 {
		b = get(b, y)
	} else {
		b = append(get(b, x), 0xad) // i64.extend_i32_u
	}
	b = append(b, byte(binary.OpCall), 2)
	if t == binary.I64 {
		b = append(get(b, p), byte(binary.OpI64Const), 0x7f, 0x59, byte(binary.OpIf), 0x40) // p >= -1
	} else {
		b = append(i32c(b, 1), byte(binary.OpIf), 0x40)
	}
	for i := range n {
		b = append(get(i32c(b, 0), first+i), 0x37, 0)
		b = binary.AppendU32(b, 2048+8*i)
	}
	b = append(get(i32c(b, 0), p), 0x37, 0, 24)
	if t == binary.I32 {
		b = append(get(i32c(b, 0), u), 0x36, 0, 16)
	} else {
		b = append(get(i32c(b, 0), y), 0x37, 0, 40)
		b = append(get(i32c(b, 0), y+1), 0x37, 0, 32)
	}
	b = append(get(i32c(b, 0), result), 0x39, 0)
	b = append(binary.AppendU32(b, 1024), byte(binary.OpEnd))
	if t == binary.I64 {
		b = append(i32c(b, 0), 0x29, 0, 8) // as it was behind the instruction
	} else {
		b = append(get(get(b, more), x), byte(binary.OpI32Add))
	}
	return program(binary.FuncType{Params: params, Results: []binary.ValType{t}}, locals, b)
}

// compared is a function of x, which gives 1 if 0 is below x, by a branch.
func compared() *binary.Module {
	b := []byte{byte(binary.OpI32Const), 0}
	b = append(get(get(b, 0), 0), 0x71, byte(binary.OpI32LtU), byte(binary.OpIf), byte(binary.I32))
	b = append(b, byte(binary.OpI32Const), 1, byte(binary.OpElse), byte(binary.OpI32Const), 0, byte(binary.OpEnd))
	return program(binary.FuncType{Params: []binary.ValType{binary.I32}, Results: []binary.ValType{binary.I32}}, nil, b)
}
