package hostile

import (
	"math/rand/v2"
	"slices"

	"openskill/wasm/binary"
	asm "openskill/wasm/wasmtest"
)

// Mutator makes modules that are almost right: those of the corpus, changed where it
// may hurt. The same seed makes the same modules. It is for one goroutine.
type Mutator struct {
	rnd   *rand.Rand
	seeds [][]section
}

// section is one section of a module.
type section struct {
	id      byte
	content []byte
}

// mostSeed is the size of the largest module that is mutated: larger ones take their
// time and have no more kinds of places.
const mostSeed = 64 << 10

// NewMutator begins a sequence.
func NewMutator(seed uint64) *Mutator {
	m := &Mutator{rnd: rand.New(rand.NewPCG(seed, 0x6d757461))}
	add := func(module []byte) {
		if len(module) <= mostSeed {
			if s := sections(module); len(s) > 0 {
				m.seeds = append(m.seeds, s)
			}
		}
	}
	for _, c := range asm.Hostile() {
		add(c.Module)
	}
	for _, s := range asm.Shapes() {
		add(s.Make(20))
	}
	for _, b := range [][]byte{harmful(), marks(true), tricks(), offsets()} {
		add(b)
	}
	return m
}

// sections cuts a module that was encoded here; nil for what is none.
func sections(module []byte) (all []section) {
	const head = 8
	for at := head; at < len(module); {
		id := module[at]
		size, n := leb(module[at+1:])
		from := at + 1 + n
		if n == 0 || from+size > len(module) {
			return nil
		}
		all = append(all, section{id, module[from : from+size]})
		at = from + size
	}
	return all
}

func leb(b []byte) (value, n int) {
	for shift := 0; n < len(b) && n < 5; shift += 7 {
		value |= int(b[n]&0x7f) << shift
		n++
		if b[n-1] < 0x80 {
			return value, n
		}
	}
	return 0, 0
}

// Next makes a module.
func (m *Mutator) Next() []byte {
	seed := m.seeds[m.rnd.IntN(len(m.seeds))]
	module := make([]section, len(seed))
	for i, s := range seed {
		module[i] = section{s.id, slices.Clone(s.content)}
	}
	changes := 1
	if m.rnd.IntN(2) == 0 {
		changes += m.rnd.IntN(4)
	}
	for range changes {
		if len(module) == 0 {
			break
		}
		i := m.rnd.IntN(len(module))
		switch m.rnd.IntN(25) {
		case 0: // in a wrong place
			j := m.rnd.IntN(len(module))
			module[i], module[j] = module[j], module[i]
		case 1: // twice
			module = slices.Insert(module, i, module[i])
		case 2: // missing
			module = slices.Delete(module, i, i+1)
		case 3: // of another module
			other := m.seeds[m.rnd.IntN(len(m.seeds))]
			module[i] = other[m.rnd.IntN(len(other))]
			module[i].content = slices.Clone(module[i].content)
		case 4: // of another kind
			module[i].id = byte(m.rnd.IntN(15))
		default:
			module[i].content = m.change(module[i].content)
		}
	}
	b := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range module {
		b = append(b, s.id)
		b = binary.AppendU32(b, uint32(len(s.content)))
		b = append(b, s.content...)
	}
	switch m.rnd.IntN(20) {
	case 0: // cut anywhere
		b = b[:m.rnd.IntN(len(b)+1)]
	case 1: // any byte, sizes included
		b = m.change(b)
	}
	return b
}

// edges are numbers at which decoders go wrong, as they are encoded.
var edges = []string{
	"\x00", "\x01", "\x7f", "\x80\x01", "\xff\xff\x03", "\x80\x80\x04", "\xff\xff\xff\xff\x0f", "\xff\xff\xff\xff\x07", "\x80\x80\x80\x80\x08",
	"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x80\x80\x80\x80\x00", "\xff\xff\xff\xff\x7f", "\x80", "\xff\xff\xff\xff\xff",
}

// pieces are instructions whose immediates and types are easily wrong.
var pieces = []string{
	"\x02\x40", "\x03\x40", "\x04\x40", "\x05", "\x0b", "\x0c\x00", "\x0d\x01", "\x0e\x01\x00\x00", "\x0f", "\x10\x00", "\x11\x00\x00",
	"\x1a", "\x1b", "\x1c\x01\x7f", "\x20\x00", "\x21\x00", "\x23\x00", "\x24\x00", "\x25\x00", "\x26\x00", "\x28\x02\x00", "\x36\x02\x00",
	"\x3f\x00", "\x40\x00", "\x41\x00", "\x42\x00", "\x43\x00\x00\x80\x7f", "\x44\x00\x00\x00\x00\x00\x00\xf0\x7f", "\x6a", "\x6d", "\x7c",
	"\xa7", "\xa8", "\xc0", "\xd0\x70", "\xd0\x6f", "\xd1", "\xd2\x00", "\xfc\x00", "\xfc\x08\x00\x00", "\xfc\x09\x00", "\xfc\x0a\x00\x00",
	"\xfc\x0b\x00", "\xfc\x0c\x00\x00", "\xfc\x0f\x00", "\xfd\x0c" + "0123456789abcdef", "\xfd\x0d" + "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x1f", "\xfd\x6e",
	"\x08\x00", "\x0a", "\x1f\x40\x00\x0b", "\x12\x00", "\xfe\x10\x02\x00", "\xfb\x00\x00",
}

// change changes bytes in one of the ways.
func (m *Mutator) change(b []byte) []byte {
	if len(b) == 0 {
		return append(b, byte(m.rnd.Uint32()))
	}
	at := m.rnd.IntN(len(b))
	end := min(len(b), at+1+m.rnd.IntN(8))
	switch m.rnd.IntN(6) {
	case 0:
		b[at] ^= 1 << m.rnd.IntN(8)
	case 1:
		b[at] = byte(m.rnd.Uint32())
	case 2:
		return slices.Replace(b, at, at+1, []byte(edges[m.rnd.IntN(len(edges))])...)
	case 3:
		return slices.Insert(b, at, []byte(pieces[m.rnd.IntN(len(pieces))])...)
	case 4:
		return slices.Delete(b, at, end)
	default:
		return slices.Insert(b, at, slices.Clone(b[at:end])...)
	}
	return b
}
