// Package tune rewrites modules so that wazero's compiler makes faster code of
// them; what a program computes stays the same.
//
// wazero tests every access to memory, except where it tested the same base value up
// to the same end before. LLVM puts the offset of a field into the load or store
// only if pointers are known not to wrap; CPython is built with
// -fno-strict-overflow, and each field that it touches is an addition, a base of
// its own and a test of its own:
//
//	local.get $p  i32.const 8  i32.add  i32.load             ;; as it came
//	local.get $p  i32.load offset=8                          ;; tuned
//
// The two differ for one kind of $p: one so close to 2^32 that the sum wraps, and
// the access goes to the first bytes of the memory. Then the tuned program traps.
// So a caller says how many bytes at address 0 no program reaches in that way
// ([Options].Low), by the way in which it was linked. Nothing else
// changes: not the order of accesses, not what they yield.
//
// A CPython is told of more of its stack than who built it said, and the functions that
// look how much is left take some: see stack.go. There a program goes on where it failed.
//
// Functions that only trap are taken out of tables as well, whose entries each
// instance pays for; calling such an entry is another kind of trap then.
//
//	t, err := tune.Module(m, &tune.Options{Low: 64 << 10})
//	smaller := t.Module.Encode()
package tune
