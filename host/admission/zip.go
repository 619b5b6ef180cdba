package admission

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"slices"
)

// Zip is read here and not by archive/zip, because that finds entries wherever the
// directory points to: behind each other, within each other, below something else.
// Here an archive is what packers write, from its first byte to its last: entries
// without a gap between them, the directory, the end record and its comment.
// Numbers are those of APPNOTE.TXT 6.3.10, section 4.3.
const (
	zipLocal      = 0x04034b50 // signatures
	zipCentral    = 0x02014b50
	zipEnd        = 0x06054b50
	zipDescriptor = 0x08074b50
	zipLocator64  = 0x07064b50

	zipLocalSize   = 30 // bytes of the fixed parts
	zipCentralSize = 46
	zipEndSize     = 22
	zipLocatorSize = 20

	maxDirectory = 8 << 20 // bytes of a central directory

	flagEncrypted  = 1 << 0
	flagLevel      = 3 << 1 // how hard the packer tried
	flagDescriptor = 1 << 3 // sizes stand behind the data
	flagUTF8       = 1 << 11

	methodStored  = 0
	methodDeflate = 8

	extraZip64   = 0x0001
	extraUnicode = 0x7075 // another name
)

// zipEntry is an entry as the central directory has it.
type zipEntry struct {
	raw            string // the name
	name           string // checked
	folder         bool
	flags, method  uint16
	crc            uint32
	packed, size   int64
	offset         int64 // of the local header
	data, dataEnds int64
}

// unzip unpacks a zip. All of its structure is checked before anything is written.
func (t *tree) unzip(f *os.File, size int64) error {
	z := &zipReader{from: f, size: size}
	if err := z.directory(t); err != nil {
		return err
	}
	if err := z.layout(); err != nil {
		return err
	}
	var declared int64
	for i := range z.entries {
		e := &z.entries[i]
		if err := t.claim(e.name, e.folder); err != nil {
			return err
		}
		declared += e.size // at most 2,000 of 32 bits each
		if err := t.fits(declared); err != nil {
			return err
		}
	}
	for i := range z.entries {
		if err := z.extract(t, &z.entries[i]); err != nil {
			return err
		}
	}
	return nil
}

type zipReader struct {
	from     io.ReaderAt
	size     int64
	entries  []zipEntry // in the order of the archive
	dirStart int64
}

