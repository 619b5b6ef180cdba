package python

import (
	_ "embed"

	"openskill/plugins/python/runtimes"
	"openskill/plugins/wasi/sandbox"
	"openskill/wasm/guestfs"
)

//go:embed first.py
var firstScript string

//go:embed program.py
var programScript string

//go:embed boot.py
var bootScript string

// bootFile is what the interpreter runs; it runs the script.
const bootFile = "/openskill/boot.py"

// boot is that file, for a runtime.
func boot(runtime string) guestfs.FS {
	return guestfs.Bytes([]byte(runtimes.Bootstrap(runtime) + firstScript + "\n" + programScript + "\n" + bootScript))
}

// interpreter is about what an interpreter takes before a script does anything, in
// bytes of memory.
const interpreter = 24 << 20

// heap is how many bytes a script's image asks for ahead, given the memory that a
// run may have at most. A run that asks for more than its image has makes the
// instance useless for the next run. All limits that are rounded up to the same
// have the same image, so it must fit the least of them.
func heap(limit uint64) uint64 {
	least := sandbox.RoundUp(limit) / 2
	if least <= interpreter {
		return 0
	}
	return min(least-interpreter, 32<<20)
}
