package wasm_test

import (
	"context"
	"os"

	"openskill/wasm"
)

// compileFile compiles the module in a file, in a process that may be killed.
func compileFile(path string) error {
	b, err := os.ReadFile(path) //nolint:gosec // of the test's own
	if err != nil {
		return err
	}
	e, err := wasm.Open(nil)
	if err != nil {
		return err
	}
	defer e.Close() //nolint:errcheck // the process ends
	_, err = e.Compile(context.Background(), b, nil)
	return err
}
