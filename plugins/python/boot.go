package python

import (
	"bytes"
	"embed"
	"strings"

	"openskill/plugins/python/runtimes"
	"openskill/plugins/wasi/sandbox"
	"openskill/wasm"
	"openskill/wasm/guestfs"
)

//go:embed first.py
var firstScript string

//go:embed waits.py
var waitsScript string

//go:embed glibc.py
var glibcScript string

//go:embed hashes.py
var hashesScript string

//go:embed modes.py
var modesScript string

//go:embed hooks.py
var hooksScript string

//go:embed network.py
var networkScript string

//go:embed threads.py
var threadsScript string

//go:embed program.py
var programScript string

//go:embed boot.py
var bootScript string

// modules are those of lib: what scripts import, and WASI leaves out.
//
//go:embed lib/*.py
var modules embed.FS

// bootFile is what the interpreter runs; it runs the script.
const bootFile = "/openskill/boot.py"

// Prelude is what scripts begin with, so that WASI does as Linux does: those that are
// compiled ahead of time, too.
func Prelude() string {
	return waitsScript + "\n" + glibcScript + "\n" + modesScript + "\n" + hashesScript + "\n"
}

// boot is that file, for a runtime.
func boot(runtime string) []byte {
	return []byte(runtimes.Bootstrap(runtime) + Prelude() + firstScript + "\n" + hooksScript + "\n" + networkScript + "\n" + threadsScript + "\n" + programScript + "\n" + bootScript)
}

// own mounts the boot file and the modules, and names a start that has them, on a runtime
// whose module has this digest.
func own(runtime, module string) (mounts []guestfs.Mount, name string) {
	files := [][]byte{boot(runtime)}
	mounts = append(mounts, guestfs.Mount{Path: bootFile, FS: guestfs.Bytes(files[0])})
	list, err := modules.ReadDir("lib")
	if err != nil {
		panic(err) // it is part of the program
	}
	for _, f := range list {
		b, err := modules.ReadFile("lib/" + f.Name())
		if err != nil {
			panic(err)
		}
		files = append(files, b)
		mounts = append(mounts, guestfs.Mount{Path: "/openskill/lib/" + f.Name(), FS: guestfs.Bytes(b)})
	}
	return mounts, started(module, files...)
}

// started names what a start begins with, by digest of the module and of the files of
// openSkill: a recording of another one is not made again.
func started(module string, files ...[]byte) string {
	return module + strings.TrimPrefix(wasm.Digest(bytes.Join(files, nil)), "sha256")[:17]
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
