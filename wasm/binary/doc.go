// Package binary decodes and encodes WebAssembly modules, and reads the
// instructions of their functions one by one.
//
// It is made for rewriters and checkers that meet bytes from strangers:
//
//   - No count is believed. Each one is held against the bytes that are left and
//     against a cap of [Limits] before anything is allocated for it, so that the
//     memory that decoding takes is a small multiple of the input.
//   - Nothing is copied that need not be: function bodies, data and custom
//     sections are views of the input, which must not change afterwards.
//   - What a proposal adds that is not decoded here (threads, memory64,
//     several memories, garbage collection, components …) is refused by name,
//     as an [Error] of kind [Unsupported] with its [Feature].
//
// The format is that of the WebAssembly core specification 2.0, section 5, with
// extended constant expressions, tail calls and exception handling (exnref).
// Decode checks form only; types and indices are the business of a validator
// such as package check.
//
//	m, err := binary.Decode(wasm, nil)
//	if err != nil { … }
//	m.Customs = nil
//	smaller := m.Encode()
package binary
