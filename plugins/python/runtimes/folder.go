package runtimes

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// folder is the library as an io/fs.FS: a zip archive whose members are stored, read
// where they lie. Python imports from a folder with a quarter less work than from
// an archive, and each file is still one in the state folder. It is safe for
// concurrent use.
type folder struct {
	archive *os.File
	nodes   map[string]*node
}

// node is a file or a folder. It is its own fs.FileInfo and fs.DirEntry.
type node struct {
	name    string
	dir     bool
	offset  int64 // of a file's first byte in the archive
	size    int64
	entries []fs.DirEntry // of a folder, by name
}

func (n *node) Name() string               { return n.name }
func (n *node) Size() int64                { return n.size }
func (n *node) ModTime() time.Time         { return time.Unix(0, 0) } // the same on every machine
func (n *node) IsDir() bool                { return n.dir }
func (n *node) Sys() any                   { return nil }
func (n *node) Type() fs.FileMode          { return n.Mode().Type() }
func (n *node) Info() (fs.FileInfo, error) { return n, nil }

func (n *node) Mode() fs.FileMode {
	if n.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// openFolder reads the directory of an archive. The caller closes it.
func openFolder(file string) (*folder, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	d := &folder{archive: f, nodes: map[string]*node{".": {name: ".", dir: true}}}
	if err := d.index(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return d, nil
}

func (d *folder) index() error {
	info, err := d.archive.Stat()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(d.archive, info.Size())
	if err != nil {
		return err
	}
	for _, f := range z.File {
		if !fs.ValidPath(f.Name) || f.Method != zip.Store || d.nodes[f.Name] != nil {
			return fmt.Errorf("%q is no member of a library", f.Name)
		}
		at, err := f.DataOffset()
		if err != nil {
			return err
		}
		if err := d.add(f.Name, &node{name: path.Base(f.Name), offset: at, size: int64(f.UncompressedSize64)}); err != nil { // within the archive
			return err
		}
	}
	for _, n := range d.nodes {
		slices.SortFunc(n.entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return nil
}

// add puts a node in its place, and makes the folders above it.
func (d *folder) add(name string, n *node) error {
	d.nodes[name] = n
	dir := path.Dir(name)
	parent := d.nodes[dir]
	if parent == nil {
		parent = &node{name: path.Base(dir), dir: true}
		if err := d.add(dir, parent); err != nil {
			return err
		}
	}
	if !parent.dir {
		return fmt.Errorf("%q is a file and a folder", dir)
	}
	parent.entries = append(parent.entries, n)
	return nil
}

// Close releases the archive. It may be called twice.
func (d *folder) Close() error {
	if err := d.archive.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

func (d *folder) find(op, name string) (*node, error) {
	n := d.nodes[name]
	switch {
	case !fs.ValidPath(name):
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	case n == nil:
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return n, nil
}

// Stat implements [fs.StatFS].
func (d *folder) Stat(name string) (fs.FileInfo, error) { return d.find("stat", name) }

// Open implements [fs.FS].
func (d *folder) Open(name string) (fs.File, error) {
	n, err := d.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.dir {
		return &openDir{node: n}, nil
	}
	return &openFile{node: n, SectionReader: io.NewSectionReader(d.archive, n.offset, n.size)}, nil
}

type openFile struct {
	node *node
	*io.SectionReader
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.node, nil }
func (f *openFile) Close() error               { return nil }

type openDir struct {
	node *node
	next int
}

func (f *openDir) Stat() (fs.FileInfo, error) { return f.node, nil }
func (f *openDir) Close() error               { return nil }
func (f *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.node.name, Err: errors.New("is a directory")}
}

// ReadDir implements [fs.ReadDirFile].
func (f *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	left := f.node.entries[f.next:]
	if n > 0 {
		if len(left) == 0 {
			return nil, io.EOF
		}
		left = left[:min(n, len(left))]
	}
	f.next += len(left)
	return slices.Clone(left), nil
}
