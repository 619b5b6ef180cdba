package wasm

import (
	"context"
	"errors"
	"fmt"

	"openskill/wasm/guard"
)

// farLoad exports a _start that loads from the last address that 32 bits reach.
var farLoad = []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x0a\x01\x06_start\x00\x00\x0a\x0a\x01\x08\x00\x41\x7f\x28\x02\x00\x1a\x0b")

// TryGuardPages runs a guest that must trap by a fault, and reports why that fails. The process may
// crash, so call it in one that may.
func TryGuardPages() error {
	e, err := Open(&Options{GuardPages: true})
	if err != nil {
		return err
	}
	defer e.Close() // nothing of it is kept
	before := guard.Faults()
	m, err := e.Compile(context.Background(), farLoad, nil)
	if err != nil {
		return err
	}
	for range 2 {
		out, err := m.Run(context.Background(), &Run{})
		switch {
		case err != nil:
			return err
		case out.Ended != Trapped || out.Trap != "out of bounds memory access":
			return fmt.Errorf("wasm: an access beyond a memory ended with %s %s", out.Ended, out.Trap)
		}
	}
	if guard.Faults() != before+2 {
		return errors.New("wasm: an access beyond a memory did not fault")
	}
	return nil
}
