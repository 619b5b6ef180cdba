package wasm

import (
	"time"

	"openskill/wasm/wasi"
)

// Ended says how a run ended.
type Ended int

// The ways to end. Exactly one holds for a run.
const (
	Returned       Ended = iota // the entry function returned
	Exited                      // the guest called proc_exit, with ExitCode
	Trapped                     // an instruction failed; Trap names it
	OutOfFuel                   // Limits.Fuel was used up
	OutOfTime                   // Limits.Timeout or the deadline of the context passed
	OutOfMemory                 // it was refused memory, and failed after that
	OutOfTable                  // a table grew beyond its cap
	OutOfStack                  // calls were nested too deeply
	OutputOverflow              // more output than Limits.Output
	Cancelled                   // the context was cancelled
	Diverged                    // a replay asked for what its recording has not
)

var endedNames = [...]string{
	"returned", "exited", "trapped", "out of fuel", "out of time", "out of memory",
	"out of table", "out of stack", "output overflow", "cancelled", "diverged",
}

// String gives the name for logs.
func (e Ended) String() string { return endedNames[e] }

// Outcome is what a run left behind.
type Outcome struct {
	Ended    Ended
	ExitCode uint32 // of proc_exit; 0 otherwise
	Trap     string // the kind of trap, such as "unreachable"; no text of the guest

	Stdout, Stderr []byte       // what was kept; nil where Run names a writer
	Fuel           uint64       // units used; of an image's run, from the first read of input on, or by the start-up that it did not outlast
	StartFuel      uint64       // units that an image's start-up used; 0 if all of it was start-up
	MemoryPeak     uint64       // bytes of linear memory, of a plug-in's blocks and of files in scratch space, at the most of all together
	Started        int          // processes that the run started
	Ran            []Ran        // the first of them
	Plugin         PluginResult // what a plug-in of Extism set, however it ended
	Shared         bool         // the run began in an image; false: all of it was its own
	State          []byte       // of the memory, after a run with Call.KeepState that ended by itself where another one can go on; nil: none
	Instantiate    time.Duration
	Total          time.Duration
}

// PluginResult is the output and the error of a plug-in of Extism: bytes of the guest's.
type PluginResult = wasi.PluginResult

// Ran is a process that a run started.
type Ran = wasi.Ran

// Limits bound a run. Zero fields mean the defaults; there is no "unlimited".
type Limits struct {
	Fuel    uint64        // units; 10,000,000,000
	Memory  uint64        // bytes of linear memory, of a plug-in's blocks and of files in scratch space together, rounded down to pages of 64 KiB, at most 2 GiB; 256 MiB
	Timeout time.Duration // wall time from Run's call; 15 s
	Output  int64         // bytes of standard output, and again of standard error; 1 MiB
	Stack   uint64        // bytes of the host's stack for nested calls; 10 MiB, to which a stack above 5 MiB doubles
	Files   int           // descriptors open at once; 128
}

func (l Limits) withDefaults() Limits {
	def(&l.Fuel, 10_000_000_000)
	def(&l.Memory, 256<<20)
	def(&l.Timeout, 15*time.Second)
	def(&l.Output, 1<<20)
	def(&l.Stack, 10<<20)
	def(&l.Files, 128)
	l.Memory = min(l.Memory&^(pageSize-1), mostMemory)
	return l
}

func def[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

const pageSize = 1 << 16

// mostMemory is how much memory any guest gets. wazero v1.12.0 on amd64 takes an
// address that is a constant of 2^31 or more for a negative one, once it knows that
// the address is inside the memory: the guest then reads and writes 4 GiB below, in
// whatever the process has there. In a memory of 2 GiB no such address is inside.
const mostMemory = 1 << 31
