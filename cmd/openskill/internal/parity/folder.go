package parity

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// The bounds of a folder that is copied.
const (
	maxFiles  = 10_000
	maxFolder = 512 << 20 // bytes
)

var errFolder = fmt.Errorf("the folder has more than %d files, or %d MiB", maxFiles, maxFolder>>20)

// each calls f for every regular file of a folder. Links are left out: the sandbox
// does not follow them, and a copy must not either.
func each(folder string, f func(name string, size int64) error) error {
	files, bytes := 0, int64(0)
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "__pycache__" {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if files, bytes = files+1, bytes+info.Size(); files > maxFiles || bytes > maxFolder {
			return errFolder
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		return f(filepath.ToSlash(name), info.Size())
	})
}

// snapshot gives the SHA-256 of every file.
func snapshot(folder string) (map[string]string, error) {
	all := map[string]string{}
	err := each(folder, func(name string, _ int64) error {
		f, err := os.Open(filepath.Join(folder, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return err
		}
		all[name] = hex.EncodeToString(h.Sum(nil))
		return nil
	})
	return all, err
}

// changed gives what is new or other than it was.
func changed(before, after map[string]string) map[string]string {
	all := map[string]string{}
	for name, sum := range after {
		if before[name] != sum {
			all[name] = sum
		}
	}
	return all
}

// copyFolder makes a copy with the files of a case.
func copyFolder(from, to string, files map[string]string) error {
	err := each(from, func(name string, _ int64) error {
		source := filepath.Join(from, filepath.FromSlash(name))
		info, err := os.Stat(source)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		return write(filepath.Join(to, filepath.FromSlash(name)), b, info.Mode().Perm()|0o600)
	})
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := write(filepath.Join(to, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func write(path string, b []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, b, mode)
}
