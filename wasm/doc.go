// Package wasm runs modules from strangers: it checks, meters, compiles and runs
// them, and says how each run ended.
//
//	e, err := wasm.Open(&wasm.Options{CacheDir: dir})
//	m, err := e.Compile(ctx, bytes, nil)      // refused modules: *check.Error
//	out, err := m.Run(ctx, &wasm.Run{Limits: wasm.Limits{Fuel: 1e9, Timeout: time.Second}})
//	switch out.Ended { case wasm.Returned: … }
//
// An [Outcome] is decided by the host's own state, the first limit that it
// enforced, and never by what the guest says: exit codes and messages can be
// forged. An error from Run means that the host failed, not the guest.
//
// Module.Run has an instance of its own for every run, which is thrown away. An
// [Image] has its instances wait where their start-up is over, and puts them back
// there after each run:
//
//	im := e.Image(&wasm.Program{Module: m, Args: args}, nil)
//	out, err := im.Run(ctx, &wasm.Call{Stdin: input, Limits: limits})
//
// Instances have no names and cannot import from each other.
package wasm
