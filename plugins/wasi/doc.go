// Package wasi runs skills that are WASI commands: modules with a _start that read
// standard input and print a result, written in Go, Rust, C or any language with
// such a target. It is the runner wasm:wasi.
//
// A guest is given its entry's name and the call's arguments, standard input, no
// environment at all, and the files that package sandbox shows.
//
// A module is read, checked and compiled by the first call that needs it, and
// shared by all calls until the file changes. In a folder of the operator's own a
// changed file is what the next call runs. An uploaded skill's module may not
// change after its admission: CONFLICT.
package wasi
