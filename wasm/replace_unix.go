//go:build !windows

package wasm

import "github.com/google/renameio/v2"

// replace writes a file whole or not at all.
func replace(path string, b []byte) error { return renameio.WriteFile(path, b, 0o600) }
