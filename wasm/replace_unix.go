//go:build !windows

package wasm

import (
	"path/filepath"

	"github.com/google/renameio/v2"
)

// replace writes a file whole or not at all. What is not whole yet lies beside it,
// where the next start finds what a killed writer left.
func replace(path string, b []byte) error {
	return renameio.WriteFile(path, b, 0o600, renameio.WithTempDir(filepath.Dir(path)))
}
