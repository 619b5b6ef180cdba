package javascript

import (
	_ "embed"

	"openskill/wasm/guestfs"
)

// What stands before each script, compiled from the JavaScript beside it: parsing that takes ten times as long as
// all else of a start. TestPreludeIsCompiled holds both against the sources, and makes them with -update.
var (
	//go:embed prelude/start.bin
	startCode []byte
	//go:embed prelude/rest.bin
	restCode []byte
)

// preludeFile is loaded before the script. It loads what is compiled.
const (
	preludeFile = "/lib/prelude.js"
	loader      = `{
  const { std, bjson } = globalThis;
  const { buffer } = std.loadFile('/lib/start.bin', { binary: true });
  std.evalScript(bjson.read(buffer, 0, buffer.byteLength, bjson.READ_OBJ_BYTECODE), { eval_function: true });
}
`
)

// files are what a guest sees beside the folders. QuickJS-ng calls its modules
// qjs:std and qjs:os and takes any other name that does not begin with a dot for a
// path in the working folder: so that std and os, the names of other versions, are found. What
// reads standard input in os is the prelude's, until the first read.
func files() []guestfs.Mount {
	return append(modules("/", false),
		guestfs.Mount{Path: preludeFile, FS: guestfs.Bytes([]byte(loader))},
		guestfs.Mount{Path: "/lib/start.bin", FS: guestfs.Bytes(startCode)},
		guestfs.Mount{Path: "/lib/rest.bin", FS: guestfs.Bytes(restCode)},
		guestfs.Mount{Path: "/dev/urandom", FS: guestfs.Chance{}})
}

// modules are std and os, in the working folder.
func modules(folder string, unlisted bool) []guestfs.Mount {
	return []guestfs.Mount{
		{Path: folder + "std", Unlisted: unlisted, FS: guestfs.Bytes([]byte("export * from 'qjs:std';\n"))},
		{Path: folder + "os", Unlisted: unlisted, FS: guestfs.Bytes([]byte("export * from 'qjs:os';\nexport const { read, setReadHandler } = globalThis.os;\n"))},
	}
}
