package tune

import "openskill/wasm/binary"

const (
	// toldSize is how much of its stack CPython is told of by who built the runtimes: a
	// chain of 47 elif does not compile in that, and the linker gave it 16 MiB.
	toldSize = 128 << 10
	// frame is how much more of the stack each function takes that compares it with its
	// limit, in bytes. Compiled to WebAssembly such functions may take none of it, but of
	// the host's stack only, which ends the run: then CPython would not see that lists
	// are nested too deeply to be freed, compared or decoded by nested calls.
	frame = 512
	// limitAt is where CPython 3.15 keeps that limit in its state of a thread.
	limitAt = 788
)

// Instructions without a name in package binary.
const (
	opI32Load = binary.Op(0x28)
	opI32And  = binary.Op(0x71)
)

// stack tells CPython of size bytes of its stack where it is told of toldSize, and has
// the functions that compare it take a frame. It reports whether m, whose slices are not
// written to but for Codes, is such a CPython.
func stack(m *binary.Module, size uint32) (bool, error) {
	if len(m.Globals) == 0 || !m.Globals[0].Mutable {
		return false, nil
	}
	top, ok := place(m.Globals[0].Init)
	if !ok || size <= toldSize || top < size {
		return false, nil
	}
	told, at := 0, [2]int{}
	var compares []int
	for i := range m.Codes {
		ins, err := instructions(&m.Codes[i])
		if err != nil {
			return false, err
		}
		for k := range ins {
			if tells(ins[:k+1], top) {
				told, at = told+1, [2]int{i, ins[k].Pos}
			}
		}
		if looksAtLimit(ins) {
			compares = append(compares, i)
		}
	}
	if told != 1 || len(compares) == 0 {
		return false, nil
	}
	tell(&m.Codes[at[0]], at[1], top, size)
	for _, i := range compares {
		ins, err := instructions(&m.Codes[i])
		if err != nil {
			return false, err
		}
		for len(ins) > 0 && ins[0].Op == binary.OpBlock { // around a function that may throw, since package lower
			ins = ins[1:]
		}
		switch {
		case len(ins) < 3 || ins[0].Op != binary.OpGlobalGet || ins[0].A != 0: // the interpreter's loop, which counts its calls itself
		case ins[1].Op == binary.OpI32Const && ins[2].Op == binary.OpI32Sub && enlarge(&m.Codes[i], ins):
		case frees(ins):
			take(&m.Codes[i], ins)
		default:
			wrap(m, i)
		}
	}
	return true, nil
}

func instructions(c *binary.Code) ([]binary.Instr, error) {
	var ins []binary.Instr
	r := binary.NewReader(c.Body, c.Offset)
	for in := (binary.Instr{}); r.Next(&in); {
		ins = append(ins, in)
	}
	return ins, r.Err()
}

// tells reports whether the last instruction calls what is told where the stack begins
// and how large it is: (top - toldSize, toldSize).
func tells(ins []binary.Instr, top uint32) bool {
	n := len(ins) - 5
	return n >= 0 && ins[n+4].Op == binary.OpCall &&
		ins[n].Op == binary.OpI32Const && uint32(ins[n].Const) == top &&
		ins[n+1].Op == binary.OpI32Const && ins[n+1].Const == -toldSize && ins[n+2].Op == binary.OpI32Add &&
		ins[n+3].Op == binary.OpI32Const && ins[n+3].Const == toldSize
}

// tell changes what is told by the call at a place.
func tell(c *binary.Code, call int, top, size uint32) {
	b := append([]byte{}, c.Body[:call]...)
	b = append(b, byte(binary.OpDrop), byte(binary.OpDrop), byte(binary.OpI32Const))
	b = append(binary.AppendS64(b, int64(top-size)), byte(binary.OpI32Const))
	c.Body = append(binary.AppendS64(b, int64(size)), c.Body[call:]...)
}

