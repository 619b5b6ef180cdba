package javascript

import (
	"embed"
	"fmt"
	"slices"

	"openskill/plugins/wasi/sandbox"
	"openskill/sdk/skill"
	"openskill/wasm/guestfs"
)

// What runs scripts written for Node: scripts/node-modules.sh makes it before the program is
// built; see prelude/node.
//
//go:embed prelude/built
var built embed.FS

const (
	nodeFile = "/lib/node.js"
	nodeCode = "/lib/node.bin"
	// nodeLoader loads what is compiled; what it loads runs the script.
	nodeLoader = `std.evalScript((({ buffer }) => bjson.read(buffer, 0, buffer.byteLength, bjson.READ_OBJ_BYTECODE))(std.loadFile('/lib/node.bin', { binary: true })), { eval_function: true });`
	// nodeFuel is what loading it may use, in units; it takes a fifth of that.
	nodeFuel = 1 << 33
)

// nodeModules is nil where it was not made.
var nodeModules, _ = built.ReadFile("prelude/built/node.bin")

// HasNode reports whether scripts written for Node run.
func HasNode() bool { return nodeModules != nil }

// nodeFiles are what a script written for Node sees beside the folders.
func nodeFiles() []guestfs.Mount {
	return []guestfs.Mount{
		{Path: preludeFile, FS: guestfs.Bytes([]byte(loader))},
		{Path: "/lib/start.bin", FS: guestfs.Bytes(startCode)},
		{Path: "/lib/rest.bin", FS: guestfs.Bytes(restCode)},
		{Path: nodeFile, FS: guestfs.Bytes([]byte(nodeLoader))},
		{Path: nodeCode, FS: guestfs.Bytes(nodeModules)},
		{Path: "/dev/null", FS: guestfs.Null{}},
		{Path: "/dev/urandom", FS: guestfs.Chance{}},
	}
}

// startNode says how a script written for Node is started: what loads the modules runs up to
// its first read, for all scripts and arguments of a skill, and reads there which it is.
func (r *Runner) startNode(call *skill.Call) *sandbox.Start {
	dir := sandbox.Dir(call)
	words := append([]string{dir + "/" + call.Entry, dir}, call.Args...)
	n := len(words)
	for _, w := range words {
		n += len(w)
	}
	head := fmt.Appendf(make([]byte, 0, 8+n), "%08x", n)
	for _, w := range words {
		head = append(append(head, w...), 0)
	}
	env := []string{"PWD=" + dir, "HOME=/tmp", "TMPDIR=/tmp", "PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
	if call.Code {
		env = append(env, "OPENSKILL_CODE=1")
	}
	return &sandbox.Start{
		Mounts: r.node, Args: append(slices.Clone(r.command), nodeFile), Env: append(env, call.Grants.Env...), Head: head, Fuel: nodeFuel,
	}
}

// process says how a process of a script's run becomes Node.
func (r *Runner) process(*skill.Call, *skill.Program) (*sandbox.Start, error) {
	return &sandbox.Start{
		Mounts: r.node, Args: append(slices.Clone(r.command), nodeFile), Env: []string{"OPENSKILL_PROCESS=1", "PWD=/"}, Fuel: nodeFuel,
	}, nil
}
