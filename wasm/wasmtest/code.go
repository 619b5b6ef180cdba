package wasmtest

import (
	"strings"

	"openskill/wasm/binary"
)

// Code is a piece of a function's body. Pieces add up with +.
type Code string

// Instructions without immediates, and those whose immediates hardly vary:
// loads and stores are aligned to a byte and have the offset 0.
const (
	Unreachable Code = "\x00"
	Nop         Code = "\x01"
	Return      Code = "\x0f"
	Drop        Code = "\x1a"
	Load8       Code = "\x2d\x00\x00"
	Load        Code = "\x28\x00\x00"
	Load64      Code = "\x29\x00\x00"
	Store8      Code = "\x3a\x00\x00"
	Store       Code = "\x36\x00\x00"
	Store64     Code = "\x37\x00\x00"
	MemorySize  Code = "\x3f\x00"
	MemoryGrow  Code = "\x40\x00"
	Eqz         Code = "\x45"
	Eq          Code = "\x46"
	Ne          Code = "\x47"
	LtU         Code = "\x49"
	LtS         Code = "\x48"
	Add         Code = "\x6a"
	Sub         Code = "\x6b"
	Mul         Code = "\x6c"
	DivU        Code = "\x6e"
	And         Code = "\x71"
	Add64       Code = "\x7c"
	DivU64      Code = "\x80"
	Ne64        Code = "\x52"
	Extend      Code = "\xad" // i32 to i64, unsigned
	MemoryCopy  Code = "\xfc\x0a\x00\x00"
	MemoryFill  Code = "\xfc\x0b\x00"
	NullFunc    Code = "\xd0\x70"
	NullExtern  Code = "\xd0\x6f"
	IsNull      Code = "\xd1"
)

// I32 is i32.const.
func I32(v int64) Code { return Code(binary.AppendS64([]byte{0x41}, int64(int32(v)))) }

// I64 is i64.const.
func I64(v int64) Code { return Code(binary.AppendS64([]byte{0x42}, v)) }

func indexed(op string, i ...uint32) Code {
	b := []byte(op)
	for _, x := range i {
		b = binary.AppendU32(b, x)
	}
	return Code(b)
}

// Get is local.get.
func Get(i uint32) Code { return indexed("\x20", i) }

// Set is local.set.
func Set(i uint32) Code { return indexed("\x21", i) }

// Tee is local.tee.
func Tee(i uint32) Code { return indexed("\x22", i) }

// GlobalGet is global.get.
func GlobalGet(i uint32) Code { return indexed("\x23", i) }

// GlobalSet is global.set.
func GlobalSet(i uint32) Code { return indexed("\x24", i) }

// TableGet is table.get.
func TableGet(t uint32) Code { return indexed("\x25", t) }

// TableSet is table.set.
func TableSet(t uint32) Code { return indexed("\x26", t) }

// TableGrow is table.grow.
func TableGrow(t uint32) Code { return indexed("\xfc\x0f", t) }

// TableSize is table.size.
func TableSize(t uint32) Code { return indexed("\xfc\x10", t) }

// TableFill is table.fill.
func TableFill(t uint32) Code { return indexed("\xfc\x11", t) }

// RefFunc is ref.func.
func RefFunc(f uint32) Code { return indexed("\xd2", f) }

// Call is call.
func Call(f uint32) Code { return indexed("\x10", f) }

// CallIndirect is call_indirect on table 0, with a type of [Builder.Type].
func CallIndirect(typ uint32) Code { return indexed("\x11", typ, 0) }

// Br is br.
func Br(depth uint32) Code { return indexed("\x0c", depth) }

// BrIf is br_if.
func BrIf(depth uint32) Code { return indexed("\x0d", depth) }

// Block is a block without results.
func Block(body ...Code) Code { return "\x02\x40" + join(body) + "\x0b" }

// Loop is a loop without results. Br(0) in it goes back to its beginning.
func Loop(body ...Code) Code { return "\x03\x40" + join(body) + "\x0b" }

// If is an if without results and without else.
func If(body ...Code) Code { return "\x04\x40" + join(body) + "\x0b" }

// Times runs body n times, counting down in the local i.
func Times(n int64, i uint32, body ...Code) Code {
	return I32(n) + Set(i) + Loop(join(body)+Get(i)+I32(1)+Sub+Tee(i)+BrIf(0))
}

// Repeat is body n times in a row: a straight line.
func Repeat(n int, body Code) Code { return Code(strings.Repeat(string(body), n)) }

func join(body []Code) Code {
	var b strings.Builder
	for _, c := range body {
		b.WriteString(string(c))
	}
	return Code(b.String())
}
