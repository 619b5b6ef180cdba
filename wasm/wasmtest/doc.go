// Package wasmtest is a small assembler for tests, and the hostile modules that
// are written with it.
//
// A [Builder] takes functions whose bodies are [Code]: instructions that add up
// with +, and helpers that read like the text format.
//
//	b := wasmtest.New()
//	exit := b.Import("proc_exit")
//	b.Memory(1)
//	b.Command(wasmtest.Loop(wasmtest.Br(0)) + wasmtest.I32(1) + wasmtest.Call(exit))
//	module := b.Bytes()
//
// [Hostile] gives the modules by the names of the list of threats, each with how
// a run of it must end, so that every layer above the engine is held to the same
// cases.
package wasmtest