// looksAtLimit reports whether a function reads the limit of the stack; it may be before
// or after additions became offsets.
func looksAtLimit(ins []binary.Instr) bool {
	for k := range ins {
		if ins[k].Op != opI32Load {
			continue
		}
		if ins[k].Const == limitAt || k > 1 && ins[k].Const == 0 && ins[k-1].Op == binary.OpI32Add && ins[k-2].Op == binary.OpI32Const && ins[k-2].Const == limitAt {
			return true
		}
	}
	return false
}

// enlarge makes the frame of a function larger that takes one where it begins, and gives
// it back by an addition wherever it ends. It reports whether the function does so.
func enlarge(c *binary.Code, ins []binary.Instr) bool {
	size, sets := ins[1].Const, 0
	sizes := []int{1}
	for k := 3; k < len(ins); k++ {
		if ins[k].Op != binary.OpGlobalSet || ins[k].A != 0 {
			continue
		}
		if sets++; sets == 1 {
			continue // the frame is taken
		}
		if ins[k-1].Op != binary.OpI32Add || ins[k-2].Op != binary.OpI32Const || ins[k-2].Const != size {
			return false
		}
		sizes = append(sizes, k-2)
	}
	if sets < 2 {
		return false
	}
	var b []byte
	done := 0
	for _, k := range sizes {
		b = append(append(b, c.Body[done:ins[k].Pos]...), byte(binary.OpI32Const))
		b = binary.AppendS64(b, size+frame)
		done = ins[k].End
	}
	c.Body = append(b, c.Body[done:]...)
	return true
}

// frees reports whether a function is the one that frees an object, which is called too
// often to be wrapped: it keeps the top of the stack in a local first, puts it back before
// it returns, and looks whether a type has the flag of the garbage collector.
func frees(ins []binary.Instr) bool {
	const flag = 1 << 14
	flags, back, returns := 0, 0, 1
	for k := 2; k < len(ins); k++ {
		switch {
		case ins[k].Op == opI32And && ins[k-1].Op == binary.OpI32Const && ins[k-1].Const == flag:
			flags++
		case ins[k].Op == binary.OpReturn:
			returns++
		case ins[k].Op == binary.OpGlobalSet && ins[k].A == 0:
			if next := ins[k+1].Op; ins[k-1].Op != binary.OpLocalGet || next != binary.OpReturn && (next != binary.OpEnd || k+2 != len(ins)) {
				return false
			}
			back++
		}
	}
	return ins[1].Op == binary.OpLocalSet && flags == 1 && back == returns
}

// take has a function take a frame that gives back what it found.
func take(c *binary.Code, ins []binary.Instr) {
	at := ins[1].End
	b := append([]byte{}, c.Body[:at]...)
	b = binary.AppendU32(append(b, byte(binary.OpLocalGet)), ins[1].A)
	b = binary.AppendS64(append(b, byte(binary.OpI32Const)), frame)
	b = binary.AppendU32(append(b, byte(binary.OpI32Sub), byte(binary.OpGlobalSet)), 0)
	c.Body = append(b, c.Body[at:]...)
}

// wrap puts the body of a function into another one, which it calls with a frame.
func wrap(m *binary.Module, i int) {
	nimp := m.Imported(binary.ExternFunc)
	inner := nimp + uint32(len(m.Codes))
	move := func(b []byte, by binary.Op) []byte {
		b = binary.AppendU32(append(b, byte(binary.OpGlobalGet)), 0)
		b = binary.AppendS64(append(b, byte(binary.OpI32Const)), frame)
		return binary.AppendU32(append(b, byte(by), byte(binary.OpGlobalSet)), 0)
	}
	b := move(nil, binary.OpI32Sub)
	for p := range m.FuncType(nimp + uint32(i)).Params {
		b = binary.AppendU32(append(b, byte(binary.OpLocalGet)), uint32(p))
	}
	b = binary.AppendU32(append(b, byte(binary.OpCall)), inner)
	b = append(move(b, binary.OpI32Add), byte(binary.OpEnd))
	m.Funcs = append(m.Funcs[:len(m.Funcs):len(m.Funcs)], m.Funcs[i])
	m.Codes = append(m.Codes, m.Codes[i])
	m.Codes[i] = binary.Code{Body: b, Offset: m.Codes[i].Offset}
}
