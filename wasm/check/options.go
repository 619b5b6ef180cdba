package check

import (
	"time"

	"openskill/wasm/binary"
)

// Options say what is accepted. The zero value accepts WebAssembly 2.0 with
// extended constant expressions, within the default caps, and no import at all.
type Options struct {
	// Digest is that of the module, where the caller has computed it; "": it is computed.
	Digest string

	// Limits are the caps of the decoder; nil for its defaults.
	Limits *binary.Limits

	// Depth caps the nesting of blocks in a function; 0 means 4,096.
	Depth int
	// BranchTargets caps one br_table; 0 means 16,384.
	BranchTargets uint32
	// Branches caps the instructions of all functions together for which a
	// rewriter keeps a record or puts in code: blocks, loops, ifs, branches, calls,
	// and bulk operations; targets of br_table count as a fourth. 0 means 2,000,000.
	// Compilers write one in twenty bytes.
	Branches uint64
	// CompileFunction and CompileModule cap what the compiler is estimated to spend
	// on one function and on all of them; 0 means 2 and 10 seconds. The estimate is
	// within a factor of three of one core of 2025.
	CompileFunction, CompileModule time.Duration
	// CompileMemory caps the memory that it is estimated to take, in bytes; 0 means
	// 512 MiB.
	CompileMemory int64
	// TableMin caps the initial entries of all tables together; 0 means 1,000,000.
	TableMin uint64
	// MemoryPages caps the initial memory, in pages of 64 KiB; 0 means 65,536.
	MemoryPages uint64

	// TailCalls and Exceptions accept these proposals. They are for the passes
	// that know how to deal with them, and off by default.
	TailCalls, Exceptions bool

	// Imports gives the type of a function that a module may import. nil denies all.
	Imports func(module, name string) (binary.FuncType, bool)
	// AnyImport accepts imports of every kind and type, unseen: for tests of the
	// engine, where modules are linked with each other.
	AnyImport bool
	// Reserved is a prefix that no export's name may have: names that later
	// passes add. "" reserves nothing.
	Reserved string
	// Workers is how many functions are validated at once; 0 means 2.
	Workers int
}

func (o *Options) withDefaults() Options {
	var r Options
	if o != nil {
		r = *o
	}
	if r.Depth == 0 {
		r.Depth = 4096
	}
	if r.BranchTargets == 0 {
		r.BranchTargets = 16384
	}
	if r.Branches == 0 {
		r.Branches = 2_000_000
	}
	if r.CompileFunction == 0 {
		r.CompileFunction = 2 * time.Second
	}
	if r.CompileModule == 0 {
		r.CompileModule = 10 * time.Second
	}
	if r.CompileMemory == 0 {
		r.CompileMemory = 512 << 20
	}
	if r.TableMin == 0 {
		r.TableMin = 1_000_000
	}
	if r.MemoryPages == 0 {
		r.MemoryPages = 65536
	}
	if r.Workers == 0 {
		r.Workers = 2
	}
	return r
}
