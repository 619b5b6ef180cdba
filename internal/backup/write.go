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
)

// Part is what goes into an archive: a file or a folder with all that is in it.
type Part struct {
	Name string // its path in the archive, with slashes
	From string // where it is; a folder that is not there has nothing in it
}

// Write writes an archive of the parts. x is what is known of it; the files are added to
// it. Links and devices are left out: a host makes none. A file must not change meanwhile.
func Write(ctx context.Context, w io.Writer, x *Index, parts []Part) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, p := range parts {
		if err := addPart(ctx, t, x, p); err != nil {
			return fmt.Errorf("backup.Write: %w", err)
		}
	}
	x.Format = Format
	b, err := json.MarshalIndent(x, "", " ")
	if err != nil {
		return fmt.Errorf("backup.Write: %w", err)
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: indexName, Size: int64(len(b)), Mode: 0o600, ModTime: x.Made}
	if err = t.WriteHeader(h); err == nil {
		_, err = t.Write(b)
	}
	if err = errors.Join(err, t.Close(), z.Close()); err != nil {
		return fmt.Errorf("backup.Write: %w", err)
	}
	return nil
}

func addPart(ctx context.Context, t *tar.Writer, x *Index, p Part) error {
	return filepath.WalkDir(p.From, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name == p.From {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(p.From, name)
		if err != nil {
			return err
		}
		f, err := addFile(t, name, path.Join(p.Name, filepath.ToSlash(rel)))
		if err != nil {
			return err
		}
		x.Files = append(x.Files, f)
		return nil
	})
}

func addFile(t *tar.Writer, from, to string) (File, error) {
	f, err := os.Open(from)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return File{}, err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: to, Size: info.Size(), Mode: int64(info.Mode().Perm() & 0o700), ModTime: info.ModTime()}
	if err := t.WriteHeader(h); err != nil {
		return File{}, err
	}
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(t, sum), f, info.Size()); err != nil {
		return File{}, fmt.Errorf("%s changed while it was read: %w", to, err)
	}
	return File{Path: to, Size: info.Size(), Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil))}, nil
}
