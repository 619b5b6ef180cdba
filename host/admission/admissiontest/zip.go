package admissiontest

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
)

// Modes of Unix, type included.
const (
	ModeFile   = 0o100644
	ModeFolder = 0o040755
	ModeLink   = 0o120777
	ModeDevice = 0o020644
	ModeBlock  = 0o060644
	ModePipe   = 0o010644
	ModeSocket = 0o140755
)

// Entry is one entry of a [Zip]. What is left out is what a packer would write.
type Entry struct {
	Name    string // ends with a slash for a folder
	Body    []byte
	Deflate bool
	Mode    uint32 // of Unix; 0: that of a file or folder
	Later   bool   // the sizes stand behind the data

	Packed    []byte              // instead of the compressed body
	Local     func(h []byte)      // changes the fixed part of the header before the data
	LocalName string              // instead of Name there
	Central   func(h []byte)      // changes that of the directory
	Extra     []byte              // in the directory
	Note      []byte              // its comment, there
	Before    []byte              // extra data before the data
	Behind    []byte              // after the data
	NoLocal   bool                // nothing before the directory; Offset says where it points to
	Offset    func(n int64) int64 // changes the offset in the directory
}

// Zip is a zip archive.
type Zip struct {
	Entries []Entry

	Prefix  []byte         // before the first entry
	Honest  bool           // offsets count Prefix
	Before  []byte         // before the directory
	Between []byte         // before the end record
	Comment []byte         // of the archive
	Suffix  []byte         // behind everything
	End     func(h []byte) // changes the end record
}

var le = binary.LittleEndian

// locals are the entries without the directory.
func (z Zip) locals() []byte {
	b := z.Bytes()
	return b[:le.Uint32(b[len(b)-22+16:])]
}

// Bytes is the archive.
func (z Zip) Bytes() []byte {
	var out, dir bytes.Buffer
	out.Write(z.Prefix)
	base := 0
	if !z.Honest {
		base = len(z.Prefix)
	}
	for _, e := range z.Entries {
		offset := int64(out.Len() - base)
		packed, method := e.Body, uint16(0)
		if e.Deflate {
			packed, method = deflated(e.Body), 8
		}
		if e.Packed != nil {
			packed = e.Packed
		}
		var flags uint16
		if strings.ContainsFunc(e.Name, func(r rune) bool { return r >= 0x80 }) {
			flags |= 1 << 11
		}
		if e.Later {
			flags |= 1 << 3
		}
		crc := crc32.ChecksumIEEE(e.Body)
		mode := e.Mode
		if mode == 0 {
			mode = ModeFile
			if strings.HasSuffix(e.Name, "/") {
				mode = ModeFolder
			}
		}
		if !e.NoLocal {
			name := e.Name
			if e.LocalName != "" {
				name = e.LocalName
			}
			h := make([]byte, 30)
			le.PutUint32(h, 0x04034b50)
			le.PutUint16(h[4:], 20)
			le.PutUint16(h[6:], flags)
			le.PutUint16(h[8:], method)
			if !e.Later {
				le.PutUint32(h[14:], crc)
				le.PutUint32(h[18:], size32(packed))
				le.PutUint32(h[22:], size32(e.Body))
			}
			le.PutUint16(h[26:], size16(name))
			le.PutUint16(h[28:], size16(e.Before))
			if e.Local != nil {
				e.Local(h)
			}
			out.Write(h)
			out.WriteString(name)
			out.Write(e.Before)
			out.Write(packed)
			if e.Later {
				for _, v := range []uint32{0x08074b50, crc, size32(packed), size32(e.Body)} {
					out.Write(le.AppendUint32(nil, v))
				}
			}
			out.Write(e.Behind)
		}
		if e.Offset != nil {
			offset = e.Offset(offset)
		}
		h := make([]byte, 46)
		le.PutUint32(h, 0x02014b50)
		le.PutUint16(h[4:], 3<<8|20)
		le.PutUint16(h[6:], 20)
		le.PutUint16(h[8:], flags)
		le.PutUint16(h[10:], method)
		le.PutUint32(h[16:], crc)
		le.PutUint32(h[20:], size32(packed))
		le.PutUint32(h[24:], size32(e.Body))
		le.PutUint16(h[28:], size16(e.Name))
		le.PutUint16(h[30:], size16(e.Extra))
		le.PutUint16(h[32:], size16(e.Note))
		le.PutUint32(h[38:], mode<<16)
		le.PutUint32(h[42:], uint32(offset))
		if e.Central != nil {
			e.Central(h)
		}
		dir.Write(h)
		dir.WriteString(e.Name)
		dir.Write(e.Extra)
		dir.Write(e.Note)
	}
	out.Write(z.Before)
	start := out.Len() - base
	out.Write(dir.Bytes())
	out.Write(z.Between)
	h := make([]byte, 22)
	le.PutUint32(h, 0x06054b50)
	count := uint16(len(z.Entries))
	le.PutUint16(h[8:], count)
	le.PutUint16(h[10:], count)
	le.PutUint32(h[12:], size32(dir.Bytes()))
	le.PutUint32(h[16:], uint32(start))
	le.PutUint16(h[20:], size16(z.Comment))
	if z.End != nil {
		z.End(h)
	}
	out.Write(h)
	out.Write(z.Comment)
	out.Write(z.Suffix)
	return out.Bytes()
}

// size16 and size32 are sizes as headers have them; cases are small.
func size16[T ~[]byte | ~string](v T) uint16 { return uint16(len(v)) }
func size32[T ~[]byte | ~string](v T) uint32 { return uint32(len(v)) }

// put16 and put32 change a field of a header.
func put16(at int, v uint16) func([]byte) { return func(h []byte) { le.PutUint16(h[at:], v) } }
func put32(at int, v uint32) func([]byte) { return func(h []byte) { le.PutUint32(h[at:], v) } }

// elsewhere makes a header before data one whose sizes are in the extra data.
func elsewhere(h []byte) {
	le.PutUint32(h[18:], 0xffffffff)
	le.PutUint32(h[22:], 0xffffffff)
}

// size64 is what a zip64's extra data has, and what stands behind its data.
func size64(size, packed uint64) []byte { return le.AppendUint64(le.AppendUint64(nil, size), packed) }

// zip64Later is what packers write that do not know how much will follow.
func zip64Later() []byte {
	body := []byte("x")
	behind := append(le.AppendUint32(le.AppendUint32(nil, 0x08074b50), crc32.ChecksumIEEE(body)), size64(1, 1)...)
	flagged := func(at int) func([]byte) { return func(h []byte) { le.PutUint16(h[at:], le.Uint16(h[at:])|8) } }
	return zipOf(Entry{Name: "a", Body: body, Before: extra(1, size64(0, 0)), Behind: behind, Central: flagged(8), Local: func(h []byte) {
		flagged(6)(h)
		elsewhere(h)
		le.PutUint32(h[14:], 0)
	}})
}

// extra is a field of extra data.
func extra(id uint16, body []byte) []byte {
	return append(le.AppendUint16(le.AppendUint16(nil, id), size16(body)), body...)
}
