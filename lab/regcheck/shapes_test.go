package main

import (
	"os"
	"path/filepath"
	"slices"

	"openskill/wasm/binary"
	"openskill/wasm/passtest"
)

// shape is a module and what an allocation of it does wrong, a part of a report; "" is
// nothing.
type shape struct {
	name   string
	module func() []byte
	faults map[string]string
}

// shapes are what is known of wazero v1.12.0, and what only looks like it.
var shapes = []shape{
	{"copysign", func() []byte { return behindCall(0xa6) }, map[string]string{"amd64": "orpd"}},
	{"select", func() []byte { return behindCall(0x20, 2, 0x1b) }, map[string]string{"amd64": "xmmcmov"}},
	{"convert-under-pressure", convert, map[string]string{"amd64": "(i64) from"}},
	{"splat", splat, map[string]string{"amd64": "", "arm64": ""}},
	// Reduced from programs of passtest.Pressure.
	{"convert-low", kept("amd64-convert-low"), map[string]string{"amd64": "unpcklps"}}, // f64x2.convert_low_i32x4_u
	{"replace-lane", kept("amd64-lane"), map[string]string{"amd64": "movsd"}},
	{"replace-lane", kept("arm64-lane"), map[string]string{"arm64": "mov v"}},
	{"remainder", kept("arm64-remainder"), map[string]string{"amd64": "", "arm64": "msub"}},
	{"bitmask", calls(1426), map[string]string{"arm64": "lsr x"}},                                // i64x2.bitmask
	{"constant-on-the-stack", calls(160), map[string]string{"amd64": "", "arm64": "str w21, ["}}, // refused
}

func calls(seed uint64) func() []byte {
	return func() []byte { return passtest.Calls(passtest.Bytes(seed, 8)) }
}

func kept(name string) func() []byte {
	return func() []byte {
		b, err := os.ReadFile(filepath.Join("testdata", name+".wasm"))
		if err != nil {
			panic(err)
		}
		return b
	}
}

// behindCall has two f64 live over a call, and then an instruction of both in one branch, of
// which the first is wanted afterwards:
//
//	(call $h) (drop) (drop)
//	(if (result f64) (local.get $c) (then (local.get $a)) (else (… (local.get $a) (local.get $b))))
//	(local.get $a)
func behindCall(op ...byte) []byte {
	d := binary.F64
	return (&binary.Module{
		Types:    []binary.FuncType{{Results: []binary.ValType{d, d}}, {Params: []binary.ValType{d, d, binary.I32}, Results: []binary.ValType{d, d}}},
		Funcs:    []uint32{0, 1},
		Memories: []binary.Extent{{Min: 1}},
		Exports:  []binary.Export{{Name: "f", Kind: binary.ExternFunc, Index: 1}, {Name: "memory", Kind: binary.ExternMemory}},
		Codes: []binary.Code{
			{Body: []byte{0x44, 0, 0, 0, 0, 0, 0, 0x1c, 0x40, 0x44, 0, 0, 0, 0, 0, 0, 0x22, 0x40, 0x0b}},
			{Body: slices.Concat([]byte{0x10, 0, 0x1a, 0x1a, 0x20, 2, 0x04, 0x7c, 0x20, 0, 0x05, 0x20, 0, 0x20, 1}, op, []byte{0x0b, 0x20, 0, 0x0b})},
		},
	}).Encode()
}

// convert has an i64 converted while all registers for integers are in use, and uses it again.
func convert() []byte { return pressed(11, 0xba, 0x39) } // f64.convert_i64_u, f64.store

// pressed has so many i64 in use around an instruction of one more, whose result a store
// keeps.
func pressed(held byte, op ...byte) []byte {
	l := binary.I64
	code, keep := op[:len(op)-1], op[len(op)-1]
	get := func(i byte) []byte { return []byte{0x20, i} }
	d, x, first := byte(1), byte(2), byte(3)
	var body []byte
	put := func(b ...byte) { body = append(body, b...) }
	sum := func(to byte, n int64) {
		put(0x20, 0, 0x42)
		body = binary.AppendS64(body, n)
		put(0x7c, 0x21, to)
	}
	store := func(how byte, at uint32, value []byte) {
		put(0x41, 0)
		put(value...)
		put(how, 0)
		body = binary.AppendU32(body, at)
	}
	for i := range held {
		sum(first+i, 0x1000000*int64(i+1))
	}
	sum(x, 1)
	put(0x20, x)
	put(code...)
	put(0x21, d)
	store(0x37, 8, get(x))
	for range 6 {
		put(0x20, 0)
	}
	put(0x20, x, 0x10, 0, 0x41, 1, 0x04, 0x40)
	for i := range held {
		store(0x37, 2048+8*uint32(i), get(first+i))
	}
	store(0x37, 16, get(0))
	store(keep, 1024, get(d))
	put(0x0b, 0x20, x, 0x0b)
	return (&binary.Module{
		Types:    []binary.FuncType{{Params: slices.Repeat([]binary.ValType{l}, 7)}, {Params: []binary.ValType{l}, Results: []binary.ValType{l}}},
		Funcs:    []uint32{0, 1},
		Memories: []binary.Extent{{Min: 1}},
		Exports:  []binary.Export{{Name: "f", Kind: binary.ExternFunc, Index: 1}, {Name: "memory", Kind: binary.ExternMemory}},
		Codes: []binary.Code{
			{Body: []byte{0x0b}},
			{Locals: []binary.LocalGroup{{Count: 1, Type: binary.F64}, {Count: 1 + uint32(held), Type: l}}, Body: body},
		},
	}).Encode()
}

// splat writes a half of a vector that held nothing before, in a loop, where the vector of
// the round before is not meant.
func splat() []byte {
	return (&binary.Module{
		Types:    []binary.FuncType{{Params: []binary.ValType{binary.F64, binary.I32}}},
		Funcs:    []uint32{0},
		Memories: []binary.Extent{{Min: 1}},
		Exports:  []binary.Export{{Name: "f", Kind: binary.ExternFunc}, {Name: "memory", Kind: binary.ExternMemory}},
		Codes: []binary.Code{{Body: []byte{
			0x03, 0x40, 0x20, 1, 0x20, 0, 0xfd, 0x14, 0xfd, 11, 0, 0, // v128.store of f64x2.splat
			0x20, 1, 0x41, 16, 0x6b, 0x22, 1, 0x0d, 0, 0x0b, 0x0b,
		}}},
	}).Encode()
}
