package javascript

import (
	"bytes"
	"fmt"

	quickjswasi "github.com/paralin/go-quickjs-wasi"

	"openskill/wasm"
	"openskill/wasm/binary"
)

// The module as its authors built it. Other bytes are refused, because derive
// knows four functions of these by their number.
const upstreamDigest = "sha256:f9742952f9989b1558c4a79bedfb351d6ca33ff22a41e886517cae5196e6d783"

// The C stack of the module that runs. Upstream gives it 64 KiB with the static
// data below and no end: the 300th nested call of a script overwrites them. It is
// moved to memory of its own, and QuickJS's check, which is compiled in but has
// no limit in this build, gets one.
const (
	stackSize  = 512 << 10
	stackUsed  = 256 << 10 // what scripts may use of it; the rest is for C code that nests without asking
	stackPages = stackSize >> 16
)

// unlimited is the instructions "i32.const 0; i32.store offset=128": no limit of
// the stack, as the two functions leave it.
var unlimited = []byte{0x41, 0x00, 0x36, 0x02, 0x80, 0x01}

// setters are the functions with those instructions: JS_NewRuntime2 and
// JS_SetMaxStackSize.
var setters = [...]uint32{246, 359}

// js_os_setTimeout makes one millisecond of any shorter time: the rest of "if (delay <= 0)" is
// "i64.const 1" stored. The event loop of scripts for Node asks for none with each turn, and
// slept a millisecond for it.
const setTimeout = 116

var (
	shortest = []byte{0x42, 0x00, 0x55, 0x0d, 0x00, 0x20, 0x05, 0x42, 0x01, 0x37, 0x03, 0x08}
	none     = []byte{0x42, 0x00, 0x55, 0x0d, 0x00, 0x20, 0x05, 0x42, 0x00, 0x37, 0x03, 0x08}
)

// main ends by freeing each object, which takes longer than most scripts, and the image is put
// back anyway: js_std_free_handlers(rt), JS_FreeContext(ctx), JS_FreeRuntime(rt), in two places.
// What files have not written is written by exit.
const mainFunction = 28

var frees = []byte{
	0x20, 0x16, 0x10, 0xb9, 0x80, 0x80, 0x80, 0x00,
	0x20, 0x04, 0x10, 0xe3, 0x82, 0x80, 0x80, 0x00,
	0x20, 0x16, 0x10, 0xff, 0x81, 0x80, 0x80, 0x00,
}

// runtime is the module that runs scripts.
type runtime struct {
	module []byte
	digest string // of module
	err    error
}

// newRuntime makes the module out of the one that the dependency embeds.
func newRuntime() runtime {
	module, err := derive(quickjswasi.QuickJSWASM)
	if err != nil {
		return runtime{err: fmt.Errorf("javascript: %w", err)}
	}
	return runtime{module: module, digest: wasm.Digest(module)}
}

// derive limits the stack of QuickJS, lets timers wait for 0 ms, and leaves out freeing at the end.
func derive(upstream []byte) ([]byte, error) {
	if got := wasm.Digest(upstream); got != upstreamDigest {
		return nil, fmt.Errorf("the module is %s, not %s", got, upstreamDigest)
	}
	m, err := binary.Decode(upstream, nil)
	if err != nil {
		return nil, err
	}
	// What malloc knows as its own ends where the memory did, and grows after
	// what memory.size says: the pages between are nobody's.
	bottom := m.Memories[0].Min << 16
	m.Memories[0].Min += stackPages
	m.Globals[0].Init = append(i32Const(bottom+stackSize), byte(binary.OpEnd))
	limited := append(i32Const(bottom+stackSize-stackUsed), unlimited[2:]...)
	imported := m.Imported(binary.ExternFunc)
	for _, f := range setters {
		code := &m.Codes[f-imported]
		if n := bytes.Count(code.Body, unlimited); n != 1 {
			return nil, fmt.Errorf("function %d sets the limit of the stack %d times", f, n)
		}
		code.Body = bytes.Replace(code.Body, unlimited, limited, 1)
	}
	code := &m.Codes[setTimeout-imported]
	if bytes.Count(code.Body, shortest) != 1 {
		return nil, fmt.Errorf("function %d has another shortest time", setTimeout)
	}
	code.Body = bytes.Replace(code.Body, shortest, none, 1)
	code = &m.Codes[mainFunction-imported]
	if n := bytes.Count(code.Body, frees); n != 2 {
		return nil, fmt.Errorf("function %d frees all objects %d times", mainFunction, n)
	}
	code.Body = bytes.ReplaceAll(code.Body, frees, bytes.Repeat([]byte{byte(binary.OpNop)}, len(frees)))
	m.Customs = nil
	return m.Encode(), nil
}

func i32Const(v uint32) []byte {
	return binary.AppendS64([]byte{byte(binary.OpI32Const)}, int64(v))
}
