package blocks

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

const plenty = 1 << 30

func TestBlocks(t *testing.T) {
	t.Parallel()
	var m Memory
	a, b := m.Alloc(5, plenty), m.Alloc(16, plenty)
	if a == 0 || b == 0 || a == b || m.Length(a) != 5 || m.Length(b) != 16 || len(m.Block(a)) != 5 {
		t.Fatalf("blocks at %d and %d of %d and %d bytes", a, b, m.Length(a), m.Length(b))
	}
	for i := range uint64(5) {
		m.Store8(a+i, byte('a'+i))
	}
	if !m.Store64(b+8, 1<<63|7) || string(m.Block(a)) != "abcde" {
		t.Errorf("%q", m.Block(a))
	}
	if v, ok := m.Load64(b + 8); !ok || v != 1<<63|7 {
		t.Errorf("%x, %v", v, ok)
	}
	if v, ok := m.Load8(b + 8); !ok || v != 7 {
		t.Errorf("the least byte is first: %x, %v", v, ok)
	}
	if _, ok := m.Load64(a); !ok {
		t.Error("eight bytes cannot be read at the end of a block of five")
	}
	for _, at := range []uint64{0, 1, first - 1, a + 1, b + 1, 1 << 40, ^uint64(0)} {
		if m.Length(at) != 0 || m.Block(at) != nil {
			t.Errorf("there is a block at %d", at)
		}
		m.Free(at)
	}
	if m.Length(a) != 5 {
		t.Error("to free what is no block has freed one")
	}
}

func TestOutOfBounds(t *testing.T) {
	t.Parallel()
	var empty, m Memory
	at := m.Alloc(8, plenty)
	for _, m := range []*Memory{&empty, &m} {
		for _, o := range []uint64{0, first - 1, at + 8, at + 1<<20, 1 << 32, ^uint64(0), ^uint64(0) - 7} {
			if _, ok := m.Load8(o); ok {
				t.Errorf("a byte is read at %d", o)
			}
			if _, ok := m.Load64(o); ok {
				t.Errorf("eight bytes are read at %d", o)
			}
			if m.Store8(o, 1) || m.Store64(o, 1) {
				t.Errorf("something is written at %d", o)
			}
			if _, ok := m.Range(o, 1); ok {
				t.Errorf("a byte of a range is read at %d", o)
			}
		}
	}
	if _, ok := m.Load64(at + 1); ok {
		t.Error("eight bytes are read beyond the last block")
	}
	if _, ok := m.Range(at, ^uint64(0)); ok {
		t.Error("a range that overflows is read")
	}
}

// What is held is never more than what may be, and the same call works with more.
func TestLimit(t *testing.T) {
	t.Parallel()
	var m Memory
	if m.Alloc(0, plenty) != 0 || m.Alloc(largest+1, ^uint64(0)) != 0 || m.Held() != 0 {
		t.Error("nothing, or too much, is a block")
	}
	const most = 100_000
	n := 0
	for m.Alloc(1000, most) != 0 {
		n++
	}
	if m.Held() > most || n < 80 || n > 100 {
		t.Errorf("%d blocks, %d bytes held of %d", n, m.Held(), most)
	}
	if m.Alloc(1000, 2*most) == 0 {
		t.Error("with more it does not work either")
	}
	var tiny Memory
	n = 0
	for tiny.Alloc(1, most) != 0 {
		n++
	}
	if n > most/overhead {
		t.Errorf("%d blocks of one byte, each of which costs %d", n, overhead)
	}
}

// More than a little is kept in one space, which is taken once and never copied.
func TestSpace(t *testing.T) {
	t.Parallel()
	var asked []uint64
	m := Memory{Space: func(size uint64) []byte {
		asked = append(asked, size)
		return make([]byte, size)
	}}
	const most = 1 << 20
	at := m.Alloc(100, most)
	copy(m.Block(at), "kept")
	if len(asked) != 0 || m.Taken() != nil {
		t.Error("a space is taken for a little")
	}
	for m.Alloc(10_000, most) != 0 {
	}
	if len(asked) != 1 || asked[0] != most || uint64(len(m.Taken())) != most || m.Held() > most {
		t.Errorf("asked for %d, %d bytes held", asked, m.Held())
	}
	if string(m.Block(at)[:4]) != "kept" {
		t.Error("what was there is gone")
	}
	none := Memory{Space: func(uint64) []byte { return nil }}
	if none.Alloc(100, most) == 0 || none.Alloc(100_000, most) != 0 {
		t.Error("without a space there is a little, and no more")
	}
	held := m.Held()
	for range 100 { // what was touched stays counted, and is not counted twice
		m.Reset()
		if m.Alloc(1000, most+100*overhead) == 0 {
			t.Fatal("no block after a reset")
		}
	}
	if m.Held() != held+100*overhead {
		t.Errorf("%d bytes held after resets, %d before", m.Held(), held)
	}
}

func TestFreedIsUsedAgain(t *testing.T) {
	t.Parallel()
	var m Memory
	for range 10_000 {
		at := m.Alloc(1000, 10_000)
		if at == 0 {
			t.Fatal("freed blocks are not used again")
		}
		m.Free(at)
		m.Free(at)
	}
	a, b := m.Alloc(1000, 10_000), m.Alloc(1000, 10_000)
	if a == b {
		t.Error("what was freed twice is given twice")
	}
}

// Whatever is allocated and freed, no two blocks share a byte.
func TestBlocksAreApart(t *testing.T) {
	t.Parallel()
	var m Memory
	r := rand.New(rand.NewPCG(1, 2))
	kept := map[uint64][]byte{}
	for i := range 5000 {
		if len(kept) > 50 || i%3 == 0 {
			for at := range kept {
				m.Free(at)
				delete(kept, at)
				break
			}
		}
		n := 1 + r.Uint64N(300)
		at := m.Alloc(n, plenty)
		b := bytes.Repeat([]byte{byte(i)}, int(n)) // at most 300
		copy(m.Block(at), b)
		if _, there := kept[at]; there {
			t.Fatalf("the block at %d is given twice", at)
		}
		kept[at] = b
		for at, want := range kept {
			if !bytes.Equal(m.Block(at), want) {
				t.Fatalf("the block at %d was written by another", at)
			}
		}
	}
}
