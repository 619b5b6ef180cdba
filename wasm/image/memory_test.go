//go:build linux

package image

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"openskill/internal/musttest"
)

func content(pages int) []byte {
	b := make([]byte, pages*pageSize)
	for i := 0; i < pages*3/4; i += 3 { // two of three pages are zeros, and all at the end
		for j := range 100 {
			b[i*pageSize+j*7] = byte(i + j + 1)
		}
	}
	return b
}

// TestReset writes at random to a space and expects the content back, by copying
// and by dropping, for few pages and many, and a neighbour untouched.
func TestReset(t *testing.T) {
	const pages = 3*fewPages/2 + 8
	want := content(pages)
	m := musttest.Get(New(want))(t)
	defer m.Close()
	if m.Held() > uint64(len(want))*3/4 {
		t.Errorf("%d bytes held for a content whose last quarter is zeros", m.Held())
	}
	a, b := m.Reserve(uint64(len(want))*2), m.Reserve(uint64(len(want))*2)
	defer Release(a)
	defer Release(b)
	b[5] = 77
	rng := rand.New(rand.NewPCG(1, 2))
	for _, few := range []bool{true, false} { // at the bound, in more regions than are asked for at once
		n := fewPages
		if !few {
			n++
		}
		for i := range n {
			a[(i+i/2)*pageSize+9] ^= 3
		}
		own, ok := m.Reset(a)
		if !ok || pagemap() >= 0 && few != (own == fewPages*pageSize) || !few && own != 0 {
			t.Errorf("%d pages were written: %d bytes are the space's own, %v", n, own, ok)
		}
		if !bytes.Equal(a[:len(want)], want) {
			t.Fatalf("after %d pages were written the content did not come back", n)
		}
		if !m.Drop(a, m.Size()) { // comparing maps all pages
			t.Fatal("cannot be dropped")
		}
	}
	for _, writes := range []int{0, 1, 10, 100, 500, 600, 3000, 20000, 40000} {
		for range 3 {
			for range writes {
				a[rng.IntN(len(want))] ^= byte(1 + rng.IntN(255))
			}
			_ = a[rng.IntN(len(want))] // reading makes no page the space's own
			own, ok := m.Reset(a)
			if !ok {
				t.Fatal("cannot be reset")
			}
			if own > fewPages*pageSize {
				t.Errorf("%d bytes are the space's own", own)
			}
			if !bytes.Equal(a[:len(want)], want) || !m.Equal(a) {
				t.Fatalf("after %d writes the content did not come back", writes)
			}
		}
	}
	if b[5] != 77 || !bytes.Equal(b[6:len(want)], want[6:]) {
		t.Error("the neighbour was changed")
	}
	if m.Equal(b) {
		t.Error("Equal does not see a changed byte")
	}
}

// TestWrittenPages holds what the kernel says against what was written: should a
// kernel answer otherwise, Reset must not be trusted.
func TestWrittenPages(t *testing.T) {
	if pagemap() < 0 {
		t.Skip("this kernel has no PAGEMAP_SCAN (Linux 6.7); pages are dropped instead")
	}
	m := musttest.Get(New(content(100)))(t)
	defer m.Close()
	b := m.Reserve(100 * pageSize)
	defer Release(b)
	var regions [128]pageRegion
	n, _, err := written(b, regions[:])
	if n != 0 || err != nil {
		t.Errorf("fresh: %d regions, %v", n, err)
	}
	sum := byte(0)
	for i := range 100 {
		sum += b[i*pageSize]
	}
	b[7*pageSize], b[8*pageSize+4095], b[50*pageSize+1], b[90*pageSize] = sum, 1, 1, 1
	n, end, err := written(b, regions[:2])
	if n != 2 || end < 51*pageSize || end > 90*pageSize || err != nil {
		t.Fatalf("with room for 2: %d regions as far as %d, %v", n, end, err)
	}
	n, end, err = written(b, regions[:])
	if n != 3 || end != 100*pageSize || err != nil {
		t.Fatalf("%d regions as far as %d, %v; want 3, all", n, end, err)
	}
	if got := (regions[0].end - regions[0].start) / pageSize; got != 2 {
		t.Errorf("%d pages in the first region, want 2", got)
	}
}

