package tape

import (
	"encoding/binary"
	"math"
)

// reader takes a tape apart. After the first thing that is wrong all is zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

// number is a varint in its shortest form: the last byte of a longer one is zero.
func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.b)
	if r.bad || size <= 0 || size > 1 && r.b[size-1] == 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) signed() int64 {
	u := r.number()
	n := int64(u >> 1)
	if u&1 != 0 {
		n = ^n
	}
	return n
}

// length is a number of bytes, never more than there are.
func (r *reader) length() int {
	n := r.number()
	if n > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	return int(n) // compared
}

// sum adds a difference to a time, which stays one.
func (r *reader) sum(last int64) int64 {
	d := r.signed()
	if d > math.MaxInt64-last || last+d < 0 {
		r.bad = true
		return 0
	}
	return last + d
}
