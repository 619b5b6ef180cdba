//go:build linux && (amd64 || arm64) && !cgo

package workers

// Narrows says whether a process that was confined can be confined further.
const Narrows = true
