//go:build race

package wasm_test

// raceDetector says that memory cannot be measured, and that compiling takes ten
// times as long.
const raceDetector = true
