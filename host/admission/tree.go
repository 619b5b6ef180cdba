package admission

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/cases"

	"openskill/sdk/skill"
)

// tree is the folder that an upload becomes. Everything is written through an
// os.Root, and only where nothing was before.
type tree struct {
	o    *Options
	root *os.Root
	fold cases.Caser

	seen                         map[string]*node // by folded path
	claimedFiles, claimedFolders int
	folders                      []string // in the order in which they were made
	made                         map[string]bool
	files                        []File
	entries                      int    // of a tar, so far
	claimedRoot                  bool   // by an entry ./
	leftOut                      int    // files of macOS
	special                      int    // entries with bits that are dropped
	buf                          []byte // of copy

	ctx      context.Context //nolint:containedctx // of the one upload that this tree is made for
	sent     int64           // bytes of what was sent
	unpacked int64           // bytes so far
}

func newTree(ctx context.Context, o *Options, folder string) (*tree, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	return &tree{
		o: o, root: root, fold: cases.Fold(), seen: map[string]*node{}, made: map[string]bool{},
		files: []File{}, ctx: ctx,
	}, nil
}

func (t *tree) close() { _ = t.root.Close() } // there is nothing to lose, files are closed one by one

// ratioFrom is how many unpacked bytes have no ratio: small things compress well.
const ratioFrom = 4 << 20

// take counts unpacked bytes before they are used.
func (t *tree) take(n int64) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	t.unpacked += n
	return t.fits(t.unpacked)
}

// fits holds a number of unpacked bytes against the caps.
func (t *tree) fits(n int64) error {
	switch {
	case n > t.o.MaxUnpacked:
		return reject("", "the files have more than %d bytes together", t.o.MaxUnpacked)
	case n > ratioFrom && (n-1)/max(t.sent, 1) >= t.o.MaxRatio:
		return reject("", "the archive unpacks to more than %d times its size", t.o.MaxRatio)
	}
	return nil
}

// write makes a file of exactly size bytes, but of those of macOS. The name is clean and
// claimed.
func (t *tree) write(name string, from io.Reader, size int64) error {
	if ofFinder(name) {
		t.leftOut++
		n, err := t.copy(io.Discard, io.LimitReader(from, size+1), name)
		return errors.Join(err, exactly(name, n, size))
	}
	if err := t.makeFolder(parent(name)); err != nil {
		return err
	}
	f, err := t.root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := t.copy(f, io.LimitReader(from, size+1), name)
	if err == nil {
		err = exactly(name, n, size)
	}
	if err == nil {
		err = f.Chmod(0o444)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	t.files = append(t.files, File{Path: name, Size: size})
	return nil
}

// move makes a file of one that was received, as write does, without a copy of it. A file of
// another file system, or without a name, is copied.
func (t *tree) move(name string, f *os.File, size int64) error {
	if err := t.makeFolder(parent(name)); err != nil {
		return err
	}
	to := filepath.Join(t.root.Name(), filepath.FromSlash(name))
	if os.Rename(f.Name(), to) != nil {
		return t.write(name, io.NewSectionReader(f, 0, size), size)
	}
	if err := t.take(size); err != nil {
		return err
	}
	t.files = append(t.files, File{Path: name, Size: size})
	return f.Chmod(0o444)
}

func exactly(name string, n, size int64) error {
	switch {
	case n > size:
		return reject(name, "the entry has more than the %d bytes it announces", size)
	case n < size:
		return reject(name, "the entry announces %d bytes but has %d", size, n)
	}
	return nil
}

// copy copies, and counts what it copies against the caps.
func (t *tree) copy(to io.Writer, from io.Reader, name string) (int64, error) {
	if t.buf == nil {
		t.buf = make([]byte, 64<<10)
	}
	for total := int64(0); ; {
		n, err := from.Read(t.buf)
		if n > 0 {
			if err := t.take(int64(n)); err != nil {
				return total, err
			}
			if _, err := to.Write(t.buf[:n]); err != nil {
				return total, err
			}
			total += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return total, nil
		case err != nil:
			return total, damaged(name, err)
		}
	}
}

// damaged tells the archive's fault from the host's: what decoders say is the
// archive's, but files that cannot be read and contexts that end are not.
func damaged(name string, err error) error {
	var host *fs.PathError
	if _, ok := errors.AsType[*refusalError](err); errors.As(err, &host) || ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return reject(name, "the archive is damaged or truncated here: %s", skill.CleanText(err.Error(), 120))
}

// makeFolder makes a folder and those above it.
func (t *tree) makeFolder(name string) error {
	if name == "" || t.made[name] {
		return nil
	}
	if err := t.makeFolder(parent(name)); err != nil {
		return err
	}
	if err := t.root.Mkdir(filepath.FromSlash(name), 0o700); err != nil {
		return err
	}
	t.made[name] = true
	t.folders = append(t.folders, name)
	return nil
}

func (t *tree) has(file string) bool {
	return slices.ContainsFunc(t.files, func(f File) bool { return f.Path == file })
}

// read gives a file, or one byte more than most of it.
func (t *tree) read(name string, most int64) ([]byte, error) {
	f, err := t.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(info.Size(), most+1))
	_, err = io.ReadFull(f, b)
	return b, err
}

// moved says that the folder top of the tree is the tree now, and where it is.
func (t *tree) moved(folder, top string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	t.root = root
	for i := range t.files {
		t.files[i].Path = strings.TrimPrefix(t.files[i].Path, top+"/")
	}
	folders := t.folders[:0]
	for _, name := range t.folders {
		if name != top {
			folders = append(folders, strings.TrimPrefix(name, top+"/"))
		}
	}
	t.folders = folders
	return nil
}

// seal makes the folders unwritable, and closes. Nothing is written through to the disk
// yet: whoever keeps the folder does that, and a dry run need not.
func (t *tree) seal() error {
	for _, name := range slices.Backward(t.folders) {
		if err := t.root.Chmod(filepath.FromSlash(name), 0o555); err != nil {
			return err
		}
	}
	return errors.Join(t.root.Chmod(".", 0o755), t.root.Close())
}
