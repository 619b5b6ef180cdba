// Package image freezes what a guest's start-up has made, so that many runs can begin there.
//
// It knows memory and modules, not runs: [Memory] is a content that is kept once
// and mapped by many instances, each of which sees only its own writes, and
// [Prepare] changes a module so that the host can reach the rest of an instance's
// state: its mutable globals, and whether its tables and segments are still what
// they were. What is done with it stands in package wasm.
package image
