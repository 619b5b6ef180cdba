package javascript

import (
	_ "embed"

	"openskill/wasm/guestfs"
)

//go:embed prelude.js
var prelude []byte

// preludeFile is loaded before the script.
const preludeFile = "/lib/prelude.js"

// files are what a guest sees beside the folders. QuickJS-ng calls its modules
// qjs:std and qjs:os and takes any other name that does not begin with a dot for a
// path in the working folder: so that std and os, the names of other versions, are found. What
// reads standard input in os is the prelude's, until the first read.
func files() []guestfs.Mount {
	return append(modules("/", false),
		guestfs.Mount{Path: preludeFile, FS: guestfs.Bytes(prelude)},
		guestfs.Mount{Path: "/dev/urandom", FS: guestfs.Chance{}})
}

// modules are std and os, in the working folder.
func modules(folder string, unlisted bool) []guestfs.Mount {
	return []guestfs.Mount{
		{Path: folder + "std", Unlisted: unlisted, FS: guestfs.Bytes([]byte("export * from 'qjs:std';\n"))},
		{Path: folder + "os", Unlisted: unlisted, FS: guestfs.Bytes([]byte("export * from 'qjs:os';\nexport const { read, setReadHandler } = globalThis.os;\n"))},
	}
}
