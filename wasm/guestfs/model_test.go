package guestfs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"openskill/wasm/guestfs"
)

// content is a file of the model: names that are links of one another share it.
type content struct{ data []byte }

// model is what a [guestfs.Memory] should be: contents by name.
type model map[string]*content

func (m model) copy() model {
	out, copies := model{}, map[*content]*content{}
	for name, c := range m {
		if copies[c] == nil {
			copies[c] = &content{bytes.Clone(c.data)}
		}
		out[name] = copies[c]
	}
	return out
}

func pagesOf(n int) int64 { return int64(n+4095) / 4096 * 4096 }

// used is what the files count, each as often as it has names.
func (m model) used() (n int64) {
	for _, c := range m {
		n += 512 + pagesOf(len(c.data))
	}
	return n
}

func (m model) names(c *content) (n int64) {
	for _, other := range m {
		if other == c {
			n++
		}
	}
	return n
}

// modelBytes is the cap on both.
const modelBytes = 40 << 10

// resize changes a size, if there is room for it.
func (m model) resize(c *content, size int) bool {
	if grow := pagesOf(size) - pagesOf(len(c.data)); size > modelBytes || grow > 0 && m.used()+grow*m.names(c) > modelBytes {
		return false
	}
	for len(c.data) < size {
		c.data = append(c.data, 0)
	}
	c.data = c.data[:size]
	return true
}

// againstModel makes calls on both, read out of bytes, and compares all that can be seen
// of them after each.
func againstModel(t *testing.T, input []byte) {
	t.Helper()
	m, want := guestfs.NewMemory(guestfs.Limits{Bytes: modelBytes, Files: 5}), model{}
	type saving struct {
		s *guestfs.MemorySaved
		m model
	}
	var saved []saving
	next := func() int {
		if len(input) == 0 {
			return 0
		}
		b := input[0]
		input = input[1:]
		return int(b)
	}
	for len(input) > 0 {
		op, name, other := next()%9, fmt.Sprint(next()%6), fmt.Sprint(next()%6)
		offset, size := next()*201, next()*77
		done, expected, what := guestfs.Errno(0), true, ""
		c := want[name]
		switch op {
		case 0, 1:
			what = fmt.Sprintf("write %d at %d of %s", size, offset, name)
			expected = c != nil || len(want) < 5 && want.used()+512 <= modelBytes
			f, errno := m.Open(name, guestfs.Write|guestfs.Create)
			if done = errno; errno != 0 || !expected {
				break
			}
			if c == nil {
				c = &content{}
				want[name] = c
			}
			text := bytes.Repeat([]byte{byte(size + offset + 1)}, size)
			_, done = f.WriteAt(text, int64(offset))
			f.Close()
			if expected = size == 0 || offset+size <= len(c.data) || want.resize(c, offset+size); expected && size > 0 {
				copy(c.data[offset:], text)
			}
		case 2, 3:
			what = fmt.Sprintf("cut %s to %d", name, offset)
			f, errno := m.Open(name, guestfs.Write)
			if done = errno; errno == 0 {
				done = f.Truncate(int64(offset))
				f.Close()
			}
			expected = c != nil && want.resize(c, offset)
		case 4:
			what = "link " + name + " " + other
			done = m.Link(name, other)
			if expected = c != nil && want[other] == nil && len(want) < 5 && want.used()+512+pagesOf(len(c.data)) <= modelBytes; expected {
				want[other] = c
			}
		case 5:
			what = "unlink " + name
			done = m.Unlink(name)
			expected = c != nil
			delete(want, name)
		case 6:
			what = "rename " + name + " " + other
			done = m.Rename(name, other)
			if expected = c != nil; expected && c != want[other] {
				delete(want, name)
				want[other] = c
			}
		case 7:
			what = "save"
			if s, ok := m.Save(); ok {
				saved = append(saved, saving{s, want.copy()})
			} else {
				t.Fatal("nothing is open, and it cannot be saved")
			}
		case 8:
			if len(saved) == 0 {
				continue
			}
			what = "restore"
			back := saved[offset%len(saved)]
			m.Restore(back.s)
			want = back.m.copy()
		}
		if (done == 0) != expected {
			t.Fatalf("%s: %v, want success: %t", what, done, expected)
		}
		if m.Used() != want.used() || len(m.Files()) != len(want) {
			t.Fatalf("%s: %d bytes and %v, want %d and %d files", what, m.Used(), m.Files(), want.used(), len(want))
		}
		for name, c := range want {
			if b, err := m.ReadFile(name); err != nil || !bytes.Equal(b, c.data) {
				t.Fatalf("%s: %s has %d bytes that differ from the %d of the model: %v", what, name, len(b), len(c.data), err)
			}
		}
	}
}

// TestMemoryModel makes calls at random on contents, names and saved states: the bytes
// of each file, what all of them count, and what comes back are a simple model's.
func TestMemoryModel(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		input := make([]byte, 200)
		for i := range input {
			input[i] = byte(random.Uint32())
		}
		againstModel(t, input)
	}
}

// FuzzMemoryModel is the same with any input.
func FuzzMemoryModel(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 50, 4, 0, 1, 0, 0, 7, 0, 0, 0, 0, 2, 0, 0, 3, 0, 8, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, input []byte) { againstModel(t, input[:min(len(input), 500)]) })
}
