package upload

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
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
	g.Multistream(false)
	s := &stream{from: g, tree: t}
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
	if err := s.end(); err != nil {
		return err
	}
	if _, err := packed.Peek(1); !errors.Is(err, io.EOF) {
		if err != nil {
			return err
		}
		return reject("", "there is something behind the compressed data, or more than one part of it")
	}
	return nil
}

// tarEntry unpacks one entry.
func (t *tree) tarEntry(h *tar.Header, from io.Reader) error {
	if t.entries++; t.entries > 2*t.o.MaxFiles+1 { // and one for what git writes first
		return reject("", "the archive has more than %d entries", 2*t.o.MaxFiles)
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return reject(h.Name, "the entry is a sparse file; files are accepted whole")
		}
		if h.Typeflag == tar.TypeXGlobalHeader && key != "comment" {
			return reject("", "the archive has a global header that changes its entries (%s)", show(key))
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
	raw := h.Name
	// `tar -C folder .` begins every name so.
	if raw == "." || raw == "./" {
		if h.Typeflag != tar.TypeDir {
			return reject(raw, "the name is empty")
		}
		if t.claimedRoot {
			return reject(raw, "the entry is there twice")
		}
		t.claimedRoot = true
		return nil
	}
	name, slash, err := t.clean(strings.TrimPrefix(raw, "./"))
	if err != nil {
		return err
	}
	folder := h.Typeflag == tar.TypeDir
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
}

func (s *stream) Read(p []byte) (int, error) {
	if err := s.tree.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.from.Read(p)
	s.n += int64(n)
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
			return reject("", "there is something behind the end of the tar")
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return damaged("", err)
		}
	}
	if s.zeros < 1024 {
		return reject("", "the tar is cut off: it has no end")
	}
	return nil
}
