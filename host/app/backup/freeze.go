package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// tries is how often a folder is copied again because it changed meanwhile.
const tries = 20

// Freeze copies a folder as it is at one moment, though others work in it: a folder in
// which a file of the name record says what is so of the rest is copied again until that
// file was the same before and after. Files are linked where the file system can, so that
// nothing is copied; they must be replaced when they change, not written into. Names that
// begin with a dot are left out.
func Freeze(ctx context.Context, from, to, record string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for range tries {
		before, err := os.ReadFile(filepath.Join(from, record))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		whole := err == nil
		err = freezeOnce(ctx, from, to, record, whole)
		if !whole {
			return err
		}
		after, late := os.ReadFile(filepath.Join(from, record))
		if err == nil && late == nil && bytes.Equal(before, after) {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := errors.Join(os.RemoveAll(to), ctx.Err()); err != nil {
			return err
		}
		if errors.Is(late, fs.ErrNotExist) {
			return nil // all of it is gone
		}
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
	}
	return fmt.Errorf("backup: %s changes faster than it can be copied", filepath.Base(from))
}

// freezeOnce copies what is in a folder. In one with a record everything belongs to it;
// in others each folder may have its own, and may be gone by now.
func freezeOnce(ctx context.Context, from, to, record string, whole bool) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) && !whole {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case !whole && e.Name()[0] == '.':
		case e.IsDir() && whole:
			err = linkAll(source, target)
		case e.IsDir():
			err = Freeze(ctx, source, target, record)
		case e.Type().IsRegular():
			if err = link(source, target); !whole && errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// linkAll copies a folder that nobody changes: it is there whole, or goes away.
func linkAll(from, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case d.Type().IsRegular():
			return link(name, target)
		}
		return nil
	})
}

// link gives a file a second name, or copies it where that cannot be.
func link(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()&0o700|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
