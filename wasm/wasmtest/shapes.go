package wasmtest

import "openskill/wasm/binary"

// Shape is a family of modules whose compilation may cost more than their size
// says: N grows one thing, and the rest stays.
type Shape struct {
	Name string
	Make func(n int) []byte
}

// shapes of one function: what its locals are, and what it does.
func one(locals uint32, body func(n int) Code) func(n int) []byte {
	return func(n int) []byte {
		b := New()
		b.Memory(1)
		b.Table(10)
		b.Global(0)
		b.Func(nil, []binary.ValType{TypeI32}, nil, I32(1)) // 0
		b.Func(nil, nil, nil, "")                           // 1
		i := b.Func(nil, nil, []binary.LocalGroup{{Count: locals, Type: TypeI32}}, body(n))
		b.Export("_start", i)
		return b.Bytes()
	}
}

// wide has functions 0 of w parameters, 1 of w results, and 2 of both.
func wide(w int, body func(n int) Code) func(n int) []byte {
	return func(n int) []byte {
		b := New()
		b.Memory(1)
		many := make([]binary.ValType, w)
		for i := range many {
			many[i] = TypeI32
		}
		b.Func(many, nil, nil, "")
		b.Func(nil, many, nil, Repeat(w, I32(1)))
		b.Func(many, many, nil, each(w, Get))
		b.Export("_start", b.Func(nil, nil, []binary.LocalGroup{{Count: 4, Type: TypeI32}}, body(n)))
		return b.Bytes()
	}
}

func each(n int, f func(i uint32) Code) Code {
	all := make([]Code, n)
	for i := range all {
		all[i] = f(uint32(i))
	}
	return join(all)
}

func numerous(n int, body func(i int) Code) func(b *Builder) {
	return func(b *Builder) {
		for i := range n {
			b.Void(body(i))
		}
	}
}

func table(targets int, of func(i int) uint32) Code {
	c := binary.AppendU32([]byte{0x0e}, uint32(targets-1))
	for i := range targets {
		c = binary.AppendU32(c, of(i))
	}
	return Code(c)
}

