// Package state writes and reads the memory of a guest between two runs, as far as it differs from the image that
// both begin with.
package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// PageSize is the size of a page in bytes.
const PageSize = 4096

// Digest names the image that a state differs from.
type Digest = [sha256.Size]byte

// Tag names a state, so that processes can say which one they mean. It is random.
type Tag [16]byte

// State is the memory of a guest. In bytes, with little-endian numbers, it is: Base, Tag, Size (8), the numbers of
// opened and closed descriptors (4 each), these descriptors (4 each), the number of pages (4), their numbers (4 each),
// and the pages.
type State struct {
	Base Digest
	Tag  Tag
	Size uint64 // of the memory, in bytes
	// Opened and Closed are descriptors that are not as in the image.
	Opened, Closed []uint32
	Pages          []uint32 // numbers, in order, each below Size
	Data           []byte   // content of the pages
}

// ErrDamaged says that bytes are no state.
var ErrDamaged = errors.New("state: damaged")

const (
	tagAt = sha256.Size
	head  = tagAt + len(Tag{}) + 8 + 4 + 4
)

// Append appends the bytes of the state.
func (s *State) Append(b []byte) []byte {
	b = s.appendHead(b)
	b = appendNumbers(binary.LittleEndian.AppendUint32(b, uint32(len(s.Pages))), s.Pages) // of at most 4 GiB
	return append(b, s.Data...)
}

// Length is the number of bytes of the state.
func (s *State) Length() int {
	return head + 4*(len(s.Opened)+len(s.Closed)+1+len(s.Pages)) + len(s.Data)
}

func (s *State) appendHead(b []byte) []byte {
	b = append(append(b, s.Base[:]...), s.Tag[:]...)
	b = binary.LittleEndian.AppendUint64(b, s.Size)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Opened))) // descriptors are few
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Closed)))
	return appendNumbers(appendNumbers(b, s.Opened), s.Closed)
}

func appendNumbers(b []byte, list []uint32) []byte {
	for _, n := range list {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

// TagOf returns the tag of a state; zero if it is too short to have one.
func TagOf(b []byte) (t Tag) {
	if len(b) >= head {
		copy(t[:], b[tagAt:])
	}
	return t
}

// Read reads a state. Data refers to b.
func Read(b []byte) (*State, error) {
	r := reader{b: b}
	s := r.head()
	s.Pages = r.numbers(uint64(r.number()))
	if s.Data = r.b; r.bad || !s.valid() {
		return nil, ErrDamaged
	}
	return s, nil
}

// valid reports whether the pages are in order, within the memory, and all there.
func (s *State) valid() bool {
	last := int64(-1)
	for _, n := range s.Pages {
		if int64(n) <= last || (uint64(n)+1)*PageSize > s.Size {
			return false
		}
		last = int64(n)
	}
	return len(s.Data) == len(s.Pages)*PageSize
}

// page returns the content of the page at an index.
func (s *State) page(i int) []byte { return s.Data[i*PageSize : (i+1)*PageSize] }

// Diff returns what Patch needs beside old to make state: the pages that differ.
func Diff(old, state []byte) ([]byte, error) {
	from, err := Read(old)
	if err != nil {
		return nil, err
	}
	to, err := Read(state)
	if err != nil {
		return nil, err
	}
	var gone, changed []uint32
	var data []byte
	i := 0
	for j, n := range to.Pages {
		for ; i < len(from.Pages) && from.Pages[i] < n; i++ {
			gone = append(gone, from.Pages[i])
		}
		if i < len(from.Pages) && from.Pages[i] == n {
			i++
			if bytes.Equal(from.page(i-1), to.page(j)) {
				continue
			}
		}
		changed, data = append(changed, n), append(data, to.page(j)...)
	}
	gone = append(gone, from.Pages[i:]...)
	b := to.appendHead(make([]byte, 0, to.Length()-len(to.Data)+len(data)+4*len(gone)))
	b = appendNumbers(binary.LittleEndian.AppendUint32(b, uint32(len(gone))), gone)       // of at most 4 GiB
	b = appendNumbers(binary.LittleEndian.AppendUint32(b, uint32(len(changed))), changed) // as above
	return append(b, data...), nil
}

// Patch makes the state whose Diff from old is diff.
func Patch(old, diff []byte) ([]byte, error) {
	from, err := Read(old)
	if err != nil {
		return nil, err
	}
	r := reader{b: diff}
	to := r.head()
	gone := r.numbers(uint64(r.number()))
	changed := &State{Size: to.Size, Pages: r.numbers(uint64(r.number())), Data: r.b}
	if r.bad || !changed.valid() {
		return nil, fmt.Errorf("%w: a difference", ErrDamaged)
	}
	// The pages of the new state, in order, and where they come from.
	type source struct {
		s *State
		i int
	}
	sources := make([]source, 0, len(from.Pages)+len(changed.Pages))
	j := 0
	for i, n := range from.Pages {
		for ; j < len(changed.Pages) && changed.Pages[j] < n; j++ {
			sources = append(sources, source{changed, j})
		}
		switch _, is := slices.BinarySearch(gone, n); {
		case j < len(changed.Pages) && changed.Pages[j] == n:
			sources = append(sources, source{changed, j})
			j++
		case !is:
			sources = append(sources, source{from, i})
		}
	}
	for ; j < len(changed.Pages); j++ {
		sources = append(sources, source{changed, j})
	}
	to.Pages = make([]uint32, len(sources))
	for i, s := range sources {
		to.Pages[i] = s.s.Pages[s.i]
	}
	if n := len(to.Pages); n > 0 && (uint64(to.Pages[n-1])+1)*PageSize > to.Size {
		return nil, fmt.Errorf("%w: a difference from another state", ErrDamaged)
	}
	b := to.Append(make([]byte, 0, to.Length()+len(sources)*PageSize))
	for _, s := range sources {
		b = append(b, s.s.page(s.i)...)
	}
	return b, nil
}

// reader takes bytes apart. After the first thing that is wrong all is zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) number() uint32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

func (r *reader) numbers(n uint64) []uint32 {
	b := r.take(4 * n)
	if len(b) == 0 {
		return nil
	}
	list := make([]uint32, n)
	for i := range list {
		list[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return list
}

func (r *reader) head() *State {
	s := &State{}
	copy(s.Base[:], r.take(uint64(len(s.Base))))
	copy(s.Tag[:], r.take(uint64(len(s.Tag))))
	if b := r.take(8); b != nil {
		s.Size = binary.LittleEndian.Uint64(b)
	}
	opened, closed := uint64(r.number()), uint64(r.number())
	s.Opened, s.Closed = r.numbers(opened), r.numbers(closed)
	return s
}
