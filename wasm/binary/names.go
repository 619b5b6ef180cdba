package binary

// names refuses a name section that announces more than it holds. By the
// specification a custom section, however malformed, makes no module invalid, and
// every other fault of one is accepted here: it is stripped and nothing of ours
// reads it. This one lie is the exception. No tool writes it, and what does read
// names (debuggers, disassemblers, profilers of whoever keeps the upload) believes
// the count and reserves memory for four billion entries.
func (d *decoder) names(section []byte) {
	s := &decoder{reader: reader{b: section, base: d.base + d.p}}
	for s.left() > 0 && s.err == nil && d.err == nil {
		id, size := s.u8(), s.u32()
		if s.err != nil {
			return // cut off in a number: malformed, and no lie about a length
		}
		at := s.base + s.p
		content := s.bytes(size)
		if s.err != nil {
			d.fail(malformed(at, "length out of bounds: a subsection of %d bytes announced in the name section", size))
			return
		}
		n := &nameReader{reader: reader{b: content, base: at}}
		switch id {
		case 0: // the module's
			n.name()
		case 1, 4, 5, 6, 7, 8, 9, 11: // a map from indices to names
			n.assoc(n.name)
		case 2, 3, 10: // of locals, labels and fields: a map to maps
			n.assoc(func() { n.assoc(n.name) })
		}
		if n.lie != nil {
			d.fail(n.lie)
		}
	}
}

// nameReader walks over a subsection of the name section.
type nameReader struct {
	reader
	lie error
}

func (n *nameReader) name() {
	at, size := n.base+n.p, n.u32()
	if n.err == nil && uint64(size) > uint64(n.left()) { // never negative
		n.lie = malformed(at, "length out of bounds: a name of %d bytes announced in %d bytes", size, n.left())
		return
	}
	n.bytes(size)
}

// assoc walks over a map, whose entries take two bytes at least.
func (n *nameReader) assoc(value func()) {
	at, count := n.base+n.p, n.u32()
	if n.err == nil && uint64(count)*2 > uint64(n.left()) { // never negative
		n.lie = malformed(at, "length out of bounds: %d names announced in %d bytes", count, n.left())
	}
	for ; count > 0 && n.err == nil && n.lie == nil; count-- {
		n.u32() // the index
		value()
	}
}