// Shapes are the families. One that costs more than package check estimates
// belongs among them.
func Shapes() []Shape {
	defs := func(locals uint32) Code { // results of calls, which the compiler cannot know
		return each(int(locals), func(i uint32) Code { return Call(0) + Set(i) })
	}
	uses := func(locals uint32) Code {
		return each(int(locals), func(i uint32) Code { return Get(i) + GlobalSet(0) })
	}
	nest := func(n int, open string, inner Code) Code {
		return Repeat(n, Code(open)) + inner + Repeat(n, "\x0b")
	}
	return []Shape{
		{"straight arithmetic", one(2, func(n int) Code { return Repeat(n, Get(0)+I32(7)+Add+Set(0)) })},
		{"deep expression", one(2, func(n int) Code { return Repeat(n, GlobalGet(0)) + GlobalGet(0) + Repeat(n, Add) + GlobalSet(0) })},
		{"deep expression of calls", one(2, func(n int) Code { return Repeat(n, Call(0)) + Call(0) + Repeat(n, Add) + GlobalSet(0) })},
		{"selects", one(3, func(n int) Code { return Repeat(n, Get(0)+Get(1)+Get(2)+"\x1b"+Set(0)) })},
		{"divisions", one(3, func(n int) Code { return Repeat(n, Get(0)+Get(1)+DivU+Set(0)) })},
		{"conversions", one(3, func(n int) Code { return Repeat(n, Get(0)+"\xb3\xa9"+Set(0)) })},
		{"vectors", one(3, func(n int) Code {
			return Get(0) + "\xfd\x0f" + Repeat(n, Get(1)+"\xfd\x0f"+"\xfd\x6e") + "\xfd\x1b\x00" + Set(0)
		})},
		{"shuffles", one(3, func(n int) Code {
			return Get(0) + "\xfd\x0f" + Repeat(n, Get(1)+"\xfd\x0f"+"\xfd\x0d\x00\x01\x02\x03\x04\x05\x06\x07\x10\x11\x12\x13\x14\x15\x16\x17") + "\xfd\x1b\x00" + Set(0)
		})},
		{"loads", one(3, func(n int) Code { return Repeat(n, Get(0)+Load+Set(0)) })},
		{"stores", one(3, func(n int) Code { return Repeat(n, Get(0)+Get(1)+Store) })},
		{"globals", one(3, func(n int) Code { return Repeat(n, GlobalGet(0)+I32(1)+Add+GlobalSet(0)) })},
		{"table.get", one(3, func(n int) Code { return Repeat(n, Get(0)+TableGet(0)+Drop) })},
		{"table.set", one(3, func(n int) Code { return Repeat(n, Get(0)+NullFunc+TableSet(0)) })},
		{"table.size", one(3, func(n int) Code { return Repeat(n, TableSize(0)+Set(0)) })},
		{"table.grow", one(3, func(n int) Code { return Repeat(n, NullFunc+Get(0)+TableGrow(0)+Set(0)) })},
		{"table.fill", one(3, func(n int) Code { return Repeat(n, Get(0)+NullFunc+Get(1)+TableFill(0)) })},
		{"table.copy", one(3, func(n int) Code { return Repeat(n, Get(0)+Get(0)+Get(1)+"\xfc\x0e\x00\x00") })},
		{"memory.copy", one(3, func(n int) Code { return Repeat(n, Get(0)+Get(1)+Get(1)+MemoryCopy) })},
		{"memory.fill", one(3, func(n int) Code { return Repeat(n, Get(0)+Get(1)+Get(1)+MemoryFill) })},
		{"memory.grow", one(3, func(n int) Code { return Repeat(n, Get(0)+MemoryGrow+Set(0)) })},
		{"memory.size", one(3, func(n int) Code { return Repeat(n, MemorySize+Set(0)) })},
		{"ref.func", one(3, func(n int) Code { return Repeat(n, RefFunc(2)+Drop) })},
		{"calls", one(3, func(n int) Code { return Repeat(n, Call(1)) })},
		{"calls through a table", one(3, func(n int) Code { return Repeat(n, Get(0)+CallIndirect(1)) })},
		{"calls with 1000 parameters", wide(1000, func(n int) Code { return Repeat(n, Call(1)+Call(0)) })},
		{"calls through 1000 values", wide(1000, func(n int) Code { return Call(1) + Repeat(n, Call(2)) + Call(0) })},
		{"calls through 30 values", wide(30, func(n int) Code { return Call(1) + Repeat(n, Call(2)) + Call(0) })},
		{"ifs", one(3, func(n int) Code { return Repeat(n, Get(0)+If(I32(7)+Set(1))) })},
		{"ifs that read one local", one(3, func(n int) Code { return Call(0) + Set(0) + Repeat(n, Get(0)+If(Get(1)+GlobalSet(0))) })},
		{"ifs that change a local", one(3, func(n int) Code { return Repeat(n, Get(0)+If(Get(0)+I32(1)+Add+Set(0))) })},
		{"empty blocks", one(3, func(n int) Code { return Repeat(n, Block("")) })},
		{"empty loops", one(3, func(n int) Code { return Repeat(n, Loop("")) })},
		{"loops", one(3, func(n int) Code { return Repeat(n, Loop(Get(0)+I32(1)+Sub+Tee(0)+BrIf(0))) })},
		{"loops with calls", one(3, func(n int) Code { return Repeat(n, Loop(Call(1)+Get(0)+I32(1)+Sub+Tee(0)+BrIf(0))) })},
		{"branches to one block", one(3, func(n int) Code { return Block(Repeat(n, Get(0)+BrIf(0))) })},
		{"branches back to one loop", one(3, func(n int) Code { return Loop(Repeat(n, Get(0)+BrIf(0))) })},
		{"branches out of the function", one(3, func(n int) Code { return Repeat(n, Get(0)+BrIf(0)) })},
		{"returns", one(3, func(n int) Code { return Repeat(n, Get(0)+If(Return)) })},
		{"traps", one(3, func(n int) Code { return Repeat(n, Get(0)+If(Unreachable)) })},
		{"nests of 4000 blocks", one(3, func(n int) Code {
			var c Code
			for range 4000 {
				c = Block(c + Get(0) + BrIf(0))
			}
			return Repeat(n/4000, c)
		})},
		{"a nest of n blocks", one(3, func(n int) Code { return nest(n, "\x02\x40", Get(0)+BrIf(0)) })},
		{"a nest of n loops", one(3, func(n int) Code {
			return Repeat(n, "\x03\x40") + Repeat(n, Get(0)+BrIf(0)+"\x0b")
		})},
		{"a nest of n loops, a hundred locals", one(100, func(n int) Code {
			return defs(100) + Repeat(n, "\x03\x40") + uses(100) + Repeat(n, Get(0)+BrIf(0)+"\x0b")
		})},
		{"a nest of n ifs", one(3, func(n int) Code { return Repeat(n, Get(0)+"\x04\x40") + Repeat(n, I32(1)+Set(1)+"\x0b") })},
		{"a nest of n loops with 30 values", wide(30, func(n int) Code {
			return Call(1) + Repeat(n, "\x03\x02") + Repeat(n, Get(0)+BrIf(0)+"\x0b") + Call(0)
		})},
		{"a nest of n loops, each with a way out", one(3, func(n int) Code {
			return Repeat(n, "\x02\x40\x03\x40"+Get(0)+BrIf(1)) + Repeat(n, Get(0)+BrIf(0)+"\x0b\x0b")
		})},
		{"a nest of n loops with branches to the first", one(3, func(n int) Code {
			c := Repeat(n, "\x03\x40")
			for i := range n {
				c += Get(0) + BrIf(uint32(n-1-i)) + "\x0b"
			}
			return c
		})},
		{"a nest of n ifs, each with an else", one(3, func(n int) Code {
			return Repeat(n, Get(0)+"\x04\x40") + Repeat(n, "\x05"+Get(1)+If(Return)+"\x0b")
		})},
		{"ifs with an else", one(3, func(n int) Code { return Repeat(n, Get(0)+"\x04\x40"+I32(7)+Set(1)+"\x05"+I32(8)+Set(1)+"\x0b") })},
		{"one block left from n nested ifs", one(3, func(n int) Code {
			c := Code("\x02\x40") + Repeat(n, Get(0)+"\x04\x40")
			for i := range n {
				c += Get(0) + BrIf(uint32(n-i)) + "\x0b"
			}
			return c + "\x0b"
		})},
		{"n blocks left backwards", one(3, func(n int) Code {
			c := Repeat(n, "\x02\x40")
			for i := range n {
				c += Get(0) + BrIf(uint32(n-1-i))
			}
			return c + Repeat(n, Get(1)+If(Return)+"\x0b")
		})},
		{"branch tables of 100 targets with 1000 values", wide(1000, func(n int) Code {
			return "\x02\x01" + Repeat(n, "\x02\x01"+Call(1)+Get(0)+table(100, func(int) uint32 { return 0 })+"\x0b"+Call(0)) + Call(1) + "\x0b" + Call(0)
		})},
		{"stores to constants", one(3, func(n int) Code {
			return each(n, func(i uint32) Code { return I32(int64(i)) + Get(0) + Store })
		})},
		{"loads ever further on", one(3, func(n int) Code {
			return each(n, func(i uint32) Code { return Get(0) + indexed("\x28\x00", i) + Drop })
		})},
		{"branch tables of 16,000 to one block", one(3, func(n int) Code {
			return Repeat(n, Block(Get(0)+table(16_000, func(int) uint32 { return 0 })))
		})},
		{"branch tables of 100 to one block", one(3, func(n int) Code {
			return Repeat(n, Block(Get(0)+table(100, func(int) uint32 { return 0 })))
		})},
		{"one branch table to n blocks", one(3, func(n int) Code {
			return nest(n, "\x02\x40", Get(0)+table(n, func(i int) uint32 { return uint32(i) }))
		})},
		{"branch tables to 1000 blocks", one(3, func(n int) Code {
			c := Get(0) + table(1000, func(i int) uint32 { return uint32(i) })
			for range 1000 {
				c = Block(c) + Get(0) + If(Return)
			}
			return Repeat(n, c)
		})},
		{"an interpreter of n cases", one(30, func(n int) Code {
			c := Get(0) + table(n, func(i int) uint32 { return uint32(i) })
			for i := range n {
				c = Block(c) + Get(0) + Load + Tee(uint32(i%30)) + Get(uint32(i%7)) + Store + Br(uint32(n-1-i))
			}
			return defs(30) + Loop(c)
		})},
		{"calls, values kept across", one(5000, func(n int) Code {
			return each(n, func(i uint32) Code { return Call(0) + Set(i%5000) }) + uses(uint32(min(n, 5000)))
		})},
		{"5000 locals through n ifs", one(5000, func(n int) Code { return defs(5000) + Repeat(n, Get(0)+If(Call(1))) + uses(5000) })},
		{"500 locals through n ifs", one(500, func(n int) Code { return defs(500) + Repeat(n, Get(0)+If(Call(1))) + uses(500) })},
		{"5000 locals through n branches", one(5000, func(n int) Code { return defs(5000) + Block(Repeat(n, Get(0)+BrIf(0))) + uses(5000) })},
		{"5000 locals through n loops", one(5000, func(n int) Code { return defs(5000) + Repeat(n, Loop(Get(0)+BrIf(0))) + uses(5000) })},
		{"500 locals through n loops", one(500, func(n int) Code { return defs(500) + Repeat(n, Loop(Get(0)+BrIf(0))) + uses(500) })},
		{"50 locals through n loops", one(50, func(n int) Code { return defs(50) + Repeat(n, Loop(Get(0)+BrIf(0))) + uses(50) })},
		{"n locals in one loop", one(5000, func(n int) Code {
			return defs(uint32(n)) + Loop(uses(uint32(n))+Get(0)+BrIf(0))
		})},
		{"n locals changed in one loop", one(5000, func(n int) Code {
			return defs(uint32(n)) + Loop(defs(uint32(n))+uses(uint32(n))+Get(0)+BrIf(0))
		})},
		{"1000 locals changed in n ifs", one(1000, func(n int) Code {
			return defs(1000) + each(n, func(i uint32) Code { return Get(0) + If(Call(0)+Set(i%1000)) }) + uses(1000)
		})},
		{"100 locals changed in each of n ifs", one(100, func(n int) Code {
			return Repeat(n, Get(0)+If(defs(100))+uses(100))
		})},
		{"n branches with 1000 values", wide(1000, func(n int) Code {
			return "\x02\x01" + Call(1) + Repeat(n, Get(0)+BrIf(0)) + "\x0b" + Call(0)
		})},
		{"n branches with 100 values", wide(100, func(n int) Code {
			return "\x02\x01" + Call(1) + Repeat(n, Get(0)+BrIf(0)) + "\x0b" + Call(0)
		})},
		{"n blocks with 100 values", wide(100, func(n int) Code {
			return Call(1) + Repeat(n, "\x02\x02"+Get(0)+BrIf(0)+"\x0b") + Call(0)
		})},
		{"n loops with 100 values", wide(100, func(n int) Code {
			return Call(1) + Repeat(n, "\x03\x02"+Get(0)+BrIf(0)+"\x0b") + Call(0)
		})},
		{"loads and branches", one(3, func(n int) Code {
			return Block(Repeat(n, Get(0)+Load+Tee(0)+BrIf(0)))
		})},
		{"loads and ifs", one(3, func(n int) Code { return Repeat(n, Get(0)+Load+Tee(0)+If(Return)) })},
		{"loads, then branches", one(3, func(n int) Code { return Repeat(n, Get(0)+Load+Set(0)) + Repeat(n, Get(0)+BrIf(0)) })},
		{"300 operands over n blocks", one(3, func(n int) Code {
			return Repeat(300, Call(0)) + Repeat(n, Get(0)+If(Call(1))) + Repeat(300, GlobalSet(0))
		})},
		{"n loads behind 4000 branches", one(3, func(n int) Code {
			return Get(0) + Load + Set(1) + Repeat(4000, Get(0)+BrIf(0)) + Repeat(n, Get(0)+Load+Set(0))
		})},
		{"n reads of 1000 globals behind 4000 branches", func(n int) []byte {
			b := New()
			for range 1000 {
				b.Global(0)
			}
			c := each(1000, GlobalGet) + Repeat(1000, Drop)
			b.Void(c + Repeat(4000, Get(0)+BrIf(0)) + Repeat(n, c))
			return b.Bytes()
		}},
		{"n returns of 1000 values", wide(1000, func(n int) Code {
			return Repeat(n, Get(0)+If(Call(1)+Call(0)+Return))
		})},
		{"n functions of 1000 parameters", func(n int) []byte {
			b := New()
			p := make([]binary.ValType, 1000)
			for i := range p {
				p[i] = TypeI32
			}
			for range n {
				b.Func(p, nil, nil, "")
			}
			return b.Bytes()
		}},
		{"n functions that return 1000 parameters", func(n int) []byte {
			b := New()
			p := make([]binary.ValType, 1000)
			for i := range p {
				p[i] = TypeI32
			}
			for range n {
				b.Func(p, p, nil, each(1000, Get)+Return)
			}
			return b.Bytes()
		}},
		{"n functions of 100 memory.copy", func(n int) []byte {
			b := New()
			b.Memory(1)
			numerous(n, func(int) Code { return copies(100) })(b)
			return b.Bytes()
		}},
		{"n functions of 100 calls through a table", func(n int) []byte {
			b := New()
			b.Table(1)
			v := b.Type(nil, nil)
			numerous(n, func(int) Code { return Repeat(100, Get(0)+CallIndirect(v)) })(b)
			return b.Bytes()
		}},
		{"n empty functions", func(n int) []byte {
			b := New()
			numerous(n, func(int) Code { return "" })(b)
			return b.Bytes()
		}},
		{"n functions of 5000 locals", func(n int) []byte {
			b := New()
			for range n {
				b.Func(nil, nil, []binary.LocalGroup{{Count: 5000, Type: TypeI32}}, "")
			}
			return b.Bytes()
		}},
		{"n functions in a module of 10,000 types", func(n int) []byte {
			b := New()
			types(b, 9_990)
			numerous(n, func(int) Code { return "" })(b)
			return b.Bytes()
		}},
		{"n functions in a module of 10,000 globals", func(n int) []byte {
			b := New()
			for range 10_000 {
				b.Global(0)
			}
			numerous(n, func(int) Code { return "" })(b)
			return b.Bytes()
		}},
		{"n calls in a module of 1000 globals", func(n int) []byte {
			b := New()
			for range 1000 {
				b.Global(0)
			}
			f := b.Void("")
			b.Void(Repeat(n, Call(f)))
			return b.Bytes()
		}},
		{"n ifs with calls in a module of 1000 globals", func(n int) []byte {
			b := New()
			for range 1000 {
				b.Global(0)
			}
			f := b.Void("")
			b.Void(Repeat(n, Get(0)+If(Call(f))))
			return b.Bytes()
		}},
		{"n types of 1000 parameters", func(n int) []byte {
			b := New()
			for i := range n {
				p := make([]binary.ValType, 1000)
				for j := range p {
					p[j] = TypeI32
					if i>>(j%16)&1 == 1 {
						p[j] = TypeI64
					}
				}
				b.m.Types = append(b.m.Types, binary.FuncType{Params: p})
			}
			b.Void("")
			return b.Bytes()
		}},
		{"one large function, then n of ten ifs", func(n int) []byte {
			b := New()
			f := b.Func(nil, []binary.ValType{TypeI32}, nil, I32(1))
			var c Code
			for range 40 {
				c += Get(0) + If(each(5000, func(i uint32) Code { return I32(7) + Set(i) }))
			}
			b.Func(nil, nil, []binary.LocalGroup{{Count: 5000, Type: TypeI32}}, Call(f)+Set(0)+c)
			numerous(n, func(int) Code { return Repeat(10, Get(0)+If(Nop)) })(b)
			return b.Bytes()
		}},
		{"n functions of 20 ifs", func(n int) []byte {
			b := New()
			numerous(n, func(int) Code { return Repeat(20, Get(0)+If(I32(7)+Set(1))) })(b)
			return b.Bytes()
		}},
	}
}

// types declares n that differ.
func types(b *Builder, n int) {
	for i := range n {
		var p []binary.ValType
		for j := range 14 {
			p = append(p, TypeI32)
			if i>>j&1 == 1 {
				p[j] = TypeI64
			}
		}
		b.m.Types = append(b.m.Types, binary.FuncType{Params: p})
	}
}
