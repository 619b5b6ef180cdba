package admissiontest

import (
	"bytes"
	"compress/flate"
	"hash/crc32"
	"sync"
)

const mib = 1 << 20

// deflated compresses by pieces of a mebibyte, each without a look at those before:
// bombs consist of the same piece many times, which is compressed only once.
func deflated(b []byte) []byte {
	var out bytes.Buffer
	for ; len(b) > mib; b = b[mib:] {
		if bytes.Equal(b[:mib], nothing[:]) {
			out.Write(deflatedNothing())
		} else {
			out.Write(piece(b[:mib], (*flate.Writer).Flush))
		}
	}
	out.Write(piece(b, (*flate.Writer).Close))
	return out.Bytes()
}

var (
	nothing         [mib]byte // nobody writes to it: no process that never reads it has its pages
	deflatedNothing = sync.OnceValue(func() []byte { return piece(nothing[:], (*flate.Writer).Flush) })
)

// piece compresses b and then ends it, as the last piece or as one that others follow.
func piece(b []byte, end func(*flate.Writer) error) []byte {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		panic(err) // the level is right
	}
	if _, err := w.Write(b); err != nil {
		panic(err) // memory only
	}
	if err := end(w); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// Gzip compresses into one member.
func Gzip(b []byte) []byte {
	out := append([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"), deflated(b)...)
	return le.AppendUint32(le.AppendUint32(out, crc32.ChecksumIEEE(b)), size32(b))
}

// gzipExtra compresses into one member whose header has extra data.
func gzipExtra(extra, b []byte) []byte {
	head := append([]byte("\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff"), le.AppendUint16(nil, size16(extra))...)
	return append(append(head, extra...), Gzip(b)[10:]...)
}

// gzipStored is a member that holds at most 64 KiB as they are.
func gzipStored(b []byte) []byte {
	out := append([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01"), le.AppendUint16(nil, size16(b))...)
	out = append(le.AppendUint16(out, ^size16(b)), b...)
	return le.AppendUint32(le.AppendUint32(out, crc32.ChecksumIEEE(b)), size32(b))
}
