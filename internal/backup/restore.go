package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"openskill/sdk/skill"
)

// Restore makes a folder of an archive. The folder must not be there, or be empty: what a
// host has is never replaced. It appears whole, after every file was compared with the
// index and check, if there is one, was content with the folder as it will be; or not at
// all. Where root makes it of an empty folder of another user, it stays that user's.
// Errors of the archive are *skill.Error.
func Restore(ctx context.Context, r io.Reader, dir string, check func(ctx context.Context, dir string, x *Index) error) (*Index, error) {
	if err := vacant(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("backup.Restore: %w", err)
	}
	staging, err := os.MkdirTemp(filepath.Dir(dir), ".restoring-")
	if err != nil {
		return nil, fmt.Errorf("backup.Restore: %w", err)
	}
	defer os.RemoveAll(staging)
	x, err := extract(ctx, r, staging)
	if err == nil && check != nil {
		err = check(ctx, staging, x)
	}
	if err == nil {
		err = settle(staging)
	}
	if err != nil {
		return nil, err
	}
	if err := vacant(dir); err != nil { // somebody may have begun meanwhile
		return nil, err
	}
	if err := keepOwner(dir, staging); err != nil {
		return nil, fmt.Errorf("backup.Restore: %w", err)
	}
	_ = os.Remove(dir) // an empty one is in the way on some systems, and one that is not stays
	if err := os.Rename(staging, dir); err != nil {
		return nil, fmt.Errorf("backup.Restore: %w", err)
	}
	return x, syncDir(filepath.Dir(dir))
}

func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return &skill.Error{Op: "backup.Restore", Code: skill.Conflict, Message: "the state path exists and is not a readable directory", Err: err}
	}
	return &skill.Error{Op: "backup.Restore", Code: skill.Conflict, Message: "the state folder is not empty: restore into a new one, or move this one away"}
}

func broken(format string, args ...any) error {
	return &skill.Error{Op: "backup.Restore", Code: skill.InvalidArgument, Message: "invalid backup: " + fmt.Sprintf(format, args...)}
}

// extract writes the files of an archive, and gives its index once all agrees with it.
func extract(ctx context.Context, r io.Reader, dir string) (*Index, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("backup.Restore: %w", err)
	}
	defer root.Close()
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, broken("not a gzip file")
	}
	t := tar.NewReader(z)
	found := map[string]File{}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil, broken("%s is missing; the file is truncated or not a backup", indexName)
		}
		if err != nil {
			return nil, unread(err)
		}
		if h.Name == indexName {
			return conclude(t, z, h, found)
		}
		if h.Typeflag != tar.TypeReg || !fs.ValidPath(h.Name) || strings.ContainsFunc(h.Name, unusual) || sparse(h) {
			return nil, broken("unexpected entry %q", skill.CleanText(h.Name, 100))
		}
		if _, twice := found[h.Name]; twice {
			return nil, broken("duplicate entry %s", skill.CleanText(h.Name, 100))
		}
		if found[h.Name], err = unpack(root, t, h); err != nil {
			return nil, err
		}
	}
}

// sparse reports whether an entry has holes, which unpack to any size.
func sparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

func unusual(r rune) bool { return r == '\\' || r == ':' || !unicode.IsPrint(r) }

func unread(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return broken("it is cut off")
	}
	return broken("cannot read it: %v", err)
}

func unpack(root *os.Root, t *tar.Reader, h *tar.Header) (File, error) {
	if err := root.MkdirAll(path.Dir(h.Name), 0o700); err != nil {
		return File{}, fmt.Errorf("backup.Restore: %w", err)
	}
	f, err := root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(h.Mode)&0o700|0o600)
	if err != nil {
		return File{}, fmt.Errorf("backup.Restore: %w", err)
	}
	sum := sha256.New()
	source := &reads{r: t}
	n, err := io.Copy(io.MultiWriter(f, sum), source)
	err = errors.Join(err, f.Sync(), f.Close())
	switch {
	case source.err != nil:
		return File{}, unread(source.err)
	case err != nil: // this disk's
		return File{}, fmt.Errorf("backup.Restore: %w", err)
	}
	return File{Path: h.Name, Size: n, Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil))}, nil
}

// reads remembers that it was the source that failed.
type reads struct {
	r   io.Reader
	err error
}

func (r *reads) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// conclude reads the index, and holds what was found to it.
func conclude(t *tar.Reader, z *gzip.Reader, h *tar.Header, found map[string]File) (*Index, error) {
	if h.Size > maxIndex {
		return nil, broken("%s has %d bytes", indexName, h.Size)
	}
	b, err := io.ReadAll(t)
	if err != nil {
		return nil, unread(err)
	}
	var x Index
	if err := json.Unmarshal(b, &x); err != nil {
		return nil, broken("%s is not as a host writes it", indexName)
	}
	if x.Format > Format || x.Format < 1 {
		return nil, broken("unsupported format %d, this program reads up to %d: use the release that created it, or a newer one", x.Format, Format)
	}
	for _, f := range x.Files {
		if got := found[f.Path]; got != f {
			return nil, broken("%s is missing or damaged", skill.CleanText(f.Path, 100))
		}
		delete(found, f.Path)
	}
	if len(found) > 0 {
		return nil, broken("it has files that are not listed in %s", indexName)
	}
	if _, err := t.Next(); !errors.Is(err, io.EOF) {
		return nil, broken("it has data after %s", indexName)
	}
	if _, err := io.Copy(io.Discard, z); err != nil { // its checksum is at the end
		return nil, unread(err)
	}
	return &x, nil
}

// settle waits until the disk has the folders. Files were waited for one by one.
func settle(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return syncDir(name)
	})
}
