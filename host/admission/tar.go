package admission

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
)

// tarOverhead is how many bytes of headers and padding a tar may have beside its files.
const tarOverhead = 8 << 20

// untar unpacks a gzipped tar.
func (t *tree) untar(f *os.File, size int64) error {
	packed := bufio.NewReader(io.NewSectionReader(f, 0, size))
	g, err := gzip.NewReader(packed)
	if err != nil {
		return damaged("", err)
	}
	from := &members{g: g, packed: packed}
	if err := from.begin(); err != nil {
		return err
	}
	if err := (&zipReader{from: f, size: size}).none(); err != nil {
		return err
	}
	s := &stream{from: from, tree: t}
	r := tar.NewReader(s)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) { // names are looked at below
			return damaged("", err)
		}
		if err := t.tarEntry(h, r); err != nil {
			return err
		}
	}
	return s.end()
}

// members reads compressed data of one member or of several, one behind the other, as some
// packers write. Behind the end of the tar there are zeros in all of them, so that a reader
// that stops after the first sees no other archive.
type members struct {
	g      *gzip.Reader
	packed *bufio.Reader
	err    error // after which nothing is read
}

func (m *members) begin() error {
	m.g.Multistream(false)
	if len(m.g.Extra) > 0 {
		return reject("", "the gzip header has extra data, which could hide another archive")
	}
	return nil
}

func (m *members) Read(p []byte) (n int, err error) {
	if m.err != nil {
		return 0, m.err
	}
	if n, m.err = m.g.Read(p); errors.Is(m.err, io.EOF) {
		m.err = m.next()
	}
	return n, m.err
}

func (m *members) next() error {
	if _, err := m.packed.Peek(1); err != nil {
		return err
	}
	if err := m.g.Reset(m.packed); err != nil {
		return reject("", "unexpected data after the compressed data")
	}
	return m.begin()
}

// tarEntry unpacks one entry.
func (t *tree) tarEntry(h *tar.Header, from io.Reader) error {
	if t.entries++; t.entries > 2*t.o.MaxFiles+1 { // and one for what git writes first
		return reject("", "the archive has more than %d entries", 2*t.o.MaxFiles)
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return reject(h.Name, "sparse files are not accepted")
		}
		if h.Typeflag == tar.TypeXGlobalHeader && key != "comment" {
			return reject("", "the archive has a global header that changes its entries (%s)", show(key))
		}
		// Where this and the header differ, readers do not agree where the entry ends.
		if key == "size" {
			return reject(h.Name, "the size is in an extended header, which is not accepted")
		}
	}
	switch h.Typeflag {
	case tar.TypeXGlobalHeader: // a comment, as git archive writes one
		return nil
	case tar.TypeReg, tar.TypeDir:
	default:
		return reject(h.Name, "the entry is %s; files and folders are accepted", tarKind(h.Typeflag))
	}
	if h.Linkname != "" {
		return reject(h.Name, "the entry is a file and a link")
	}
	raw, folder := h.Name, h.Typeflag == tar.TypeDir
	name, slash, err := t.clean(raw)
	if err != nil {
		return err
	}
	if slash && !folder {
		return reject(raw, "the entry is a file and a folder")
	}
	if h.Mode&0o7000 != 0 {
		t.special++
	}
	if err := t.claim(name, folder); err != nil {
		return err
	}
	if folder {
		if h.Size != 0 {
			return reject(raw, "the entry is a folder with content")
		}
		return nil
	}
	if h.Size < 0 || h.Size > t.o.MaxUnpacked {
		return reject("", "the files have more than %d bytes together", t.o.MaxUnpacked)
	}
	return t.write(name, from, h.Size)
}

func tarKind(flag byte) string {
	switch flag {
	case tar.TypeLink:
		return "a hard link"
	case tar.TypeSymlink:
		return "a symbolic link"
	case tar.TypeChar, tar.TypeBlock:
		return "a device"
	case tar.TypeFifo:
		return "a pipe"
	case tar.TypeGNUSparse:
		return "a sparse file"
	default:
		return "of a special kind"
	}
}

// stream is the tar as it comes out of the decompressor: counted, and cut off when
// it is too long.
type stream struct {
	from  io.Reader
	tree  *tree
	n     int64
	zeros int64 // with which it ends so far
	heads heads
}

func (s *stream) Read(p []byte) (int, error) {
	if err := s.tree.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.from.Read(p)
	s.n += int64(n)
	if err := s.heads.see(p[:n]); err != nil {
		return 0, err
	}
	if rest := bytes.TrimRight(p[:n], "\x00"); len(rest) > 0 {
		s.zeros = int64(n - len(rest))
	} else {
		s.zeros += int64(n)
	}
	if s.n-s.tree.unpacked > tarOverhead {
		return 0, reject("", "the archive has more than %d bytes of headers and padding beside its files", tarOverhead)
	}
	return n, err
}

// end reads what stands behind the last entry: zeros, at least two blocks of them.
func (s *stream) end() error {
	buf := make([]byte, 64<<10)
	for {
		n, err := s.Read(buf)
		if len(bytes.Trim(buf[:n], "\x00")) > 0 {
			return reject("", "unexpected data after the end of the tar")
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return damaged("", err)
		}
	}
	if s.zeros < 1024 {
		return reject("", "the tar is truncated: it has no end")
	}
	return nil
}

// heads follows the headers of a tar as they go by. Of two extended headers for one
// entry some readers take the first, some the second, some both; archive/tar does not
// tell that there were two.
type heads struct {
	head     [512]byte
	have     int   // bytes of head
	skip     int64 // bytes until the next header
	extended bool  // the next entry has one already
}

func (h *heads) see(p []byte) error {
	for len(p) > 0 {
		if n := min(h.skip, int64(len(p))); n > 0 {
			h.skip -= n
			p = p[n:]
			continue
		}
		n := copy(h.head[h.have:], p)
		p = p[n:]
		if h.have += n; h.have < len(h.head) {
			return nil
		}
		h.have = 0
		switch kind := h.head[156]; kind {
		case tar.TypeXHeader, tar.TypeXGlobalHeader, tar.TypeGNULongName, tar.TypeGNULongLink:
			if h.extended {
				return reject("", "an entry has two extended headers, which readers interpret differently")
			}
			h.extended = kind != tar.TypeXGlobalHeader
		default:
			h.extended = false
		}
		size, ok := tarSize(h.head[124:136])
		if !ok {
			return reject("", "an entry has an invalid size")
		}
		h.skip = (size + 511) &^ 511
	}
	return nil
}

// tarSize reads a size as archive/tar does: in octal, or in binary with the top bit set.
func tarSize(b []byte) (n int64, ok bool) {
	if b[0]&0x80 != 0 {
		b = append([]byte{b[0] & 0x7f}, b[1:]...)
		for _, c := range b {
			if n>>40 != 0 { // more than any archive has
				return 0, false
			}
			n = n<<8 | int64(c)
		}
		return n, b[0]&0x40 == 0
	}
	text, _, _ := strings.Cut(strings.Trim(string(b), " \x00"), "\x00")
	if text == "" {
		return 0, true
	}
	size, err := strconv.ParseUint(text, 8, 40)
	return int64(size), err == nil
}