// TestMapOver puts a content over a space that had another one, which was longer
// than what is not zeros of the new one.
func TestMapOver(t *testing.T) {
	old := musttest.Get(New(bytes.Repeat([]byte{7}, 10*pageSize)))(t)
	defer old.Close()
	want := make([]byte, 12*pageSize)
	want[3*pageSize] = 1
	m := musttest.Get(New(want))(t)
	defer m.Close()
	space := old.Reserve(20 * pageSize)
	defer Release(space)
	space[15*pageSize] = 9 // behind the content: not ours to change
	if !m.Map(space) || !bytes.Equal(space[:len(want)], want) || space[15*pageSize] != 9 {
		t.Fatal("the new content is not there")
	}
	for range 2 {
		space[3*pageSize], space[9*pageSize], space[11*pageSize] = 2, 2, 2
		if _, ok := m.Reset(space); !ok || !bytes.Equal(space[:len(want)], want) {
			t.Fatal("the content did not come back")
		}
	}
}

// TestGaps keeps a content with long stretches of zeros: neither comparing nor reading
// makes memory of them, and what was written there is zeros again.
func TestGaps(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 50 {
		const pages = 2000
		want := make([]byte, pages*pageSize)
		data := 0
		for range 1 + random.IntN(20) { // often more stretches than are kept apart
			from := random.IntN(pages - 10)
			for p := from; p < from+1+random.IntN(9); p++ {
				if want[p*pageSize+8] == 0 {
					data++
				}
				want[p*pageSize+8] = byte(round + 1)
			}
		}
		m := musttest.Get(New(want))(t)
		if len(m.runs) > maxRuns || m.Held() < uint64(data*pageSize) {
			t.Fatalf("%d runs, %d bytes held of %d", len(m.runs), m.Held(), data*pageSize)
		}
		space := m.Reserve(uint64(len(want)) + 5*pageSize)
		for range 3 {
			if !m.Equal(space) || !bytes.Equal(space[:len(want)], want) {
				t.Fatal("not the content")
			}
			for range 1 + random.IntN(100) {
				space[random.IntN(len(want))] ^= 0x55
			}
			if m.Equal(space) {
				t.Fatal("Equal does not see a changed byte")
			}
			if _, ok := m.Reset(space); !ok {
				t.Fatal("cannot be reset")
			}
		}
		var st unix.Stat_t
		if err := unix.Fstat(m.fd, &st); err != nil || uint64(st.Blocks)*512 > m.Held() {
			t.Errorf("the file takes %d bytes, more than the %d that are said; %v", st.Blocks*512, m.Held(), err)
		}
		Release(space)
		m.Close()
	}
}

// TestZeros keeps nothing for a content of zeros, and brings it back.
func TestZeros(t *testing.T) {
	m := musttest.Get(New(make([]byte, 5*pageSize)))(t)
	defer m.Close()
	b := m.Reserve(8 * pageSize)
	defer Release(b)
	b[1], b[4*pageSize] = 1, 1
	if _, ok := m.Reset(b); !ok || b[1] != 0 || b[4*pageSize] != 0 || m.Held() != 0 || m.Size() != 5*pageSize || !m.Equal(b) {
		t.Error("not as it was")
	}
}

// TestSealed tries to change the content behind everybody's back.
func TestSealed(t *testing.T) {
	m := musttest.Get(New([]byte("content")))(t)
	defer m.Close()
	f := os.NewFile(uintptr(m.fd), "memory")
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("the file can be written")
	}
	if err := f.Truncate(0); err == nil {
		t.Error("the file can be cut off")
	}
	m.fd = -1 // the file closes it
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestDiscard gives back what lies between pages that are only partly ours.
func TestDiscard(t *testing.T) {
	for _, n := range []int{0, 1, pageSize - 1, pageSize, 3*pageSize + 5, 1 << 20} {
		b := bytes.Repeat([]byte{1}, n+200)
		Discard(b[100 : 100+n])
		for i, x := range b {
			if (i < 100 || i >= 100+n) && x != 1 {
				t.Fatalf("%d bytes: byte %d beside them is gone", n, i-100)
			}
		}
		if n == 1<<20 && b[100+n/2] != 0 {
			t.Error("nothing was given back")
		}
	}
}
