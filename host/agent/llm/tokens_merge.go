package llm

import (
	"compress/flate"
	_ "embed"
	"io"
	"math"
	"strings"
)

// The vocabularies o200k_base and cl100k_base of OpenAI, as its library tiktoken publishes
// them (LICENSE.tiktoken): of all tokens, by their ranks, the lengths, a byte each, and then
// the bytes, compressed. TestRanks holds them against the sums that tiktoken names, and writes them.
var (
	//go:embed o200k_base.flate
	o200kBase string
	//go:embed cl100k_base.flate
	cl100kBase string
)

// ranks are the tokens of a vocabulary. Of two pairs, that of the lower rank is merged
// first.
type ranks map[string]uint32

// unpack reads a vocabulary of size tokens. It panics if the program is damaged.
func unpack(packed string, size int) ranks {
	var all strings.Builder
	all.Grow(8 * size)
	if _, err := io.Copy(&all, flate.NewReader(strings.NewReader(packed))); err != nil {
		panic("tokens: an embedded vocabulary cannot be read: " + err.Error())
	}
	out := make(ranks, size)
	lengths, rest := all.String()[:size], all.String()[size:]
	for i := range size {
		end := int(lengths[i])
		out[rest[:end]] = uint32(i)
		rest = rest[end:]
	}
	return out
}

const (
	none    = math.MaxUint32
	longest = 128 // bytes of a token
)

// merger counts the tokens of words. It merges pairs in the order of a heap, so that its
// time grows with n log n of a word.
type merger struct {
	ranks ranks
	// Of the part that begins at an index: where the parts beside it begin, and the rank of
	// what it makes with the next one.
	prev, next []int32
	rank       []uint32
	heap       []uint64 // rank, and index of a part, which may have another rank by now
}

// count returns the number of tokens in a word.
func (m *merger) count(word string) int {
	if _, ok := m.ranks[word]; ok {
		return 1
	}
	m.prev, m.next, m.rank, m.heap = m.prev[:0], m.next[:0], m.rank[:0], m.heap[:0]
	for i := range len(word) + 1 {
		m.prev, m.next, m.rank = append(m.prev, int32(i-1)), append(m.next, int32(i+1)), append(m.rank, none)
	}
	for i := range len(word) {
		m.offer(word, int32(i))
	}
	parts := len(word)
	for len(m.heap) > 0 {
		top := m.pop()
		i := int32(uint32(top))
		if m.rank[i] != uint32(top>>32) {
			continue
		}
		gone := m.next[i]
		m.rank[gone] = none
		m.next[i] = m.next[gone]
		m.prev[m.next[i]] = i
		parts--
		m.offer(word, i)
		if i > 0 {
			m.offer(word, m.prev[i])
		}
	}
	return parts
}

// offer says what the part at i makes with the next one.
func (m *merger) offer(word string, i int32) {
	m.rank[i] = none
	next := int(m.next[i])
	if next >= len(word) {
		return
	}
	end := m.next[next]
	if end-i > longest {
		return
	}
	if rank, ok := m.ranks[word[i:end]]; ok {
		m.rank[i] = rank
		m.push(uint64(rank)<<32 | uint64(i))
	}
}

func (m *merger) push(x uint64) {
	m.heap = append(m.heap, x)
	h, i := m.heap, len(m.heap)-1
	for parent := (i - 1) / 2; i > 0 && x < h[parent]; parent = (i - 1) / 2 {
		h[i] = h[parent]
		i = parent
	}
	h[i] = x
}

func (m *merger) pop() uint64 {
	h := m.heap
	top, x := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	m.heap = h
	i := 0
	for child := 1; child < len(h); child = 2*i + 1 {
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if x <= h[child] {
			break
		}
		h[i] = h[child]
		i = child
	}
	if i < len(h) {
		h[i] = x
	}
	return top
}
