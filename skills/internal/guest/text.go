package guest

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// errGzip says that gzip data is damaged or cut off. How much of it could be read
// depends on the decoder, so nothing of it is read.
var errGzip = errors.New("the gzip data is damaged or cut off")

// Packed reports whether data is compressed with gzip.
func Packed(data []byte) bool { return bytes.HasPrefix(data, []byte("\x1f\x8b\x08")) }

// Unpack returns the contents of all members of gzip data, or the first most+1
// bytes of them. It reads the members' headers itself, because gzip readers differ
// in what they accept there.
func Unpack(packed []byte, most int) ([]byte, error) {
	var out bytes.Buffer
	var z io.ReadCloser
	for {
		data, ok := member(packed)
		if !ok {
			return nil, errGzip
		}
		r := bytes.NewReader(data)
		if z == nil {
			z = flate.NewReader(r)
		} else if err := z.(flate.Resetter).Reset(r, nil); err != nil { //nolint:errcheck // documented: a Resetter
			return nil, err
		}
		start := out.Len()
		_, err := io.Copy(&out, io.LimitReader(z, int64(most+1-start)))
		if out.Len() > most {
			return out.Bytes(), nil
		}
		end := data[len(data)-r.Len():]
		if err != nil || len(end) < 8 {
			return nil, errGzip
		}
		content := out.Bytes()[start:]
		if binary.LittleEndian.Uint32(end) != crc32.ChecksumIEEE(content) || binary.LittleEndian.Uint32(end[4:]) != uint32(len(content)) { // at most a few MiB
			return nil, errGzip
		}
		// Tapes and block devices pad with zeros.
		if packed = bytes.TrimLeft(end[8:], "\x00"); len(packed) == 0 {
			return out.Bytes(), nil
		}
	}
}

// member returns what follows the header of the gzip member at the start of b (RFC 1952).
func member(b []byte) (data []byte, ok bool) {
	if len(b) < 10 || !Packed(b) || b[3]&0xe0 != 0 {
		return nil, false
	}
	flags, at := b[3], 10
	if flags&4 != 0 { // extra fields
		if len(b) < at+2 {
			return nil, false
		}
		at += 2 + int(binary.LittleEndian.Uint16(b[at:]))
	}
	for _, flag := range []byte{8, 16} { // name, comment
		if flags&flag == 0 {
			continue
		}
		n := bytes.IndexByte(b[min(at, len(b)):], 0)
		if n < 0 {
			return nil, false
		}
		at += n + 1
	}
	if flags&2 != 0 { // checksum of the header
		at += 2
	}
	return b[min(at, len(b)):], true
}

// The encodings that Decode and Mend tell apart.
const (
	UTF8        = "utf-8"
	Windows1252 = "windows-1252"
)

// Decode returns data as UTF-8 where it is UTF-16, by its byte order mark or by
// the zeros in its first kibibyte, and the name of its encoding. Other data is
// returned as it is, without the byte order mark of UTF-8; see Mend.
func Decode(data []byte) (text []byte, encoding string) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		order, data = binary.LittleEndian, data[2:]
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order, data = binary.BigEndian, data[2:]
	default:
		if order = byteOrder(data); order == nil {
			return bytes.TrimPrefix(data, []byte("\ufeff")), UTF8
		}
	}
	encoding = "utf-16le"
	if order == binary.BigEndian {
		encoding = "utf-16be"
	}
	text = make([]byte, 0, len(data)/2+len(data)/4)
	for len(data) > 1 {
		r := rune(order.Uint16(data))
		data = data[2:]
		if utf16.IsSurrogate(r) {
			pair := rune(utf8.RuneError)
			if len(data) > 1 {
				pair = utf16.DecodeRune(r, rune(order.Uint16(data)))
			}
			if r = pair; r != utf8.RuneError {
				data = data[2:]
			}
		}
		text = utf8.AppendRune(text, r)
	}
	if len(data) > 0 {
		text = utf8.AppendRune(text, utf8.RuneError)
	}
	return text, encoding
}

// byteOrder is that of UTF-16 without a byte order mark, or nil. Most text of logs
// is ASCII, so at least half of its units have a zero, on the same side.
func byteOrder(data []byte) binary.ByteOrder {
	var zeros [2]int
	units := min(len(data), 1024) / 2
	for i := range units * 2 {
		if data[i] == 0 {
			zeros[i%2]++
		}
	}
	switch {
	case units < 2:
		return nil
	case zeros[0]*8 <= units && zeros[1]*2 >= units:
		return binary.LittleEndian
	case zeros[1]*8 <= units && zeros[0]*2 >= units:
		return binary.BigEndian
	}
	return nil
}

// windows1252 is what the bytes from 0x80 to 0x9f stand for; five of them stand
// for themselves, as in browsers.
var windows1252 = [32]rune{
	'€', 0x81, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0x8d, 'Ž', 0x8f,
	0x90, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0x9d, 'ž', 'Ÿ',
}

// Mend returns b in UTF-8: the bytes in it that are not UTF-8 are read as
// Windows-1252, of which Latin-1 is a part. ok is false for what is not text:
// not UTF-8, and with control characters that text does not have.
func Mend(b []byte) (text []byte, ok bool) {
	for _, c := range b {
		if c < ' ' && (c < '\b' || c > '\r') && c != '\x1b' {
			return nil, false
		}
	}
	text = make([]byte, 0, len(b)+len(b)/8)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			if r = rune(b[0]); r < 0xa0 {
				r = windows1252[r-0x80]
			}
		}
		text = utf8.AppendRune(text, r)
		b = b[n:]
	}
	return text, true
}
