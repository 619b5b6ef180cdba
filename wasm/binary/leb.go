package binary

// AppendU32 appends v as an unsigned LEB128 number in its shortest form.
func AppendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// AppendS64 appends v as a signed LEB128 number in its shortest form. It also
// serves s32 and s33.
func AppendS64(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// AppendName appends s with its length.
func AppendName(b []byte, s string) []byte {
	return append(AppendU32(b, uint32(len(s))), s...)
}

// reader walks over bytes; the first failure sticks, and reads after it give zero.
type reader struct {
	b    []byte
	p    int
	base int // offset of b[0] in the module, for messages
	err  error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.p = len(r.b)
}

func (r *reader) malformed(format string, a ...any) {
	if r.err == nil {
		r.err = malformed(r.base+min(r.p, len(r.b)), format, a...)
	}
	r.p = len(r.b)
}

func (r *reader) left() int { return len(r.b) - r.p }

func (r *reader) u8() byte {
	if r.p >= len(r.b) {
		r.malformed("unexpected end")
		return 0
	}
	v := r.b[r.p]
	r.p++
	return v
}

func (r *reader) bytes(n uint32) []byte {
	if uint64(n) > uint64(r.left()) {
		r.malformed("length out of bounds: %d bytes announced, %d left", n, r.left())
		return nil
	}
	s := r.b[r.p : r.p+int(n) : r.p+int(n)]
	r.p += int(n)
	return s
}

// u32 reads an unsigned LEB128 number of at most five bytes.
func (r *reader) u32() uint32 {
	if r.p < len(r.b) {
		if c := r.b[r.p]; c < 0x80 {
			r.p++
			return uint32(c)
		}
	}
	return r.u32Slow()
}

func (r *reader) u32Slow() uint32 {
	var v uint32
	for s := uint(0); ; s += 7 {
		if r.p >= len(r.b) {
			r.malformed("unexpected end in a number")
			return 0
		}
		c := r.b[r.p]
		if s == 28 && c > 0x0f {
			if c&0x80 != 0 {
				r.malformed("integer representation too long")
			} else {
				r.malformed("integer too large")
			}
			return 0
		}
		r.p++
		v |= uint32(c&0x7f) << s
		if c < 0x80 {
			return v
		}
	}
}

// sN reads a signed LEB128 number of n bits (32, 33 or 64).
func (r *reader) sN(n uint) int64 {
	var v int64
	for s := uint(0); ; s += 7 {
		if r.p >= len(r.b) {
			r.malformed("unexpected end in a number")
			return 0
		}
		c := r.b[r.p]
		r.p++
		v |= int64(c&0x7f) << s
		if s+7 >= n { // the last byte that may come
			if c >= 0x80 {
				r.malformed("integer representation too long")
				return 0
			}
			// what lies beyond bit n must repeat the sign
			used := n - s
			ext := int8(c<<1) >> used
			if ext != 0 && ext != -1 {
				r.malformed("integer too large")
				return 0
			}
		}
		if c < 0x80 {
			if s+7 < 64 && c&0x40 != 0 {
				v |= -1 << (s + 7)
			}
			return v
		}
	}
}
