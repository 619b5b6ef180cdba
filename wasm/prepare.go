package wasm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/tetratelabs/wazero"

	"openskill/wasm/amend"
	wbin "openskill/wasm/binary"
	"openskill/wasm/image"
	"openskill/wasm/meter"
	"openskill/wasm/tune"
)

// generation names what checking and metering make of a module. It goes up with
// every change of theirs, so that no cache holds the work of an older one.
const generation = "25"

// Generation names what this program makes of modules: what was compiled by a
// program of another one is of no use to it.
func Generation() string { return generation }

// CompilerVersion is that of the compiler behind the engine: of wazero, and behind it the
// digest of the edits of wasm/edits. Code that one compiler made is not taken for another's.
// Programs and binaries of tests that were built with the same compiler say the same.
func CompilerVersion() string {
	if version, names := edits(); len(names) > 0 {
		return version
	}
	const path = "github.com/tetratelabs/wazero"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == path {
				return d.Version
			}
		}
	}
	return "unknown" // a binary of tests, without edits
}

// CompilerEdits are the names of the edits of wasm/edits that the compiler has: none in a
// program that was built without make.
func CompilerEdits() []string {
	_, names := edits()
	return names
}

// edits asks the copy of wazero that this program was built with; wazero as it is has no
// such method.
func edits() (version string, names []string) {
	if c, ok := wazero.NewRuntimeConfigCompiler().(interface{ Edits() (string, []string) }); ok {
		return c.Edits()
	}
	return "", nil
}

// NotCompiledError is what an engine with Options.CompiledOnly says of a module
// that is not in its cache, or damaged there.
type NotCompiledError struct {
	Digest string // of the module
	Err    error  // why what is there of it is of no use; nil: there is nothing
}

func (e *NotCompiledError) Error() string {
	if e.Err != nil {
		return "wasm: not compiled here: " + e.Digest + ": " + e.Err.Error()
	}
	return "wasm: not compiled here: " + e.Digest
}

// Unwrap gives Err.
func (e *NotCompiledError) Unwrap() error { return e.Err }

// lowUnused is where wasm-ld begins with data, unless the far end of the stack is
// there: no compiled program has an object at a lower address. It is believed of
// runtimes that the host chose, and not of modules from strangers.
const lowUnused = 1024

// pythonStack is how much of its stack a CPython is told of, in bytes. With less, source
// of a usual depth does not compile; with more, what is nested without an end meets the
// limit of the host's stack before its own, which a script can catch.
const pythonStack = 4 << 20

// prepared is what a module's runs need to know beside its code.
type prepared struct {
	// MemoryMin is the memory that an instance begins with, in bytes.
	MemoryMin uint64 `json:"memory_min"`
	// Tables is what the tables and element segments of an instance take, in bytes.
	Tables uint64 `json:"tables"`
	// StartTrap names the trap of an element or data segment that does not fit: by
	// the specification instantiation fails then. wazero ignores such an element
	// segment, and the data segments are laid out ahead.
	StartTrap string `json:"start_trap,omitempty"`
	// Unfit says why instances cannot be frozen; "" if they can.
	Unfit string `json:"unfit,omitempty"`
	// Content is the length of the first content of the memory, in bytes.
	Content int `json:"content"`

	content []byte
	metered []byte
}

// prepare takes a metered module from the cache, or checks and meters what read gives.
// The report of its admission is put into o.report, where that is asked for.
func (e *Engine) prepare(digest string, read func() ([]byte, error), o *CompileOptions) (*prepared, error) {
	path := e.preparedPath(digest, o)
	if o.report == nil {
		if p, ok := loadPrepared(path); ok {
			return p, nil
		}
	}
	if e.o.CompiledOnly || read == nil {
		return nil, &NotCompiledError{Digest: digest}
	}
	module, err := read()
	if err != nil {
		return nil, err
	}
	res, err := e.accept(module, digest, o)
	if o.report != nil {
		*o.report = res.Report
	}
	if err != nil {
		return nil, err
	}
	if o.Trusted {
		tuned, err := tune.Module(res.Module, &tune.Options{Low: lowUnused, Stack: pythonStack})
		if err != nil {
			return nil, fmt.Errorf("wasm: tune: %w", err)
		}
		res.Module = tuned.Module
	}
	p := &prepared{Tables: tableBytes(res.Module)}
	open := image.Prepare(res.Module, res.MaxStack)
	p.Unfit = open.Unfit
	rest, content, outside := initialMemory(open.Module)
	p.content, p.Content = content, len(content)
	switch {
	case misfit(res.Module):
		p.StartTrap = "out of bounds table access"
	case outside:
		p.StartTrap = "out of bounds memory access"
	}
	if len(res.Module.Memories) > 0 {
		p.MemoryMin = uint64(res.Module.Memories[0].Min) * pageSize
	}
	rw, err := meter.Rewrite(rest, open.MaxStack, &meter.Options{Main: mainFunctions(rest)})
	if err != nil {
		return nil, fmt.Errorf("wasm: meter: %w", err)
	}
	last, err := amend.Module(rw.Module, arch())
	if err != nil {
		return nil, fmt.Errorf("wasm: %w", err)
	}
	p.metered = last.Encode()
	if path != "" {
		// A cache that cannot be written costs time, not correctness.
		_ = storePrepared(path, p)
	}
	return p, nil
}

