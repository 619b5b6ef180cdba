//go:build !race

package wasm_test

// raceDetector says that memory cannot be measured.
const raceDetector = false
