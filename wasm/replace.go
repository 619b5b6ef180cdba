package wasm

import (
	"errors"
	"os"
	"path/filepath"
)

// replace writes a file beside its place and renames it. After a crash the name
// may lead to less than the whole; the hash in the file tells.
func replace(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
