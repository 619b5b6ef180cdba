package admissiontest

import (
	"bytes"
	"fmt"
	"strings"
)

// Block is one entry of a [Tar]: a header and its body.
type Block struct {
	Name   string // at most 100 bytes; a longer one wants [PAX]
	Body   []byte
	Type   byte // 0: '5' for a name that ends with a slash, '0' for others
	Link   string
	Mode   int64          // 0: 0644
	Change func(h []byte) // changes the header, before its checksum is made
	Broken bool           // the checksum is wrong
}

// Tar is a gzipped tar archive.
type Tar struct {
	Blocks []Block

	NoEnd  bool   // without the two blocks of zeros
	Behind []byte // after them
	Suffix []byte // after the compressed data
}

// PAX is an extended header for the entry after it, of key and value in turn.
func PAX(records ...string) Block { return pax('x', records) }

// Global is an extended header for all entries after it.
func Global(records ...string) Block { return pax('g', records) }

func pax(kind byte, records []string) Block {
	var b strings.Builder
	for i := 0; i+1 < len(records); i += 2 {
		line := " " + records[i] + "=" + records[i+1] + "\n"
		n := len(line)
		for n != len(fmt.Sprint(n))+len(line) {
			n = len(fmt.Sprint(n)) + len(line)
		}
		fmt.Fprintf(&b, "%d%s", n, line)
	}
	return Block{Name: "PaxHeaders.0/x", Type: kind, Body: []byte(b.String())}
}

// Plain is the archive before it is compressed.
func (t Tar) Plain() []byte {
	var out bytes.Buffer
	for _, b := range t.Blocks {
		h := make([]byte, 512)
		copy(h[:100], b.Name)
		mode := b.Mode
		if mode == 0 {
			mode = 0o644
		}
		kind := b.Type
		if kind == 0 {
			kind = '0'
			if strings.HasSuffix(b.Name, "/") {
				kind = '5'
			}
		}
		octal(h[100:108], mode)
		octal(h[108:116], 0)
		octal(h[116:124], 0)
		octal(h[124:136], int64(len(b.Body)))
		octal(h[136:148], 0)
		h[156] = kind
		copy(h[157:257], b.Link)
		copy(h[257:], "ustar\x0000")
		if b.Change != nil {
			b.Change(h)
		}
		copy(h[148:156], "        ")
		sum := int64(0)
		for _, c := range h {
			sum += int64(c)
		}
		if b.Broken {
			sum++
		}
		copy(h[148:156], fmt.Sprintf("%06o\x00 ", sum))
		out.Write(h)
		out.Write(b.Body)
		out.Write(make([]byte, -len(b.Body)&511))
	}
	if !t.NoEnd {
		out.Write(make([]byte, 1024))
	}
	out.Write(t.Behind)
	return out.Bytes()
}

func octal(to []byte, v int64) { copy(to, fmt.Sprintf("%0*o\x00", len(to)-1, v)) }

// Bytes is the archive.
func (t Tar) Bytes() []byte { return append(Gzip(t.Plain()), t.Suffix...) }
