// Package guard turns a guest's access beyond its memory into a trap without a check before
// each access.
//
// In the 2 GiB before a memory, and the 8 GiB and 64 KiB from its first byte, only the memory
// itself is accessible. So whatever 32 bits of address and 32 bits of offset add up to, an access
// outside of the memory faults. [Install] puts a handler before that of Go's runtime. It continues
// the function that faulted at its landing, which is the instruction that leaves it with the trap.
//
// The handler accepts a fault only if the processor raised it, in code registered by [Code], in a
// function with unchecked accesses, at an address from [Reserve]. Any other fault in such code ends
// the process, because Go would unwind the guest's stack. All other faults go to Go's handler. The
// handler uses no stack, calls nothing, and changes only the program counter.
//
// Reserved address space is never unmapped: a released memory is closed and reused.
package guard