// at reads n bytes that the archive must have.
func (z *zipReader) at(offset int64, n int) ([]byte, error) {
	if offset < 0 || offset+int64(n) > z.size {
		return nil, reject("", "the zip is damaged or truncated")
	}
	b := make([]byte, n)
	if _, err := z.from.ReadAt(b, offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b, nil
}

// end finds the end record, and gives it with its place.
func (z *zipReader) end() ([]byte, int64, error) {
	n := min(z.size, zipEndSize+1<<16-1)
	tail, err := z.at(z.size-n, int(n))
	if err != nil {
		return nil, 0, err
	}
	// Readers search from the back and may take any signature: behind the right one
	// there must be none.
	found, signatures := -1, 0
	for i := 0; i+zipEndSize <= len(tail); i++ {
		if binary.LittleEndian.Uint32(tail[i:]) != zipEnd {
			continue
		}
		if signatures++; found >= 0 {
			return nil, 0, reject("", "the zip has two end records")
		}
		if i+zipEndSize+int(binary.LittleEndian.Uint16(tail[i+20:])) == len(tail) {
			found = i
		}
	}
	switch {
	case found >= 0:
		return tail[found : found+zipEndSize], z.size - n + int64(found), nil
	case signatures > 0:
		return nil, 0, reject("", "unexpected data after the end of the zip")
	default:
		return nil, 0, reject("", "the zip is truncated: it has no end record")
	}
}

// none says that a file which is something else is not a zip as well: readers of zips
// begin at the end, and take no offence at what is before.
func (z *zipReader) none() error {
	n := min(z.size, zipEndSize+1<<16-1)
	tail, err := z.at(z.size-n, int(n))
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	for i := 0; i+zipEndSize <= len(tail); i++ {
		if le.Uint32(tail[i:]) == zipEnd && i+zipEndSize+int(le.Uint16(tail[i+20:])) == len(tail) {
			return reject("", "the archive also ends like a zip")
		}
	}
	return nil
}

// directory reads the central directory.
func (z *zipReader) directory(t *tree) error {
	end, endsAt, err := z.end()
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	if le.Uint16(end[4:]) != 0 || le.Uint16(end[6:]) != 0 {
		return reject("", "the zip has several parts")
	}
	count := int(le.Uint16(end[10:]))
	size, start := int64(le.Uint32(end[12:])), int64(le.Uint32(end[16:]))
	switch {
	case int(le.Uint16(end[8:])) != count:
		return reject("", "the zip's end record is inconsistent")
	case count == 0:
		return reject("", "the zip is empty")
	case count == 0xffff || size == 0xffffffff || start == 0xffffffff:
		return reject("", "zip64 is not accepted for archives of this size")
	case count > 2*t.o.MaxFiles:
		return reject("", "the archive has more than %d entries", 2*t.o.MaxFiles)
	case size > maxDirectory:
		return reject("", "the zip's directory has more than %d bytes", maxDirectory)
	case start+size != endsAt:
		return reject("", "the zip's directory is not right before its end: unexpected data")
	}
	dir, err := z.at(start, int(size))
	if err != nil {
		return err
	}
	// Some readers look for a zip64's end before the end of every zip, and take the
	// directory that it names; the comment of the last entry is a place to put one.
	if n := len(dir) - zipLocatorSize; n >= 0 && le.Uint32(dir[n:]) == zipLocator64 {
		return reject("", "the zip also ends like a zip64, which is not accepted")
	}
	z.dirStart = start
	for range count {
		n, err := z.add(t, dir)
		if err != nil {
			return err
		}
		dir = dir[n:]
	}
	if len(dir) > 0 {
		return reject("", "the zip's directory has more than its entries")
	}
	return nil
}

// add reads the entry at the beginning of b, and says how long it is there.
func (z *zipReader) add(t *tree, b []byte) (int, error) {
	le := binary.LittleEndian
	if len(b) < zipCentralSize || le.Uint32(b) != zipCentral {
		return 0, reject("", "the zip's directory is damaged")
	}
	nameLen, extraLen, commentLen := int(le.Uint16(b[28:])), int(le.Uint16(b[30:])), int(le.Uint16(b[32:]))
	all := zipCentralSize + nameLen + extraLen + commentLen
	if len(b) < all {
		return 0, reject("", "the zip's directory is damaged")
	}
	e := zipEntry{
		raw:   string(b[zipCentralSize : zipCentralSize+nameLen]),
		flags: le.Uint16(b[8:]), method: le.Uint16(b[10:]), crc: le.Uint32(b[16:]),
		packed: int64(le.Uint32(b[20:])), size: int64(le.Uint32(b[24:])), offset: int64(le.Uint32(b[42:])),
	}
	var err error
	if e.name, e.folder, err = t.clean(e.raw); err != nil {
		return 0, err
	}
	attributes := le.Uint32(b[38:])
	switch {
	case e.flags&flagEncrypted != 0:
		return 0, reject(e.raw, "the entry is encrypted")
	case e.flags&^(flagLevel|flagDescriptor|flagUTF8) != 0:
		return 0, reject(e.raw, "the entry uses an unsupported zip feature (flags %#04x)", e.flags)
	case e.method != methodStored && e.method != methodDeflate:
		return 0, reject(e.raw, "the entry is compressed by method %d; stored and deflate are accepted", e.method)
	case e.method == methodStored && e.packed != e.size:
		return 0, reject(e.raw, "the entry is stored and has two sizes")
	case le.Uint16(b[34:]) != 0:
		return 0, reject("", "the zip has several parts")
	case e.packed == 0xffffffff || e.size == 0xffffffff || e.offset == 0xffffffff:
		return 0, rejectZip64(e.raw)
	case e.folder && e.size != 0:
		return 0, reject(e.raw, "the entry is a folder with content")
	}
	switch sizes, err := checkExtra(e.raw, b[zipCentralSize+nameLen:zipCentralSize+nameLen+extraLen]); {
	case err != nil:
		return 0, err
	case sizes != nil:
		return 0, rejectZip64(e.raw)
	}
	if err := z.kind(t, &e, attributes); err != nil {
		return 0, err
	}
	z.entries = append(z.entries, e)
	return all, nil
}

func rejectZip64(name string) error {
	return reject(name, "zip64 entries are not accepted for archives of this size")
}

// checkExtra looks at the extra data of an entry, in the directory or before its data:
// fields that some readers take a name from must say nothing new. It gives the field from
// which readers of zip64 take sizes, nil for none.
func checkExtra(name string, extra []byte) (sizes []byte, err error) {
	for le := binary.LittleEndian; len(bytes.Trim(extra, "\x00")) > 0; { // zeros are padding
		if len(extra) < 4 || len(extra) < 4+int(le.Uint16(extra[2:])) {
			return nil, reject(name, "the entry's extra data is damaged")
		}
		n := 4 + int(le.Uint16(extra[2:]))
		switch body := extra[4:n]; le.Uint16(extra) {
		case extraZip64:
			if sizes != nil || len(body) != 16 {
				return nil, rejectZip64(name)
			}
			sizes = body
		case extraUnicode: // its version, the CRC-32 of the other name, then this one
			if len(body) < 5 || string(body[5:]) != name {
				return nil, reject(name, "the entry has two names; pack with names in UTF-8")
			}
		}
		extra = extra[n:]
	}
	return sizes, nil
}

// kind holds the modes of an entry against its name: those of Unix in the upper
// half, whoever claims to have packed it, and those of DOS.
func (z *zipReader) kind(t *tree, e *zipEntry, attributes uint32) error {
	const (
		typeMask, typeRegular, typeFolder = 0o170000, 0o100000, 0o040000
		specialBits                       = 0o7000
		dosVolume, dosFolder              = 0x08, 0x10
	)
	mode := attributes >> 16
	what := ""
	switch mode & typeMask {
	case 0, typeRegular, typeFolder:
	case 0o120000:
		what = "a symbolic link"
	case 0o020000, 0o060000:
		what = "a device"
	case 0o010000:
		what = "a pipe"
	case 0o140000:
		what = "a socket"
	default:
		what = "of a special kind"
	}
	if attributes&dosVolume != 0 {
		what = "the label of a disk"
	}
	switch kind := mode & typeMask; {
	case what != "":
		return reject(e.raw, "the entry is %s; files and folders are accepted", what)
	case e.folder && kind == typeRegular, !e.folder && (kind == typeFolder || attributes&dosFolder != 0):
		return reject(e.raw, "the entry is a file and a folder")
	}
	if mode&specialBits != 0 {
		t.special++
	}
	return nil
}

// layout finds the data of every entry, and that nothing else is in the archive.
func (z *zipReader) layout() error {
	slices.SortStableFunc(z.entries, func(a, b zipEntry) int { return cmp.Compare(a.offset, b.offset) })
	next := int64(0)
	for i := range z.entries {
		e := &z.entries[i]
		switch {
		case e.offset < next:
			return reject(e.raw, "the entry overlaps the one before it")
		case e.offset > next:
			return reject(e.raw, "unexpected data before the entry")
		}
		limit := z.dirStart
		if i+1 < len(z.entries) {
			limit = z.entries[i+1].offset
		}
		var err error
		if next, err = z.local(e, limit); err != nil {
			return err
		}
	}
	if next != z.dirStart {
		return reject("", "unexpected data before the zip's directory")
	}
	return nil
}

// local reads the header before the data of an entry, which must say what the
// directory says, and gives where the entry ends. limit is where it must.
func (z *zipReader) local(e *zipEntry, limit int64) (int64, error) {
	b, err := z.at(e.offset, zipLocalSize)
	if err != nil {
		return 0, err
	}
	le := binary.LittleEndian
	if le.Uint32(b) != zipLocal {
		return 0, reject(e.raw, "no entry at the place that the directory names")
	}
	nameLen, extraLen := int(le.Uint16(b[26:])), int(le.Uint16(b[28:]))
	lies := reject(e.raw, "the entry's header does not match the zip's directory")
	if nameLen != len(e.raw) {
		return 0, lies
	}
	names, err := z.at(e.offset+zipLocalSize, nameLen+extraLen)
	if err != nil {
		return 0, err
	}
	name, extra := names[:nameLen], names[nameLen:]
	crc, packed, size := le.Uint32(b[14:]), int64(le.Uint32(b[18:])), int64(le.Uint32(b[22:]))
	// Packers that do not know how much follows leave room for a zip64's sizes.
	sizes, err := checkExtra(e.raw, extra)
	if err != nil {
		return 0, err
	}
	if sizes != nil {
		const elsewhere = 0xffffffff
		if size != elsewhere || packed != elsewhere {
			return 0, lies
		}
		size, packed = int64(le.Uint64(sizes)), int64(le.Uint64(sizes[8:])) // compared with what they must be
	}
	later := e.flags&flagDescriptor != 0 // what is not known yet is 0; some packers know the size
	same := (crc == e.crc || later && crc == 0) && (packed == e.packed || later && packed == 0) && (size == e.size || later && size == 0)
	if string(name) != e.raw || le.Uint16(b[6:])&^flagLevel != e.flags&^flagLevel || le.Uint16(b[8:]) != e.method || !same {
		return 0, lies
	}
	e.data = e.offset + zipLocalSize + int64(nameLen) + int64(extraLen)
	e.dataEnds = e.data + e.packed
	if e.dataEnds > limit {
		return 0, reject(e.raw, "the entry overlaps what follows it")
	}
	if e.flags&flagDescriptor == 0 {
		return e.dataEnds, nil
	}
	want := le.AppendUint32(le.AppendUint32(nil, zipDescriptor), e.crc)
	if sizes == nil {
		want = le.AppendUint32(le.AppendUint32(want, uint32(e.packed)), uint32(e.size))
	} else {
		want = le.AppendUint64(le.AppendUint64(want, uint64(e.packed)), uint64(e.size))
	}
	if limit-e.dataEnds == int64(len(want)-4) { // the signature is optional
		want = want[4:]
	}
	got, err := z.at(e.dataEnds, min(len(want), int(limit-e.dataEnds)))
	if err != nil {
		return 0, err
	}
	if !bytes.Equal(got, want) {
		return 0, reject(e.raw, "the data descriptor does not match the zip's directory")
	}
	return e.dataEnds + int64(len(want)), nil
}

// extract writes a file, and reads a folder to see that there is nothing in it.
func (z *zipReader) extract(t *tree, e *zipEntry) error {
	packed := bufio.NewReader(io.NewSectionReader(z.from, e.data, e.packed))
	var from io.Reader = packed
	if e.method == methodDeflate {
		inflate := flate.NewReader(packed)
		defer inflate.Close()
		from = inflate
	}
	sum := &summed{from: from}
	if e.folder {
		n, err := t.copy(io.Discard, io.LimitReader(sum, 1), e.raw)
		if err != nil {
			return err
		}
		if n > 0 {
			return reject(e.raw, "the entry is a folder with content")
		}
	} else if err := t.write(e.name, sum, e.size); err != nil {
		return err
	}
	if sum.crc != e.crc {
		return reject(e.raw, "the entry's checksum is wrong")
	}
	switch _, err := packed.Peek(1); {
	case err == nil:
		return reject(e.raw, "unexpected data after the entry's compressed data")
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// summed computes the checksum of what is read through it.
type summed struct {
	from io.Reader
	crc  uint32
}

func (s *summed) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.crc = crc32.Update(s.crc, crc32.IEEETable, p[:n])
	return n, err
}
