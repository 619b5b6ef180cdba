// Package check decides whether a module from a stranger may be compiled.
//
// [Module] decodes the bytes, validates every function by the algorithm of the
// core specification 2.0 (appendix "Validation Algorithm"), and holds what it
// finds against caps, against the features that are switched on, and against a
// table of the imports that exist. The compiler behind it never sees a byte
// that did not pass.
//
// It also estimates what compiling the module will cost, since nothing can stop the
// compiler once it runs, and refuses what is too dear.
//
// The checker is linear in the input and its memory is a small multiple of it;
// it runs no code, and it quotes nothing of the module in its messages but
// cleaned and shortened names of imports.
package check