// preparedPath is the place of a module in the cache.
func (e *Engine) preparedPath(digest string, o *CompileOptions) string {
	if e.o.CacheDir == "" {
		return ""
	}
	return filepath.Join(e.o.CacheDir, "metered", PreparedName(digest, o.Trusted))
}

// PreparedName is what the files of the module with a digest are called in a cache, but for
// its code: by the caps that it was held against, too, and by what made them.
func PreparedName(digest string, trusted bool) string {
	h := sha256.Sum256(fmt.Appendf(nil, "openskill metered module %s %s trusted=%t %s\n", generation, arch(), trusted, digest))
	return hex.EncodeToString(h[:])
}

// sum binds the content to the name: a file that came into another's place is not
// believed either.
func sum(path string, rest []byte) []byte {
	h := sha256.New()
	h.Write([]byte(filepath.Base(path)))
	h.Write(rest)
	return h.Sum(nil)
}

// The file is: SHA-256 of its name and the rest, length of the JSON as four bytes,
// JSON, content, module.
func storePrepared(path string, p *prepared) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	head, err := json.Marshal(p)
	if err != nil {
		return err
	}
	rest := binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
	rest = append(append(append(rest, head...), p.content...), p.metered...)
	return replace(path, append(sum(path, rest), rest...))
}

func loadPrepared(path string) (*prepared, bool) {
	if path == "" {
		return nil, false
	}
	b, err := os.ReadFile(path)
	if err != nil || len(b) < sha256.Size+4 {
		return nil, false
	}
	rest := b[sha256.Size:]
	n := binary.LittleEndian.Uint32(rest)
	if !bytes.Equal(sum(path, rest), b[:sha256.Size]) || uint64(n)+4 > uint64(len(rest)) {
		return nil, false // cut off or damaged: it is made again
	}
	p := &prepared{}
	if json.Unmarshal(rest[4:4+n], p) != nil {
		return nil, false
	}
	rest = rest[4+n:]
	if p.Content < 0 || p.Content > len(rest) {
		return nil, false
	}
	p.content, p.metered = rest[:p.Content:p.Content], rest[p.Content:]
	return p, true
}

// mainFunctions are the functions that a run calls, in order: those of a WASI
// command, or of a reactor that is to be run once.
func mainFunctions(m *wbin.Module) []uint32 {
	var fs []uint32
	if m.Start != nil {
		fs = append(fs, *m.Start)
	}
	exported := func(name string, result bool) bool {
		for _, e := range m.Exports {
			if e.Name != name || e.Kind != wbin.ExternFunc {
				continue
			}
			t := m.FuncType(e.Index)
			if len(t.Params) > 0 || len(t.Results) > 1 || len(t.Results) == 1 && (!result || t.Results[0] != wbin.I32) {
				return false
			}
			fs = append(fs, e.Index)
			return true
		}
		return false
	}
	if exported("_start", false) {
		return fs
	}
	n := len(fs)
	exported("_initialize", false)
	if !exported("run", true) {
		return fs[:n]
	}
	return fs
}

// misfit reports whether an active element segment does not fit its table. All
// imports are functions, so that every offset is known here.
func misfit(m *wbin.Module) bool {
	for i := range m.Elems {
		s := &m.Elems[i]
		if s.Mode != wbin.Active || int(s.Table) >= len(m.Tables) {
			continue
		}
		at := uint64(constI32(s.Offset))
		if at+uint64(max(len(s.Funcs), len(s.Exprs))) > uint64(m.Tables[s.Table].Min) {
			return true
		}
	}
	return false
}

// constI32 computes a constant expression of integers, extended ones included.
func constI32(x wbin.ConstExpr) uint32 {
	var stack []uint32
	r := wbin.NewReader(x, 0)
	var in wbin.Instr
	for r.Next(&in) {
		n := len(stack)
		switch in.Op {
		case wbin.OpI32Const:
			stack = append(stack, uint32(in.Const))
		case wbin.OpI32Add:
			stack = append(stack[:n-2], stack[n-2]+stack[n-1])
		case wbin.OpI32Sub:
			stack = append(stack[:n-2], stack[n-2]-stack[n-1])
		case wbin.OpI32Mul:
			stack = append(stack[:n-2], stack[n-2]*stack[n-1])
		}
	}
	if len(stack) == 0 {
		return 0
	}
	return stack[0]
}
