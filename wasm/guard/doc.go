// Package guard has guests trap by a fault in the place of a check before each access.
//
// A memory lies in 2 GiB before it and 8 GiB and 64 KiB from its first byte on, of which
// nothing but the memory itself can be accessed: whatever 32 bits of address and 32 bits of
// offset come to, the processor faults outside of it. The code of guests needs no checks then,
// if a fault in it becomes the guest's trap. So [Install] puts a handler before that of Go's
// runtime, which has the function that faulted go on at its landing: the instruction that leaves
// it with the trap.
//
// The handler takes a fault only if it was the processor's, in code that [Code] was told of, in a
// function that has unchecked accesses, at an address that [Reserve] gave out. Another fault of
// such code ends the process: Go would unwind the guest's stack. All others are Go's, as ever. It
// uses no stack and calls nothing, and changes nothing but where the function goes on.
//
// Address space that was given out once stays reserved for ever: what comes back is closed, and
// given out again.
package guard
