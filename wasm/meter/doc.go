// Package meter rewrites a module so that it counts what it does. One counter is meter, deadline and preemption point.
//
// The fuel that is left of the current slice is a mutable global, added behind
// those of the module, so that no instruction of the module can name it. When a
// test finds it below zero, the one function that is added to the imports is
// called; the host looks at the deadline, the budget and the size of its stack
// there, and hands out the next slice or ends the run. That call is also where
// Go can preempt the guest.
//
// The rules, which [Verify] checks on the rewritten bytes:
//
//  1. Prepaid paths. A block of the control-flow graph costs its instructions,
//     and what its callees expect to find prepaid. Each instruction on every
//     path is paid before it runs: on each edge from u to v,
//     potential(u) + charge(u) >= cost(u) + potential(v). A loop header has
//     potential 0 and charges at least 1.
//  2. Prepaid callees. Callers pay up to 256 units for a direct callee, and up to
//     32 for one that is called through a table, so that small functions charge
//     nothing themselves. Functions that the host can call are prepaid nothing.
//  3. Few tests. Every cycle of control flow and of calls passes a test: loop
//     headers do, unless each iteration passes a tested header inside it, and so
//     do the entries of a set of functions without which the call graph has no
//     cycle. What is charged untested between two tests stays below three times
//     [untested] units, and a little for small loops and tail calls.
//     What follows a call that may recurse is prepaid little, and what is left
//     over of other arms does not pay for it, so it is charged and tested again:
//     a stack of a million frames would otherwise unwind for seconds. What is
//     called there at the very end leaves as little untested as who calls it.
//  4. The slow path stands out of line and re-enters the header; nothing is
//     stored before the test has passed. So the size of the slices changes
//     neither the result nor the fuel.
//  5. Small loops without calls are laid out four times under one charge.
//  6. Bulk operations pay for their length first, and test. Memory, which only the host
//     knows whether it grows, is paid behind it: its limit bounds what that can be.
//  7. A call pays for the stack that it takes, one unit for [FrameUnit] bytes of
//     an estimate of its frame. So between two visits to the host the stack grows
//     by a few megabytes at most, and measuring it there is enough: recursion is
//     bounded at no cost to the guest.
//
// Fuel is deterministic: the same module with the same input, clock and chance
// uses the same fuel, on every machine, with slices of every size. It counts more than the
// instructions that run, because arms are partly prepaid (see docs/benchmarks.md
// for the factor).
package meter
