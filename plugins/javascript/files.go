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
// path below "/": so that std and os, the names of other versions, are found. What
// reads standard input in os is the prelude's, until the first read.
func files() []guestfs.Mount {
	return []guestfs.Mount{
		{Path: preludeFile, FS: guestfs.Bytes(prelude)},
		{Path: "/dev/urandom", FS: guestfs.Chance{}},
		{Path: "/std", FS: guestfs.Bytes([]byte("export * from 'qjs:std';\n"))},
		{Path: "/os", FS: guestfs.Bytes([]byte("export * from 'qjs:os';\nexport const { read, setReadHandler } = globalThis.os;\n"))},
	}
}
